//! Checks checkpoints during the walk: their content, their signatures, and that the preceding checkpoint introduced
//! each new key.

use std::collections::BTreeMap;

use quorate_kernel::record::{self, RolledBack};
use quorate_protocol::Json;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Map;

use super::VerifyOptions;
use super::divergence::{Divergence, DivergenceKind, Findings, LedgerPart};
use super::key_changes::{KeyChanges, public_keys};
use crate::checkpoint::as_record;
use crate::merkle::{Hash, TreeHead};
use crate::note::Verifier;
use crate::prove::SignedCheckpoint;
use crate::signing::PublicKey;
use crate::store::{CheckpointRecord, STREAM, Succession};

/// The checkpoints so far.
#[derive(Default)]
pub(super) struct Checkpoints {
    pub(super) count: u64,
    pub(super) unsigned: u64,
    pub(super) origin: Option<String>,
    /// The sizes of the last checkpoint and of the last signed one.
    pub(super) size: u64,
    pub(super) signed_size: u64,
    /// The last signed one: its number in the stream, and its position.
    last_signed: Option<(u64, u64)>,
    /// The signers of the last signed one.
    current: Vec<Verifier>,
    /// The number of the checkpoint that the walk starts after. Its own record is the first one of the walk.
    start: Option<u64>,
    /// All signers of checkpoints.
    pub(super) signers: Vec<Verifier>,
    /// Keys that followed without a voucher.
    pub(super) key_changes: KeyChanges,
    /// The expected rows of the table of checkpoints, by size: root and number.
    pub(super) rows: BTreeMap<u64, (Hash, u64)>,
    /// The time of the last signed one, in milliseconds since the Unix epoch.
    pub(super) signed_ms: Option<i64>,
}

impl Checkpoints {
    /// The state of the checkpoints before the start of the walk.
    pub(super) fn starting_after(sealed: &CheckpointRecord) -> Self {
        let current: Vec<Verifier> =
            sealed.keys.iter().filter_map(|key| Verifier::from_text(key).ok()).collect();
        Checkpoints {
            origin: Some(sealed.origin.clone()),
            size: sealed.tree.size,
            signed_size: if current.is_empty() { 0 } else { sealed.tree.size },
            start: Some(sealed.n),
            signers: current.clone(),
            current,
            ..Checkpoints::default()
        }
    }

    /// Checks the body of checkpoint `n`, with its time and position. Returns its size and root.
    pub(super) fn add(
        &mut self,
        options: &VerifyOptions,
        (n, at_ms, place): (u64, i64, u64),
        data: &Map<String, Json>,
        findings: &mut Findings,
    ) -> Option<TreeHead> {
        self.count += 1;
        let mut say = |what: String| {
            findings.add(Divergence::changed(LedgerPart::Checkpoint, what).at(STREAM, n, place));
        };
        let Some(sealed) = CheckpointRecord::from_data(n, data) else {
            say("it lacks origin, size, root or keys".to_owned());
            return None;
        };
        let TreeHead { size, root } = sealed.tree;
        if size + 1 != place {
            say(format!("it covers {size} records, but is at position {place}"));
        }
        self.rows.insert(size, (root, n));
        self.size = self.size.max(size);
        match &self.origin {
            Some(origin) if *origin != sealed.origin => {
                say(format!(
                    "it is of the ledger {}, but earlier checkpoints are of {origin}",
                    sealed.origin
                ));
            }
            Some(_) => {}
            None => self.origin = Some(sealed.origin.clone()),
        }
        match &sealed.note {
            None if sealed.succession != Succession::default() => {
                say("it is unsigned, but names keys that follow others".to_owned());
            }
            None if sealed.keys.is_empty() => self.unsigned += 1,
            None => say("it names keys, but has no signature".to_owned()),
            Some(note) => match self.check_signed(options, &sealed, note, place) {
                Ok(()) => self.signed_ms = Some(at_ms),
                Err(what) => say(what),
            },
        }
        Some(sealed.tree)
    }

    /// Checks the signature and the keys of a checkpoint.
    pub(super) fn check_signed(
        &mut self,
        options: &VerifyOptions,
        sealed: &CheckpointRecord,
        note: &str,
        place: u64,
    ) -> Result<(), String> {
        let SignedCheckpoint { origin, tree, keys } = SignedCheckpoint::open(note, &sealed.keys)?;
        if origin != sealed.origin || tree != sealed.tree {
            return Err("its note does not match its record".to_owned());
        }
        let before = public_keys(&self.current).collect();
        let counting = match self.start == Some(sealed.n) {
            true => before,
            false => sealed.succession.keys_after(before)?,
        };
        // If the old key was lost, the verifier must know the new one.
        let counts =
            |key: &Verifier| counting.contains(key.key()) || options.trusted_keys.contains(key.key());
        if !self.current.is_empty() && !keys.iter().any(counts) {
            self.key_changes.add(options, (sealed.n, place), public_keys(&keys).collect())?;
        }
        self.key_changes.add_statements((sealed.n, place), &sealed.succession);
        for key in &keys {
            if !self.signers.contains(key) {
                self.signers.push(key.clone());
            }
        }
        self.current = keys;
        self.signed_size = sealed.tree.size;
        self.last_signed = Some((sealed.n, place));
        Ok(())
    }

    /// The ledger's current keys: the signers of the last checkpoint, and those that the verifier trusts. Empty before
    /// the first signed checkpoint.
    pub(super) fn keys(&self, options: &VerifyOptions) -> Vec<PublicKey> {
        let trusted = options.trusted_keys.iter().copied().filter(|_| !self.current.is_empty());
        public_keys(&self.current).chain(trusted).collect()
    }

    /// Whether one of these keys signed the last signed checkpoint; `None` without one.
    pub(super) fn last_is_signed_by_any(&self, keys: &[PublicKey]) -> Option<bool> {
        let any = |verifier: &Verifier| keys.iter().any(|key| key == verifier.key());
        (!self.current.is_empty()).then(|| self.current.iter().any(any))
    }

    /// Whether this key signed a checkpoint. If so, continuity of keys extends its authority to later checkpoints, and
    /// the tree to earlier ones.
    pub(super) fn is_any_signed_by(&self, key: &PublicKey) -> bool {
        self.signers.iter().any(|signer| signer.key() == key)
    }

    /// Makes a divergence about the last signed checkpoint.
    pub(super) fn about_last(&self, kind: DivergenceKind, what: String) -> Divergence {
        let divergence = Divergence::new(kind, LedgerPart::Checkpoint, what);
        match self.last_signed {
            Some((n, place)) => divergence.at(STREAM, n, place),
            None => divergence,
        }
    }
}

/// A rollback that a person accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Rollback {
    /// Its record in the ledger's stream.
    #[serde(rename = "record", serialize_with = "as_record")]
    #[schemars(with = "String")]
    pub n: u64,
    pub by: String,
    pub reason: String,
}

impl Rollback {
    /// Parses the body of a rollback's record.
    pub(super) fn from_data(n: u64, data: &Map<String, Json>) -> Self {
        let RolledBack { by, reason, .. } = record::read(data).unwrap_or_default();
        Rollback { n, by, reason }
    }
}
