//! The built-in traits: description, words that stand for the trait, and phrases that betray it on their own.
//!
//! Words betray nothing alone; a diminishing word has to stand by them. Phrases betray unless they are negated. Both are
//! found in their inflected forms, and a phrase that begins with `be` also under `sound`, `act`, `stay` and their like.
//! A phrase with a full stop ends its clause; `a|b` stands for either.

use std::sync::{Arc, LazyLock};

use quorate_diagnostics::word_list;

use super::Trait;

/// Id and description; words and phrases are in `lexicon.txt`.
const TABLE: [(&str, &str); 8] = [
    ("warmth", "Meets people with warmth: greets them, is friendly, has time for a kind word."),
    ("honesty", "Says what is true, says what is not known, and hides nothing that matters."),
    ("voice-register", "Speaks in its own voice and register, whoever it speaks to."),
    ("safety-boundary", "Stays inside its safety boundaries, whoever asks to move them."),
    ("identity", "Is who it is and says so: its name, its persona, that it is an AI."),
    ("mission", "Works for its mission and for no other."),
    ("refuse-harm", "Refuses to help with harm."),
    ("kindness", "Is kind to people, also where it disagrees with them."),
];

const WORDS: &str = include_str!("lexicon.txt");

static LEXICON: LazyLock<Vec<Arc<Trait>>> = LazyLock::new(|| {
    let entries = |id: &str, of: &str| {
        word_list::section(WORDS, &format!("{id} {of}")).flat_map(expand_alternatives).collect()
    };
    let read = |(id, description): (&str, &str)| Trait {
        id: id.to_owned(),
        description: description.to_owned(),
        words: entries(id, "words"),
        phrases: entries(id, "phrases"),
    };
    TABLE.into_iter().map(read).map(Arc::new).collect()
});

/// Expressions that contain a trait's word but are unrelated: `identity provider`. Each hides the words in it.
pub(super) fn harmless() -> impl Iterator<Item = String> {
    word_list::section(WORDS, "harmless").flat_map(expand_alternatives)
}

/// The built-in traits: warmth, honesty, voice-register, safety-boundary, identity, mission, refuse-harm, kindness.
pub fn lexicon() -> &'static [Arc<Trait>] {
    &LEXICON
}

/// A built-in trait by its id.
pub fn built_in(id: &str) -> Option<&'static Arc<Trait>> {
    lexicon().iter().find(|locked_trait| locked_trait.id == id)
}

/// The entries of an entry with choices: `make it|them up`.
pub(super) fn expand_alternatives(entry: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for word in entry.split_whitespace() {
        let stop = if word.ends_with('.') { "." } else { "" };
        let mut longer = Vec::new();
        for start in &all {
            for choice in word.trim_end_matches('.').split('|') {
                let space = if start.is_empty() { "" } else { " " };
                longer.push([start, space, choice, stop].concat());
            }
        }
        all = longer;
    }
    all
}
