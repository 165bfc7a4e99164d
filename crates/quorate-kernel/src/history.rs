//! History: a run's records folded back into what a protocol was fed, what it concluded and what was spent. Resume,
//! replay and every view start here.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_protocol::{Absent, Consultation, Event, Json, Name, Part, PartKind, Stamped};
use serde_json::{Map, json};

use crate::consultation;
use crate::ports::ledger::{Kind, Record};

/// What a run's records say.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The run.
    pub run: Name,
    /// The body of `run.opened`.
    pub opened: Map<String, Json>,
    /// When it was opened.
    pub opened_ms: i64,
    /// The consultations that hold, in the order in which they were fed.
    pub consulted: Vec<Stamped>,
    /// Their records' bodies, in the same order.
    pub consultations: Vec<Map<String, Json>>,
    /// Rules and outcome that follow from them, as recorded: kind and body.
    pub facts: Vec<(String, Map<String, Json>)>,
    /// When the outcome was recorded, if there is one.
    pub decided_ms: Option<i64>,
    /// The body of the last `run.ended` that holds.
    pub ended: Option<Map<String, Json>>,
    /// Whether it ended INCOMPLETE before and was taken up again.
    pub reopened: bool,
    /// People's decisions beside it, oldest first, with their times.
    pub overrides: Vec<(i64, Map<String, Json>)>,
    /// Calls made in all sessions, those under way at a crash included.
    pub calls: u32,
    /// Time worked on it in all sessions.
    pub wall: Duration,
    /// The number of the next record.
    pub next: u64,
}

/// Why records do not make a history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no such run.
    #[error("there is no run {0}")]
    Unknown(Name),
    /// The body of a record that is needed was erased.
    #[error("the body of record {run}/{n} was erased")]
    Erased {
        /// The run.
        run: Name,
        /// The record.
        n: u64,
    },
    /// A record is not as this version writes it.
    #[error("record {run}/{n} cannot be read: {what}")]
    Unreadable {
        /// The run.
        run: Name,
        /// The record.
        n: u64,
        /// What is missing.
        what: &'static str,
    },
}

#[derive(Default)]
struct Fold {
    consulted: Vec<(Stamped, Map<String, Json>)>,
    facts: Vec<(String, Map<String, Json>)>,
    decided_ms: Option<i64>,
    ended: Option<Map<String, Json>>,
    reopened: bool,
    overrides: Vec<(i64, Map<String, Json>)>,
    under_way: BTreeMap<String, u32>,
    calls: u32,
    wall_ms: i64,
    session_ms: i64,
    last_ms: i64,
}

impl History {
    /// Folds all records of a run.
    ///
    /// # Errors
    /// When there are none, a needed body was erased, or a record is not as it should be.
    pub fn of(run: &Name, records: Vec<Record>) -> Result<History, Error> {
        let mut records = records.into_iter();
        let first = records.next().ok_or_else(|| Error::Unknown(run.clone()))?;
        let unreadable = |n, what| Error::Unreadable { run: run.clone(), n, what };
        if !first.is(Kind::RunOpened) {
            return Err(unreadable(first.n, "a run starts with run.opened"));
        }
        let opened = first.data.ok_or_else(|| Error::Erased { run: run.clone(), n: first.n })?;
        let mut fold = Fold { session_ms: first.at_ms, last_ms: first.at_ms, ..Fold::default() };
        let mut next = first.n + 1;
        for record in records {
            next = record.n + 1;
            let data = record.data.ok_or_else(|| Error::Erased { run: run.clone(), n: record.n })?;
            fold.record(&record.kind, record.at_ms, data).map_err(|what| unreadable(record.n, what))?;
        }
        let under_way: u32 = fold.under_way.values().map(|attempts| attempts + 1).sum();
        let wall_ms = fold.wall_ms + fold.last_ms - fold.session_ms;
        let (consulted, consultations) = fold.consulted.into_iter().unzip();
        Ok(History {
            run: run.clone(),
            opened,
            opened_ms: first.at_ms,
            consulted,
            consultations,
            facts: fold.facts,
            decided_ms: fold.decided_ms,
            ended: fold.ended,
            reopened: fold.reopened,
            overrides: fold.overrides,
            calls: fold.calls.saturating_add(under_way),
            wall: Duration::from_millis(u64::try_from(wall_ms).unwrap_or(0)),
            next,
        })
    }

    /// The outcome that holds, if there is one.
    pub fn outcome(&self) -> Option<&Map<String, Json>> {
        self.facts.iter().rev().find(|(kind, _)| kind == Kind::Outcome.as_str()).map(|(_, data)| data)
    }

    /// The hash of the artifact's text as it was kept.
    pub fn inputs(&self) -> Vec<(PartKind, String, String)> {
        let entries = self.opened.get("inputs").and_then(Json::as_array);
        let read = |entry: &Json| {
            let text = |key: &str| entry.get(key).and_then(Json::as_str).map(str::to_owned);
            (text("kind")? == PartKind::Artifact.as_str()).then_some(())?;
            Some((PartKind::Artifact, text("name")?, text("sha256")?))
        };
        entries.into_iter().flatten().filter_map(read).collect()
    }

    /// The first event, given the texts of the inputs.
    pub fn opening(&self, inputs: Vec<Part>) -> Stamped {
        let priors = self.opened.get("priors").and_then(Json::as_array).cloned().unwrap_or_default();
        Stamped { at_ms: self.opened_ms, event: Event::Opened { run: self.run.clone(), inputs, priors } }
    }

    /// Whether a consultation gave no output, so that it can be asked for again.
    fn absent(stamped: &Stamped) -> Option<&Name> {
        match &stamped.event {
            Event::Consulted { id, result: Consultation::Absent(_) } => Some(id),
            _ => None,
        }
    }

    /// Takes back what has to be asked again so that an INCOMPLETE run can go on: in the last step that has a member
    /// without output those members' consultations, and everything after that step, since it was asked on the
    /// strength of it. Returns the ids taken back; none when every consultation has an answer.
    pub fn reopen(&mut self) -> Vec<Name> {
        let Some(last) = self.consulted.iter().rev().find_map(Self::absent) else { return Vec::new() };
        let step = step_of(last).to_owned();
        let in_step = |stamped: &Stamped| id_of(stamped).is_some_and(|id| step_of(id) == step);
        let end = self.consulted.iter().rposition(in_step).map_or(0, |at| at + 1);
        let mut taken = Vec::new();
        let all =
            std::mem::take(&mut self.consulted).into_iter().zip(std::mem::take(&mut self.consultations));
        for (at, (stamped, body)) in all.enumerate() {
            let absent = Self::absent(&stamped).filter(|id| step_of(id) == step);
            match id_of(&stamped).filter(|_| absent.is_some() || at >= end) {
                Some(id) => taken.push(id.clone()),
                None => {
                    self.consulted.push(stamped);
                    self.consultations.push(body);
                }
            }
        }
        self.facts.clear();
        self.decided_ms = None;
        self.ended = None;
        taken
    }
}

impl Fold {
    fn record(&mut self, kind: &str, at_ms: i64, data: Map<String, Json>) -> Result<(), &'static str> {
        if kind == Kind::RunIntent.as_str() {
            self.intent(at_ms, &data);
        } else if kind == Kind::Attempt.as_str() {
            let id =
                data.get("invocation").and_then(Json::as_str).ok_or("an attempt names its invocation")?;
            *self.under_way.entry(id.to_owned()).or_default() += 1;
        } else if kind == Kind::Consultation.as_str() {
            let event =
                consultation::event(&data).ok_or("a consultation has invocation, status and answer")?;
            let under_way = match &event {
                Event::Consulted { id, .. } => self.under_way.remove(&**id),
                Event::Opened { .. } => None,
            };
            let calls =
                data.get("spent").and_then(|spent| spent.get("calls")).and_then(Json::as_u64).unwrap_or(0);
            // Nobody was asked this time, for want of a call: what was under way when an earlier process died counts.
            let before = under_way.filter(|_| calls == 0).map_or(0, |attempts| attempts + 1);
            let calls = u32::try_from(calls).unwrap_or(u32::MAX);
            self.calls = self.calls.saturating_add(calls).saturating_add(before);
            self.consulted.push((Stamped { at_ms, event }, data));
        } else if kind == Kind::Rule.as_str() || kind == Kind::Outcome.as_str() {
            if kind == Kind::Outcome.as_str() {
                self.decided_ms = Some(at_ms);
            }
            self.facts.push((kind.to_owned(), data));
        } else if kind == Kind::RunEnded.as_str() {
            self.ended = Some(data);
        } else if kind == Kind::Override.as_str() {
            // A person's decision comes at any later time; it is not work on the run.
            self.overrides.push((at_ms, data));
            return Ok(());
        }
        self.last_ms = at_ms.max(self.last_ms);
        Ok(())
    }

    fn intent(&mut self, at_ms: i64, data: &Map<String, Json>) {
        let names =
            |key: &str| data.get(key).and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
        if data.get("resumes") == Some(&json!(true)) {
            self.wall_ms += self.last_ms - self.session_ms;
            self.session_ms = at_ms;
            self.last_ms = at_ms;
        }
        let superseded: Vec<&str> = names("supersedes").collect();
        if !superseded.is_empty() {
            self.consulted
                .retain(|(stamped, _)| id_of(stamped).is_none_or(|id| !superseded.contains(&&**id)));
            self.facts.clear();
            self.decided_ms = None;
            self.ended = None;
            self.reopened = true;
        }
        for id in names("invocations") {
            // Asked for again without having ended: what was under way then may have been paid for.
            if let Some(attempts) = self.under_way.insert(id.to_owned(), 0) {
                self.calls = self.calls.saturating_add(attempts + 1);
            }
        }
    }
}

fn id_of(stamped: &Stamped) -> Option<&Name> {
    match &stamped.event {
        Event::Consulted { id, .. } => Some(id),
        Event::Opened { .. } => None,
    }
}

/// The step of an invocation: what stands before its slash.
fn step_of(id: &str) -> &str {
    id.split_once('/').map_or(id, |(step, _)| step)
}

/// The status word of the consultation of an invocation, for views.
pub fn status_word(result: &Consultation) -> &'static str {
    match result {
        Consultation::Answered(_) => "answered",
        Consultation::Absent(why) => Absent::status(*why),
    }
}
