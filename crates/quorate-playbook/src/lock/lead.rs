//! Structure: a verb whose object stands in a sentence or a block of its own, and a topic that the next one speaks of.

use super::direction::Reading;
use super::grammar::{Form, Op, flag};
use super::text::Gap;

/// How many words a sentence without an object may have, and one that hangs on such a sentence.
const SHORT: usize = 12;

/// A sentence whose object, or subject, stands in the lines that follow.
#[derive(Debug, Clone)]
pub(super) struct Lead {
    /// What is read before them, or after them.
    text: String,
    /// Whether it is read after them: `the following are optional`.
    pub(super) is_said: bool,
    /// Whether a verb acts, which has a thing for its object.
    is_verb: bool,
    /// Whether it says that something follows.
    pub(super) points: bool,
}

impl Lead {
    /// A folded block together with it.
    pub(super) fn with(&self, body: &str) -> String {
        if self.is_said { format!("{}: {}", bare(body), self.text) } else { format!("{}: {body}", self.text) }
    }
}

/// A text without the signs at its end.
fn bare(text: &str) -> &str {
    text.trim_end_matches(|c: char| !c.is_alphanumeric())
}

impl Reading<'_> {
    /// Joins `skip; the pleasantries` and `skip the following. Pleasantries.`: an object in a sentence of its own.
    pub(super) fn rejoin(&mut self) {
        let (mut start, mut hung) = (0, false);
        for at in 1..self.tokens.len() {
            if self.tokens[at].gap != Gap::Sentence {
                continue;
            }
            let end = self.sentence_end(at);
            let asked = self.text[self.tokens[at - 1].span.1..self.tokens[at].span.0].contains('?');
            let plain = || {
                self.acts.iter().all(|act| act.start < at || act.start >= end || act.is(Op::Neutral))
                    && self.spots.iter().all(|spot| !spot.is_phrase || spot.start < at || spot.start >= end)
            };
            let leads = self.leads(start, at).is_some_and(|lead| lead.is_verb && !lead.is_said);
            let joins = (hung || leads) && !asked && self.is_hanging(at, end, true) && plain();
            if joins {
                self.tokens[at].gap = if hung { Gap::Comma } else { Gap::Colon };
            }
            (start, hung) = (at, joins);
        }
    }

    fn sentence_end(&self, at: usize) -> usize {
        (at + 1..self.tokens.len())
            .find(|at| self.tokens[*at].gap == Gap::Sentence)
            .unwrap_or(self.tokens.len())
    }

    fn last_sentence(&self) -> usize {
        (0..self.tokens.len()).rev().find(|at| self.tokens[*at].gap == Gap::Sentence).unwrap_or(0)
    }

    /// The last sentence, if what follows hangs on it.
    pub(super) fn lead(&self) -> Option<Lead> {
        let lead = self.leads(self.last_sentence(), self.tokens.len())?;
        let end = self.text.trim_end();
        // `Never.` is an answer.
        let is_whole = end.ends_with(['.', '!']) && !lead.is_verb && !lead.points;
        (!end.ends_with('?') && !is_whole).then_some(lead)
    }

    fn leads(&self, start: usize, end: usize) -> Option<Lead> {
        if start >= end || end - start > SHORT {
            return None;
        }
        let (mut verb, mut split, mut acts, mut said, mut points) = (false, false, false, false, None);
        for at in start..end {
            if self.is(at, flag::POINTER) || (at == start && self.is(at, flag::PRONOUN)) {
                points = points.or(Some(at));
            }
            let Some(act) = self.act(at) else {
                if self.is_content(at) && !self.is(at, flag::POINTER) {
                    return None;
                }
                continue;
            };
            if act.is(Op::Keeper) {
                return None;
            }
            split = split || act.is(Op::Split);
            verb = verb || (act.is(Op::Verb) && act.form != Form::Past) || (split && act.is(Op::Particle));
            acts =
                acts || [Op::Verb, Op::Negator, Op::Determiner, Op::Preposition].iter().any(|op| act.is(*op));
            said = said
                || [Op::Against, Op::Verdict, Op::For].iter().any(|op| act.is(*op))
                || (act.is(Op::Verb) && act.form == Form::Past);
        }
        let is_said = said && !verb && (acts || points.is_some());
        let named = || self.spots.iter().any(|one| (start..end).contains(&one.start));
        if (!verb && !acts && !is_said) || named() {
            return None;
        }
        let from = points.filter(|at| is_said && at + 1 < end).map_or(start, |at| at + 1);
        // Of a contraction both words stand at one place.
        let words = (from..end).filter(|at| {
            let is_article = self.is(*at, flag::OPEN) && self.is(at + 1, flag::POINTER) && at + 1 < end;
            let again = *at > from && self.tokens[*at].span == self.tokens[at - 1].span;
            !self.is(*at, flag::POINTER) && !is_article && !again
        });
        let text = words.map(|at| self.said(at, at + 1)).collect::<Vec<_>>().join(" ");
        let points = (start..end).any(|at| self.is(at, flag::POINTER));
        Some(Lead { text, is_said, is_verb: verb, points })
    }

    /// Whether this block begins with what may be the object of a lead, and not with a clause of its own.
    pub(super) fn hangs(&self, lead: &Lead) -> bool {
        !self.tokens.is_empty() && (lead.is_said || self.is_hanging(0, self.sentence_end(0), lead.is_verb))
    }

    fn is_hanging(&self, start: usize, end: usize, is_thing: bool) -> bool {
        let starts = self.is(start, flag::STARTER) && !self.spots.iter().any(|spot| spot.start == start);
        let orders = self.acts_as(start, Op::Keeper)
            || self.act(start).is_some_and(|act| act.is(Op::Verb) && act.form == Form::Base);
        let states = (start + 1..end).any(|at| {
            (self.is(at, flag::FINITE) && !self.is(at - 1, flag::RELATIVE)) || self.acts_as(at, Op::For)
        });
        !(is_thing && (starts || orders)) && !states && end - start <= SHORT
    }

    /// The last sentence, if it is no more than a name for a trait: `Pleasantries:`.
    pub(super) fn topic(&self) -> Option<String> {
        let (start, end) = (self.last_sentence(), self.tokens.len());
        let named = self.spots.iter().any(|spot| !spot.is_phrase && spot.start >= start);
        let plain = (start..end)
            .all(|at| !self.is(at, flag::FINITE) && self.act(at).is_none_or(|act| act.is(Op::Neutral)));
        (named && plain && end - start <= SHORT).then(|| bare(self.said(start, end)).to_owned())
    }

    /// Whether this block begins by saying something of a topic: `skip them`, `not needed`.
    pub(super) fn answers(&self) -> bool {
        let end = if self.tokens.is_empty() { 0 } else { self.sentence_end(0) };
        let mut at = 0;
        while at < end {
            let Some(act) = self.act(at) else {
                if self.is_content(at) {
                    return false;
                }
                at += 1;
                continue;
            };
            let ends = |at: usize| at >= end || self.tokens[at].gap != Gap::None || !self.is_content(at);
            if act.is(Op::Verb) && act.form == Form::Base {
                let whole = self.is(act.end, flag::RELATIVE)
                    || self.said(act.end.min(end - 1), act.end.min(end - 1) + 1) == "them"
                    || ends(act.end + 1);
                return self.ends_with_pronoun(at) && whole;
            }
            let says = [Op::Against, Op::Verdict, Op::For, Op::Switch, Op::Verb].iter().any(|op| act.is(*op));
            if says {
                return ends(act.end);
            }
            at = act.end;
        }
        false
    }
}
