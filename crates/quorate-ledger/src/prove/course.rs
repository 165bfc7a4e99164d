//! Records one after another: what each of them has to be after those before it. A run's chain, and that a run is
//! signed from its first record on, or not at all.

use std::collections::BTreeMap;

use quorate_kernel::entropy::hex;
use quorate_kernel::ports::ledger::Kind;
use quorate_protocol::Json;

use super::item::Checked;
use crate::record::is_run;
use crate::signing::{KeyId, PublicKey};

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
    /// The keys of which one has to have signed each record; `None` where none has to.
    required: Option<Vec<KeyId>>,
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
        let required = match self.runs.get_mut(&head.run) {
            Some(before) => {
                before.follows(record, self.gaps)?;
                before.required.take()
            }
            None if self.gaps == Gaps::Whole && head.n > 0 => {
                return Err("the records of its run before it are missing".to_owned());
            }
            None => required(record),
        };
        let opens = head.kind == Kind::RunOpened.as_str();
        if (opens && head.n > 0) || (!opens && head.n == 0 && is_run(&head.run)) {
            return Err("a run is opened by its first record, and by no other".to_owned());
        }
        if let Some(keys) = &required
            && !record.signers.iter().any(|id| keys.contains(id))
        {
            return Err("its run has to be signed by a key of its keyring, and it is not".to_owned());
        }
        let known = Known { n: head.n, leaf: hex(&record.leaf), signed, required };
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
        if self.signed == record.signers.is_empty() {
            return Err("a run is signed from its first record on, or not at all".to_owned());
        }
        Ok(())
    }
}

/// The keys that a run's first record says have to sign, where it says so.
fn required(record: &Checked) -> Option<Vec<KeyId>> {
    if record.head.n != 0 || record.head.kind != Kind::RunOpened.as_str() {
        return None;
    }
    let audit = record.data.as_ref()?.get("audit")?;
    if audit.get("signing").and_then(Json::as_str) != Some("required") {
        return None;
    }
    let keys = audit.get("keyring").and_then(Json::as_array).into_iter().flatten();
    let keys = keys.filter_map(|key| PublicKey::from_text(key.as_str()?).ok());
    Some(keys.map(|key| key.id()).collect())
}
