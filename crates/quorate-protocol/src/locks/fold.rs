//! Folding: a text without what makes two writings of the same words different, which knows where each part of it comes
//! from.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::compose;

use super::character::{Class, REMOVED_MARKUP, case, ends_line, is_mark};
use super::items::{Item, pieces, read_items, remove_markup};

/// A text without what makes two writings of the same words different: compatibility forms, case, marks, characters that are
/// not seen, entities, HTML tags, the targets of links, Markdown's marks, line-end hyphens, and runs of white space, which
/// become one space. Looks do not change: a Cyrillic а stays one. Folding is idempotent.
pub fn fold(text: &str) -> String {
    let mut folded = Folded::default();
    for (_, piece) in pieces(text) {
        let mut read = read_items(piece);
        remove_markup(&mut read);
        folded.push_all(&read, Form::Tight, piece.len());
    }
    // Removed markup leaves no markup; but with it the next folding might find some.
    folded.text.retain(|c| !matches!(c, '&' | '<' | '>'));
    let mut out = String::with_capacity(folded.text.len());
    for c in folded.text.chars() {
        if c != ' ' || !out.ends_with(' ') {
            out.push(c);
        }
    }
    out
}

/// A form in which a text is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Accented letters stay what they are, markup stays.
    Composed,
    /// Without accents; markup stays.
    Bare,
    Tight,
    /// Also with markup as space.
    Loose,
}

/// Folded text that knows where it comes from.
#[derive(Debug, Clone, Default)]
pub(super) struct Folded {
    pub(super) text: String,
    /// For each byte of it the bytes of the text as given that it comes from.
    from: Vec<(u32, u32)>,
}

impl Folded {
    /// A text in a form; `end` is the byte at which the last item ends.
    pub(super) fn new(items: &[Item], form: Form, end: usize) -> Folded {
        let mut folded = Folded::default();
        folded.push_all(items, form, end);
        folded
    }

    /// Where bytes of the folded text come from.
    pub(super) fn source(&self, span: Range<usize>) -> Range<usize> {
        let start = self.from[span.start].0 as usize;
        let end = self.from[span.start..span.end].iter().map(|(_, end)| *end).max().unwrap_or(0) as usize;
        start..end.max(start)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the longest text fits")]
    fn push_all(&mut self, items: &[Item], form: Form, end: usize) {
        let mut at = 0;
        while at < items.len() {
            let item = items[at];
            // Nearly always the next item is the next character.
            if item.c.is_ascii_alphanumeric()
                && let Some(next) = items.get(at + 1).filter(|next| next.start == item.start + 1)
            {
                self.text.push(item.c.to_ascii_lowercase());
                self.from.push((item.start, next.start));
                at += 1;
                continue;
            }
            let next = items[at..]
                .iter()
                .find(|next| next.start != item.start)
                .map_or(end as u32, |next| next.start);
            let source = (item.start, next);
            let mut room = [0; 4];
            match item.class() {
                Class::Hyphen | Class::Nothing
                    if matches!(form, Form::Tight | Form::Loose)
                        && (item.class() == Class::Hyphen || item.c == '\u{ad}')
                        && line_break_len(&items[at + 1..]).is_some() =>
                {
                    at += line_break_len(&items[at + 1..]).unwrap_or(0);
                }
                Class::Nothing if form == Form::Composed && is_mark(item.c) => self.compose(item.c),
                Class::Nothing => {}
                Class::Space => self.space(source),
                Class::Mark if form == Form::Tight => {}
                Class::Mark if form == Form::Loose || item.c == REMOVED_MARKUP => self.space(source),
                _ if form == Form::Composed && !item.c.is_ascii() => {
                    for c in item.c.nfkc().flat_map(case) {
                        self.push(c.encode_utf8(&mut room), source);
                    }
                }
                _ => self.push(item.entry().plain(item.c, &mut room), source),
            }
            at += 1;
        }
    }

    fn push(&mut self, part: &str, source: (u32, u32)) {
        self.text.push_str(part);
        self.from.resize(self.text.len(), source);
    }

    fn space(&mut self, source: (u32, u32)) {
        if !self.text.ends_with(' ') {
            self.push(" ", source);
        }
    }

    /// Puts a mark on the last character, where there is one that has both.
    fn compose(&mut self, mark: char) {
        if let Some(last) = self.text.pop() {
            let c = compose(last, mark).unwrap_or(last);
            let source = self.from[self.text.len()];
            self.from.truncate(self.text.len());
            self.push(c.encode_utf8(&mut [0; 4]), source);
        }
    }
}

/// How many items a line's end takes whose hyphen is before them.
fn line_break_len(after: &[Item]) -> Option<usize> {
    let blank = |item: &&Item| matches!(item.class(), Class::Nothing | Class::Space);
    let len = after.iter().take_while(blank).count();
    after[..len].iter().any(|item| ends_line(item.c)).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writings_of_the_same_words_fold_to_the_same() {
        let same = [
            "Warm and honest",
            "WARM  and\n honest",
            "**warm** and `honest`",
            "Wa\u{301}rm a\u{200b}nd hon\u{ad}est",
            "Ｗarm &amp;#97;nd h&oacute;nest",
            "<b>warm</b> and [honest](https://example.org)",
            "warm and hon-\n  est",
        ];
        for text in same {
            assert_eq!(fold(text), "warm and honest", "{text}");
        }
    }

    #[test]
    fn looks_stay() {
        assert_ne!(fold("wаrm"), fold("warm"));
        assert_eq!(fold("Straße"), "strasse");
    }
}
