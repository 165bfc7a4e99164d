//! The mention parser against K4, read off character by character, for invented names and texts.

use proptest::prelude::*;
use quorate_adapters::dispatcher::mention::{Boundary, mentions};

/// Pairs that are one letter in two cases. All other characters of [`ALPHABET`] are only themselves: `ß`, whose upper
/// case is two letters; `ſ`, `ı` and the Kelvin sign, which would become ASCII; and what lies beyond U+FFFF.
const CASES: [(char, char); 6] = [('a', 'A'), ('b', 'B'), ('k', 'K'), ('s', 'S'), ('i', 'I'), ('ä', 'Ä')];
const ALPHABET: &str =
    "aAbBkKsSiIäÄßſıİ\u{212a}\u{10400}\u{10428}_19.+*?()[]{}\\^$|-@# \t\u{a0}\u{feff}\u{85}中";

fn same(a: char, b: char) -> bool {
    a == b || CASES.contains(&(a, b)) || CASES.contains(&(b, a))
}

fn word(c: Option<&char>) -> bool {
    c.is_some_and(|c| matches!(c, 'A'..='Z' | 'a'..='z' | '0'..='9' | '_'))
}

/// K4, slowly.
fn oracle(text: &str, name: &str, bounded: bool) -> bool {
    let text: Vec<char> = text.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let mut first = Vec::new();
    if name.contains(&' ') {
        first = name.iter().copied().take_while(|c| *c != ' ').collect();
        let blank = |c: &char| matches!(c, '\t' | '\u{a0}' | '\u{feff}');
        while first.first().is_some_and(blank) {
            first.remove(0);
        }
        while first.last().is_some_and(blank) {
            first.pop();
        }
    }
    let mut found = false;
    for at in 0..text.len() {
        if text[at] != '@' {
            continue;
        }
        let mut literal = true;
        for (offset, wanted) in name.iter().enumerate() {
            literal &= text.get(at + 1 + offset) == Some(wanted);
        }
        found |= literal && !(bounded && word(text.get(at + 1 + name.len())));
        let mut by_first = !first.is_empty();
        for (offset, wanted) in first.iter().enumerate() {
            by_first &= text.get(at + 1 + offset).is_some_and(|c| same(*c, *wanted));
        }
        found |= by_first && !word(text.get(at + 1 + first.len()));
    }
    found
}

fn characters(count: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let alphabet: Vec<char> = ALPHABET.chars().collect();
    prop::collection::vec(prop::sample::select(alphabet), count).prop_map(String::from_iter)
}

/// A name, and a text of pieces that are likely to be about it.
fn name_and_text() -> impl Strategy<Value = (String, String)> {
    let name = prop_oneof![
        characters(1..6),
        (characters(0..4), characters(0..4)).prop_map(|(first, last)| format!("{first} {last}")),
    ];
    name.prop_flat_map(|name| {
        let first = name.split(' ').next().unwrap_or_default().to_owned();
        let piece = prop_oneof![
            Just("@".to_owned()),
            Just(format!("@{name}")),
            Just(name.clone()),
            Just(format!("@{first}")),
            Just(format!("@{}", first.to_uppercase())),
            Just(format!("@{}", first.to_lowercase())),
            Just(format!("@{}", first.trim())),
            characters(0..4),
        ];
        (Just(name), prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_parser_is_k4((name, text) in name_and_text()) {
        prop_assert_eq!(mentions(&text, &name, Boundary::Anything), oracle(&text, &name, false));
        prop_assert_eq!(mentions(&text, &name, Boundary::Word), oracle(&text, &name, true));
    }
}

#[test]
fn the_oracle_sees_both_answers() {
    // Else the comparison above would prove nothing.
    assert!(oracle("@Ann", "Ann Lee", false) && !oracle("@Anns", "Ann Lee", false));
    assert!(oracle("@Reviewer", "Rev", false) && !oracle("@Reviewer", "Rev", true));
}
