//! A ledger that crashes at a chosen append, before or after it is written, by a kill or by a power failure.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use quorate_kernel::ports::ledger::{Append, Durability, Ledger, LedgerError, Record};
use quorate_protocol::Name;

use crate::memory::Memory;

/// When and how the process crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crash {
    /// The index of the append, from 0.
    pub at: usize,
    /// Before or after the append is written.
    pub moment: Timing,
}

/// Whether the crash happens before or after the append is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// The append is lost.
    Before,
    /// The append is written, but the caller never learns it.
    After,
}

/// A ledger in memory that crashes.
pub struct CrashingLedger {
    memory: Memory,
    crash: Option<Crash>,
    appended: Mutex<Vec<Append>>,
    calls: Mutex<usize>,
}

impl CrashingLedger {
    /// An empty ledger; `None` never crashes.
    pub fn new(crash: Option<Crash>) -> Self {
        CrashingLedger { memory: Memory::new(), crash, appended: Mutex::default(), calls: Mutex::new(0) }
    }

    /// The ledger of a new process after a kill: everything that was written.
    pub async fn after_kill(&self, crash: Option<Crash>) -> Self {
        self.survivors(usize::MAX, crash).await
    }

    /// The ledger of a new process after a power failure: what was synced, and `lucky` further appends that reached the disk.
    pub async fn after_power_loss(&self, lucky: usize, crash: Option<Crash>) -> Self {
        let synced = self
            .lock()
            .iter()
            .rposition(|append| append.durability == Durability::Synced)
            .map_or(0, |at| at + 1);
        self.survivors(synced.saturating_add(lucky), crash).await
    }

    /// The number of synced appends.
    pub fn syncs(&self) -> u32 {
        self.memory.syncs()
    }

    async fn survivors(&self, count: usize, crash: Option<Crash>) -> Self {
        let ledger = CrashingLedger::new(crash);
        let survivors: Vec<Append> = self.lock().iter().take(count).cloned().collect();
        for append in &survivors {
            // The records were accepted in this order before.
            let _ = ledger.memory.append(append.clone()).await;
        }
        *ledger.lock() = survivors;
        ledger
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Append>> {
        self.appended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn crashed() -> LedgerError {
    LedgerError::Unavailable { what: "the process is dead".into(), source: None }
}

#[async_trait]
impl Ledger for CrashingLedger {
    async fn append(&self, append: Append) -> Result<u64, LedgerError> {
        let call = {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            *calls += 1;
            *calls - 1
        };
        match self.crash {
            Some(crash) if call > crash.at => return Err(crashed()),
            Some(Crash { at, moment: Timing::Before }) if call == at => return Err(crashed()),
            _ => {}
        }
        let next = self.memory.append(append.clone()).await?;
        self.lock().push(append);
        match self.crash {
            Some(crash) if call == crash.at => Err(crashed()),
            _ => Ok(next),
        }
    }

    async fn records(&self, run: &Name) -> Result<Vec<Record>, LedgerError> {
        self.memory.records(run).await
    }

    async fn tail(&self, run: &Name, count: u32) -> Result<Vec<Record>, LedgerError> {
        self.memory.tail(run, count).await
    }

    async fn body(&self, sha256: &str) -> Result<Option<Arc<str>>, LedgerError> {
        self.memory.body(sha256).await
    }
}
