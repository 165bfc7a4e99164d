//! A ledger that dies: at a chosen append, before or after it is written, by a kill or by a loss of power.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use quorate_kernel::ports::ledger::{Append, Durability, Error, Ledger, Record};
use quorate_ledger::Memory;
use quorate_protocol::Name;

/// When and how the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crash {
    /// At this append, counted from 0.
    pub at: usize,
    /// Whether that append is still written.
    pub moment: Timing,
}

/// Before or after the append is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// Nothing of it is.
    Before,
    /// All of it is, and nobody learns that.
    After,
}

/// A ledger in memory that dies.
pub struct CrashingLedger {
    memory: Memory,
    crash: Option<Crash>,
    appended: Mutex<Vec<Append>>,
    calls: Mutex<usize>,
}

impl CrashingLedger {
    pub fn new(death: Option<Crash>) -> Self {
        CrashingLedger {
            memory: Memory::new(),
            crash: death,
            appended: Mutex::default(),
            calls: Mutex::new(0),
        }
    }

    /// What a new process finds after this one was killed: everything that was written.
    pub async fn after_kill(&self, death: Option<Crash>) -> Self {
        self.survivors(usize::MAX, death).await
    }

    /// What it finds after the power was lost: what was synced, and `lucky` appends that reached the disk anyway.
    pub async fn after_power_loss(&self, lucky: usize, death: Option<Crash>) -> Self {
        let synced =
            self.lock().iter().rposition(|one| one.durability == Durability::Synced).map_or(0, |at| at + 1);
        self.survivors(synced.saturating_add(lucky), death).await
    }

    /// How many appends were synced.
    pub fn syncs(&self) -> u32 {
        self.memory.syncs()
    }

    async fn survivors(&self, count: usize, death: Option<Crash>) -> Self {
        let born = CrashingLedger::new(death);
        let kept: Vec<Append> = self.lock().iter().take(count).cloned().collect();
        for one in &kept {
            // Records were accepted in this order once, and are again.
            let _ = born.memory.append(one.clone()).await;
        }
        *born.lock() = kept;
        born
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Append>> {
        self.appended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn crashed() -> Error {
    Error::Unavailable { what: "the process is dead".into(), source: None }
}

#[async_trait]
impl Ledger for CrashingLedger {
    async fn append(&self, append: Append) -> Result<u64, Error> {
        let call = {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            *calls += 1;
            *calls - 1
        };
        match self.crash {
            Some(death) if call > death.at => return Err(crashed()),
            Some(Crash { at, moment: Timing::Before }) if call == at => return Err(crashed()),
            _ => {}
        }
        let next = self.memory.append(append.clone()).await?;
        self.lock().push(append);
        match self.crash {
            Some(death) if call == death.at => Err(crashed()),
            _ => Ok(next),
        }
    }

    async fn records(&self, run: &Name) -> Result<Vec<Record>, Error> {
        self.memory.records(run).await
    }

    async fn tail(&self, run: &Name, count: u32) -> Result<Vec<Record>, Error> {
        self.memory.tail(run, count).await
    }

    async fn body(&self, sha256: &str) -> Result<Option<Arc<str>>, Error> {
        self.memory.body(sha256).await
    }
}
