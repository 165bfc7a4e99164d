//! The excerpt of a hit: the match and a little of its context, fit for one line of a terminal.

use std::ops::Range;

use super::character::{Class, entry, is_mark};

/// How many characters are shown on either side of a hit.
const CONTEXT_CHARS: usize = 40;

/// How many characters of a hit itself are shown at most; of a longer one the two ends.
const MAX_HIT_CHARS: usize = 160;

/// A hit with up to 40 characters on either side, in one line: white space as one space, control, bidi and other
/// invisible characters left out, an ellipsis where something was cut. A span that is not in the text is cut to
/// what does.
pub fn excerpt(text: &str, span: &Range<usize>) -> String {
    let [before, hit, after] = excerpt_parts(text, span);
    format!("{before}{hit}{after}").trim().to_owned()
}

/// What [`excerpt`] shows before the hit, of the hit, and after it, for who marks the hit.
pub fn excerpt_parts(text: &str, span: &Range<usize>) -> [String; 3] {
    let start = text.floor_char_boundary(span.start);
    let end = text.ceil_char_boundary(span.end).max(start);
    let (before, hit, after) = (&text[..start], &text[start..end], &text[end..]);
    let from = before.char_indices().rev().take(CONTEXT_CHARS).last().map_or(start, |(at, _)| at);
    let to = after.char_indices().nth(CONTEXT_CHARS).map_or(after.len(), |(at, _)| at);
    let cut = |is_cut| if is_cut { "…" } else { "" };
    [
        format!("{}{}", cut(from > 0), printable(&before[from..])),
        shorten_hit(hit),
        format!("{}{}", printable(&after[..to]), cut(to < after.len())),
    ]
}

/// A hit, or of a long one its two ends.
fn shorten_hit(hit: &str) -> String {
    let head = hit.char_indices().nth(MAX_HIT_CHARS / 2).map(|(at, _)| at);
    let tail = hit.char_indices().rev().nth(MAX_HIT_CHARS / 2).map(|(at, _)| at);
    match (head, tail) {
        (Some(head), Some(tail)) if head < tail => {
            format!("{}…{}", printable(&hit[..head]), printable(&hit[tail..]))
        }
        _ => printable(hit),
    }
}

/// The displayable form: white space as one space, no invisible characters, no mark without a base.
fn printable(part: &str) -> String {
    let mut out = String::new();
    for c in part.chars() {
        let unseen = entry(c).class == Class::Nothing && (out.is_empty() || !is_mark(c));
        if c.is_whitespace() {
            if !out.ends_with(' ') {
                out.push(' ');
            }
        } else if !unseen && !c.is_control() {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, hit: &str, want: &str) {
        let start = text.find(hit).expect("it is there");
        assert_eq!(excerpt(text, &(start..start + hit.len())), want);
    }

    #[test]
    fn a_hit_is_shown_in_one_line_with_a_little_around_it() {
        check("Show more\n\twarmth, please.", "warmth", "Show more warmth, please.");
        let long = "x".repeat(50);
        let cut = "x".repeat(40);
        check(&format!("{long}warmth{long}"), "warmth", &format!("…{cut}warmth{cut}…"));
        check("a\u{202e}b\u{1b}[31m wa\u{200b}rmth\u{0}", "wa\u{200b}rmth", "ab[31m warmth");
    }

    #[test]
    fn of_a_long_hit_the_ends_are_shown() {
        let text = format!("w{}h", "<b></b>".repeat(100));
        let shown = excerpt(&text, &(0..text.len()));
        assert!(
            shown.starts_with("w<b>") && shown.ends_with("</b>h") && shown.chars().count() < 170,
            "{shown}"
        );
    }

    #[test]
    fn a_hit_is_cut_where_something_is_left_out() {
        for (letters, shown) in [(100, 100), (160, 160), (161, 161), (162, 162), (400, 162)] {
            let hit = "x".repeat(letters);
            let short = shorten_hit(&hit);
            assert_eq!((short.contains('…'), short.chars().count()), (letters > 161, shown), "{letters}");
        }
    }

    #[test]
    fn a_span_beside_the_text_is_cut_to_it() {
        assert_eq!(excerpt("é", &(1..99)), "é");
        assert_eq!(excerpt("", &(5..9)), "");
    }
}
