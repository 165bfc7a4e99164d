//! Clauses: which negations act on a trait's word or phrase.

use std::collections::HashMap;
use std::sync::LazyLock;

use quorate_diagnostics::text::section;

use super::{Entry, Lexicon, Role};
use crate::words::{Gap, WORDS, Word, lemmas, words};

/// How many words of content a negation reaches over.
const WINDOW: usize = 6;

/// How many words are read on either side of a match.
const REACH: usize = 40;

/// How many fillers may stand between two words of an entry.
const MAX_FILLERS: usize = 4;

/// Inflected forms that no rule makes, with their base.
static IRREGULAR: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let lines = section(WORDS, "irregular").filter_map(|line| line.split_once(' '));
    lines.flat_map(|(base, forms)| forms.split(' ').map(move |form| (form, base))).collect()
});

/// The roles of words, as bits; each is a section of `words.txt`.
pub(super) mod kind {
    macro_rules! kinds {
        ($(#[$doc:meta])* $list:ident: $($name:ident = $bit:literal $section:literal,)*) => {
            $(pub(in crate::lexicon) const $name: u32 = 1 << $bit;)*
            $(#[$doc])*
            pub(in crate::lexicon) const $list: &[(&str, u32)] = &[$(($section, $name),)*];
        };
    }
    kinds! {
        /// Sequences that act on what is around them.
        MODIFIERS:
        NEUTRAL = 0 "neutral",
        NEGATOR = 1 "negator",
        DETERMINER = 2 "determiner",
        PREPOSITION = 3 "preposition",
        COMPARISON = 4 "comparison",
        VERB = 5 "verb",
        SEPARABLE = 6 "separable verb",
        PARTICLE = 7 "particle",
        AGAINST = 8 "negative predicate",
        AGAINST_VERB = 9 "negative verb",
        IN_FAVOUR = 10 "positive predicate",
        SWITCH = 11 "switch",
        KEEPER = 12 "keeper",
    }
    kinds! {
        /// Single words that divide clauses, or do not count as content.
        CLASSES:
        STARTER = 13 "starters",
        SUBORDINATE = 14 "subordinates",
        FUNCTION = 15 "functions",
        FILLER = 16 "fillers",
        COPULA = 17 "copulas",
        THIRD = 18 "third parties",
        AND = 19 "and",
        OR = 20 "or",
        PRONOUN = 21 "pronoun",
        CONSIDER = 23 "consider",
        TO = 25 "to",
    }
}

#[derive(Debug)]
struct Token {
    /// Its numbers in the lexicon, as it stands first.
    ids: Vec<u32>,
    class: u32,
    gap: Gap,
    /// Bytes of the block.
    start: usize,
    end: usize,
    is_past: bool,
    is_ing: bool,
}

/// A word or a phrase of a trait, by tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    pub(super) of: usize,
    is_phrase: bool,
    is_adverb: bool,
    pub(super) start: usize,
    /// The token after its last.
    pub(super) end: usize,
}

/// Words that act on those around them.
#[derive(Debug, Clone, Copy)]
struct Modifier {
    kinds: u32,
    start: usize,
    end: usize,
}

/// A block of folded text.
#[derive(Debug)]
pub(super) struct Block<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    /// By token: what acts there.
    modifiers: Vec<Option<Modifier>>,
    pub(super) spots: Vec<Spot>,
}

/// The negations of a spot.
#[derive(Debug, Default)]
struct Count<'a> {
    negations: usize,
    first: Option<&'a str>,
    is_split: bool,
}

impl<'a> Count<'a> {
    fn add(&mut self, by: &'a str) {
        self.negations += 1;
        self.first.get_or_insert(by);
    }
}

impl<'a> Block<'a> {
    pub(super) fn new(lexicon: &Lexicon, text: &'a str) -> Block<'a> {
        let tokens = tokens(lexicon, text);
        let mut block = Block { text, modifiers: vec![None; tokens.len()], tokens, spots: Vec::new() };
        let (mut free, mut hidden) = (0, 0);
        // By trait: where its last phrase ends, which the words and phrases in it belong to.
        let mut phrases = vec![0; lexicon.traits.len()];
        for at in 0..block.tokens.len() {
            let (mut modifier, mut found): (Option<Modifier>, Vec<Spot>) = (None, Vec::new());
            let ids = &block.tokens[at].ids;
            for entry in ids.iter().filter_map(|id| lexicon.entries.get(id)).flatten() {
                let Some(end) = block.matches(entry, at) else { continue };
                let spot = Spot { of: 0, is_phrase: false, is_adverb: false, start: at, end };
                match entry.role {
                    Role::Word { of, is_adverb } => found.push(Spot { of, is_adverb, ..spot }),
                    Role::Phrase { of } => found.push(Spot { of, is_phrase: true, ..spot }),
                    Role::Harmless => hidden = hidden.max(end),
                    Role::Modifier(kinds) => match &mut modifier {
                        Some(best) if best.end == end => best.kinds |= kinds,
                        Some(best) if best.end > end => {}
                        _ => modifier = Some(Modifier { kinds, start: at, end }),
                    },
                }
            }
            if let Some(modifier) = modifier.filter(|_| at >= free) {
                free = modifier.end;
                block.modifiers[at..modifier.end].fill(Some(modifier));
            }
            found.sort_by_key(|spot| (!spot.is_phrase, std::cmp::Reverse(spot.end)));
            for spot in found.into_iter().filter(|spot| spot.end > hidden) {
                if spot.end > phrases[spot.of] {
                    block.spots.push(spot);
                }
                if spot.is_phrase {
                    phrases[spot.of] = phrases[spot.of].max(spot.end);
                }
            }
        }
        block
    }

    /// Where an entry ends that begins at a token.
    fn matches(&self, entry: &Entry, start: usize) -> Option<usize> {
        let (mut at, mut filled) = (start + 1, 0);
        let mut rest = &entry.words[1..];
        while let Some(choices) = rest.first() {
            let token = self.tokens.get(at).filter(|token| matches!(token.gap, Gap::None | Gap::Comma))?;
            if token.ids.iter().any(|id| choices.contains(id)) {
                (rest, filled) = (&rest[1..], 0);
            } else if token.class & kind::FILLER != 0 && filled < MAX_FILLERS {
                filled += 1;
            } else {
                return None;
            }
            at += 1;
        }
        let ends = self.tokens.get(at).is_none_or(|next| next.gap != Gap::None);
        (ends || !entry.is_final).then_some(at)
    }

    /// Whether anything here could turn a word round.
    pub(super) fn acts(&self) -> bool {
        let idle = kind::KEEPER | kind::NEUTRAL | kind::IN_FAVOUR;
        self.modifiers.iter().flatten().any(|act| act.kinds & !idle != 0 && act.kinds & kind::NEUTRAL == 0)
    }

    pub(super) fn text_of(&self, start: usize, end: usize) -> &'a str {
        &self.text[self.tokens[start].start..self.tokens[end - 1].end]
    }

    /// The sentence around a spot, limited to a number of bytes.
    pub(super) fn sentence(&self, spot: &Spot, most: usize) -> &'a str {
        let (mut start, mut end) = (spot.start, spot.end);
        let fits = |start: usize, end: usize| self.tokens[end - 1].end - self.tokens[start].start <= most;
        while start > 0 && self.tokens[start].gap != Gap::Sentence && fits(start - 1, end) {
            start -= 1;
        }
        while end < self.tokens.len() && self.tokens[end].gap != Gap::Sentence && fits(start, end + 1) {
            end += 1;
        }
        self.text_of(start, end)
    }

    fn is(&self, at: usize, class: u32) -> bool {
        self.tokens.get(at).is_some_and(|token| token.class & class != 0)
    }

    /// Whether a modifier of a kind begins here.
    fn begins(&self, at: usize, kinds: u32) -> bool {
        self.modifiers.get(at).copied().flatten().is_some_and(|act| act.start == at && act.kinds & kinds != 0)
    }

    fn is_content(&self, at: usize) -> bool {
        let empty = kind::FUNCTION | kind::FILLER | kind::SUBORDINATE | kind::AND | kind::OR;
        self.modifiers[at].is_none() && !self.is(at, empty)
    }

    /// Why a spot violates its trait, if it does: what negates a word, nothing for a phrase.
    pub(super) fn violation(&self, spot: &Spot) -> Option<Option<&'a str>> {
        if self.is_about_others(spot) {
            return None;
        }
        let mut count = self.before(spot);
        self.after(spot, &mut count);
        match (spot.is_phrase, count.negations % 2 == 1) {
            (true, false) => Some(None),
            (false, true) => Some(count.first),
            _ => None,
        }
    }

    /// Whether a spot is in a condition about another person: `if the user is cold`.
    fn is_about_others(&self, spot: &Spot) -> bool {
        let starts = |at: &usize| self.is(*at, kind::SUBORDINATE) || self.tokens[*at].gap != Gap::None;
        let Some(start) =
            (0..=spot.start).rev().take(REACH).find(starts).filter(|at| self.is(*at, kind::SUBORDINATE))
        else {
            return false;
        };
        let near =
            (start..spot.start).rev().take_while(|at| !self.is_content(*at) || self.is(*at, kind::THIRD));
        near.into_iter().any(|at| self.is(at, kind::THIRD))
    }

    /// Whether a clause of its own begins at a token.
    fn begins_clause(&self, at: usize, starters: u32) -> bool {
        let next = at + usize::from(self.is(at, kind::AND | kind::OR));
        let divides = self.tokens[at].gap == Gap::Comma || self.is(at, kind::AND);
        let starts = self.is(next, kind::STARTER) || self.begins(next, starters);
        self.is(at, kind::SUBORDINATE) || (divides && !self.is(at, kind::OR) && starts)
    }

    /// Counts the negations before a spot. One that has an object of its own does not act across the border of a clause.
    fn before(&self, spot: &Spot) -> Count<'a> {
        let mut count = Count::default();
        // How many words of content there were at the first border, and at the first that only verbs do not cross.
        let (mut border, mut verb_border, mut coordinated) = (None::<usize>, None::<usize>, None);
        let (mut at, mut content) = (spot.start, 0);
        while at > 0 && self.tokens[at].gap != Gap::Sentence && content <= WINDOW && spot.start - at < REACH {
            let next = at + usize::from(self.is(at, kind::AND | kind::OR));
            let verb = self.begins(next, kind::VERB | kind::SEPARABLE);
            let divides = self.tokens[at].gap == Gap::Comma || self.is(at, kind::AND | kind::OR);
            let orders = divides && spot.is_phrase && next == spot.start && !self.tokens[next].is_ing;
            let starters = kind::VERB | kind::SEPARABLE | kind::KEEPER | kind::NEGATOR;
            if self.tokens[at].gap == Gap::Colon
                || self.begins_clause(at, starters)
                || self.begins(at, kind::KEEPER)
            {
                border.get_or_insert(content);
            }
            if border.is_some() || orders {
                verb_border.get_or_insert(content);
            }
            if verb && divides {
                coordinated = Some(content);
            }
            at -= 1;
            let Some(act) = self.modifiers[at].filter(|act| act.end <= spot.start) else {
                content += usize::from(self.is_content(at));
                continue;
            };
            at = act.start;
            let has = |kinds: u32| act.kinds & kinds != 0;
            let reaches = |border: Option<usize>| border.is_none_or(|border| content <= border);
            let near = spot.start - act.end;
            let leads = self.is(act.end, kind::TO);
            let is_verb = has(kind::VERB);
            let has_object = coordinated != Some(content) && (!spot.is_adverb || leads);
            if (has(kind::NEGATOR) && reaches(border))
                || (has(kind::DETERMINER) && content <= 1 && near <= 4 && reaches(verb_border))
                || (has(kind::PREPOSITION) && content < WINDOW && reaches(verb_border))
                || (has(kind::COMPARISON) && !spot.is_phrase && content == 0 && near <= 2)
                || (has(kind::AGAINST) && leads && content <= 3 && reaches(border))
                || (is_verb && has_object && reaches(verb_border))
            {
                count.add(self.text_of(act.start, act.end));
            } else if is_verb && count.negations == 0 {
                // `do not skip the survey for friendly people` negates the verb, which has its own object.
                border.get_or_insert(content.saturating_sub(1));
            } else {
                content += 1;
            }
            count.is_split |= has(kind::SEPARABLE) && content <= 3 && verb_border.is_none();
        }
        count
    }

    /// Counts the negations in the rest of the clause: `is optional`, `can wait`, `should be dropped`, `: off`, `skip it`.
    fn after(&self, spot: &Spot, count: &mut Count<'a>) {
        let before = (0..spot.start).rev().take(REACH).find(|at| !self.is(*at, kind::FILLER));
        let is_object = |at: usize| {
            self.tokens[spot.start].gap == Gap::None
                && self.is(at, kind::COPULA)
                && !matches!(self.text_of(at, at + 1), "being" | "as")
        };
        let can_be_subject =
            if spot.is_phrase { self.tokens[spot.start].is_ing } else { !before.is_some_and(is_object) };
        if !can_be_subject {
            return;
        }
        let considered = (1..=4).any(|back| spot.start >= back && self.is(spot.start - back, kind::CONSIDER));
        let (mut at, mut content, mut inner, mut is_said, mut colon) = (spot.end, 0, 0, considered, false);
        while at < self.tokens.len() && content <= WINDOW && at - spot.end < REACH {
            let orders = self.begins(at, kind::VERB)
                && self.modifiers[at].is_some_and(|act| self.is(act.end, kind::PRONOUN));
            if orders && (self.tokens[at].gap != Gap::Sentence || at == spot.end) {
                return self.flip(at, inner % 2 == 0, count);
            }
            let starts = self.begins_clause(at, kind::VERB | kind::KEEPER) && !self.is(at, kind::COPULA);
            if self.tokens[at].gap == Gap::Sentence || starts {
                return;
            }
            colon |= self.tokens[at].gap == Gap::Colon && content <= 2;
            let Some(act) = self.modifiers[at] else {
                is_said |= self.is(at, kind::COPULA);
                content += usize::from(self.is_content(at));
                at += 1;
                continue;
            };
            let has = |kinds: u32| act.kinds & kinds != 0;
            let is_last = self.tokens.get(act.end).is_none_or(|next| next.gap != Gap::None);
            if has(kind::PARTICLE) && count.is_split && content <= 2 {
                return self.flip(at, true, count);
            }
            let is_past = has(kind::VERB) && self.tokens[at].is_past;
            let against = (has(kind::SWITCH) && content == 0 && is_last && (colon || at == spot.end))
                || (has(kind::AGAINST) && (is_said || colon))
                || has(kind::AGAINST_VERB)
                || (is_past && (is_said || colon || content == 0))
                || (has(kind::VERB) && act.end - act.start > 1 && is_said);
            if against || has(kind::IN_FAVOUR) {
                return self.flip(at, (inner % 2 == 0) == against, count);
            }
            inner += usize::from(has(kind::NEGATOR) || (has(kind::DETERMINER) && is_said));
            is_said |= self.is(at, kind::COPULA);
            at = act.end;
        }
    }

    fn flip(&self, at: usize, is_against: bool, count: &mut Count<'a>) {
        if let Some(act) = self.modifiers[at].filter(|_| is_against) {
            count.add(self.text_of(act.start, act.end));
        }
    }
}

/// The words of a folded text, by their numbers.
fn tokens(lexicon: &Lexicon, text: &str) -> Vec<Token> {
    let all = words(text).into_iter().map(|Word { text: word, gap, start, end }| {
        let known = |word: String| lexicon.ids.get(&word).copied();
        let ids: Vec<u32> = lemmas(&word, &IRREGULAR).into_iter().filter_map(known).collect();
        let class = lexicon.ids.get(&word).map_or(0, |id| lexicon.classes[*id as usize]);
        let is_ing = word.ends_with("ing");
        let is_past = !is_ing && (IRREGULAR.contains_key(&*word) || (word.ends_with("ed") && word.len() > 4));
        Token { ids, class, gap, start, end, is_past, is_ing }
    });
    all.collect()
}
