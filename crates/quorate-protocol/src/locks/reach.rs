//! Traits that cannot do what a trait is for: one that matches no text, and one that matches every text.

use quorate_manifest::assembly::MatchMode;
use quorate_manifest::capabilities::TraitReach;
use regex_syntax::hir::{Hir, HirKind, Look};

use super::{Locks, Trait};

/// Sentences with hardly a letter in common: a trait that matches all of them matches every outcome.
const SAMPLES: [&str; 3] = ["Oh yes.", "No, wait.", "Go on: 42 days."];

/// Whether a trait matches nothing or everything; `None` for every other trait, and for a pattern that cannot be compiled.
pub fn trait_reach(text: &str, declared: MatchMode) -> Option<TraitReach> {
    let locked_trait = Trait { text: text.to_owned(), declared };
    let locks = Locks::compile(&[locked_trait], declared).ok()?;
    let matches = |text: &str| !locks.check(text).is_empty();
    let never = match declared {
        MatchMode::Regex => matches_nothing(&regex_syntax::parse(text).ok()?),
        MatchMode::Substring => !matches(text),
        // An embedder also compares its meaning.
        MatchMode::Semantic => false,
    };
    if never {
        return Some(TraitReach::Never);
    }
    SAMPLES.into_iter().all(matches).then_some(TraitReach::Always)
}

/// Whether a pattern matches no text; the empty match is none. Anchors are compared with what stands before and after them,
/// word boundaries are not.
fn matches_nothing(hir: &Hir) -> bool {
    hir.properties().maximum_len() == Some(0) || is_contradiction(hir)
}

fn is_contradiction(hir: &Hir) -> bool {
    if hir.properties().minimum_len().is_none() {
        return true;
    }
    let has_text = |hir: &Hir| hir.properties().minimum_len().is_some_and(|least| least > 0);
    match hir.kind() {
        HirKind::Concat(parts) => {
            let before_start = parts.iter().rposition(|part| *part.kind() == HirKind::Look(Look::Start));
            let after_end = parts.iter().position(|part| *part.kind() == HirKind::Look(Look::End));
            parts.iter().any(is_contradiction)
                || before_start.is_some_and(|at| parts[..at].iter().any(has_text))
                || after_end.is_some_and(|at| parts[at..].iter().any(has_text))
        }
        HirKind::Alternation(parts) => parts.iter().all(is_contradiction),
        HirKind::Capture(capture) => is_contradiction(&capture.sub),
        HirKind::Repetition(repetition) => repetition.min > 0 && is_contradiction(&repetition.sub),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trait_that_matches_nothing_or_everything_is_told() {
        let reach = |text, mode| trait_reach(text, mode);
        for text in ["[^\\s\\S]", "$a", "a^", "(?:a^)b", "^", "$", "\\b", "a{0}", "", "x$y|^^$z"] {
            assert_eq!(reach(text, MatchMode::Regex), Some(TraitReach::Never), "{text}");
        }
        for text in [".", ".*", "\\w+", "[a-z]", "(?s).+", "x|\\w", "[^x]"] {
            assert_eq!(reach(text, MatchMode::Regex), Some(TraitReach::Always), "{text}");
        }
        for text in [
            "warmth",
            "warm(th|er)",
            "^never",
            "later$",
            "^all of it$",
            "a*",
            "x?y",
            "\\bno\\b",
            "(^|\\s)so",
            "a|b^",
        ] {
            assert_eq!(reach(text, MatchMode::Regex), None, "{text}");
        }
        for text in ["warmth", "voice register", "AI", "don't", "C++", "谢谢"] {
            for mode in [MatchMode::Substring, MatchMode::Semantic] {
                assert_eq!(reach(text, mode), None, "{text}");
            }
        }
        // A substring of every text with two words.
        for text in [" ", "."] {
            assert_eq!(reach(text, MatchMode::Substring), Some(TraitReach::Always), "{text:?}");
        }
    }
}
