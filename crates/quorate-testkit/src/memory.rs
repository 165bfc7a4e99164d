//! A ledger in memory, with the same records as the one on disk. For tests and experiments.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use quorate_kernel::ports::ledger::{Append, Durability, Ledger, LedgerError, Record};
use quorate_ledger::record::{ChainReader, EncodedRecord, PreparedEntry, leaf};
use quorate_protocol::Name;

/// A ledger in memory.
#[derive(Debug, Default)]
pub struct Memory {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    runs: BTreeMap<Name, Vec<EncodedRecord>>,
    bodies: BTreeMap<String, Arc<str>>,
    syncs: u32,
}

impl Memory {
    pub fn new() -> Self {
        Memory::default()
    }

    /// The number of appends that asked for a sync.
    pub fn syncs(&self) -> u32 {
        self.lock().syncs
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Ledger for Memory {
    async fn append(&self, append: Append) -> Result<u64, LedgerError> {
        let Append { run, from, entries, bodies, durability } = append;
        let mut state = self.lock();
        let records = state.runs.get(&run).map(Vec::as_slice).unwrap_or_default();
        if records.len() as u64 != from {
            return Err(LedgerError::Conflict { run });
        }
        let mut prev = records.last().map(|last| leaf(&last.head));
        let mut sealed = Vec::with_capacity(entries.len());
        for (n, entry) in (from..).zip(entries) {
            let stored = PreparedEntry::prepare(entry)
                .and_then(|entry| entry.encode(&run, n, prev.as_deref()))
                .map_err(|error| LedgerError::Unavailable { what: error.to_string(), source: None })?;
            prev = Some(leaf(&stored.head));
            sealed.push(stored);
        }
        let next = from + sealed.len() as u64;
        state.runs.entry(run).or_default().extend(sealed);
        state.bodies.extend(bodies.into_iter().map(|body| (body.sha256, body.text)));
        state.syncs += u32::from(durability == Durability::Synced);
        Ok(next)
    }

    async fn records(&self, run: &Name) -> Result<Vec<Record>, LedgerError> {
        let state = self.lock();
        let mut chain = ChainReader::new(run);
        state
            .runs
            .get(run)
            .into_iter()
            .flatten()
            .map(|stored| chain.read_next(&stored.head, Some(&stored.data)))
            .collect()
    }

    async fn tail(&self, run: &Name, count: u32) -> Result<Vec<Record>, LedgerError> {
        let state = self.lock();
        let all = state.runs.get(run).map(Vec::as_slice).unwrap_or_default();
        let first = all.len().saturating_sub(count as usize);
        let before = first.checked_sub(1).and_then(|at| all.get(at)).map(|stored| &*stored.head);
        let mut chain = ChainReader::after(run, first as u64, before);
        all[first..].iter().map(|stored| chain.read_next(&stored.head, Some(&stored.data))).collect()
    }

    async fn body(&self, sha256: &str) -> Result<Option<Arc<str>>, LedgerError> {
        Ok(self.lock().bodies.get(sha256).cloned())
    }
}
