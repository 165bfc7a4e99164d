//! Direction: whether a block weakens or strengthens the traits' words in it, by the words before and after them in their
//! clause.

use std::collections::BTreeMap;

use super::grammar::{Grammar, Inflection, Meaning, ModifierKind, Token, flag};
use super::text::Separator;

/// How many words of content a negation or a diminishing verb reaches over.
const MAX_CONTENT_WORDS: usize = 6;

/// The maximum number of words examined on either side.
const MAX_WORDS: usize = 40;

/// Something that acts on words: a word or a sequence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Modifier {
    kinds: u16,
    pub(super) inflection: Inflection,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Modifier {
    pub(super) fn is_kind(&self, op: ModifierKind) -> bool {
        self.kinds & (1 << op as u16) != 0
    }
}

/// A word or a phrase of a trait in a block, by tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct TraitMatch {
    /// The index of the trait.
    pub(super) trait_index: usize,
    /// Whether it betrays by itself.
    pub(super) is_phrase: bool,
    inflection: Inflection,
    pub(super) start: usize,
    /// The token after its last.
    pub(super) end: usize,
}

pub(super) struct BlockAnalysis<'a> {
    grammar: &'a Grammar,
    pub(super) text: &'a str,
    pub(super) tokens: Vec<Token>,
    /// Where each token's part of a sentence begins.
    clause_starts: Vec<usize>,
    pub(super) modifiers: Vec<Modifier>,
    /// By token: the index of what acts there, plus one.
    modifier_index: Vec<u32>,
    /// The words and phrases of traits, by place.
    pub(super) matches: Vec<TraitMatch>,
}

/// The context before a word: how often it is negated, and by what.
#[derive(Debug, Default)]
struct Polarity {
    flips: usize,
    cause: Option<(usize, usize)>,
    is_kept: bool,
    is_split: bool,
}

impl<'a> BlockAnalysis<'a> {
    /// Reads a folded block.
    pub(super) fn new(text: &'a str, mut tokens: Vec<Token>, grammar: &'a Grammar) -> BlockAnalysis<'a> {
        for at in 1..tokens.len() {
            if tokens[at].separator != Separator::None && grammar.has_flag(tokens[at - 1].id, flag::OPEN) {
                tokens[at].separator = Separator::None;
            }
        }
        let count = tokens.len();
        let mut read = BlockAnalysis {
            grammar,
            text,
            tokens,
            clause_starts: Vec::with_capacity(count),
            modifiers: Vec::new(),
            modifier_index: vec![0; count],
            matches: Vec::new(),
        };
        read.find_matches();
        read.join_separate_objects();
        read
    }

    /// Whether anything here could turn a word round.
    pub(super) fn has_modifier(&self) -> bool {
        self.modifiers.iter().any(|act| {
            !act.is_kind(ModifierKind::Keeper)
                && !act.is_kind(ModifierKind::Neutral)
                && !act.is_kind(ModifierKind::PositivePredicate)
        })
    }

    #[expect(clippy::cast_possible_truncation, reason = "a block has fewer words")]
    fn find_matches(&mut self) {
        let (mut free, mut part, mut masked) = (0, 0, 0);
        for at in 0..self.tokens.len() {
            let Token { id, separator: gap, .. } = self.tokens[at];
            if gap != Separator::None || self.has_flag(at, flag::SUBORDINATE | flag::BUT) {
                part = at;
            }
            self.clause_starts.push(part);
            if id == 0 {
                continue;
            }
            let tokens = &self.tokens;
            let ids = |ahead: usize| {
                let token = tokens.get(at + ahead)?;
                (ahead == 0 || matches!(token.separator, Separator::None | Separator::Comma))
                    .then_some(token.id)
            };
            let (mut best, mut here): (Option<Modifier>, usize) = (None, 0);
            let from = self.matches.len();
            let matches = &mut self.matches;
            let found = |trait_index, is_phrase, inflection, len| TraitMatch {
                trait_index,
                is_phrase,
                inflection,
                start: at,
                end: at + len,
            };
            self.grammar.sequences(ids, |means, len| match means {
                Meaning::Word(of, form) => matches.push(found(of, false, form, len)),
                Meaning::Phrase(of) => matches.push(found(of, true, Inflection::Base, len)),
                Meaning::ClauseFinalPhrase(of) => {
                    if tokens.get(at + len).is_none_or(|next| next.separator != Separator::None) {
                        matches.push(found(of, true, Inflection::Base, len));
                    }
                }
                Meaning::Harmless => here = here.max(at + len),
                Meaning::Modifier(op, form) => {
                    let new = Modifier { kinds: 1 << op as u16, inflection: form, start: at, end: at + len };
                    match &mut best {
                        Some(best) if best.end == new.end => best.kinds |= new.kinds,
                        Some(best) if best.end > new.end => {}
                        _ => best = Some(new),
                    }
                }
            });
            if let Some(best) = best.filter(|_| at >= free) {
                free = best.end;
                self.modifiers.push(best);
                self.modifier_index[best.start..best.end].fill(self.modifiers.len() as u32);
            }
            masked = masked.max(here);
            // A word inside a longer sequence does not stand for a trait: `identity provider`, `tone down`.
            let covered = self
                .modifier_at(at)
                .filter(|act| act.end - act.start > 1 && !act.is_kind(ModifierKind::Keeper));
            let hidden = masked.max(covered.map_or(0, |act| act.end));
            let mut kept = from;
            for place in from..self.matches.len() {
                let spot = self.matches[place];
                if if spot.is_phrase { spot.end >= here } else { spot.end > hidden } {
                    self.matches[kept] = spot;
                    kept += 1;
                }
            }
            self.matches.truncate(kept);
        }
        // A word or a phrase within a phrase of its trait is that phrase's.
        self.matches.sort_by_key(|spot| (spot.start, !spot.is_phrase, std::cmp::Reverse(spot.end)));
        let mut phrases: BTreeMap<usize, usize> = BTreeMap::new();
        self.matches.retain(|spot| {
            let end = phrases.entry(spot.trait_index).or_default();
            let is_own = spot.end > *end;
            if spot.is_phrase {
                *end = spot.end.max(*end);
            }
            is_own
        });
    }

    pub(super) fn has_flag(&self, at: usize, bit: u32) -> bool {
        self.tokens.get(at).is_some_and(|token| self.grammar.has_flag(token.id, bit))
    }

    pub(super) fn modifier_at(&self, at: usize) -> Option<&Modifier> {
        self.modifier_index.get(at).filter(|act| **act > 0).map(|act| &self.modifiers[*act as usize - 1])
    }

    pub(super) fn starts_modifier(&self, at: usize, op: ModifierKind) -> bool {
        self.modifier_at(at).is_some_and(|act| act.start == at && act.is_kind(op))
    }

    pub(super) fn is_content(&self, at: usize) -> bool {
        self.modifier_at(at).is_none()
            && !self.has_flag(at, flag::FUNCTION | flag::FILLER | flag::SUBORDINATE | flag::AND | flag::OR)
    }

    /// The text of tokens.
    pub(super) fn text_of(&self, start: usize, end: usize) -> &'a str {
        &self.text[self.tokens[start].span.0..self.tokens[end - 1].span.1]
    }

    /// The clause of a spot, by bytes: its sentence, at most `most` of them.
    pub(super) fn clause(&self, spot: &TraitMatch, most: usize) -> (usize, usize) {
        let (mut start, mut end) = (spot.start, spot.end);
        let len = |start: usize, end: usize| self.tokens[end - 1].span.1 - self.tokens[start].span.0;
        loop {
            let before = start > 0
                && self.tokens[start].separator != Separator::Sentence
                && len(start - 1, end) <= most;
            start -= usize::from(before);
            let after = end < self.tokens.len()
                && self.tokens[end].separator != Separator::Sentence
                && len(start, end + 1) <= most;
            end += usize::from(after);
            if !before && !after {
                return (self.tokens[start].span.0, self.tokens[end - 1].span.1);
            }
        }
    }

    /// What betrays the trait of a spot, if it is betrayed: for a word, what diminishes it.
    pub(super) fn violation_cause(&self, spot: &TraitMatch) -> Option<Option<&'a str>> {
        if self.is_third_party_condition(spot) {
            return None;
        }
        let mut before = self.polarity_before(spot);
        self.apply_following(spot, &mut before);
        let is_turned = before.flips % 2 == 1;
        match (spot.is_phrase, is_turned) {
            (true, false) => Some(None),
            (false, true) => Some(before.cause.map(|(start, end)| self.text_of(start, end))),
            _ => None,
        }
    }

    /// Whether a match is in a condition about another person: `if the user is not friendly`.
    fn is_third_party_condition(&self, spot: &TraitMatch) -> bool {
        let part = self.clause_starts[spot.start];
        if !self.has_flag(part, flag::SUBORDINATE) {
            return false;
        }
        let third = (part..spot.start).rev().take(MAX_WORDS).take_while(|at| {
            !self.is_content(*at) || self.has_flag(*at, flag::THIRD) || self.is_request(*at)
        });
        third.into_iter().any(|at| self.has_flag(at, flag::THIRD))
    }

    fn is_request(&self, at: usize) -> bool {
        self.has_flag(at, flag::ASK) && (1..=2).any(|ahead| self.has_flag(at + ahead, flag::TO))
    }

    /// Counts the negations after a match.
    fn apply_following(&self, spot: &TraitMatch, found: &mut Polarity) {
        if !self.is_subject(spot) {
            return;
        }
        let (mut at, mut content, mut negations) = (spot.end, 0, 0);
        let (mut is_said, mut colon) = (false, false);
        while at < self.tokens.len() && at - spot.end < MAX_WORDS && content <= MAX_CONTENT_WORDS {
            let gap = self.tokens[at].separator;
            let orders = self.starts_modifier(at, ModifierKind::Verb) && self.ends_with_pronoun(at);
            if gap == Separator::Sentence && !(orders && at == spot.end && !found.is_kept && found.flips == 0)
            {
                return;
            }
            colon = colon || (gap == Separator::Colon && content <= 2);
            if orders && !found.is_kept {
                self.add_flip(negations % 2 == 0, at, found);
                return;
            }
            if gap == Separator::Comma && self.has_flag(at, flag::SUBORDINATE) {
                let aside = (at + 1..self.tokens.len().min(at + MAX_WORDS))
                    .find(|at| self.tokens[*at].separator != Separator::None);
                let Some(end) = aside.filter(|end| self.tokens[*end].separator == Separator::Comma) else {
                    return;
                };
                at = end;
                continue;
            }
            if self.starts_new_clause(at, gap) {
                return;
            }
            let Some(act) = self.modifier_at(at).copied() else {
                is_said = is_said || self.has_flag(at, flag::COPULA);
                content += usize::from(self.is_content(at));
                at += 1;
                continue;
            };
            if act.is_kind(ModifierKind::Particle) && found.is_split && content <= 2 {
                self.add_flip(true, at, found);
                return;
            }
            let last = act.end >= self.tokens.len() || self.tokens[act.end].separator != Separator::None;
            let switched =
                act.is_kind(ModifierKind::Switch) && content == 0 && last && (colon || at == spot.end);
            let considered =
                (1..=4).any(|back| spot.start >= back && self.has_flag(spot.start - back, flag::CONSIDER));
            let predicate = is_said || colon || (content == 0 && considered);
            let against = (act.is_kind(ModifierKind::NegativePredicate) && predicate)
                || act.is_kind(ModifierKind::NegativeVerb)
                || (act.is_kind(ModifierKind::Verb)
                    && act.inflection == Inflection::Past
                    && (predicate || content == 0))
                || (act.is_kind(ModifierKind::Verb)
                    && act.inflection == Inflection::Base
                    && act.end - act.start > 1
                    && is_said);
            if !found.is_kept && (switched || against || act.is_kind(ModifierKind::PositivePredicate)) {
                let says = if act.is_kind(ModifierKind::PositivePredicate) && !against && !switched {
                    negations % 2 == 1
                } else {
                    negations % 2 == 0
                };
                self.add_flip(says, at, found);
                return;
            }
            negations += usize::from(
                act.is_kind(ModifierKind::Negator) || (act.is_kind(ModifierKind::Determiner) && is_said),
            );
            is_said = is_said || self.has_flag(at, flag::COPULA);
            at = act.end;
        }
    }

    fn add_flip(&self, says: bool, at: usize, found: &mut Polarity) {
        if says {
            found.flips += 1;
            if let Some(act) = self.modifier_at(at) {
                found.cause.get_or_insert((act.start, act.end));
            }
        }
    }

    /// Whether a spot can be the subject of a statement: `be warm` cannot, `being warm` can.
    fn is_subject(&self, spot: &TraitMatch) -> bool {
        let before = (0..spot.start).rev().take(3).find(|at| !self.has_flag(*at, flag::FILLER));
        if spot.is_phrase {
            let first = self.text_of(spot.start, spot.start + 1);
            return first.ends_with("ing")
                || (self.clause_starts[spot.start] != spot.start && spot.start > 0);
        }
        before.is_none_or(|at| {
            self.tokens[spot.start].separator != Separator::None
                || !self.has_flag(at, flag::COPULA)
                || matches!(self.text_of(at, at + 1), "being" | "as")
                || (at > 0 && self.has_flag(at - 1, flag::TO))
        })
    }

    /// Whether a clause of its own begins here, or a condition.
    fn starts_new_clause(&self, at: usize, gap: Separator) -> bool {
        let next = if self.has_flag(at, flag::AND | flag::OR) { at + 1 } else { at };
        let divides = gap == Separator::Comma || self.has_flag(at, flag::AND);
        let starts = self.has_flag(next, flag::STARTER) && !self.has_flag(next, flag::COPULA);
        let modifies = self.starts_modifier(next, ModifierKind::Verb)
            || self.starts_modifier(next, ModifierKind::Keeper);
        self.has_flag(at, flag::SUBORDINATE | flag::BUT) || (divides && (starts || modifies))
    }

    pub(super) fn ends_with_pronoun(&self, at: usize) -> bool {
        self.modifier_at(at)
            .is_some_and(|act| act.inflection == Inflection::Base && self.has_flag(act.end, flag::PRONOUN))
    }
}

/// Nothing to the left of it acts on what is to the right, once a word of content is between.
#[derive(Debug, Default)]
struct Barriers {
    negators: Option<usize>,
    verbs: Option<usize>,
    coordinated: Option<usize>,
}

impl BlockAnalysis<'_> {
    /// What acts on a spot from before it, in its clause.
    fn polarity_before(&self, spot: &TraitMatch) -> Polarity {
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
        // The negation applies to a verb that has an object.
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
