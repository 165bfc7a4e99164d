//! The locked traits of an assembly (L): what no outcome may contain. `quorate_text::locks` finds them in a text; here each
//! has the match mode of the document that declares it.

use quorate_manifest::assembly::MatchMode;
use quorate_text::locks::{Matcher, Wanted};

pub use quorate_manifest::assembly::LockedTrait;
pub use quorate_text::locks::{
    Hit, InvalidTrait, Layer, TraitReach, excerpt, excerpt_parts, fold, look_of_name,
};

/// The traits of an assembly, ready to be looked for.
#[derive(Debug, Clone)]
pub struct Locks {
    traits: Vec<LockedTrait>,
    strictest: MatchMode,
    matcher: Matcher,
}

impl Locks {
    /// Makes the traits of an assembly ready. `strictest` is the merged mode of its chain, which is added to the mode under
    /// which a trait was declared, never put in its place (M9): a trait that is plain text stays that under `regex`, and
    /// `semantic` also asks an embedder about every trait.
    ///
    /// # Errors
    /// When a pattern does not compile, or is too large.
    pub fn compile(traits: &[LockedTrait], strictest: MatchMode) -> Result<Locks, InvalidTrait> {
        let wanted: Vec<Wanted<'_>> =
            traits.iter().map(|locked| wanted(&locked.text, locked.declared)).collect();
        Ok(Locks { traits: traits.to_vec(), strictest, matcher: Matcher::new(&wanted)? })
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.traits.is_empty()
    }

    /// The traits, in the order given.
    pub fn traits(&self) -> &[LockedTrait] {
        &self.traits
    }

    /// At most one hit for each trait: see [`Matcher::check`].
    pub fn check(&self, text: &str) -> Vec<Hit> {
        self.matcher.check(text)
    }

    /// Every hit of every trait: see [`Matcher::find_all`].
    pub fn find_all(&self, text: &str) -> Vec<Hit> {
        self.matcher.find_all(text)
    }

    /// Indices of the traits that are compared by meaning too.
    pub fn semantic_traits(&self) -> Vec<usize> {
        let all = self.strictest == MatchMode::Semantic;
        let is_semantic = |at: &usize| all || self.traits[*at].declared == MatchMode::Semantic;
        (0..self.traits.len()).filter(is_semantic).collect()
    }
}

fn wanted(text: &str, declared: MatchMode) -> Wanted<'_> {
    match declared {
        MatchMode::Regex => Wanted::Pattern(text),
        MatchMode::Substring | MatchMode::Semantic => Wanted::Text(text),
    }
}

/// Whether a trait matches nothing or everything; `None` for every other trait, and for a pattern that cannot be compiled.
pub fn trait_reach(text: &str, declared: MatchMode) -> Option<TraitReach> {
    let reach = quorate_text::locks::trait_reach(wanted(text, declared))?;
    // A trait is compared by its meaning too.
    (declared != MatchMode::Semantic || reach == TraitReach::Always).then_some(reach)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locks(traits: &[(&str, MatchMode)], strictest: MatchMode) -> Locks {
        let traits: Vec<LockedTrait> = traits
            .iter()
            .map(|(text, declared)| LockedTrait { text: (*text).to_owned(), declared: *declared })
            .collect();
        Locks::compile(&traits, strictest).unwrap()
    }

    // M9: a trait that was declared as text stays text below a view that has patterns.
    #[test]
    fn a_later_mode_is_added() {
        use MatchMode::{Regex, Semantic, Substring};
        let both = locks(&[("a.c", Substring), ("a.c", Regex)], Regex);
        let found =
            |text: &str| both.check(text).iter().map(|hit| (hit.trait_index, hit.layer)).collect::<Vec<_>>();
        assert_eq!(found("xabcx"), [(1, Layer::Regex)]);
        assert_eq!(found("A.C"), [(0, Layer::AsGiven), (1, Layer::Regex)]);
        assert_eq!(both.semantic_traits(), [] as [usize; 0]);
        assert_eq!(locks(&[("a", Substring), ("b", Regex)], Semantic).semantic_traits(), [0, 1]);
        assert_eq!(locks(&[("a", Substring), ("b", Semantic)], Semantic).check("A b").len(), 2);
    }

    #[test]
    fn a_trait_that_is_compared_by_meaning_may_match_as_text_nowhere() {
        assert_eq!(trait_reach("", MatchMode::Substring), Some(TraitReach::Never));
        assert_eq!(trait_reach("", MatchMode::Semantic), None);
        assert_eq!(trait_reach(".", MatchMode::Semantic), Some(TraitReach::Always));
    }
}
