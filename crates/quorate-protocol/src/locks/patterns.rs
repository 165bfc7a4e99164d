//! Traits that are patterns: tried on the text as given and on its folded forms, never on looks (L3).

use std::ops::Range;

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::character::Class;
use super::fold::{Folded, Form};
use super::hit::Layer;
use super::item::Item;

/// How large a compiled pattern may get, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// How large all patterns together may get, in bytes, before each is tried by itself.
const MAX_COMBINED_BYTES: usize = 32 << 20;

/// Patterns, ready to be tried.
#[derive(Debug, Clone)]
pub(super) struct Patterns {
    all: Vec<Pattern>,
    /// All of them as one; `None` where that is too large.
    together: Option<RegexSet>,
}

#[derive(Debug, Clone)]
struct Pattern {
    at: usize,
    /// What it is called where the folded text has it.
    folded: Layer,
    regex: Regex,
}

impl Patterns {
    /// By index: patterns of traits, and plain texts that must match folded text verbatim.
    ///
    /// # Errors
    /// The index of a pattern that does not compile, and why.
    pub(super) fn new<'a>(
        patterns: impl Iterator<Item = (usize, &'a str)>,
        texts: impl Iterator<Item = (usize, String)>,
    ) -> Result<Patterns, (usize, String)> {
        let mut all = Vec::new();
        for (at, pattern) in patterns {
            let regex = compile(pattern).map_err(|why| (at, why))?;
            all.push(Pattern { at, folded: Layer::RegexFolded, regex });
        }
        for (at, text) in texts {
            let regex = compile(&regex::escape(&text)).map_err(|why| (at, why))?;
            all.push(Pattern { at, folded: Layer::Folded, regex });
        }
        let texts = all.iter().map(|pattern| pattern.regex.as_str());
        let combined = RegexSetBuilder::new(texts)
            .case_insensitive(true)
            .size_limit(MAX_COMBINED_BYTES)
            .dfa_size_limit(MAX_COMBINED_BYTES)
            .build()
            .ok()
            .filter(|_| all.len() > 1);
        Ok(Patterns { all, together: combined })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Calls back with every place in the text as given. Of a pattern that fits nothing at all, nothing is a place.
    pub(super) fn find_given(&self, text: &str, mut found: impl FnMut(usize, Layer, Range<usize>)) {
        self.find(text, |pattern, span| {
            if pattern.folded == Layer::RegexFolded {
                found(pattern.at, Layer::Regex, span);
            }
        });
    }

    /// Calls back with every place in the forms of the text; `taken` is without its markup, and `end` the byte at
    /// which it ends.
    pub(super) fn find_folded(
        &self,
        items: &[Item],
        taken: &[Item],
        end: usize,
        mut found: impl FnMut(usize, Layer, Range<usize>),
    ) {
        let any = |items: &[Item], is: fn(&Item) -> bool| items.iter().any(is);
        let is_joined =
            |item: &Item| matches!(item.class(), Class::Mark | Class::Hyphen) || item.c == '\u{ad}';
        let (marked, taken_out) = (any(taken, is_joined), items != taken);
        // A form that is another's is not tried again.
        let forms = [
            (items, Form::Composed, any(items, |item| !item.c.is_ascii())),
            (items, Form::Bare, true),
            (items, Form::Tight, taken_out && any(items, is_joined)),
            (taken, Form::Tight, marked),
            (taken, Form::Loose, marked),
        ];
        for (items, form, _) in forms.into_iter().filter(|(.., differs)| *differs) {
            let folded = Folded::new(items, form, end);
            self.find(&folded.text, |pattern, span| found(pattern.at, pattern.folded, folded.source(span)));
        }
    }

    fn find(&self, text: &str, mut found: impl FnMut(&Pattern, Range<usize>)) {
        let fitting: Vec<usize> = match &self.together {
            Some(set) => set.matches(text).into_iter().collect(),
            None => (0..self.all.len()).collect(),
        };
        for pattern in fitting.into_iter().map(|index| &self.all[index]) {
            for place in pattern.regex.find_iter(text).filter(|place| !place.is_empty()) {
                found(pattern, place.range());
            }
        }
    }
}

fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern).case_insensitive(true).size_limit(MAX_PATTERN_BYTES).build().map_err(|error| {
        match error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            error => {
                error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
            }
        }
    })
}
