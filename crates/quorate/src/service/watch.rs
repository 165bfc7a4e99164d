//! Follows runs in progress, whichever process holds them: reads new records of the ledger when a commit event arrives, and at
//! an interval.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use quorate_kernel::ports::ledger::{Kind, Record};
use quorate_kernel::record::{Consultation, Outcome, Override, RunIntent, RunOpened, Status};
use quorate_manifest::timestamp;
use quorate_protocol::Name;
use serde_json::{Value, json};

use super::commit_events::CommitEventReader;
use super::error::ServiceError;
use super::session::LedgerSession;

/// The interval of reads if no events of other processes arrive.
const POLL: Duration = Duration::from_millis(500);
/// The maximum number of records in one read.
const PAGE: u32 = 500;

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchEvent {
    pub run: Name,
    /// The subject of the run.
    pub subject: String,
    /// The number of its record.
    pub n: u64,
    /// In milliseconds since the Unix epoch.
    pub at_ms: i64,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    Opened,
    /// Members are asked, by invocation: `r1/skeptic`.
    Asked(Vec<String>),
    /// An invocation ended.
    Answered {
        invocation: String,
        /// The reason for a missing answer.
        missing: Option<String>,
    },
    /// The verdict or outcome.
    Decided(String),
    /// The decision of a person.
    Overridden(String),
    Ended,
}

/// Follows one run, or all.
pub struct Watcher<'a> {
    session: &'a LedgerSession,
    /// The run; `None` for all.
    run: Option<Name>,
    /// The position in the ledger up to which records were read.
    place: u64,
    /// The number of the next record of the one run.
    next: u64,
    subjects: BTreeMap<Name, String>,
    events: VecDeque<WatchEvent>,
    committed: CommitEventReader,
}

impl<'a> Watcher<'a> {
    async fn new(session: &'a LedgerSession, run: Option<Name>) -> Result<Self, ServiceError> {
        let committed = session.environment.commit_events.reader(POLL);
        let place = session.store.last_place().await?;
        let (subjects, events) = (BTreeMap::new(), VecDeque::new());
        Ok(Watcher { session, run, place, next: 0, subjects, events, committed })
    }

    /// Follows all runs from now on.
    ///
    /// # Errors
    /// If the ledger does not answer.
    pub async fn all(session: &'a LedgerSession) -> Result<Self, ServiceError> {
        Watcher::new(session, None).await
    }

    /// Follows a run from its beginning.
    ///
    /// # Errors
    /// If there is no such run, or the ledger does not answer.
    pub async fn one(session: &'a LedgerSession, prefix: &str) -> Result<Self, ServiceError> {
        let run = session.find_run(prefix).await?.run;
        let mut watcher = Watcher::new(session, Some(run.clone())).await?;
        use quorate_kernel::ports::ledger::Ledger as _;
        for record in session.store.records(&run).await? {
            watcher.take(&run, &record).await?;
            watcher.next = record.n + 1;
        }
        Ok(watcher)
    }

    /// The next event; waits for it.
    ///
    /// # Errors
    /// If the ledger does not answer.
    pub async fn next(&mut self) -> Result<WatchEvent, ServiceError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let records = self.session.store.records_behind(self.place, PAGE).await?;
            if records.is_empty() {
                self.committed.wait(self.run.as_ref()).await;
            }
            for (place, run, record) in records {
                // A record that was appended while the run was read from its beginning arrives twice.
                let is_new = self.run.as_ref().is_none_or(|watched| *watched == run && record.n >= self.next);
                if is_new {
                    self.take(&run, &record).await?;
                }
                self.place = place;
            }
        }
    }

    async fn take(&mut self, run: &Name, record: &Record) -> Result<(), ServiceError> {
        let Some(what) = what(record) else { return Ok(()) };
        if let Ok(Some(opened)) = record.read::<RunOpened>() {
            self.subjects.insert(run.clone(), opened.subject.unwrap_or_default());
        }
        let subject = match self.subjects.get(run) {
            Some(subject) => subject.clone(),
            None => {
                let found = self.session.find_run(run).await?.subject;
                self.subjects.insert(run.clone(), found.clone());
                found
            }
        };
        if what == What::Ended {
            self.subjects.remove(run);
        }
        self.events.push_back(WatchEvent {
            run: run.clone(),
            subject,
            n: record.n,
            at_ms: record.at_ms,
            what,
        });
        Ok(())
    }
}

/// The event of a run's record; `None` for kinds that watchers need not see.
fn what(record: &Record) -> Option<What> {
    if let Ok(Some(_)) = record.read::<RunOpened>() {
        return Some(What::Opened);
    }
    if let Ok(Some(intent)) = record.read::<RunIntent>() {
        let asked: Vec<String> = intent.invocations.iter().map(ToString::to_string).collect();
        return (!asked.is_empty()).then_some(What::Asked(asked));
    }
    if let Ok(Some(ended)) = record.read::<Consultation>() {
        let missing = (ended.status != Status::Answered).then(|| ended.status.as_str().replace('_', " "));
        return Some(What::Answered { invocation: ended.invocation.to_string(), missing });
    }
    if let Ok(Some(outcome)) = record.read::<Outcome>() {
        return outcome.word().map(|word| What::Decided(word.to_owned()));
    }
    if let Ok(Some(decision)) = record.read::<Override>() {
        return Some(What::Overridden(decision.verdict));
    }
    record.is(Kind::RunEnded).then_some(What::Ended)
}

impl WatchEvent {
    /// `{run, n, kind, at, subject}` and what belongs to the kind: `asked`, `invocation` and `missing`, `outcome`.
    pub fn json(&self) -> Value {
        let mut event = json!({
            "run": &*self.run, "n": self.n, "at": timestamp::format(self.at_ms), "subject": self.subject,
        });
        let (kind, key, value) = match &self.what {
            What::Opened => ("opened", None, Value::Null),
            What::Asked(asked) => ("asked", Some("asked"), json!(asked)),
            What::Answered { invocation, missing } => {
                event["missing"] = json!(missing);
                ("answered", Some("invocation"), json!(invocation))
            }
            What::Decided(word) => ("decided", Some("outcome"), json!(word)),
            What::Overridden(word) => ("overridden", Some("outcome"), json!(word)),
            What::Ended => ("ended", None, Value::Null),
        };
        event["kind"] = json!(kind);
        if let Some(key) = key {
            event[key] = value;
        }
        event
    }
}
