//! Locked persona traits (B4): whether a playbook's text violates one.
//!
//! The rule for English is [`quorate_text::lexicon`]. Phrases in other scripts are searched for as they stand. Callers decide
//! which traits are locked for which operator, and what follows from a violation.

use std::sync::Arc;

use quorate_manifest::assembly::{LockedTrait, MatchMode};
use quorate_protocol::locks as protocol;
use quorate_text::lexicon::Lexicon;
use quorate_text::words::folded;

pub use quorate_text::lexicon::{Cause, Trait, Violation, built_in, built_in_traits};

/// Traits, ready to be looked for.
#[derive(Debug, Clone)]
pub struct Locks {
    lexicon: Lexicon,
    /// Phrases in other scripts, which have no words that the lexicon could find.
    verbatim: Option<protocol::Locks>,
    /// The trait of each of them.
    verbatim_traits: Vec<usize>,
}

impl Locks {
    /// Compiles traits. One without words and phrases is held by its own name.
    pub fn new(traits: Vec<Arc<Trait>>) -> Locks {
        let (mut verbatim, mut verbatim_traits) = (Vec::new(), Vec::new());
        for (at, one) in traits.iter().enumerate() {
            let foreign =
                one.phrases.iter().filter(|phrase| !phrase.is_ascii() && !folded(phrase).is_ascii());
            for phrase in foreign {
                verbatim.push(LockedTrait::plain(phrase));
                verbatim_traits.push(at);
            }
        }
        // Plain text always compiles.
        let verbatim = (!verbatim.is_empty())
            .then(|| protocol::Locks::compile(&verbatim, MatchMode::Substring).ok())
            .flatten();
        Locks { lexicon: Lexicon::new(traits), verbatim, verbatim_traits }
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.traits().is_empty()
    }

    /// The traits, in the order given.
    pub fn traits(&self) -> &[Arc<Trait>] {
        self.lexicon.traits()
    }

    /// The traits that a text violates: at most one violation of each.
    pub fn check(&self, text: &str) -> Vec<Violation> {
        let mut found = self.lexicon.check(text);
        for hit in self.verbatim.iter().flat_map(|verbatim| verbatim.check(text)) {
            let id = &self.traits()[self.verbatim_traits[hit.trait_index]].id;
            if found.iter().all(|violation| violation.id != *id) {
                found.push(Violation {
                    id: id.clone(),
                    excerpt: protocol::excerpt(text, &hit.span),
                    cause: Cause::Phrase(hit.trait_text.to_string()),
                });
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_in_other_scripts_are_searched_for_as_they_stand() {
        // B4
        let phrases = vec!["不要冷静".to_owned(), "raise your voice".to_owned()];
        let calm = Trait { id: "calm".to_owned(), phrases, ..Trait::default() };
        let locks = Locks::new(vec![Arc::new(calm)]);
        for (text, found) in [("请不要冷静。", 1), ("Raise your voice! 请不要冷静。", 1), ("请保持冷静。", 0)]
        {
            assert_eq!(locks.check(text).len(), found, "{text}");
        }
    }
}
