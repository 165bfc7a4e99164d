//! A process's handles on states and ledger, both slow and failing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use quorate_kernel::ports::ledger::{self, Append, Kind, Ledger, Record};
use quorate_kernel::ports::state::{self, State};
use quorate_protocol::{Json, Name};
use serde_json::Map;

use super::conversation::{SharedConversation, position};
use super::life::Life;
use super::log::{Cursor, Log, STATE_READ_ERROR};
use crate::faults::CrashingLedger;

/// The participants' states, for all processes.
pub(super) type States = Arc<Mutex<BTreeMap<String, Map<String, Json>>>>;

/// One process's handle on the states.
pub(super) struct FlakyState {
    pub(super) states: States,
    pub(super) life: Arc<Life>,
}

#[async_trait]
impl State for FlakyState {
    fn kind(&self) -> &'static str {
        "simulated"
    }

    async fn read(&self, participant: &str) -> Result<Map<String, Json>, state::Error> {
        let failed = |_| state::Error { what: STATE_READ_ERROR.to_owned(), source: None };
        self.life.step("a state is read").await.map_err(failed)?;
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(states.get(participant).cloned().unwrap_or_default())
    }

    async fn write(&self, participant: &str, state: &Map<String, Json>) -> Result<(), state::Error> {
        let failed =
            |_| state::Error { what: "simulated: a state could not be written".to_owned(), source: None };
        self.life.step("a state is written").await.map_err(failed)?;
        {
            let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
            states.insert(participant.to_owned(), state.clone());
        }
        self.life.step("a state was written").await.map_err(failed)
    }
}

/// One process's handle on a ledger.
pub(super) struct FlakyLedger {
    pub(super) manifest: usize,
    pub(super) ledger: Arc<CrashingLedger>,
    pub(super) life: Arc<Life>,
    pub(super) talk: Arc<SharedConversation>,
    pub(super) log: Arc<Mutex<Log>>,
}

impl FlakyLedger {
    async fn step(&self, what: &'static str) -> Result<(), ledger::Error> {
        let failed = |_| ledger::Error::Unavailable {
            what: format!("simulated: {what}, and that failed"),
            source: None,
        };
        self.life.step(what).await.map_err(failed)
    }
}

#[async_trait]
impl Ledger for FlakyLedger {
    async fn append(&self, append: Append) -> Result<u64, ledger::Error> {
        self.step("records are written").await?;
        let turns = append.entries.iter().filter(|entry| entry.kind == Kind::Turn);
        let cursors = turns.filter_map(|entry| position(entry.data.get("cursor")?.as_str()?));
        let cursors: Vec<usize> = cursors.collect();
        let next = self.ledger.append(append).await?;
        {
            let (manifest, length) = (self.manifest, self.talk.len());
            let recorded = cursors.into_iter().map(|at| Cursor { manifest, at, length });
            self.log.lock().unwrap_or_else(PoisonError::into_inner).cursors.extend(recorded);
        }
        self.step("records were written").await?;
        Ok(next)
    }

    async fn records(&self, run: &Name) -> Result<Vec<Record>, ledger::Error> {
        self.step("records are read").await?;
        self.ledger.records(run).await
    }

    async fn tail(&self, run: &Name, count: u32) -> Result<Vec<Record>, ledger::Error> {
        self.step("the tail is read").await?;
        self.ledger.tail(run, count).await
    }

    async fn body(&self, sha256: &str) -> Result<Option<Arc<str>>, ledger::Error> {
        self.ledger.body(sha256).await
    }
}
