//! Structure: a verb whose object is in another sentence or block, and a topic that the next sentence refers to.

use super::direction::BlockAnalysis;
use super::grammar::{Inflection, ModifierKind, flag};
use super::text::Separator;

/// How many words a sentence without an object may have, and one that hangs on such a sentence.
const MAX_WORDS: usize = 12;

/// A sentence whose object, or subject, is in the following lines.
#[derive(Debug, Clone)]
pub(super) struct Lead {
    /// What is read before them, or after them.
    text: String,
    /// Whether it is read after them: `the following are optional`.
    pub(super) is_said: bool,
    /// Whether a verb acts, which has a thing for its object.
    is_verb: bool,
    /// Whether it says that something follows.
    pub(super) points_on: bool,
}

impl Lead {
    /// A folded block together with it.
    pub(super) fn join(&self, body: &str) -> String {
        if self.is_said {
            format!("{}: {}", trim_punctuation(body), self.text)
        } else {
            format!("{}: {body}", self.text)
        }
    }
}

/// A text without the signs at its end.
fn trim_punctuation(text: &str) -> &str {
    text.trim_end_matches(|c: char| !c.is_alphanumeric())
}

impl BlockAnalysis<'_> {
    /// Joins `skip; the pleasantries` and `skip the following. Pleasantries.`: an object in a sentence of its own.
    pub(super) fn join_separate_objects(&mut self) {
        let (mut start, mut hung) = (0, false);
        for at in 1..self.tokens.len() {
            if self.tokens[at].separator != Separator::Sentence {
                continue;
            }
            let end = self.sentence_end(at);
            let asked = self.text[self.tokens[at - 1].span.1..self.tokens[at].span.0].contains('?');
            let plain = || {
                self.modifiers
                    .iter()
                    .all(|act| act.start < at || act.start >= end || act.is_kind(ModifierKind::Neutral))
                    && self.matches.iter().all(|spot| !spot.is_phrase || spot.start < at || spot.start >= end)
            };
            let leads = self.lead_of_sentence(start, at).is_some_and(|lead| lead.is_verb && !lead.is_said);
            let joins = (hung || leads) && !asked && self.may_be_object(at, end, true) && plain();
            if joins {
                self.tokens[at].separator = if hung { Separator::Comma } else { Separator::Colon };
            }
            (start, hung) = (at, joins);
        }
    }

    fn sentence_end(&self, at: usize) -> usize {
        (at + 1..self.tokens.len())
            .find(|at| self.tokens[*at].separator == Separator::Sentence)
            .unwrap_or(self.tokens.len())
    }

    fn last_sentence(&self) -> usize {
        (0..self.tokens.len()).rev().find(|at| self.tokens[*at].separator == Separator::Sentence).unwrap_or(0)
    }

    /// The last sentence, if what follows hangs on it.
    pub(super) fn lead(&self) -> Option<Lead> {
        let lead = self.lead_of_sentence(self.last_sentence(), self.tokens.len())?;
        let end = self.text.trim_end();
        // `Never.` is an answer.
        let is_whole = end.ends_with(['.', '!']) && !lead.is_verb && !lead.points_on;
        (!end.ends_with('?') && !is_whole).then_some(lead)
    }

    fn lead_of_sentence(&self, start: usize, end: usize) -> Option<Lead> {
        if start >= end || end - start > MAX_WORDS {
            return None;
        }
        let (mut verb, mut split, mut acts, mut said, mut points) = (false, false, false, false, None);
        for at in start..end {
            if self.has_flag(at, flag::POINTER) || (at == start && self.has_flag(at, flag::PRONOUN)) {
                points = points.or(Some(at));
            }
            let Some(act) = self.modifier_at(at) else {
                if self.is_content(at) && !self.has_flag(at, flag::POINTER) {
                    return None;
                }
                continue;
            };
            if act.is_kind(ModifierKind::Keeper) {
                return None;
            }
            split = split || act.is_kind(ModifierKind::SeparableVerb);
            verb = verb
                || (act.is_kind(ModifierKind::Verb) && act.inflection != Inflection::Past)
                || (split && act.is_kind(ModifierKind::Particle));
            acts = acts
                || [
                    ModifierKind::Verb,
                    ModifierKind::Negator,
                    ModifierKind::Determiner,
                    ModifierKind::Preposition,
                ]
                .iter()
                .any(|op| act.is_kind(*op));
            said = said
                || [
                    ModifierKind::NegativePredicate,
                    ModifierKind::NegativeVerb,
                    ModifierKind::PositivePredicate,
                ]
                .iter()
                .any(|op| act.is_kind(*op))
                || (act.is_kind(ModifierKind::Verb) && act.inflection == Inflection::Past);
        }
        let is_predicate = said && !verb && (acts || points.is_some());
        let named = || self.matches.iter().any(|found| (start..end).contains(&found.start));
        if (!verb && !acts && !is_predicate) || named() {
            return None;
        }
        let from = points.filter(|at| is_predicate && at + 1 < end).map_or(start, |at| at + 1);
        // Both words of a contraction have one position.
        let words = (from..end).filter(|at| {
            let is_article =
                self.has_flag(*at, flag::OPEN) && self.has_flag(at + 1, flag::POINTER) && at + 1 < end;
            let again = *at > from && self.tokens[*at].span == self.tokens[at - 1].span;
            !self.has_flag(*at, flag::POINTER) && !is_article && !again
        });
        let text = words.map(|at| self.text_of(at, at + 1)).collect::<Vec<_>>().join(" ");
        let points_ahead = (start..end).any(|at| self.has_flag(at, flag::POINTER));
        Some(Lead { text, is_said: is_predicate, is_verb: verb, points_on: points_ahead })
    }

    /// Whether this block begins with what may be the object of a lead, and not with a clause of its own.
    pub(super) fn attaches_to(&self, lead: &Lead) -> bool {
        !self.tokens.is_empty() && (lead.is_said || self.may_be_object(0, self.sentence_end(0), lead.is_verb))
    }

    fn may_be_object(&self, start: usize, end: usize, is_thing: bool) -> bool {
        let starts =
            self.has_flag(start, flag::STARTER) && !self.matches.iter().any(|spot| spot.start == start);
        let orders = self.starts_modifier(start, ModifierKind::Keeper)
            || self
                .modifier_at(start)
                .is_some_and(|act| act.is_kind(ModifierKind::Verb) && act.inflection == Inflection::Base);
        let states = (start + 1..end).any(|at| {
            (self.has_flag(at, flag::FINITE) && !self.has_flag(at - 1, flag::RELATIVE))
                || self.starts_modifier(at, ModifierKind::PositivePredicate)
        });
        !(is_thing && (starts || orders)) && !states && end - start <= MAX_WORDS
    }

    /// The last sentence, if it is no more than a name for a trait: `Pleasantries:`.
    pub(super) fn topic(&self) -> Option<String> {
        let (start, end) = (self.last_sentence(), self.tokens.len());
        let named = self.matches.iter().any(|spot| !spot.is_phrase && spot.start >= start);
        let plain = (start..end).all(|at| {
            !self.has_flag(at, flag::FINITE)
                && self.modifier_at(at).is_none_or(|act| act.is_kind(ModifierKind::Neutral))
        });
        (named && plain && end - start <= MAX_WORDS)
            .then(|| trim_punctuation(self.text_of(start, end)).to_owned())
    }

    /// Whether this block begins by saying something of a topic: `skip them`, `not needed`.
    pub(super) fn refers_to_topic(&self) -> bool {
        let end = if self.tokens.is_empty() { 0 } else { self.sentence_end(0) };
        let mut at = 0;
        while at < end {
            let Some(act) = self.modifier_at(at) else {
                if self.is_content(at) {
                    return false;
                }
                at += 1;
                continue;
            };
            let ends =
                |at: usize| at >= end || self.tokens[at].separator != Separator::None || !self.is_content(at);
            if act.is_kind(ModifierKind::Verb) && act.inflection == Inflection::Base {
                let whole = self.has_flag(act.end, flag::RELATIVE)
                    || self.text_of(act.end.min(end - 1), act.end.min(end - 1) + 1) == "them"
                    || ends(act.end + 1);
                return self.ends_with_pronoun(at) && whole;
            }
            let says = [
                ModifierKind::NegativePredicate,
                ModifierKind::NegativeVerb,
                ModifierKind::PositivePredicate,
                ModifierKind::Switch,
                ModifierKind::Verb,
            ]
            .iter()
            .any(|op| act.is_kind(*op));
            if says {
                return ends(act.end);
            }
            at = act.end;
        }
        false
    }
}
