//! Pivots: “it's not just X, it's Y”, “not X but Y”. They deny a claim that was never made.

use super::{Check, Criteria};
use crate::executor::rubric::document::{Channel, Document, Word};
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::lens::Lens;

/// The voice lens asks for the plain statement.
pub(super) static CHECK: Check = Check { name: "pivots", lens: Lens::Voice, yields_to: &[], run };

/// The longest distance of the two halves, in words.
const REACH: usize = 12;
const NOT: &[&str] = &["not", "isn't", "aren't", "wasn't", "doesn't", "don't"];
const MERELY: &[&str] = &["just", "merely", "simply", "only", "about"];
const TURNS: &[&str] = &["it's", "they're", "that's", "we're", "this"];

fn run(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, sentence) in document.sentences.iter().enumerate() {
        let words = document.words_of(sentence);
        // The second half may be a sentence of its own: "It isn't a tool. It's a movement."
        let next = document.sentences.get(index + 1).filter(|next| next.block == sentence.block);
        let next = next.map(|next| document.words_of(next)).unwrap_or_default();
        if let Some(span) = pivot(document, words, next) {
            let issue = "The sentence knocks down something that nobody said to lift up its point.";
            findings.push(Finding::new(span, Severity::Minor, issue, "Say the second half alone."));
        }
    }
    findings
}

/// The pivot in a sentence, from the words before its denial to its turn.
fn pivot(document: &Document<'_>, words: &[Word<'_>], next: &[Word<'_>]) -> Option<std::ops::Range<usize>> {
    let at = words.iter().position(|word| NOT.contains(&&*word.text) && !word.quoted)?;
    let after = words.get(at + 1)?;
    let from = words[at.saturating_sub(2)].start;
    let rest = &words[at + 1..(at + 1 + REACH).min(words.len())];
    let turn = rest.iter().skip(1).position(|word| is_turn(document, word)).map(|offset| offset + 1);
    if MERELY.contains(&&*after.text) {
        let but = rest.iter().position(|word| word.text == "but");
        // "not only … but also" is an enumeration, which manuals use a lot.
        let adds = but.is_some() && (after.text == "only" || document.channel == Channel::Manual);
        let within = turn.or(but).map(|offset| rest[offset].end);
        return within
            .filter(|_| !adds)
            .or_else(|| is_answered_by(words, next).then(|| words[words.len() - 1].end))
            .map(|end| from..end);
    }
    if let Some(offset) = turn {
        return Some(from..rest[offset].end);
    }
    let but = rest.iter().take(7).position(|word| word.text == "but").filter(|offset| *offset > 0)?;
    // "does not X, but it Y" is two clauses, not a pivot.
    let comma = document.prose[..rest[but].start].trim_end().ends_with(',');
    (words[at].text == "not" && !comma && rest.len() > but + 1).then(|| from..rest[but + 1].end)
}

fn is_turn(document: &Document<'_>, word: &Word<'_>) -> bool {
    let broken = document.prose[..word.start].trim_end().ends_with([',', '—', '–', ';', ':']);
    broken && matches!(&*word.text, "it's" | "they're" | "that's" | "we're")
}

/// "This isn't just a tool." answered by "It's …".
fn is_answered_by(words: &[Word<'_>], next: &[Word<'_>]) -> bool {
    words.len() <= REACH && next.first().is_some_and(|word| TURNS.contains(&&*word.text))
}

#[cfg(test)]
mod tests {
    use super::super::harness::findings;
    use super::*;

    #[test]
    fn pivots_are_found() {
        for text in [
            "It’s not just a tool, it’s a way of life.",
            "This isn't merely an update. It's a new beginning.",
            "It is about not speed but trust.",
            "It's not about code — it's about people.",
        ] {
            assert_eq!(findings(&CHECK, text).len(), 1, "{text}");
        }
    }

    #[test]
    fn plain_denials_are_not() {
        for text in [
            "It does not read images, but it keeps their captions.",
            "The file is not only read but also checked.",
            "We do not know why. The log ends there.",
            "It is a function, not a service.",
            "Do not just restart it.",
        ] {
            assert!(findings(&CHECK, text).is_empty(), "{text}");
        }
    }
}
