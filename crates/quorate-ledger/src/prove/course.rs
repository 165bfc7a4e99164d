//! Records one after another: what each of them has to be after those before it. A run's chain, and that a run is
//! signed from its first record on, or not at all.

use std::collections::BTreeMap;

use quorate_kernel::entropy::hex;
use quorate_kernel::ports::ledger::Kind;

use super::item::Checked;
use crate::record::is_run;
use crate::signing::run::{Audit, extended};
use crate::signing::{KeyId, PublicKey};
use crate::store::STREAM;

/// Whether records of a run may be missing between others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gaps {
    /// Somebody picked some.
    May,
    /// From a run's first one that is there, all are.
    No,
    /// As [`Gaps::No`], and each run is there from its first record on.
    Whole,
}

/// What is known of the runs whose records came so far.
#[derive(Debug)]
pub struct Course {
    gaps: Gaps,
    runs: BTreeMap<String, Known>,
}

/// What is known of a run.
#[derive(Debug)]
struct Known {
    n: u64,
    leaf: String,
    signed: bool,
    ring: Option<Ring>,
}

/// What a run's first record says of its keys, and those that were added since.
#[derive(Debug, Clone)]
struct Ring {
    /// Whether one of them has to have signed each record.
    required: bool,
    /// The name of the key that signed the run from its first record on, where there is one.
    signer: Option<String>,
    keys: BTreeMap<KeyId, PublicKey>,
}

impl Course {
    /// Nothing came yet.
    pub fn new(gaps: Gaps) -> Self {
        Course { gaps, runs: BTreeMap::new() }
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// Why it cannot come after those before, in words.
    pub fn take(&mut self, record: &Checked) -> Result<(), String> {
        let head = &record.head;
        let signed = !record.signers.is_empty();
        let mut ring = match self.runs.get_mut(&head.run) {
            Some(before) => {
                before.follows(record, self.gaps)?;
                before.ring.take()
            }
            None if self.gaps == Gaps::Whole && head.n > 0 => {
                return Err("the records of its run before it are missing".to_owned());
            }
            None => Ring::of(record),
        };
        let opens = head.kind == Kind::RunOpened.as_str();
        if (opens && head.n > 0) || (!opens && head.n == 0 && is_run(&head.run)) {
            return Err("a run is opened by its first record, and by no other".to_owned());
        }
        if head.run == STREAM && head.kind == Kind::Checkpoint.as_str() && signed {
            return Err("a checkpoint is signed by its note, and by no envelope".to_owned());
        }
        if head.n == 0
            && let Some(signer) = ring.as_ref().and_then(|ring| ring.signer.as_deref())
            && !record.signers.iter().any(|id| id.to_string() == signer)
        {
            return Err(format!("its run is signed by the key {signer}, and that did not sign it"));
        }
        if let (Some(ring), Some(data), true) = (&mut ring, &record.data, head.kind == Kind::Keyring.as_str())
        {
            extended(&mut ring.keys, data, |_| Ok(()))?;
        }
        if let Some(ring) = ring.as_ref().filter(|ring| ring.required)
            && !record.signers.iter().any(|id| ring.keys.contains_key(id))
        {
            return Err("its run has to be signed by a key of its keyring, and it is not".to_owned());
        }
        let known = Known { n: head.n, leaf: hex(&record.leaf), signed, ring };
        self.runs.insert(head.run.clone(), known);
        Ok(())
    }
}

impl Known {
    fn follows(&self, record: &Checked, gaps: Gaps) -> Result<(), String> {
        let head = &record.head;
        if head.n <= self.n {
            return Err(format!("it comes after record {} of its run", self.n));
        }
        if head.n > self.n + 1 && gaps != Gaps::May {
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

impl Ring {
    /// What a run's first record says.
    fn of(record: &Checked) -> Option<Ring> {
        if record.head.n != 0 || record.head.kind != Kind::RunOpened.as_str() {
            return None;
        }
        let Audit { required, signer, keys, .. } = Audit::of(record.data.as_ref()?)?;
        Some(Ring { required, signer, keys })
    }
}
