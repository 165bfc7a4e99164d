//! Light stemming, so that "agreeing" matches "agrees", and "migrations" matches "migrate".

/// The part of a normalized word that its inflections share. A truncation: words with different stems never match, and
/// some different words have the same stem.
pub fn stem(word: &str) -> &str {
    let word = word.strip_suffix("'s").unwrap_or(word).trim_end_matches('\'');
    if !word.is_ascii() || word.len() <= 3 {
        return word;
    }
    let word = inflection(plural(word));
    let word = strip_ending(word, "ment", 5).unwrap_or(word);
    let word = strip_ending(word, "ly", 4).unwrap_or(word);
    let word = strip_ending(word, "ion", 4).filter(|rest| rest.ends_with(['t', 's'])).unwrap_or(word);
    ["e", "y", "i"].iter().find_map(|end| strip_ending(word, end, 3)).unwrap_or(word)
}

fn plural(word: &str) -> &str {
    if let Some(rest) = strip_ending(word, "ies", 3) {
        return rest;
    }
    if word.ends_with("sis") {
        return &word[..word.len() - 2];
    }
    match strip_ending(word, "s", 3) {
        Some(rest) if !rest.ends_with(['s', 'u']) => rest,
        _ => word,
    }
}

fn inflection(word: &str) -> &str {
    if word.ends_with("eed") {
        return strip_ending(word, "d", 5).unwrap_or(word);
    }
    let found = ["ing", "ed"].iter().find_map(|end| strip_ending(word, end, 3));
    found.filter(|rest| rest.contains(VOWELS)).map_or(word, undoubled)
}

const VOWELS: [char; 6] = ['a', 'e', 'i', 'o', 'u', 'y'];

/// Shortens `stopp` to `stop`, but keeps `sell`, `pass` and `buzz`.
fn undoubled(word: &str) -> &str {
    let bytes = word.as_bytes();
    match bytes {
        [.., a, b] if a == b && bytes.len() > 3 && !b"lszaeiou".contains(b) => &word[..word.len() - 1],
        _ => word,
    }
}

fn strip_ending<'w>(word: &'w str, end: &str, shortest: usize) -> Option<&'w str> {
    word.strip_suffix(end).filter(|rest| rest.len() >= shortest)
}

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
}
