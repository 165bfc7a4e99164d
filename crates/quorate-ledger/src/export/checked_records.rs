//! The records of an export, each checked against the checkpoint before it is written: records altered since sealing are
//! not exported.

use super::select::Cursor;
use super::{ExportError, corrupt_record, read_error};
use crate::Store;
use crate::checkpoint::STREAM;
use crate::prove::inclusion_paths::InclusionPaths;
use crate::prove::record_checker::RecordChecker;
use crate::prove::{self, CheckedRecord, GapRule, ProvableRecord, SignerLookup};
use crate::signing::PublicKey;
use crate::store::engine::Row;
use crate::store::tiles::{self, TreeError};
use quorate_kernel::ports::ledger::Error;

/// Records on their way into an export.
pub(super) struct CheckedRecords {
    paths: InclusionPaths,
    checking: RecordChecker,
    /// The public keys of the signers.
    pub(super) signers: Vec<PublicKey>,
    /// Names of keys that signed, but whose public halves are unknown.
    pub(super) unknown_keys: Vec<String>,
}

impl CheckedRecords {
    /// Those of a selection. `known` are public keys that may have signed records.
    pub(super) async fn open(
        store: &Store,
        selected: &Cursor,
        known: &[PublicKey],
    ) -> Result<Self, ExportError> {
        let Cursor { sealed, since, .. } = selected;
        let gaps = if *since == 0 { GapRule::FromFirstRecord } else { GapRule::NotWithinRun };
        let seal = |what: String| Error::Corrupt { run: STREAM.into(), n: sealed.n, what };
        let mut checking = RecordChecker::new(sealed, gaps).map_err(seal)?;
        let mut connection = store.writer().await;
        let engine = connection.engine().await.map_err(|error| store.error(error))?;
        if !tiles::leads_to_root(engine, &sealed.tree).await.map_err(|error| store.tree_error(error))? {
            return Err(store
                .tree_error(TreeError::Incomplete("its root is not the checkpoint's".to_owned()))
                .into());
        }
        let mut lookup = SignerLookup::new(known);
        let (mut signers, mut unknown) = (Vec::new(), Vec::new());
        for name in selected.key_names(engine).await.map_err(|error| store.error(error))? {
            let found = lookup.find(engine, &name).await.map_err(|error| store.error(error))?;
            checking.add_signer(&name, found);
            match found {
                Some(key) => signers.push(key),
                None => unknown.push(name),
            }
        }
        Ok(CheckedRecords {
            paths: InclusionPaths::new(sealed.tree.size),
            checking,
            signers,
            unknown_keys: unknown,
        })
    }

    /// Records with their paths, in the order of their rows.
    pub(super) async fn check_rows(
        &mut self,
        store: &Store,
        rows: &[Row],
    ) -> Result<Vec<(ProvableRecord, CheckedRecord)>, ExportError> {
        let mut connection = store.writer().await;
        let engine = connection.engine().await.map_err(|error| store.error(error))?;
        let mut taken = Vec::with_capacity(rows.len());
        for row in rows {
            let (n, index) = (row.count(1), row.count(0) - 1);
            let item = prove::read_item(engine, &mut self.paths, row, row.text(4), n, index).await;
            let item = item.map_err(|error| read_error(store, row, error))?;
            let checked = self.checking.check(&item).map_err(|what| corrupt_record(row, what))?;
            if checked.head.run != row.text(4) || checked.head.n != n {
                return Err(corrupt_record(row, "its head is of another record").into());
            }
            taken.push((item, checked));
        }
        Ok(taken)
    }
}
