//! Light stemming, so that a persona's "agreeing" is found as "agrees", and the words that say nothing of a subject.

/// The part of a folded word that its inflections share. A truncation: no two words are told apart that differ in
/// their stems, and some that do not are taken for one.
pub(super) fn stem(word: &str) -> &str {
    let word = word.strip_suffix("'s").unwrap_or(word).trim_end_matches('\'');
    if !word.is_ascii() || word.len() <= 3 {
        return word;
    }
    let word = inflection(plural(word));
    let word = cut(word, "ment", 5).unwrap_or(word);
    let word = cut(word, "ly", 4).unwrap_or(word);
    let word = cut(word, "ion", 4).filter(|rest| rest.ends_with(['t', 's'])).unwrap_or(word);
    ["e", "y", "i"].iter().find_map(|end| cut(word, end, 3)).unwrap_or(word)
}

fn plural(word: &str) -> &str {
    if let Some(rest) = cut(word, "ies", 3) {
        return rest;
    }
    if word.ends_with("sis") {
        return &word[..word.len() - 2];
    }
    match cut(word, "s", 3) {
        Some(rest) if !rest.ends_with(['s', 'u']) => rest,
        _ => word,
    }
}

fn inflection(word: &str) -> &str {
    if word.ends_with("eed") {
        return cut(word, "d", 5).unwrap_or(word);
    }
    let found = ["ing", "ed"].iter().find_map(|end| cut(word, end, 3));
    found.filter(|rest| rest.contains(VOWELS)).map_or(word, undoubled)
}

const VOWELS: [char; 6] = ['a', 'e', 'i', 'o', 'u', 'y'];

/// `stopp` is `stop`, but `sell`, `pass` and `buzz` are what they are.
fn undoubled(word: &str) -> &str {
    let bytes = word.as_bytes();
    match bytes {
        [.., a, b] if a == b && bytes.len() > 3 && !b"lszaeiou".contains(b) => &word[..word.len() - 1],
        _ => word,
    }
}

fn cut<'w>(word: &'w str, end: &str, shortest: usize) -> Option<&'w str> {
    word.strip_suffix(end).filter(|rest| rest.len() >= shortest)
}

/// Whether a folded word says nothing of a subject.
pub(super) fn is_empty(word: &str) -> bool {
    EMPTY.binary_search(&word).is_ok()
}

/// Whether a word only says what sort of thing or of person something is: "advice" in "tax advice".
pub(super) fn is_generic(word: &str) -> bool {
    GENERIC.iter().any(|generic| stem(generic) == stem(word))
}

/// Sorted.
const EMPTY: &[&str] = &[
    "a",
    "about",
    "above",
    "after",
    "again",
    "all",
    "also",
    "always",
    "am",
    "an",
    "and",
    "any",
    "anybody",
    "anyone",
    "anything",
    "are",
    "as",
    "ask",
    "asks",
    "at",
    "be",
    "because",
    "been",
    "before",
    "behind",
    "being",
    "between",
    "both",
    "but",
    "by",
    "can",
    "could",
    "did",
    "do",
    "does",
    "done",
    "each",
    "either",
    "even",
    "ever",
    "every",
    "everyone",
    "everything",
    "first",
    "for",
    "from",
    "get",
    "gets",
    "give",
    "given",
    "go",
    "goes",
    "good",
    "had",
    "has",
    "have",
    "he",
    "her",
    "here",
    "him",
    "his",
    "how",
    "i",
    "if",
    "in",
    "instead",
    "into",
    "is",
    "it",
    "its",
    "just",
    "kind",
    "know",
    "less",
    "let",
    "like",
    "look",
    "looks",
    "made",
    "make",
    "makes",
    "many",
    "may",
    "me",
    "might",
    "more",
    "most",
    "much",
    "must",
    "my",
    "need",
    "needs",
    "no",
    "nobody",
    "non",
    "not",
    "nothing",
    "now",
    "of",
    "off",
    "on",
    "one",
    "only",
    "or",
    "other",
    "others",
    "our",
    "out",
    "over",
    "own",
    "people",
    "person",
    "put",
    "rather",
    "really",
    "s",
    "same",
    "say",
    "says",
    "see",
    "she",
    "should",
    "so",
    "some",
    "somebody",
    "someone",
    "something",
    "such",
    "take",
    "than",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "thing",
    "things",
    "this",
    "those",
    "through",
    "to",
    "too",
    "under",
    "until",
    "up",
    "us",
    "use",
    "used",
    "very",
    "want",
    "wants",
    "was",
    "way",
    "we",
    "well",
    "were",
    "what",
    "when",
    "where",
    "whether",
    "which",
    "while",
    "who",
    "whom",
    "whose",
    "why",
    "will",
    "with",
    "within",
    "without",
    "would",
    "you",
    "your",
    "yours",
];

const GENERIC: &[&str] = &[
    "advice",
    "adviser",
    "advisor",
    "agent",
    "answer",
    "area",
    "board",
    "case",
    "chief",
    "claim",
    "coach",
    "concern",
    "content",
    "council",
    "critic",
    "decision",
    "director",
    "elder",
    "encouragement",
    "guardian",
    "head",
    "idea",
    "issue",
    "junior",
    "language",
    "lead",
    "manager",
    "matter",
    "member",
    "mentor",
    "officer",
    "opinion",
    "panel",
    "point",
    "position",
    "president",
    "question",
    "request",
    "reviewer",
    "role",
    "sceptic",
    "seat",
    "senior",
    "sentinel",
    "situation",
    "skeptic",
    "statement",
    "stoic",
    "stuff",
    "talk",
    "team",
    "therapist",
    "topic",
    "user",
    "vice",
    "voice",
    "wording",
    "work",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inflections_share_a_stem() {
        for family in [
            &["agree", "agrees", "agreed", "agreeing", "agreement"][..],
            &["encourage", "encouraging", "encouragement"],
            &["speculate", "speculation", "speculating"],
            &["policy", "policies"],
            &["tax", "taxes"],
            &["loss", "losses"],
            &["ship", "ships", "shipping", "shipped"],
            &["guarantee", "guaranteed", "guarantees"],
            &["diagnose", "diagnosis"],
            &["crisis", "crises"],
            &["deployment", "deploy", "deploys", "customer's deploys"],
            &["sell", "selling", "sells"],
        ] {
            let last = |text: &'static str| text.rsplit(' ').next().unwrap_or(text);
            let stems: Vec<&str> = family.iter().map(|word| stem(last(word))).collect();
            assert!(stems.windows(2).all(|pair| pair[0] == pair[1]), "{stems:?}");
        }
        assert_ne!(stem("speed"), stem("spend"));
        assert_eq!(stem("Übrigens"), "Übrigens");
    }

    #[test]
    fn the_lists_can_be_searched() {
        assert!(EMPTY.is_sorted() && is_empty("without") && !is_empty("risk"));
        for word in ["advice", "questions", "language", "claims", "situations", "encouragement", "positions"]
        {
            assert!(is_generic(word), "{word} is {}", stem(word));
        }
    }
}
