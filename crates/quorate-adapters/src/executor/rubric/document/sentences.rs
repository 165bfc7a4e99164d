//! Where sentences end, and which words are quoted speech.

use std::ops::Range;

use quorate_diagnostics::word_list::WordList;

use super::parse::CODE_FILL;

const WORDS: &str = include_str!("../words/sentences.txt");

/// Abbreviations that are followed by more of the same sentence.
static NON_FINAL: WordList = WordList::new(WORDS, "non final");
/// Abbreviations that may also end one: the next word decides by its capital.
static AMBIGUOUS: WordList = WordList::new(WORDS, "ambiguous");

/// The sentences of a block; all of it where it is one by its nature, such as a heading.
pub(super) fn split(prose: &str, span: Range<usize>, breaks: &[usize], whole: bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = span.start;
    if !whole {
        let mut at = span.start;
        while let Some(end) = next_end(prose, at, span.end, breaks) {
            push(prose, start..end, &mut found);
            start = end;
            at = end;
        }
    }
    push(prose, start..span.end, &mut found);
    found
}

fn push(prose: &str, span: Range<usize>, found: &mut Vec<Range<usize>>) {
    let inner = &prose[span.clone()];
    let start = span.start + (inner.len() - inner.trim_start().len());
    let end = start + inner.trim().len();
    if start < end {
        found.push(start..end);
    }
}

/// The end of the sentence that continues at `from`, unless the block ends first.
fn next_end(prose: &str, from: usize, end: usize, breaks: &[usize]) -> Option<usize> {
    let first = breaks.partition_point(|at| *at <= from);
    let hard = breaks.get(first).copied().filter(|at| *at < end);
    // No farther than the break: what is behind it would be read again for every break before it.
    let reach = hard.unwrap_or(end);
    let mut at = from;
    while let Some(found) = prose[at.min(reach)..reach].find(['.', '!', '?', '…']).map(|offset| at + offset)
    {
        let run = prose[found..end].find(|c: char| !".!?…".contains(c)).map_or(end, |offset| found + offset);
        let close =
            prose[run..end].find(|c: char| !"\"'”’)]*_»".contains(c)).map_or(end, |offset| run + offset);
        if ends_sentence(prose, from..end, found, run, close) {
            return Some(close);
        }
        at = run;
    }
    hard
}

/// Whether the punctuation from `mark` to `run`, closed up to `close`, ends a sentence.
fn ends_sentence(prose: &str, span: Range<usize>, mark: usize, run: usize, close: usize) -> bool {
    let after = &prose[close..span.end];
    if !after.is_empty() && !after.starts_with(char::is_whitespace) {
        return false;
    }
    let next = after.trim_start().chars().next();
    if next.is_some_and(char::is_lowercase) {
        return false;
    }
    if run - mark > 1 || !prose[mark..].starts_with('.') {
        return true;
    }
    let before = &prose[span.start..mark];
    let word = before.rsplit(|c: char| c.is_whitespace() || "([\"“".contains(c)).next().unwrap_or_default();
    let folded = word.to_ascii_lowercase();
    let capital = next.is_none_or(|c| c.is_uppercase() || c == CODE_FILL);
    if AMBIGUOUS.contains(&folded) {
        return capital;
    }
    // "No." and "p." abbreviate before a number only.
    if matches!(folded.as_str(), "no" | "nos" | "p" | "sec" | "min" | "max" | "ch" | "mar") {
        return !next.is_some_and(|c| c.is_ascii_digit());
    }
    let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase) && word != "I";
    next.is_none() || !(initial || NON_FINAL.contains(&folded))
}

/// The spans between quotation marks in a block, which are quoted words.
pub(super) fn quoted_spans(block: &str, offset: usize) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut open: Option<(usize, char)> = None;
    let mut before = ' ';
    for (at, c) in block.char_indices() {
        let closes = match c {
            '"' => '"',
            '“' | '„' => '”',
            '«' => '»',
            _ => '\0',
        };
        match open {
            Some((start, mark)) if c == mark => {
                spans.push(offset + start..offset + at);
                open = None;
            }
            None if closes != '\0' && !before.is_alphanumeric() => open = Some((at, closes)),
            _ => {}
        }
        before = c;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[&str]) {
        let spans = split(text, 0..text.len(), &[], false);
        let got: Vec<&str> = spans.into_iter().map(|span| &text[span]).collect();
        assert_eq!(got, expect);
    }

    #[test]
    fn abbreviations_initials_and_decimals_do_not_end_a_sentence() {
        check(
            "Ask Dr. Jones, e.g. about J. R. Smith. It took 3.5 s. Fine.",
            &["Ask Dr. Jones, e.g. about J. R. Smith.", "It took 3.5 s.", "Fine."],
        );
        check(
            "Logs, traces, etc. were kept. At 5 p.m. We left.",
            &["Logs, traces, etc. were kept.", "At 5 p.m.", "We left."],
        );
        check("See No. 5. Say no. Then go.", &["See No. 5.", "Say no.", "Then go."]);
    }

    #[test]
    fn ellipses_runs_and_closing_marks() {
        check(
            "Well... maybe. Wait… What?! “Yes.” (No.) End",
            &["Well... maybe.", "Wait…", "What?!", "“Yes.”", "(No.)", "End"],
        );
    }

    #[test]
    fn code_can_start_a_sentence() {
        check("Run it. \u{1}\u{1}\u{1} prints.", &["Run it.", "\u{1}\u{1}\u{1} prints."]);
    }

    #[test]
    fn a_hard_break_ends_a_sentence() {
        let text = "one two\nthree four";
        assert_eq!(split(text, 0..text.len(), &[7], false), [0..7, 8..18]);
    }

    #[test]
    fn speech_is_paired_and_an_open_mark_is_nothing() {
        assert_eq!(quoted_spans("he said \"so it is\" once", 0), vec![8..17]);
        assert_eq!(quoted_spans("a 5\" pipe and \"nothing", 0), Vec::<Range<usize>>::new());
        assert_eq!(quoted_spans("“a” „b”", 10).len(), 2);
    }
}
