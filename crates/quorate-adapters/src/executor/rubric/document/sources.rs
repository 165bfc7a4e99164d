//! Which sentences name a source: a link, a footnote, a citation in brackets, or words that say where from.

use std::sync::LazyLock;

use super::Document;
use crate::executor::rubric::lexicon::Lexicon;

static CUES: LazyLock<Lexicon<()>> = LazyLock::new(|| {
    Lexicon::of(&[
        "according to",
        "source|sources",
        "measured on|in|at|by|with|over|across|from|against|during",
        "we measured|timed|counted|sampled|surveyed|benchmarked|logged",
        "in|from|by our|the|access|audit|gateway|server logs|log|telemetry|traces|metrics|dashboard|dashboards",
        "access|audit|gateway|server|error|deploy logs|log",
        "logs|metrics|traces|dashboards|telemetry show|say|record",
        "survey|poll|sample|study of",
        "as reported in|by",
        "data from",
        "taken from",
        "et al",
        "see table|figure|appendix|section",
        "n of",
    ])
});

/// Marks the sentences that cite, from the places of links and footnotes and from the words themselves.
pub(super) fn mark(document: &mut Document<'_>, marks: &[usize]) {
    let mut cites = vec![false; document.sentences.len()];
    for at in marks {
        if let Some(index) = document.sentence_at(*at) {
            cites[index] = true;
        }
    }
    for (index, sentence) in document.sentences.iter().enumerate() {
        let words = document.words_of(sentence);
        cites[index] |= CUES.first(words).is_some() || has_citation(&document.prose[sentence.span.clone()]);
    }
    for (sentence, cites) in document.sentences.iter_mut().zip(cites) {
        sentence.cites = cites;
    }
}

/// `[12]`, `(n = 40)`, or brackets with a name and a year: `(Okafor 2021)`.
fn has_citation(sentence: &str) -> bool {
    let mut rest = sentence;
    while let Some(open) = rest.find(['(', '[']) {
        let square = rest[open..].starts_with('[');
        rest = &rest[open + 1..];
        let Some(close) = rest.find([')', ']']) else { return false };
        let inner = &rest[..close];
        if square && !inner.is_empty() && inner.trim_start_matches('^').bytes().all(|b| b.is_ascii_digit()) {
            return true;
        }
        let compact: String = inner.chars().filter(|c| !c.is_whitespace()).take(3).collect();
        if compact.starts_with("n=")
            || compact.starts_with("N=")
            || has_year(inner) && inner.contains(char::is_uppercase)
        {
            return true;
        }
        rest = &rest[close..];
    }
    false
}

fn has_year(text: &str) -> bool {
    let mut tokens = text.split(|c: char| !c.is_ascii_alphanumeric());
    tokens.any(|token| {
        token.len() == 4
            && (token.starts_with("19") || token.starts_with("20"))
            && token.bytes().all(|b| b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cites(text: &str) -> Vec<bool> {
        Document::parse("", text).sentences.iter().map(|s| s.cites).collect()
    }

    #[test]
    fn links_footnotes_brackets_and_words() {
        assert_eq!(cites("It rose 5% ([report](r.md)). It fell."), [true, false]);
        assert_eq!(cites("It rose 5%.[^1] It fell.\n\n[^1]: Where."), [true, false]);
        assert_eq!(
            cites("It rose (Okafor 2021). It fell [3]. Of some (n = 40). Plain (in brackets, 2021)."),
            [true, true, true, false]
        );
        assert_eq!(
            cites("According to the board, yes. Measured on one laptop. In our logs it did."),
            [true, true, true]
        );
    }
}
