//! The parts of a text that were not read although they may hold the author's prose, for people: `lines 5-11 (a code block
//! that does not end)`.

use std::ops::Range;

use super::document::Document;
use super::substance;

/// More would fill the screen.
const MAX_PLACES: usize = 10;

const OTHER_LANGUAGE: &str = "not in English";

/// One entry for each kind of part, in the order of the text.
pub(super) fn places(document: &Document<'_>) -> Vec<String> {
    let other = substance::places_not_in_english(document).into_iter().map(|span| (span, OTHER_LANGUAGE));
    let mut parts: Vec<(Range<usize>, &str)> = document.unread.iter().cloned().chain(other).collect();
    parts.sort_by_key(|(span, _)| span.start);
    let mut kinds: Vec<(&str, Vec<(usize, usize)>)> = Vec::new();
    for (span, kind) in parts {
        let end = span.start + document.text[span.clone()].trim_end().len();
        let lines = (document.line_of(span.start), document.line_of(end.max(span.start + 1) - 1));
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, all)) => add(all, lines),
            None => kinds.push((kind, vec![lines])),
        }
    }
    kinds.into_iter().map(|(kind, lines)| format!("{} ({kind})", describe(&lines))).collect()
}

/// Lines that follow each other are one range.
fn add(all: &mut Vec<(usize, usize)>, (first, last): (usize, usize)) {
    match all.last_mut().filter(|(_, end)| first <= *end + 1) {
        Some((_, end)) => *end = last.max(*end),
        None => all.push((first, last)),
    }
}

fn describe(lines: &[(usize, usize)]) -> String {
    let range = |(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let listed = lines.iter().take(MAX_PLACES).map(range).collect::<Vec<_>>().join(", ");
    let noun = if matches!(lines, [(first, last)] if first == last) { "line" } else { "lines" };
    match lines.len().saturating_sub(MAX_PLACES) {
        0 => format!("{noun} {listed}"),
        more => format!("{noun} {listed} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unread(name: &str, text: &str) -> Vec<String> {
        places(&Document::parse(name, text))
    }

    #[test]
    fn what_does_not_end_is_named() {
        for (text, named) in [
            ("A.\n\n```sh\nlamp\n\nAlways free.\n", "lines 3-6 (a code block that does not end)"),
            ("~~~\nlamp\n```\n", "lines 1-3 (a code block that does not end)"),
            ("````\nlamp\n```\n\nAlways free.", "lines 1-5 (a code block that does not end)"),
            ("- a\n\n  ```\n  lamp\n\nText.\n", "lines 3-4 (a code block that does not end)"),
            ("A.\n\n<!-- note\n\nAlways free.\n", "lines 3-5 (a comment that does not end)"),
            ("<div>\nOne. <!-- two\n</div>\n", "lines 2-3 (a comment that does not end)"),
            ("<pre>\nlamp\n\nAlways free.\n", "lines 1-4 (HTML that does not end)"),
            ("<?php\nAlways free.\n", "lines 1-2 (HTML that does not end)"),
            ("A.\n\n<![CDATA[\nAlways free.\n", "lines 3-4 (HTML that does not end)"),
            ("<div title=\"\nAlways free.\n", "lines 1-2 (HTML that does not end)"),
        ] {
            assert_eq!(unread("x.md", text), [named], "{text:?}");
        }
        for text in [
            "A.\n\n```sh\nlamp\n```\n",
            "```\n",
            "<!-- note -->\n",
            "<pre>\nx\n</pre>\n",
            "> ```\n> x\n",
            "`a\n\nb",
        ] {
            assert_eq!(unread("x.md", text), [""; 0], "{text:?}");
        }
    }

    #[test]
    fn code_of_mdx_is_named_and_the_text_in_components_is_read() {
        let text = "import Box from './box'\nexport const x = 'always'\n\n{/* a */}One.\n\n<Box label=\"everyone\">\n    We two.\n</Box>\n\nTwo {b} end.\n";
        assert_eq!(unread("a/x.mdx", text), ["lines 1-2, 4, 6, 8, 10 (code of MDX)"]);
        let document = Document::parse("x.mdx", text);
        let words: Vec<&str> =
            document.words.iter().map(|word| &*word.text).filter(|word| *word != "`").collect();
        assert_eq!(words, ["one", "we", "two", "two", "end"]);
        assert_eq!(unread("x.md", text), [""; 0]);
    }

    #[test]
    fn long_lists_are_cut() {
        let text = "One {a} word.\n\n".repeat(12);
        assert_eq!(
            unread("x.mdx", &text),
            ["lines 1, 3, 5, 7, 9, 11, 13, 15, 17, 19 and 2 more (code of MDX)"]
        );
    }
}
