//! Trials: the recorded attempts of a scope's texts at gates, and the measurements of scorers (B12). Evidence belongs to a
//! text: it adds up over attempts, over playbooks with the same text, and after a playbook was archived.

use std::fmt;

use quorate_kernel::ports::ledger::{PlaybookEvent, Record};
use quorate_kernel::record::PlaybookEventData;
use quorate_playbook::gate::TextIdentity;
use quorate_protocol::Json;
use schemars::JsonSchema;
use serde::{Deserialize as _, Serialize};
use serde_json::json;

/// An attempt to pass a gate, before it is recorded.
#[derive(Debug, Clone)]
pub struct NewAttempt {
    pub id: String,
    pub text: TextIdentity,
}

impl NewAttempt {
    /// Adds it to the data of a record.
    pub fn add_to(&self, data: &mut Json) {
        data["attempt"] = json!(self.id);
        data["text"] = json!(self.text);
    }
}

/// The recorded trials of a scope, the oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trials {
    attempts: Vec<Attempt>,
    /// The texts that went into shadow: the time in milliseconds since the Unix epoch, the playbook's slug, and the text.
    texts: Vec<(i64, String, Json)>,
}

#[derive(Debug, Clone, PartialEq)]
struct Attempt {
    id: String,
    text: Option<TextIdentity>,
    is_refused: bool,
    /// The scores with the playbook and without it.
    pairs: Vec<(f64, f64)>,
}

/// How often gates were asked about a text and similar ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AttemptCount {
    /// How often a gate was asked about this text or a similar one
    pub attempts: usize,
    /// How often it refused
    pub refused_attempts: usize,
}

impl fmt::Display for AttemptCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} refused", self.attempts, self.refused_attempts)
    }
}

impl Trials {
    /// Adds the attempt or text of a record.
    pub(super) fn add(&mut self, record: &Record, event: &PlaybookEventData) {
        let is = |kind: PlaybookEvent| record.kind == kind.as_str();
        let Some(id) = &event.attempt else {
            if let (true, Some(slug), false) =
                (is(PlaybookEvent::Shadowed), &event.slug, event.text.is_null())
            {
                self.texts.push((record.at_ms, slug.clone(), event.text.clone()));
            }
            return;
        };
        let at = self.attempts.iter().rposition(|attempt| attempt.id == *id).unwrap_or_else(|| {
            let new = Attempt { id: id.clone(), text: None, is_refused: false, pairs: Vec::new() };
            self.attempts.push(new);
            self.attempts.len() - 1
        });
        let attempt = &mut self.attempts[at];
        if attempt.text.is_none() {
            attempt.text = TextIdentity::deserialize(&event.text).ok();
        }
        attempt.is_refused |= is(PlaybookEvent::Rejected);
        attempt.pairs.extend(event.scores.map(|scores| (scores.with, scores.without)));
    }

    /// The scores of all trials, with their texts.
    pub fn pairs(&self) -> impl Iterator<Item = (&TextIdentity, (f64, f64))> {
        let attempts =
            self.attempts.iter().filter_map(|attempt| Some((attempt.text.as_ref()?, &attempt.pairs)));
        attempts.flat_map(|(text, pairs)| pairs.iter().map(move |pair| (text, *pair)))
    }

    /// How often gates were asked about a text.
    pub fn count(&self, text: &TextIdentity) -> AttemptCount {
        let of_it = |attempt: &&Attempt| attempt.text.as_ref().is_some_and(|of| text.is_similar(of));
        let of_it: Vec<&Attempt> = self.attempts.iter().filter(of_it).collect();
        let refused = of_it.iter().filter(|attempt| attempt.is_refused).count();
        AttemptCount { attempts: of_it.len(), refused_attempts: refused }
    }

    /// The text of a playbook in shadow at a time.
    pub fn text_at(&self, slug: &str, at_ms: i64) -> Option<TextIdentity> {
        let until = self.texts.iter().rfind(|(since, of, _)| of == slug && *since <= at_ms);
        until.and_then(|(_, _, text)| TextIdentity::deserialize(text).ok())
    }

    /// The first time when a text went into shadow that `is_wanted` accepts.
    pub fn first_ms(&self, is_wanted: impl Fn(&TextIdentity) -> bool) -> Option<i64> {
        let is_it = |text: &Json| TextIdentity::deserialize(text).is_ok_and(|text| is_wanted(&text));
        self.texts.iter().filter(|(_, _, text)| is_it(text)).map(|(at_ms, ..)| *at_ms).min()
    }
}
