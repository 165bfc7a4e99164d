//! The code of MDX: imports and exports, expressions in braces with their comments, and the tags of components. What
//! stands between tags is Markdown.

use std::borrow::Cow;
use std::ops::Range;

/// Stands in the prose for every byte of code and of bare URLs: a word that no check looks for.
pub(super) const CODE_FILL: char = '\u{1}';

/// The text with its code blanked out, of the same length in bytes, and where the code was. `body` is where the front
/// matter ends. Code that does not end stays in the text.
pub(super) fn mask(text: &str, body: usize) -> (Cow<'_, str>, Vec<Range<usize>>) {
    let spans = Scan { text, at: body, spans: Vec::new(), open_brace: false, open_tag: false }.run();
    if spans.is_empty() {
        return (Cow::Borrowed(text), spans);
    }
    let mut bytes = text.as_bytes().to_vec();
    for span in &spans {
        // Before text on the same line it is filled, since blanks would indent the text.
        let (before, after) = (&text.as_bytes()[..span.start], &text.as_bytes()[span.end..]);
        let begins = before.iter().rev().take_while(|byte| **byte != b'\n').all(u8::is_ascii_whitespace);
        let ends = after.iter().take_while(|byte| **byte != b'\n').all(u8::is_ascii_whitespace);
        let fill = if begins && !ends { CODE_FILL } else { ' ' };
        let code = bytes[span.clone()].iter_mut();
        code.filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = fill as u8);
    }
    // Every span ends on a character, so this cannot fail; the unchanged text would only hide less.
    (String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned), spans)
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
    spans: Vec<Range<usize>>,
    /// Whether a brace was found that does not end, so that no further one is looked for.
    open_brace: bool,
    open_tag: bool,
}

impl<'t> Scan<'t> {
    fn run(mut self) -> Vec<Range<usize>> {
        let mut fence: Option<&str> = None;
        let mut after_blank = true;
        while self.at < self.text.len() {
            let start = self.at;
            let line = self.line_from(start);
            let bare = line.trim();
            if let Some(mark) = fence {
                if bare.starts_with(mark) && bare.bytes().all(|byte| byte == mark.as_bytes()[0]) {
                    fence = None;
                }
                self.at += line.len();
            } else if bare.starts_with("```") || bare.starts_with("~~~") {
                let count = bare.bytes().take_while(|byte| *byte == bare.as_bytes()[0]).count();
                fence = Some(&bare[..count]);
                self.at += line.len();
            } else if after_blank && ["import ", "export "].iter().any(|word| line.starts_with(word)) {
                self.read_statement();
            } else {
                self.read_line(start + line.len());
            }
            after_blank = bare.is_empty();
        }
        self.spans
    }

    /// A line with its end.
    fn line_from(&self, at: usize) -> &'t str {
        let rest = &self.text[at..];
        rest.find('\n').map_or(rest, |end| &rest[..=end])
    }

    /// Imports and exports end before a blank line.
    fn read_statement(&mut self) {
        let start = self.at;
        let mut end = start;
        while end < self.text.len() && !self.line_from(end).trim().is_empty() {
            end += self.line_from(end).len();
        }
        self.spans.push(start..start + self.text[start..end].trim_end().len());
        self.at = end;
    }

    /// Expressions and tags that begin in a line; they may end in a later one.
    fn read_line(&mut self, end: usize) {
        while self.at < end {
            let rest = &self.text[self.at..];
            let code = match rest.as_bytes() {
                [b'\\', ..] => {
                    self.at += 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                    continue;
                }
                [b'`', ..] => {
                    let marks = rest.bytes().take_while(|byte| *byte == b'`').count();
                    let line = &rest[..end - self.at];
                    let close = line[marks..].find(&line[..marks]).map_or(0, |close| close + marks);
                    self.at += marks + close;
                    continue;
                }
                [b'{', ..] if !self.open_brace => {
                    let length = expression_len(rest);
                    self.open_brace = length.is_none();
                    length
                }
                [b'<', ..] if !self.open_tag && begins_tag(rest) => {
                    let length = tag_len(rest);
                    self.open_tag = length.is_none();
                    length
                }
                _ => None,
            };
            match code {
                Some(length) => {
                    self.spans.push(self.at..self.at + length);
                    self.at += length;
                }
                None => self.at += rest.chars().next().map_or(1, char::len_utf8),
            }
        }
    }
}

/// The length of an expression in braces.
fn expression_len(rest: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut in_comment = false;
    for (at, c) in rest.char_indices() {
        match (quote, c) {
            _ if in_comment => in_comment = !(c == '/' && rest[..at].ends_with('*')),
            (Some(mark), c) if c == mark => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '*') if rest[..at].ends_with('/') => in_comment = true,
            (None, '{') => depth += 1,
            (None, '}') => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether a tag of a component or element begins here: `<Box`, `</Box>`, `<>`.
fn begins_tag(rest: &str) -> bool {
    let inner = rest[1..].strip_prefix('/').unwrap_or(&rest[1..]);
    let name = inner.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte)).count();
    let is_name = inner.starts_with(|c: char| c.is_ascii_alphabetic());
    let after = inner.as_bytes().get(name).copied().unwrap_or(b'\n');
    (is_name || name == 0 && after == b'>') && (after.is_ascii_whitespace() || matches!(after, b'/' | b'>'))
}

/// The length of a tag, whose attributes may have strings and expressions.
fn tag_len(rest: &str) -> Option<usize> {
    let mut at = 1;
    while let Some(c) = rest[at..].chars().next() {
        at += match c {
            '>' => return Some(at + 1),
            '"' | '\'' => rest[at + 1..].find(c)? + 2,
            '{' => expression_len(&rest[at..])?,
            c => c.len_utf8(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &str) -> String {
        let (clean, _) = mask(text, 0);
        assert_eq!(clean.len(), text.len());
        clean.replace(CODE_FILL, "")
    }

    #[test]
    fn code_is_taken_out_and_text_stays() {
        for (text, left) in [
            ("import Box from './box'\nexport const x = {a: '}'}\n\nText.\n", "\n\n\nText.\n"),
            ("A {/* note } */}word.\n", "A word.\n"),
            ("{/* note */}Word.\n", "Word.\n"),
            ("<Box kind=\"a > b\" on={() => {}}>\n  Word.\n</Box>\n", "\n  Word.\n\n"),
            ("<>é</>\n", "é\n"),
            ("`{a}` and \\{b} and ``<C>``\n", "`{a}` and \\{b} and ``<C>``\n"),
            ("```js\nlet a = {\n```\n\nText {x}.\n", "```js\nlet a = {\n```\n\nText .\n"),
            ("It is <5 and {open\n", "It is <5 and {open\n"),
            ("The import rules hold.\nexport rules too.\n", "The import rules hold.\nexport rules too.\n"),
        ] {
            let clean = masked(text);
            assert!(clean.split_whitespace().eq(left.split_whitespace()), "{text:?}: {clean:?}");
        }
    }
}
