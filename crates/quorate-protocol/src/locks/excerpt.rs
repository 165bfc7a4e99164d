//! What is shown of a hit: the place itself and a little of what stands around it, fit for one line of a terminal.

use std::ops::Range;

/// How many characters are shown on either side of a hit.
const AROUND: usize = 40;

/// How many characters of a hit itself are shown at most; of a longer one the two ends.
const WITHIN: usize = 160;

/// A hit with up to 40 characters on either side, in one line: white space as one space, control, bidi and other
/// invisible characters left out, an ellipsis where something was cut. A span that does not lie in the text is cut to
/// what does.
pub fn excerpt(text: &str, span: &Range<usize>) -> String {
    let start = text.floor_char_boundary(span.start);
    let end = text.ceil_char_boundary(span.end).max(start);
    let mut out = String::new();
    let before = &text[..start];
    let from = before.char_indices().rev().take(AROUND).last().map_or(start, |(at, _)| at);
    if from > 0 {
        out.push('…');
    }
    push(&mut out, &text[from..start]);
    let hit = &text[start..end];
    let mut ends = hit.char_indices().map(|(at, _)| at);
    match (ends.nth(WITHIN / 2), hit.char_indices().rev().map(|(at, _)| at).nth(WITHIN / 2)) {
        (Some(head), Some(tail)) if head < tail => {
            push(&mut out, &hit[..head]);
            out.push('…');
            push(&mut out, &hit[tail..]);
        }
        _ => push(&mut out, hit),
    }
    let to = text[end..].char_indices().nth(AROUND).map_or(text.len(), |(at, _)| end + at);
    push(&mut out, &text[end..to]);
    if to < text.len() {
        out.push('…');
    }
    out.trim().to_owned()
}

/// Adds what can be shown: white space as one space, nothing that is not seen.
fn push(out: &mut String, part: &str) {
    for c in part.chars() {
        if c.is_whitespace() {
            if !out.ends_with(' ') {
                out.push(' ');
            }
        } else if !c.is_control() {
            out.push(c);
        }
    }
}
