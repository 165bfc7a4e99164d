//! The text between the tags of a block of HTML, as a reader of the page sees it.

use std::ops::Range;

/// Elements whose text is not the author's prose.
const NOT_PROSE: &[&str] = &["blockquote", "code", "pre", "script", "style", "svg", "textarea"];
/// Elements that do not end a sentence.
const INLINE: &[&str] =
    &["a", "abbr", "b", "em", "i", "mark", "s", "small", "span", "strong", "sub", "sup", "u"];

/// The places are those of the block.
#[derive(Debug, Default)]
pub(super) struct HtmlBlock {
    pub(super) texts: Vec<Range<usize>>,
    /// Tags that end a sentence.
    pub(super) breaks: Vec<usize>,
    pub(super) is_table: bool,
    /// Where something begins that the block does not end, and what it is.
    pub(super) open: Option<(usize, &'static str)>,
}

pub(super) fn read(block: &str) -> HtmlBlock {
    let mut html = HtmlBlock::default();
    let folded = block.to_ascii_lowercase();
    let mut at = 0;
    while let Some(rest) = block.get(at..).filter(|rest| !rest.is_empty()) {
        let length = if let Some(comment) = rest.strip_prefix("<!--") {
            let end = comment.find("-->").map(|end| end + "<!---->".len());
            html.end_or_note(end, at, comment, "a comment that does not end")
        } else if let Some((_, None)) = tag(rest) {
            html.end_or_note(None, at, &rest[1..], "HTML that does not end")
        } else if let Some((name, Some(length))) = tag(rest) {
            html.is_table |= matches!(&*name, "td" | "th");
            if !INLINE.contains(&&*name) {
                html.breaks.push(at);
            }
            if NOT_PROSE.contains(&&*name) {
                let closing = format!("</{name}");
                let end = folded[at..].find(&closing).map(|end| end + closing.len());
                html.end_or_note(end, at, &rest[length..], "HTML that does not end")
            } else {
                Some(length)
            }
        } else {
            let length = rest[1..].find('<').map_or(rest.len(), |next| next + 1);
            if rest[..length].contains(char::is_alphanumeric) {
                html.texts.push(at..at + length);
            }
            Some(length)
        };
        let Some(length) = length else { break };
        at += length;
    }
    html
}

impl HtmlBlock {
    /// Passes the end on. Notes what has none, if there is text in it.
    fn end_or_note(
        &mut self,
        end: Option<usize>,
        at: usize,
        inside: &str,
        what: &'static str,
    ) -> Option<usize> {
        if end.is_none() && inside.contains(char::is_alphanumeric) {
            self.open = Some((at, what));
        }
        end
    }
}

/// The name of the tag that a text begins with, in lower case and without a slash, and the tag's length if it ends.
fn tag(rest: &str) -> Option<(String, Option<usize>)> {
    let inner = rest.strip_prefix('<')?;
    let inner = inner.strip_prefix('/').unwrap_or(inner);
    if !inner.starts_with(|c: char| c.is_ascii_alphabetic() || c == '!' || c == '?') {
        return None;
    }
    let name: String = inner.chars().take_while(char::is_ascii_alphanumeric).collect();
    let mut quote = None;
    let end = rest.char_indices().find(|(_, c)| {
        match (quote, *c) {
            (Some(mark), c) if c == mark => quote = None,
            (None, '"' | '\'') => quote = Some(*c),
            (None, '>') => return true,
            _ => {}
        }
        false
    });
    Some((name.to_ascii_lowercase(), end.map(|(at, _)| at + 1)))
}
