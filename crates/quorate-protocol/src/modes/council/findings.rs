//! Findings and their places: a finding quotes the text it is about, and code, not the member, locates the quote (X9).

use std::cell::OnceCell;
use std::ops::Range;

use memchr::memmem;

use crate::answers::deliberator;

/// The position of a quote in the artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Byte offsets.
    pub span: Range<usize>,
    /// 1-based.
    pub line: usize,
    /// 1-based, in characters.
    pub column: usize,
}

/// An artifact, ready for quotes to be looked up in it. What is made for the first quote serves all.
pub struct ArtifactIndex<'a> {
    text: &'a str,
    /// Where each line begins.
    lines: Vec<usize>,
    folded: OnceCell<NormalizedText>,
}

impl<'a> ArtifactIndex<'a> {
    /// Splits the text into lines; the rest is made for the first quote that needs it.
    pub fn new(text: &'a str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        ArtifactIndex { text, lines: std::iter::once(0).chain(breaks).collect(), folded: OnceCell::new() }
    }

    /// Locates a finding's quote. The text is compared verbatim; failing that, with whitespace runs and typographic quotes
    /// made equal. If several places match, the nearest to the member's line is used, or the first without a line.
    pub fn locate(&self, finding: &deliberator::Finding) -> Option<Location> {
        let quote = finding.quote.trim();
        if quote.is_empty() {
            return None;
        }
        let wanted = finding.line.and_then(|line| usize::try_from(line).ok());
        let nearest = |text: &str, quote: &str, source: &dyn Fn(usize) -> usize| {
            let mut places = memmem::find_iter(text.as_bytes(), quote.as_bytes());
            match wanted {
                None => places.next(),
                Some(wanted) => places.min_by_key(|at| wanted.abs_diff(self.line_of(source(*at)))),
            }
        };
        let span = match nearest(self.text, quote, &|at| at) {
            Some(at) => at..at + quote.len(),
            None => {
                let folded = self.folded.get_or_init(|| NormalizedText::of(self.text));
                let quote = NormalizedText::of(quote).text;
                let at = nearest(&folded.text, &quote, &|at| folded.starts[at])?;
                folded.starts[at]..folded.starts[at + quote.len()]
            }
        };
        let line = self.line_of(span.start);
        let column = self.text[self.lines[line - 1]..span.start].chars().count() + 1;
        Some(Location { span, line, column })
    }

    /// The line of a place, from 1.
    fn line_of(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at)
    }
}

/// A text with whitespace runs as one space and typographic quotes and dashes as their plain forms.
struct NormalizedText {
    text: String,
    /// For each byte, and for the end, the position in the text that it comes from.
    starts: Vec<usize>,
}

impl NormalizedText {
    fn of(text: &str) -> Self {
        let mut folded = String::with_capacity(text.len());
        let mut starts: Vec<usize> = Vec::with_capacity(text.len() + 1);
        for (at, c) in text.char_indices() {
            let plain = match c {
                c if c.is_whitespace() && folded.ends_with(' ') => continue,
                c if c.is_whitespace() => ' ',
                '\u{2018}' | '\u{2019}' | '\u{201B}' => '\'',
                '\u{201C}' | '\u{201D}' | '\u{201E}' => '"',
                '\u{2013}' | '\u{2014}' | '\u{2212}' => '-',
                other => other,
            };
            folded.push(plain);
            starts.extend(std::iter::repeat_n(at, plain.len_utf8()));
        }
        starts.push(text.len());
        NormalizedText { text: folded, starts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ground(artifact: &str, finding: &deliberator::Finding) -> Option<Location> {
        ArtifactIndex::new(artifact).locate(finding)
    }

    fn finding(quote: &str, line: Option<u64>) -> deliberator::Finding {
        deliberator::Finding { quote: quote.into(), issue: "i".into(), fix: None, line }
    }

    #[test]
    fn an_exact_quote_gives_line_and_column_in_characters() {
        // X9
        let place = ground("é one\ntwo three", &finding("three", None)).expect("grounded");
        assert_eq!((place.line, place.column, place.span), (2, 5, 11..16));
        let accented = ground("é one", &finding("one", None)).expect("grounded");
        assert_eq!(accented.column, 3);
    }

    #[test]
    fn of_several_places_the_nearest_to_the_given_line_is_taken() {
        let text = "never\nx\nx\nnever\n";
        assert_eq!(ground(text, &finding("never", Some(4))).map(|p| p.line), Some(4));
        assert_eq!(ground(text, &finding("never", None)).map(|p| p.line), Some(1));
    }

    #[test]
    fn line_breaks_and_typographic_quotes_do_not_hide_a_quote() {
        let text = "It\u{2019}s a  game\nchanger.";
        let place = ground(text, &finding("It's a game changer", None)).expect("grounded");
        assert_eq!(&text[place.span], "It\u{2019}s a  game\nchanger");
        for other in ["It's a lame changer", "It's a ga me", "It'sa game"] {
            assert_eq!(ground(text, &finding(other, None)), None, "{other}");
        }
        let twice = "It\u{2019}s\nx\nIt\u{2019}s";
        for line in [1, 3] {
            let place = ground(twice, &finding("It's", Some(line))).expect("grounded");
            assert_eq!(place.line as u64, line);
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it is about time")]
    fn a_quote_that_occurs_on_every_line_is_looked_up_in_one_pass() {
        let text = "password:\n".repeat(45_000);
        let started = std::time::Instant::now();
        for (line, span) in [(None, 0..9), (Some(44_000), 439_990..439_999)] {
            let place = ground(&text, &finding("password:", line)).expect("grounded");
            assert_eq!((place.line as u64, place.column, place.span), (line.unwrap_or(1), 1, span));
        }
        // On one line, and where only the folded text has it.
        let place = ground(&"a  b ".repeat(40_000), &finding("a b", None)).expect("grounded");
        assert_eq!((place.line, place.column), (1, 1));
        assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
    }

    #[test]
    fn the_nearest_place_is_that_of_looking_at_all() {
        // What was looked up one by one, over texts of few words.
        let all = |text: &str, quote: &str, wanted: Option<u64>| {
            let line = |at: usize| text[..at].matches('\n').count() as u64 + 1;
            let spans = text.match_indices(quote).map(|(at, _)| (line(at), at));
            let (line, at) =
                spans.min_by_key(|(line, _)| wanted.map_or(0, |wanted| wanted.abs_diff(*line)))?;
            Some((line as usize, at))
        };
        let words = ["ab", "ba", "\n", " ", "é", "\n\n"];
        for seed in 0..3_000_usize {
            let text: String =
                (0..12).map(|at| words[(seed * 31 + at * at * (seed % 7 + 1)) % words.len()]).collect();
            let grounds = ArtifactIndex::new(&text);
            for (quote, wanted) in ["ab", "b", "é", "ba\nab"]
                .iter()
                .flat_map(|quote| [None, Some(1), Some(3), Some(5), Some(90)].map(|wanted| (*quote, wanted)))
            {
                let place =
                    grounds.locate(&finding(quote, wanted)).map(|place| (place.line, place.span.start));
                let expected = all(&text, quote, wanted);
                if expected.is_some() {
                    assert_eq!(place, expected, "{text:?} {quote:?} {wanted:?}");
                }
            }
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it is about time")]
    fn many_quotes_are_looked_up_in_a_long_text() {
        let text: String =
            (0..60_000).map(|n| format!("Sentence {n} is\u{2019}nt the same as any other.\n")).collect();
        let grounds = ArtifactIndex::new(&text);
        let started = std::time::Instant::now();
        for n in 0..200_u64 {
            let line = n * 299 + 1;
            let quote = format!("Sentence {} is'nt the same", line - 1);
            for wanted in [None, Some(line), Some(60_001)] {
                let place = grounds.locate(&finding(&quote, wanted)).expect("grounded");
                assert_eq!((place.line as u64, place.column), (line, 1));
            }
            assert_eq!(grounds.locate(&finding(&format!("{quote}!"), Some(line))), None);
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(60), "{:?}", started.elapsed());
    }

    #[test]
    fn an_invented_quote_has_no_place() {
        assert_eq!(ground("some text", &finding("other text", None)), None);
        assert_eq!(ground("some text", &finding("  ", None)), None);
    }
}
