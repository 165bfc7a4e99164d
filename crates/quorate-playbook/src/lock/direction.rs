//! Direction: what a block does to the traits' words in it, by the words before and after them in their clause.

use std::collections::BTreeMap;

use super::grammar::{Form, Grammar, Means, Op, flag};
use super::text::{Gap, Token};

/// How many words of content a negation or a diminishing verb reaches over.
const REACH: usize = 6;

/// How many words are looked at on either side, whatever they are.
const WINDOW: usize = 40;

/// Something that acts on words: a word or a sequence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acting {
    ops: u16,
    pub(super) form: Form,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Acting {
    pub(super) fn is(&self, op: Op) -> bool {
        self.ops & (1 << op as u16) != 0
    }
}

/// A word or a phrase of a trait in a block, by tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    /// The index of the trait.
    pub(super) at: usize,
    /// Whether it betrays by itself.
    pub(super) is_phrase: bool,
    form: Form,
    /// Its first token.
    pub(super) start: usize,
    /// The token after its last.
    pub(super) end: usize,
}

/// A block, read.
pub(super) struct Reading<'a> {
    grammar: &'a Grammar,
    pub(super) text: &'a str,
    pub(super) tokens: Vec<Token>,
    /// Where each token's part of a sentence begins.
    parts: Vec<usize>,
    pub(super) acts: Vec<Acting>,
    /// By token: the index of what acts there, plus one.
    act_at: Vec<u32>,
    /// The words and phrases of traits, by place.
    pub(super) spots: Vec<Spot>,
}

/// What stands before a word: how often it is turned round, and by what.
#[derive(Debug, Default)]
struct Before {
    flips: usize,
    by: Option<(usize, usize)>,
    is_kept: bool,
    is_split: bool,
}

/// Nothing to the left of it acts on what is to the right, once a word of content stands between.
#[derive(Debug, Default)]
struct Barriers {
    negators: Option<usize>,
    verbs: Option<usize>,
    coordinated: Option<usize>,
}

impl<'a> Reading<'a> {
    /// Reads a folded block.
    pub(super) fn new(text: &'a str, mut tokens: Vec<Token>, grammar: &'a Grammar) -> Reading<'a> {
        for at in 1..tokens.len() {
            if tokens[at].gap != Gap::None && grammar.is(tokens[at - 1].id, flag::OPEN) {
                tokens[at].gap = Gap::None;
            }
        }
        let count = tokens.len();
        let mut read = Reading {
            grammar,
            text,
            tokens,
            parts: Vec::with_capacity(count),
            acts: Vec::new(),
            act_at: vec![0; count],
            spots: Vec::new(),
        };
        read.find();
        read.rejoin();
        read
    }

    /// Whether anything here could turn a word round.
    pub(super) fn acts(&self) -> bool {
        self.acts.iter().any(|act| !act.is(Op::Keeper) && !act.is(Op::Neutral) && !act.is(Op::For))
    }

    #[expect(clippy::cast_possible_truncation, reason = "a block has fewer words")]
    fn find(&mut self) {
        let (mut free, mut part) = (0, 0);
        let mut masked = 0;
        for at in 0..self.tokens.len() {
            let Token { id, gap, .. } = self.tokens[at];
            if gap != Gap::None || self.is(at, flag::SUBORDINATE | flag::BUT) {
                part = at;
            }
            self.parts.push(part);
            if id == 0 {
                continue;
            }
            let tokens = &self.tokens;
            let ids = |ahead: usize| {
                let token = tokens.get(at + ahead)?;
                (ahead == 0 || matches!(token.gap, Gap::None | Gap::Comma)).then_some(token.id)
            };
            let mut best: Option<Acting> = None;
            let mut here = 0;
            let from = self.spots.len();
            let spots = &mut self.spots;
            self.grammar.sequences(ids, |means, len| match means {
                Means::Word(of, form) => {
                    spots.push(Spot { at: of, is_phrase: false, form, start: at, end: at + len });
                }
                Means::Phrase(of) => {
                    spots.push(Spot { at: of, is_phrase: true, form: Form::Base, start: at, end: at + len });
                }
                Means::Ending(of) => {
                    if tokens.get(at + len).is_none_or(|next| next.gap != Gap::None) {
                        let end = at + len;
                        spots.push(Spot { at: of, is_phrase: true, form: Form::Base, start: at, end });
                    }
                }
                Means::Harmless => here = here.max(at + len),
                Means::Acts(op, form) => {
                    let new = Acting { ops: 1 << op as u16, form, start: at, end: at + len };
                    match &mut best {
                        Some(best) if best.end == new.end => best.ops |= new.ops,
                        Some(best) if best.end > new.end => {}
                        _ => best = Some(new),
                    }
                }
            });
            if let Some(best) = best.filter(|_| at >= free) {
                free = best.end;
                self.acts.push(best);
                self.act_at[best.start..best.end].fill(self.acts.len() as u32);
            }
            masked = masked.max(here);
            // What is hidden by a longer sequence is no word of a trait: `identity provider`, `tone down`.
            let covered = self.act(at).filter(|act| act.end - act.start > 1 && !act.is(Op::Keeper));
            let hidden = masked.max(covered.map_or(0, |act| act.end));
            let mut kept = from;
            for place in from..self.spots.len() {
                let spot = self.spots[place];
                if if spot.is_phrase { spot.end >= here } else { spot.end > hidden } {
                    self.spots[kept] = spot;
                    kept += 1;
                }
            }
            self.spots.truncate(kept);
        }
        // A word or a phrase within a phrase of its trait is that phrase's.
        self.spots.sort_by_key(|spot| (spot.start, !spot.is_phrase, std::cmp::Reverse(spot.end)));
        let mut phrases: BTreeMap<usize, usize> = BTreeMap::new();
        self.spots.retain(|spot| {
            let end = phrases.entry(spot.at).or_default();
            let is_own = spot.end > *end;
            if spot.is_phrase {
                *end = spot.end.max(*end);
            }
            is_own
        });
    }

    pub(super) fn is(&self, at: usize, bit: u32) -> bool {
        self.tokens.get(at).is_some_and(|token| self.grammar.is(token.id, bit))
    }

    pub(super) fn act(&self, at: usize) -> Option<&Acting> {
        self.act_at.get(at).filter(|act| **act > 0).map(|act| &self.acts[*act as usize - 1])
    }

    pub(super) fn acts_as(&self, at: usize, op: Op) -> bool {
        self.act(at).is_some_and(|act| act.start == at && act.is(op))
    }

    pub(super) fn is_content(&self, at: usize) -> bool {
        self.act(at).is_none()
            && !self.is(at, flag::FUNCTION | flag::FILLER | flag::SUBORDINATE | flag::AND | flag::OR)
    }

    /// The text of tokens.
    pub(super) fn said(&self, start: usize, end: usize) -> &'a str {
        &self.text[self.tokens[start].span.0..self.tokens[end - 1].span.1]
    }

    /// The clause of a spot, by bytes: its sentence, at most `most` of them.
    pub(super) fn clause(&self, spot: &Spot, most: usize) -> (usize, usize) {
        let (mut start, mut end) = (spot.start, spot.end);
        let len = |start: usize, end: usize| self.tokens[end - 1].span.1 - self.tokens[start].span.0;
        loop {
            let before = start > 0 && self.tokens[start].gap != Gap::Sentence && len(start - 1, end) <= most;
            start -= usize::from(before);
            let after = end < self.tokens.len()
                && self.tokens[end].gap != Gap::Sentence
                && len(start, end + 1) <= most;
            end += usize::from(after);
            if !before && !after {
                return (self.tokens[start].span.0, self.tokens[end - 1].span.1);
            }
        }
    }

    /// What betrays the trait of a spot, if it is betrayed: for a word, what diminishes it.
    pub(super) fn betrayed(&self, spot: &Spot) -> Option<Option<&'a str>> {
        if self.is_described(spot) {
            return None;
        }
        let mut before = self.before(spot);
        self.after(spot, &mut before);
        let is_turned = before.flips % 2 == 1;
        match (spot.is_phrase, is_turned) {
            (true, false) => Some(None),
            (false, true) => Some(before.by.map(|(start, end)| self.said(start, end))),
            _ => None,
        }
    }

    /// Whether a spot stands in a condition about somebody else: `if the user is not friendly`.
    fn is_described(&self, spot: &Spot) -> bool {
        let part = self.parts[spot.start];
        if !self.is(part, flag::SUBORDINATE) {
            return false;
        }
        let third = (part..spot.start)
            .rev()
            .take(WINDOW)
            .take_while(|at| !self.is_content(*at) || self.is(*at, flag::THIRD) || self.asks(*at));
        third.into_iter().any(|at| self.is(at, flag::THIRD))
    }

    fn asks(&self, at: usize) -> bool {
        self.is(at, flag::ASK) && (1..=2).any(|ahead| self.is(at + ahead, flag::TO))
    }

    fn before(&self, spot: &Spot) -> Before {
        let mut found = Before::default();
        let mut barriers = Barriers::default();
        let (mut at, mut content, mut seen, mut gerund) = (spot.start, 0, 0, false);
        while at > 0 && self.tokens[at].gap != Gap::Sentence && seen < WINDOW && content <= REACH {
            self.bar(at, spot, content, &mut barriers);
            at -= 1;
            seen += 1;
            match self.act(at).copied() {
                Some(act) if act.end <= spot.start && !(act.is(Op::Keeper) && act.form == Form::Past) => {
                    at = act.start;
                    self.turn(&act, spot, content, gerund, &mut barriers, &mut found);
                }
                act => {
                    content +=
                        usize::from(self.is_content(at) || act.is_some_and(|act| act.end <= spot.start));
                    gerund = gerund || self.said(at, at + 1).ends_with("ing");
                }
            }
        }
        found
    }

    /// Notes what stands between the token here and what is before it.
    fn bar(&self, at: usize, spot: &Spot, content: usize, barriers: &mut Barriers) {
        let is_and = self.is(at, flag::AND);
        let is_or = self.is(at, flag::OR);
        let gap = self.tokens[at].gap;
        let next = if is_and || is_or { at + 1 } else { at };
        let verb = self.acts_as(next, Op::Verb) || self.acts_as(next, Op::Split);
        let starts =
            self.is(next, flag::STARTER) || self.acts_as(next, Op::Keeper) || self.acts_as(next, Op::Negator);
        let divides = gap == Gap::Comma || is_and;
        let ends_condition = gap == Gap::Comma && self.is(self.parts[at - 1], flag::SUBORDINATE);
        let is_finite = self.is(at, flag::FINITE) && !self.is(at - 1, flag::RELATIVE);
        // `skip the greeting and bend the truth`, but not `avoid lying and misleading`.
        let orders = spot.is_phrase && next == spot.start && !self.said(next, next + 1).ends_with("ing");
        let both = gap == Gap::Colon
            || (is_and && orders)
            || self.is(at, flag::SUBORDINATE | flag::BUT)
            || (divides && !is_or && (verb || starts))
            || ends_condition
            || self.acts_as(at, Op::Keeper)
            || is_finite;
        let purpose = self.is(at, flag::TO) && !self.is(at - 1, flag::NOUN_TO) && self.act(at - 1).is_none();
        let verbs = both
            || (is_or && (verb || starts))
            || (orders && (divides || is_or))
            || self.acts_as(at, Op::Preposition)
            || self.is(at, flag::FOR)
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
    fn turn(
        &self,
        act: &Acting,
        spot: &Spot,
        content: usize,
        gerund: bool,
        barriers: &mut Barriers,
        found: &mut Before,
    ) {
        // `skip, when time is short, the pleasantries`: no object yet, so no comma ends its clause.
        let open = self.tokens[act.end].gap == Gap::Comma
            && act.form == Form::Base
            && !self.is(act.end, flag::STARTER | flag::AND | flag::OR)
            && self.act(act.end).is_none();
        let free = |barrier: Option<usize>| open || barrier.is_none_or(|barrier| content <= barrier);
        let near = spot.start - act.end;
        let is_noun = act.form == Form::Base
            && act.start > 0
            && self.is(act.start - 1, flag::OPEN)
            && self.is(act.start - 1, flag::FILLER);
        let is_passive = act.form == Form::Past && act.start > 0 && self.is(act.start - 1, flag::COPULA);
        let leads = self.is(act.end, flag::TO | flag::RELATIVE);
        let turns = (act.is(Op::Negator) && content <= REACH && free(barriers.negators))
            || (act.is(Op::Determiner) && content <= 1 && near <= 4 && free(barriers.verbs))
            || (act.is(Op::Preposition) && content < REACH && free(barriers.verbs))
            || (act.is(Op::Comparison) && !spot.is_phrase && content == 0 && near <= 2)
            || (act.is(Op::Against) && leads && content <= 3 && free(barriers.negators))
            || (act.is(Op::Verb)
                && content <= REACH
                && free(barriers.verbs)
                && barriers.coordinated != Some(content)
                && !is_noun
                && !is_passive
                && (spot.form != Form::Manner || gerund || leads));
        // What is negated is a verb that has its object.
        if act.is(Op::Verb) && !turns && found.flips == 0 {
            barriers.negators.get_or_insert(content.saturating_sub(1));
        }
        if turns {
            found.flips += 1;
            found.by.get_or_insert((act.start, act.end));
        }
        found.is_split = found.is_split || (act.is(Op::Split) && content <= 3 && free(barriers.verbs));
        found.is_kept = found.is_kept || (act.is(Op::Keeper) && content <= 3);
    }

    /// Counts what is said of a spot after it.
    fn after(&self, spot: &Spot, found: &mut Before) {
        if !self.is_subject(spot) {
            return;
        }
        let (mut at, mut content, mut negations) = (spot.end, 0, 0);
        let (mut is_said, mut colon) = (false, false);
        while at < self.tokens.len() && at - spot.end < WINDOW && content <= REACH {
            let gap = self.tokens[at].gap;
            let orders = self.acts_as(at, Op::Verb) && self.ends_with_pronoun(at);
            if gap == Gap::Sentence && !(orders && at == spot.end && !found.is_kept && found.flips == 0) {
                return;
            }
            colon = colon || (gap == Gap::Colon && content <= 2);
            if orders && !found.is_kept {
                self.count(negations % 2 == 0, at, found);
                return;
            }
            if gap == Gap::Comma && self.is(at, flag::SUBORDINATE) {
                let aside =
                    (at + 1..self.tokens.len().min(at + WINDOW)).find(|at| self.tokens[*at].gap != Gap::None);
                let Some(end) = aside.filter(|end| self.tokens[*end].gap == Gap::Comma) else { return };
                at = end;
                continue;
            }
            if self.is_elsewhere(at, gap) {
                return;
            }
            let Some(act) = self.act(at).copied() else {
                is_said = is_said || self.is(at, flag::COPULA);
                content += usize::from(self.is_content(at));
                at += 1;
                continue;
            };
            if act.is(Op::Particle) && found.is_split && content <= 2 {
                self.count(true, at, found);
                return;
            }
            let last = act.end >= self.tokens.len() || self.tokens[act.end].gap != Gap::None;
            let switched = act.is(Op::Switch) && content == 0 && last && (colon || at == spot.end);
            let considered =
                (1..=4).any(|back| spot.start >= back && self.is(spot.start - back, flag::CONSIDER));
            let predicate = is_said || colon || (content == 0 && considered);
            let against = (act.is(Op::Against) && predicate)
                || act.is(Op::Verdict)
                || (act.is(Op::Verb) && act.form == Form::Past && (predicate || content == 0))
                || (act.is(Op::Verb) && act.form == Form::Base && act.end - act.start > 1 && is_said);
            if !found.is_kept && (switched || against || act.is(Op::For)) {
                let says = if act.is(Op::For) && !against && !switched {
                    negations % 2 == 1
                } else {
                    negations % 2 == 0
                };
                self.count(says, at, found);
                return;
            }
            negations += usize::from(act.is(Op::Negator) || (act.is(Op::Determiner) && is_said));
            is_said = is_said || self.is(at, flag::COPULA);
            at = act.end;
        }
    }

    fn count(&self, says: bool, at: usize, found: &mut Before) {
        if says {
            found.flips += 1;
            if let Some(act) = self.act(at) {
                found.by.get_or_insert((act.start, act.end));
            }
        }
    }

    /// Whether a spot may be what something is said of: `be warm` is not, `being warm` is.
    fn is_subject(&self, spot: &Spot) -> bool {
        let before = (0..spot.start).rev().take(3).find(|at| !self.is(*at, flag::FILLER));
        if spot.is_phrase {
            let first = self.said(spot.start, spot.start + 1);
            return first.ends_with("ing") || (self.parts[spot.start] != spot.start && spot.start > 0);
        }
        before.is_none_or(|at| {
            self.tokens[spot.start].gap != Gap::None
                || !self.is(at, flag::COPULA)
                || matches!(self.said(at, at + 1), "being" | "as")
                || (at > 0 && self.is(at - 1, flag::TO))
        })
    }

    /// Whether a clause of its own begins here, or a condition.
    fn is_elsewhere(&self, at: usize, gap: Gap) -> bool {
        let next = if self.is(at, flag::AND | flag::OR) { at + 1 } else { at };
        let divides = gap == Gap::Comma || self.is(at, flag::AND);
        let starts = self.is(next, flag::STARTER) && !self.is(next, flag::COPULA);
        let acts = self.acts_as(next, Op::Verb) || self.acts_as(next, Op::Keeper);
        self.is(at, flag::SUBORDINATE | flag::BUT) || (divides && (starts || acts))
    }

    pub(super) fn ends_with_pronoun(&self, at: usize) -> bool {
        self.act(at).is_some_and(|act| act.form == Form::Base && self.is(act.end, flag::PRONOUN))
    }
}
