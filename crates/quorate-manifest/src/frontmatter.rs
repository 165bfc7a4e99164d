//! YAML frontmatter between `---` lines, and the Markdown below it (M1).

use std::ops::Range;

use crate::tree::Problem;

/// An editor comment that is allowed before the frontmatter.
const MODELINE: &str = "# yaml-language-server:";

/// The ranges of the two parts of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// The YAML, without the `---` lines.
    pub yaml: Range<usize>,
    pub body: Range<usize>,
}

/// Finds the frontmatter. Lines may end in CRLF.
///
/// # Errors
/// The text has no frontmatter, or it is not closed.
pub fn split(text: &str) -> Result<Parts, Problem> {
    let mut at = 0;
    let mut opened = None;
    for line in text.split_inclusive('\n') {
        let line_range = at..at + line.len();
        at = line_range.end;
        let fence = line.trim_end() == "---";
        match opened {
            None if fence => opened = Some(line_range),
            None if line.trim().is_empty() || line.starts_with(MODELINE) => {}
            None => return Err(missing(line_range.start..line_range.start + line.trim_end().len())),
            Some(ref open) if fence => {
                return Ok(Parts { yaml: open.end..line_range.start, body: line_range.end..text.len() });
            }
            Some(_) => {}
        }
    }
    match opened {
        Some(open) => {
            Err(Problem::new(open.start..open.start + 3, "the frontmatter that begins here does not end")
                .help("close it with a line `---`"))
        }
        None => Err(missing(0..0)),
    }
}

fn missing(at: Range<usize>) -> Problem {
    Problem::new(at, "the frontmatter is missing")
        .help("begin with a line `---`, the keys, and another line `---`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (&str, &str) {
        let parts = split(text).expect("there is frontmatter");
        (&text[parts.yaml], &text[parts.body])
    }

    #[test]
    fn frontmatter_is_between_two_fences() {
        // M1.
        assert_eq!(parts("---\na: 1\n---\nText\n---\nmore"), ("a: 1\n", "Text\n---\nmore"));
        assert_eq!(parts("---\r\na: 1\r\n---\r\nText"), ("a: 1\r\n", "Text"));
        assert_eq!(parts("# yaml-language-server: $schema=x.json\n---\na: 1\n---"), ("a: 1\n", ""));
        assert_eq!(parts("\n--- \n---\n"), ("", ""));
    }

    #[test]
    fn a_text_without_frontmatter_is_refused_at_its_first_line() {
        for (text, at) in [("", 0..0), ("# Title\n", 0..7), ("---\na: 1\n", 0..3), ("\n---x\n---\n", 1..5)] {
            assert_eq!(split(text).expect_err(text).span, at, "{text}");
        }
    }
}
