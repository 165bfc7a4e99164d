//! A reviewed text as numbered lines, with what was found marked where it is.

/// A place in a text about which there are findings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot {
    pub(crate) line: Option<u64>,
    /// In bytes.
    pub(crate) span: Option<(usize, usize)>,
    pub(crate) is_blocking: bool,
}

/// A line of a text.
pub(crate) struct Line {
    pub(crate) number: usize,
    pub(crate) pieces: Vec<Piece>,
    /// The findings that begin on it, by their places in the report's list.
    pub(crate) findings: Vec<usize>,
}

impl Line {
    fn begin(&self) -> &str {
        self.pieces.first().map_or("", |piece| &*piece.text)
    }

    /// Whether it goes on with the paragraph of the line above: neither is empty, and it begins no item of a list.
    pub(crate) fn continues(&self, above: &Line) -> bool {
        let marks = |first: char| "-*+|>#".contains(first) || first.is_ascii_digit();
        !above.begin().trim().is_empty() && self.begin().trim_start().starts_with(|first: char| !marks(first))
    }

    /// Whether it looks like a heading of Markdown.
    pub(crate) fn is_heading(&self) -> bool {
        let begin = self.begin();
        let after = begin.trim_start_matches('#');
        (1..=6).contains(&(begin.len() - after.len())) && after.starts_with(' ')
    }
}

/// A part of a line: text, or a quote that was found there.
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) is_marked: bool,
    /// Whether a finding about it blocks.
    pub(crate) is_blocking: bool,
}

/// The lines of a text. `spots` is in the order of the text.
pub(crate) fn lines(text: &str, spots: impl Iterator<Item = Spot> + Clone) -> Vec<Line> {
    let marked = merged(spots.clone(), text.len());
    let mut marks = marked.iter().peekable();
    let mut starts = spots.enumerate().filter_map(|(at, spot)| Some((spot.line?, at))).peekable();
    let mut lines = Vec::new();
    let mut start = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let end = start + line.trim_end_matches(['\n', '\r']).len();
        let mut pieces = Vec::new();
        let mut at = start;
        while let Some((from, to, is_blocking)) = marks.peek().copied().copied() {
            let (from, until) = (from.clamp(at, end), to.clamp(at, end));
            if from < until {
                push(&mut pieces, text, at..from, None);
                push(&mut pieces, text, from..until, Some(is_blocking));
                at = until;
            }
            // What goes on in the next line stays.
            if to > end {
                break;
            }
            marks.next();
        }
        push(&mut pieces, text, at..end, None);
        let mut here = Vec::new();
        while let Some((_, finding)) = starts.next_if(|(line, _)| *line <= number as u64) {
            here.push(finding);
        }
        lines.push(Line { number, pieces, findings: here });
        start += line.len();
    }
    lines
}

/// Adds a piece. For a quote, `mark` states whether a finding about it blocks.
fn push(pieces: &mut Vec<Piece>, text: &str, range: std::ops::Range<usize>, mark: Option<bool>) {
    if let Some(text) = text.get(range).filter(|text| !text.is_empty()) {
        let is_blocking = mark == Some(true);
        pieces.push(Piece { text: text.to_owned(), is_marked: mark.is_some(), is_blocking });
    }
}

/// The spans in order, those that touch each other as one, each with whether a finding about it blocks.
fn merged(spots: impl Iterator<Item = Spot>, length: usize) -> Vec<(usize, usize, bool)> {
    let spans = spots.filter_map(|spot| spot.span.map(|(from, to)| (from, to, spot.is_blocking)));
    let mut spans: Vec<_> = spans.filter(|(from, to, _)| from < to && *to <= length).collect();
    spans.sort_unstable();
    let mut merged: Vec<(usize, usize, bool)> = Vec::new();
    for (from, to, is_blocking) in spans {
        match merged.last_mut() {
            Some(last) if from <= last.1 => *last = (last.0, last.1.max(to), last.2 || is_blocking),
            _ => merged.push((from, to, is_blocking)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(line: u64, span: (usize, usize)) -> Spot {
        Spot { line: Some(line), span: Some(span), is_blocking: false }
    }

    fn shown(text: &str, spots: &[Spot]) -> Vec<String> {
        let piece = |piece: &Piece| match piece.is_marked {
            true => format!("[{}]", piece.text),
            false => piece.text.clone(),
        };
        let line = |line: &Line| {
            let text: String = line.pieces.iter().map(piece).collect();
            format!("{} {text} {:?}", line.number, line.findings)
        };
        lines(text, spots.iter().copied()).iter().map(line).collect()
    }

    #[test]
    fn quotes_are_marked_where_they_are() {
        let text = "one two\r\nthree four\n\nfive";
        let spots = [spot(1, (4, 7)), spot(2, (9, 12)), spot(2, (11, 14)), spot(4, (21, 25))];
        assert_eq!(
            shown(text, &spots),
            ["1 one [two] [0]", "2 [three] four [1, 2]", "3  []", "4 [five] [3]"]
        );
    }

    #[test]
    fn a_paragraph_ends_at_an_empty_line_and_at_an_item() {
        let all = lines("One\ngoes on.\n\nTwo:\n- a\n  more\n2. b", [].into_iter());
        let blocks = all.chunk_by(|above, below| below.continues(above));
        assert_eq!(blocks.map(<[Line]>::len).collect::<Vec<_>>(), [2, 1, 1, 2, 1]);
    }

    #[test]
    fn a_quote_over_several_lines_is_marked_in_each() {
        assert_eq!(shown("ab\ncd\nef", &[spot(1, (1, 7))]), ["1 a[b] [0]", "2 [cd] []", "3 [e]f []"]);
    }

    #[test]
    fn spans_that_do_not_fit_the_text_are_left_out() {
        assert_eq!(shown("ab", &[spot(1, (1, 9)), spot(1, (2, 1))]), ["1 ab [0, 1]"]);
    }
}
