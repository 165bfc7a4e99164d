//! Words before a trait's word that act on it: within its clause, and within the reach of each kind of word.

use super::super::grammar::{Inflection, ModifierKind, flag};
use super::super::words::Separator;
use super::{BlockAnalysis, MAX_CONTENT_WORDS, MAX_WORDS, Modifier, Polarity, TraitMatch};

/// Nothing to the left of it acts on what is to the right, once a word of content is between.
#[derive(Debug, Default)]
struct Barriers {
    negators: Option<usize>,
    verbs: Option<usize>,
    coordinated: Option<usize>,
}

impl BlockAnalysis<'_> {
    /// What acts on a spot from before it, in its clause.
    pub(super) fn polarity_before(&self, spot: &TraitMatch) -> Polarity {
        let mut found = Polarity::default();
        let mut barriers = Barriers::default();
        let (mut at, mut content, mut seen, mut gerund) = (spot.start, 0, 0, false);
        while at > 0
            && self.tokens[at].separator != Separator::Sentence
            && seen < MAX_WORDS
            && content <= MAX_CONTENT_WORDS
        {
            self.update_barriers(at, spot, content, &mut barriers);
            at -= 1;
            seen += 1;
            match self.modifier_at(at).copied() {
                Some(act)
                    if act.end <= spot.start
                        && !(act.is_kind(ModifierKind::Keeper) && act.inflection == Inflection::Past) =>
                {
                    at = act.start;
                    self.apply_preceding(&act, spot, content, gerund, &mut barriers, &mut found);
                }
                act => {
                    if content == 0 && self.is_preferred_to(at, spot.start) {
                        found.flips += 1;
                        found.cause.get_or_insert((at, at + 1));
                    }
                    content +=
                        usize::from(self.is_content(at) || act.is_some_and(|act| act.end <= spot.start));
                    gerund = gerund || self.text_of(at, at + 1).ends_with("ing");
                }
            }
        }
        found
    }

    /// Whether a comma is between two tokens.
    fn is_divided(&self, from: usize, to: usize) -> bool {
        self.tokens[from..=to].iter().any(|token| token.separator == Separator::Comma)
    }

    /// Whether the token is the `to` of `prefer speed to honesty`.
    fn is_preferred_to(&self, at: usize, spot: usize) -> bool {
        let owned =
            (at + 1..spot).all(|at| self.has_flag(at, flag::FILLER) && !self.has_flag(at, flag::COPULA));
        let prefers = |at: usize| self.text_of(at, at + 1).starts_with("prefer");
        self.has_flag(at, flag::TO)
            && owned
            && (at.saturating_sub(4)..at.saturating_sub(1)).any(prefers)
            && self.clause_starts[at] == self.clause_starts[spot]
    }

    /// Records the separator between this token and the one before.
    fn update_barriers(&self, at: usize, spot: &TraitMatch, content: usize, barriers: &mut Barriers) {
        let is_and = self.has_flag(at, flag::AND);
        let is_or = self.has_flag(at, flag::OR);
        let gap = self.tokens[at].separator;
        let next = if is_and || is_or { at + 1 } else { at };
        let verb = self.starts_modifier(next, ModifierKind::Verb)
            || self.starts_modifier(next, ModifierKind::SeparableVerb);
        let starts = self.has_flag(next, flag::STARTER)
            || self.starts_modifier(next, ModifierKind::Keeper)
            || self.starts_modifier(next, ModifierKind::Negator);
        let divides = gap == Separator::Comma || is_and;
        let ends_condition =
            gap == Separator::Comma && self.has_flag(self.clause_starts[at - 1], flag::SUBORDINATE);
        let is_finite = self.has_flag(at, flag::FINITE) && !self.has_flag(at - 1, flag::RELATIVE);
        // `skip the greeting and bend the truth`, but not `avoid lying and misleading`.
        let orders = spot.is_phrase && next == spot.start && !self.text_of(next, next + 1).ends_with("ing");
        let both = gap == Separator::Colon
            || (is_and && orders)
            || self.has_flag(at, flag::SUBORDINATE | flag::BUT)
            || (divides && !is_or && (verb || starts))
            || ends_condition
            || self.starts_modifier(at, ModifierKind::Keeper)
            || is_finite;
        let purpose = self.has_flag(at, flag::TO)
            && !self.has_flag(at - 1, flag::NOUN_TO)
            && self.modifier_at(at - 1).is_none();
        let verbs = both
            || (is_or && (verb || starts))
            || (orders && (divides || is_or))
            || self.starts_modifier(at, ModifierKind::Preposition)
            || self.has_flag(at, flag::FOR)
            || purpose;
        if both {
            barriers.negators.get_or_insert(content);
        }
        if verbs {
            barriers.verbs.get_or_insert(content);
        }
        if verb && (divides || is_or) {
            barriers.coordinated = Some(content);
        }
    }

    /// Counts what acts on a spot from before it.
    fn apply_preceding(
        &self,
        act: &Modifier,
        spot: &TraitMatch,
        content: usize,
        gerund: bool,
        barriers: &mut Barriers,
        found: &mut Polarity,
    ) {
        // `skip, when time is short, the pleasantries`: no object yet, so no comma ends its clause.
        let open = self.tokens[act.end].separator == Separator::Comma
            && act.inflection == Inflection::Base
            && !self.has_flag(act.end, flag::STARTER | flag::AND | flag::OR)
            && self.modifier_at(act.end).is_none();
        let free = |barrier: Option<usize>| open || barrier.is_none_or(|barrier| content <= barrier);
        let near = spot.start - act.end;
        let is_noun = act.inflection == Inflection::Base
            && act.start > 0
            && self.has_flag(act.start - 1, flag::OPEN)
            && self.has_flag(act.start - 1, flag::FILLER);
        let is_passive =
            act.inflection == Inflection::Past && act.start > 0 && self.has_flag(act.start - 1, flag::COPULA);
        let leads = self.has_flag(act.end, flag::TO | flag::RELATIVE);
        let turns =
            (act.is_kind(ModifierKind::Negator) && content <= MAX_CONTENT_WORDS && free(barriers.negators))
                || (act.is_kind(ModifierKind::Determiner)
                && content <= 1
                && near <= 4
                && free(barriers.verbs)
                // `less talk, less warmth` says the same of both.
                && !(found.flips > 0 && self.is_divided(act.end, spot.start)))
                || (act.is_kind(ModifierKind::Preposition)
                    && content < MAX_CONTENT_WORDS
                    && free(barriers.verbs))
                || (act.is_kind(ModifierKind::Comparison) && !spot.is_phrase && content == 0 && near <= 2)
                || (act.is_kind(ModifierKind::NegativePredicate)
                    && leads
                    && content <= 3
                    && free(barriers.negators))
                || (act.is_kind(ModifierKind::Verb)
                    && content <= MAX_CONTENT_WORDS
                    && free(barriers.verbs)
                    && barriers.coordinated != Some(content)
                    && !is_noun
                    && !is_passive
                    && (spot.inflection != Inflection::Adverb || gerund || leads));
        // What is negated is a verb that has its object.
        if act.is_kind(ModifierKind::Verb) && !turns && found.flips == 0 {
            barriers.negators.get_or_insert(content.saturating_sub(1));
        }
        if turns {
            found.flips += 1;
            found.cause.get_or_insert((act.start, act.end));
        }
        found.is_split = found.is_split
            || (act.is_kind(ModifierKind::SeparableVerb) && content <= 3 && free(barriers.verbs));
        found.is_kept = found.is_kept || (act.is_kind(ModifierKind::Keeper) && content <= 3);
    }
}
