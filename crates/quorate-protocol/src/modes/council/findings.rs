//! Findings and their grounds: a finding quotes the text it is about, and code, not the member, says where that is
//! (SEMANTICS X9).

use std::ops::Range;

use crate::answers::deliberator;

/// Where a quote stands in the artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Byte offsets.
    pub span: Range<usize>,
    /// 1-based.
    pub line: usize,
    /// 1-based, in characters.
    pub column: usize,
}

/// Looks a finding's quote up. The text is compared as it is; failing that, with whitespace runs and typographic
/// quotes made equal. Of several places the one nearest to the line that the member gave is taken.
pub fn ground(artifact: &str, finding: &deliberator::Finding) -> Option<Place> {
    let quote = finding.quote.trim();
    if quote.is_empty() {
        return None;
    }
    let exact: Vec<Range<usize>> =
        artifact.match_indices(quote).map(|(at, found)| at..at + found.len()).collect();
    let spans = if exact.is_empty() { folded_matches(artifact, quote) } else { exact };
    nearest(artifact, spans, finding.line)
}

/// Of spans in order the first that is nearest to a line, with its place. Lines are counted on from one span to the next:
/// a quote may occur thousands of times.
fn nearest(artifact: &str, spans: Vec<Range<usize>>, wanted: Option<u64>) -> Option<Place> {
    let (mut line, mut counted) = (1, 0);
    let placed = spans.into_iter().map(|span| {
        line += artifact[counted..span.start].matches('\n').count();
        counted = span.start;
        (line, span)
    });
    let (line, span) =
        placed.min_by_key(|(line, _)| wanted.map_or(0, |wanted| wanted.abs_diff(*line as u64)))?;
    let before = &artifact[..span.start];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Some(Place { line, column: before[line_start..].chars().count() + 1, span })
}

/// Matches on folded text, as spans of the text itself.
fn folded_matches(artifact: &str, quote: &str) -> Vec<Range<usize>> {
    let (text, offsets) = fold(artifact);
    let (wanted, _) = fold(quote);
    if wanted.is_empty() {
        return Vec::new();
    }
    let spans =
        text.match_indices(&wanted).map(|(at, found)| offsets[at].start..offsets[at + found.len() - 1].end);
    spans.collect()
}

/// The text with whitespace runs as one space and typographic quotes and dashes as their plain forms, and for each
/// of its bytes the span that it stands for.
fn fold(text: &str) -> (String, Vec<Range<usize>>) {
    let mut folded = String::with_capacity(text.len());
    let mut offsets: Vec<Range<usize>> = Vec::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let span = at..at + c.len_utf8();
        if c.is_whitespace() {
            match offsets.last_mut().filter(|_| folded.ends_with(' ')) {
                Some(run) => run.end = span.end,
                None => push(&mut folded, &mut offsets, ' ', span),
            }
            continue;
        }
        let plain = match c {
            '\u{2018}' | '\u{2019}' | '\u{201B}' => '\'',
            '\u{201C}' | '\u{201D}' | '\u{201E}' => '"',
            '\u{2013}' | '\u{2014}' | '\u{2212}' => '-',
            other => other,
        };
        push(&mut folded, &mut offsets, plain, span);
    }
    (folded, offsets)
}

fn push(folded: &mut String, offsets: &mut Vec<Range<usize>>, c: char, span: Range<usize>) {
    folded.push(c);
    offsets.extend(std::iter::repeat_n(span, c.len_utf8()));
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn an_invented_quote_has_no_place() {
        assert_eq!(ground("some text", &finding("other text", None)), None);
        assert_eq!(ground("some text", &finding("  ", None)), None);
    }
}
