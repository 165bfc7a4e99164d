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
    let near = |place: &Place| finding.line.map_or(0, |line| line.abs_diff(place.line as u64));
    spans.into_iter().map(|span| place(artifact, span)).min_by_key(near)
}

fn place(artifact: &str, span: Range<usize>) -> Place {
    let before = &artifact[..span.start];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Place { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1, span }
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
    fn an_invented_quote_has_no_place() {
        assert_eq!(ground("some text", &finding("other text", None)), None);
        assert_eq!(ground("some text", &finding("  ", None)), None);
    }
}
