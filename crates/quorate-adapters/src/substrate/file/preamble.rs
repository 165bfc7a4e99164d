//! Checks the text before the first turn: titles and comments are allowed there, other text is not.

use super::format;

/// The first line (from 1) that is neither blank nor a heading, a comment, or a header that was cut off. A file without
/// turns that has one is no journal.
pub(super) fn first_text_line(text: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(&text[format::byte_order_mark(text)..]);
    let mut commented = false;
    text.lines()
        .position(|line| !format::is_cut_header(line) && has_text(line, &mut commented))
        .map(|at| at + 1)
}

/// Whether a line has words outside of comments, and is no heading.
fn has_text(line: &str, commented: &mut bool) -> bool {
    let mut rest = line.trim();
    loop {
        if *commented {
            let Some((_, behind)) = rest.split_once("-->") else { return false };
            (*commented, rest) = (false, behind.trim_start());
        }
        match rest.strip_prefix("<!--") {
            Some(comment) => (*commented, rest) = (true, comment),
            None => return !rest.is_empty() && !is_heading(rest),
        }
    }
}

fn is_heading(line: &str) -> bool {
    let title = line.trim_start_matches('#');
    title.len() < line.len() && (title.is_empty() || title.starts_with([' ', '\t']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_and_comments_are_no_words() {
        for text in [
            "",
            "\n \n",
            "# Launch",
            "\u{feff}# Launch\r\n\r\n###\r\n",
            "<!-- a --> <!-- b -->\n<!--\nc\n\n--> \n# d\n",
            "<!-- never closed\nx",
            "=== TURN id=t_5f",
            "===",
            "\0\0\0",
        ] {
            assert_eq!(first_text_line(text.as_bytes()), None, "{text:?}");
        }
        for (text, line) in [
            ("hello", 1),
            ("# Launch\n\nhello\n", 3),
            ("#!/bin/sh\n", 1),
            ("<!-- a --> b", 1),
            ("<!--\na\n--> b", 3),
            ("schema: agentruntimes/v1\n", 1),
            ("---\n", 1),
        ] {
            assert_eq!(first_text_line(text.as_bytes()), Some(line), "{text:?}");
        }
        assert_eq!(first_text_line(b"\n\xff"), Some(2));
    }
}
