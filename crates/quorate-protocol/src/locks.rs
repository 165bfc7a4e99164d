//! Locked traits (L): what no outcome may contain, and the matcher that finds it.
//!
//! A trait is searched for in the text as given and in folded forms, and a hit says how far the text had to be folded.
//! `locks/items.rs` splits a text into visible characters, `locks/marks.rs` recognizes the marks of lists and footnotes,
//! `locks/character.rs` classifies and folds characters, `locks/automaton.rs` finds the letters of all traits in one pass,
//! `locks/target.rs` decides whether a candidate is the trait, `locks/spacing.rs` whether its letters are set apart,
//! `locks/patterns.rs` tries regular expressions, and `locks/search.rs` combines the passes.
//!
//! A verbatim match counts anywhere, within longer words too, as a substring does. A short trait that only matches by
//! looks, or set apart, must be a whole word: `AI` is not in `all`, nor `modem` in `modern`.

mod automaton;
mod character;
mod entity;
mod exact_search;
mod excerpt;
mod fold;
mod gap;
mod hit;
mod item;
mod items;
mod marks;
mod name;
mod patterns;
mod reach;
mod search;
mod spacing;
mod target;

use std::ops::Range;
use std::sync::Arc;

use quorate_manifest::assembly::MatchMode;
use serde::{Deserialize, Serialize};

use search::{HitSink, Search, TraitSource};

pub use excerpt::{excerpt, excerpt_parts};
pub use fold::fold;
pub use hit::{Hit, Layer};
pub use name::look_of_name;
pub use reach::trait_reach;

/// A trait as recorded in a run's setup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trait {
    /// The trait as its author wrote it.
    pub text: String,
    /// How it was meant to be matched where it was declared.
    pub declared: MatchMode,
}

/// A trait that cannot be matched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("locked trait {at} cannot be matched: {why}")]
pub struct Error {
    /// Its index.
    pub at: usize,
    /// What is wrong with it, in words.
    pub why: String,
}

/// The traits of an assembly, ready to be looked for.
#[derive(Debug, Clone)]
pub struct Locks {
    compiled: Arc<CompiledLocks>,
}

#[derive(Debug)]
struct CompiledLocks {
    traits: Vec<Trait>,
    locked: Vec<Arc<str>>,
    strictest: MatchMode,
    search: Search,
}

impl Locks {
    /// Makes the traits of an assembly ready. `strictest` is the merged mode of its chain, which is added to the mode under
    /// which a trait was declared, never put in its place (M9): a trait that is plain text stays that under `regex`, and
    /// `semantic` asks an embedder about every trait besides.
    ///
    /// # Errors
    /// When a pattern does not compile, or is too large.
    pub fn compile(traits: &[Trait], strictest: MatchMode) -> Result<Locks, Error> {
        let is_regex = |locked_trait: &'_ Trait| locked_trait.declared == MatchMode::Regex;
        let sources: Vec<TraitSource<'_>> = traits
            .iter()
            .map(|locked_trait| TraitSource { text: &locked_trait.text, is_pattern: is_regex(locked_trait) })
            .collect();
        let search = Search::new(&sources).map_err(|(at, why)| Error { at, why })?;
        let trait_texts = traits.iter().map(|locked_trait| Arc::from(locked_trait.text.as_str())).collect();
        Ok(Locks {
            compiled: Arc::new(CompiledLocks {
                traits: traits.to_vec(),
                locked: trait_texts,
                strictest,
                search,
            }),
        })
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.compiled.traits.is_empty()
    }

    /// The traits, in the order given.
    pub fn traits(&self) -> &[Trait] {
        &self.compiled.traits
    }

    /// At most one hit for each trait, in trait order: of several the least folded layer, then the earliest place.
    pub fn check(&self, text: &str) -> Vec<Hit> {
        let mut best = BestHits(vec![None; self.compiled.traits.len()]);
        if !self.is_empty() {
            self.compiled.search.find(text, &mut best);
        }
        let hits = best.0.into_iter().enumerate();
        hits.filter_map(|(at, hit)| hit.map(|(layer, start, end)| self.hit(at, layer, start..end))).collect()
    }

    /// Every place where a trait is hit, with the least folded layer that hits it there; in trait order, then by place.
    pub fn find_all(&self, text: &str) -> Vec<Hit> {
        let mut all = AllHits::default();
        if !self.is_empty() {
            self.compiled.search.find(text, &mut all);
        }
        // Of overlapping hits the least folded is reported, then the first.
        all.0.sort_unstable();
        let mut hits: Vec<(usize, usize, usize, Layer)> = Vec::new();
        for group in all.0.chunk_by(|one, other| one.0 == other.0) {
            let mut kept: std::collections::BTreeMap<usize, (usize, Layer)> =
                std::collections::BTreeMap::new();
            for (_, layer, start, end) in group {
                let before = kept.range(..*end).next_back();
                if before.is_none_or(|(_, (other, _))| other <= start) {
                    kept.insert(*start, (*end, *layer));
                }
            }
            hits.extend(kept.into_iter().map(|(start, (end, layer))| (group[0].0, start, end, layer)));
        }
        hits.into_iter().map(|(at, start, end, layer)| self.hit(at, layer, start..end)).collect()
    }

    /// Indices of the traits that an embedder has to be asked about too.
    pub fn semantic_traits(&self) -> Vec<usize> {
        let all = self.compiled.strictest == MatchMode::Semantic;
        let is_semantic = |at: &usize| all || self.compiled.traits[*at].declared == MatchMode::Semantic;
        (0..self.compiled.traits.len()).filter(is_semantic).collect()
    }

    fn hit(&self, at: usize, layer: Layer, span: Range<usize>) -> Hit {
        Hit { trait_index: at, trait_text: self.compiled.locked[at].clone(), layer, span }
    }
}

/// Remembers the best place of each trait.
struct BestHits(Vec<Option<(Layer, usize, usize)>>);

impl HitSink for BestHits {
    fn wants(&self, at: usize, layer: Layer, last: usize) -> bool {
        // A trait's places begin in the order in which they end: they have as many letters.
        self.0[at].is_none_or(|(best, _, end)| layer < best || (layer == best && last < end))
    }

    fn hit(&mut self, at: usize, layer: Layer, span: Range<usize>) {
        let new = (layer, span.start, span.end);
        if self.0[at].is_none_or(|best| new < best) {
            self.0[at] = Some(new);
        }
    }
}

/// Remembers every place: trait, layer, start, end.
#[derive(Default)]
struct AllHits(Vec<(usize, Layer, usize, usize)>);

impl HitSink for AllHits {
    fn wants(&self, _: usize, _: Layer, _: usize) -> bool {
        true
    }

    fn hit(&mut self, at: usize, layer: Layer, span: Range<usize>) {
        self.0.push((at, layer, span.start, span.end));
    }
}

#[cfg(test)]
mod tests;
