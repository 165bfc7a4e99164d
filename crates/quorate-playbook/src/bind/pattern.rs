//! A required value: anything, an exact value, or a glob. Equal globs of several playbooks are shared, and a glob is
//! compiled only when a value has its prefix and suffix: compiling costs a hundred times as much as matching, and most
//! globs never see it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use globset::{GlobBuilder, GlobMatcher};

/// What a glob has that is not itself.
const META_CHARS: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// What a value has to be.
#[derive(Debug, Clone)]
pub(super) enum Pattern {
    Any,
    Exact(String),
    /// One that a glob matches.
    Glob(Arc<Glob>),
}

#[derive(Debug)]
pub(super) struct Glob {
    text: String,
    /// What a value begins with that it matches, and what it ends with.
    head: usize,
    tail: Range<usize>,
    /// Nothing where the text is no glob: it matches nothing then.
    compiled: OnceLock<Option<GlobMatcher>>,
}

/// Globs that there are already.
#[derive(Debug, Default)]
pub(super) struct GlobCache(HashMap<String, Arc<Glob>>);

impl Pattern {
    pub(super) fn parse(value: &str, globs: &mut GlobCache) -> Self {
        if value == "*" {
            Pattern::Any
        } else if value.contains(['*', '?', '[', '{']) {
            Pattern::Glob(globs.get_or_insert(value))
        } else {
            Pattern::Exact(value.to_owned())
        }
    }
}

impl GlobCache {
    fn get_or_insert(&mut self, text: &str) -> Arc<Glob> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let new = Arc::new(Glob::new(text));
        self.0.insert(text.to_owned(), Arc::clone(&new));
        new
    }
}

impl Glob {
    fn new(text: &str) -> Self {
        // A `/` beside `**` may match nothing, and a comma separates alternatives.
        let divides = |c: char| META_CHARS.contains(&c) || matches!(c, '/' | ',');
        let prefix_len = text.find(divides).unwrap_or(text.len());
        let suffix = text.rfind(divides).map_or(0, |at| at + 1)..text.len();
        Glob { text: text.to_owned(), head: prefix_len, tail: suffix, compiled: OnceLock::new() }
    }

    /// What every value begins with that it matches.
    pub(super) fn prefix(&self) -> &str {
        &self.text[..self.head]
    }

    /// Whether it matches a value.
    pub(super) fn matches(&self, value: &str) -> bool {
        if !value.starts_with(self.prefix()) || !value.ends_with(&self.text[self.tail.clone()]) {
            return false;
        }
        let compile = || {
            let glob = GlobBuilder::new(&self.text).literal_separator(true).build().ok()?;
            Some(glob.compile_matcher())
        };
        self.compiled.get_or_init(compile).as_ref().is_some_and(|glob| glob.is_match(value))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn glob(text: &str) -> Option<GlobMatcher> {
        Some(GlobBuilder::new(text).literal_separator(true).build().ok()?.compile_matcher())
    }

    proptest! {
        /// The cheap test rejects no value that the glob would match.
        #[test]
        fn heads_and_tails_are_the_globs(
            text in "([ab]|/|\\*\\*|\\*|\\?|\\[a-b\\]|\\[!a\\]|\\{a,b\\}|\\{|\\]|,|\\\\|é){1,6}",
            value in "[ab/,é*]{0,6}",
        ) {
            let naive = glob(&text).is_some_and(|glob| glob.is_match(&value));
            prop_assert_eq!(Glob::new(&text).matches(&value), naive, "{} {}", text, value);
        }
    }
}
