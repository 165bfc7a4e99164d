//! Checks consecutive records: each continues its run's chain, and a run is signed from its first record on, or not at all.

use std::collections::BTreeMap;

use quorate_kernel::entropy::hex;
use quorate_kernel::ports::ledger::Kind;

use super::provable_record::CheckedRecord;
use crate::checkpoint::STREAM;
use crate::record::is_run_id;
use crate::signing::run::{RunKeyring, extend_keys};
use crate::signing::{KeyId, PublicKey};

/// Whether records of a run may be missing between others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapRule {
    Allowed,
    /// All records of a run from its first included one on.
    NotWithinRun,
    /// As [`GapRule::NotWithinRun`], and each run includes its first record.
    FromFirstRecord,
}

/// The state of the runs read so far.
#[derive(Debug)]
pub struct ChainChecker {
    gaps: GapRule,
    runs: BTreeMap<String, ChainPosition>,
}

/// The state of a run.
#[derive(Debug)]
struct ChainPosition {
    n: u64,
    leaf: String,
    signed: bool,
    keys: Option<RunKeys>,
}

/// What a run's first record says of its keys, and those that were added since.
#[derive(Debug, Clone)]
struct RunKeys {
    /// Whether one of them has to have signed each record.
    required: bool,
    /// The name of the key that signed the run from its first record on, where there is one.
    signer: Option<String>,
    keys: BTreeMap<KeyId, PublicKey>,
}

impl ChainChecker {
    pub fn new(gaps: GapRule) -> Self {
        ChainChecker { gaps, runs: BTreeMap::new() }
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// Why it cannot follow the records before it, in words.
    pub fn check_next(&mut self, record: &CheckedRecord) -> Result<(), String> {
        let head = &record.head;
        let signed = !record.signers.is_empty();
        let mut keys = match self.runs.get_mut(&head.run) {
            Some(before) => {
                before.check_follows(record, self.gaps)?;
                before.keys.take()
            }
            None if self.gaps == GapRule::FromFirstRecord && head.n > 0 => {
                return Err("the records of its run before it are missing".to_owned());
            }
            None => RunKeys::from_opened(record),
        };
        let opens = head.kind == Kind::RunOpened.as_str();
        if (opens && head.n > 0) || (!opens && head.n == 0 && is_run_id(&head.run)) {
            return Err("a run is opened by its first record, and by no other".to_owned());
        }
        if head.run == STREAM && head.kind == Kind::Checkpoint.as_str() && signed {
            return Err("a checkpoint is signed by its note, and by no envelope".to_owned());
        }
        if head.n == 0
            && let Some(signer) = keys.as_ref().and_then(|ring| ring.signer.as_deref())
            && !record.signers.iter().any(|id| id.to_string() == signer)
        {
            return Err(format!("its run is signed by the key {signer}, and that did not sign it"));
        }
        if let (Some(ring), Some(data), true) = (&mut keys, &record.data, head.kind == Kind::Keyring.as_str())
        {
            extend_keys(&mut ring.keys, data, |_| Ok(()))?;
        }
        if let Some(ring) = keys.as_ref().filter(|ring| ring.required)
            && !record.signers.iter().any(|id| ring.keys.contains_key(id))
        {
            return Err("its run has to be signed by a key of its keyring, and it is not".to_owned());
        }
        let known = ChainPosition { n: head.n, leaf: hex(&record.leaf), signed, keys };
        self.runs.insert(head.run.clone(), known);
        Ok(())
    }
}

impl ChainPosition {
    fn check_follows(&self, record: &CheckedRecord, gaps: GapRule) -> Result<(), String> {
        let head = &record.head;
        if head.n <= self.n {
            return Err(format!("it comes after record {} of its run", self.n));
        }
        if head.n > self.n + 1 && gaps != GapRule::Allowed {
            return Err(format!("record {} of its run is missing before it", self.n + 1));
        }
        if head.n == self.n + 1 && head.prev.as_ref() != Some(&self.leaf) {
            return Err("it does not name its predecessor's hash".to_owned());
        }
        // Of the ledger's own records, checkpoints are signed in themselves, and older versions signed no others.
        if self.signed == record.signers.is_empty() && head.run != STREAM {
            return Err("a run is signed from its first record on, or not at all".to_owned());
        }
        Ok(())
    }
}

impl RunKeys {
    /// What a run's first record says.
    fn from_opened(record: &CheckedRecord) -> Option<RunKeys> {
        if record.head.n != 0 || record.head.kind != Kind::RunOpened.as_str() {
            return None;
        }
        let RunKeyring { required, signer, keys, .. } = RunKeyring::from_opened(record.data.as_ref()?)?;
        Some(RunKeys { required, signer, keys })
    }
}

#[cfg(test)]
mod tests;
