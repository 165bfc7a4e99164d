//! Checks records against their checkpoint before they leave the ledger, by the rules of the reader: an altered ledger
//! gives no proof and no export.

use super::provable_record::CheckedRecord;
use super::{ChainChecker, GapRule, ProvableRecord, SignedCheckpoint};
use crate::merkle::TreeHead;
use crate::signing::{KeyId, PublicKey};
use crate::store::CheckpointRecord;

/// Records on their way out.
pub(crate) struct RecordChecker {
    tree: TreeHead,
    chain: ChainChecker,
    known: Vec<PublicKey>,
    /// Names of keys whose public halves are unknown here: the reader must know them.
    unknown: Vec<KeyId>,
}

impl RecordChecker {
    /// Under a checkpoint, whose signatures are verified.
    ///
    /// # Errors
    /// Why the checkpoint is invalid, in words.
    pub(crate) fn new(sealed: &CheckpointRecord, gaps: GapRule) -> Result<Self, String> {
        if let Some(note) = &sealed.note {
            let seal = SignedCheckpoint::open(note, &sealed.keys)?;
            if seal.origin != sealed.origin || seal.tree != sealed.tree {
                return Err("its note says something else than its record".to_owned());
            }
        }
        let (known, unknown) = (Vec::new(), Vec::new());
        Ok(RecordChecker { tree: sealed.tree, chain: ChainChecker::new(gaps), known, unknown })
    }

    /// The key behind the name of a signer, where it is known.
    pub(crate) fn add_signer(&mut self, name: &str, key: Option<PublicKey>) {
        match key {
            Some(key) => self.known.push(key),
            None => self.unknown.extend(KeyId::from_text(name)),
        }
    }

    /// Checks the next record against the checkpoint, its own hashes and signatures, and those before it.
    ///
    /// # Errors
    /// Why it is invalid, in words.
    pub(crate) fn check(&mut self, item: &ProvableRecord) -> Result<CheckedRecord, String> {
        let checked = item.check_allowing_unknown(&self.tree, &self.known, &self.unknown)?;
        self.chain.check_next(&checked)?;
        Ok(checked)
    }
}
