//! The records of an export, each held against the checkpoint before it is written: what was altered since it was sealed is
//! not exported.

use super::select::Selected;
use super::{Failed, corrupt, unread};
use crate::Store;
use crate::prove::checking::Checking;
use crate::prove::paths::{self, Paths};
use crate::prove::{self, Checked, Gaps, Item, Signers};
use crate::signing::PublicKey;
use crate::store::STREAM;
use crate::store::engine::Row;
use crate::store::tiles::Broken;
use quorate_kernel::ports::ledger::Error;

/// Records on their way into an export.
pub(super) struct Records {
    paths: Paths,
    checking: Checking,
    /// The public keys of the signers.
    pub(super) signers: Vec<PublicKey>,
    /// Names of keys that signed and whose public halves nobody knows.
    pub(super) unknown: Vec<String>,
}

impl Records {
    /// Those of a selection. `known` are public keys that may have signed records.
    pub(super) async fn of(store: &Store, selected: &Selected, known: &[PublicKey]) -> Result<Self, Failed> {
        let Selected { sealed, since, .. } = selected;
        let gaps = if *since == 0 { Gaps::Whole } else { Gaps::No };
        let seal = |what: String| Error::Corrupt { run: STREAM.into(), n: sealed.n, what };
        let mut checking = Checking::under(sealed, gaps).map_err(seal)?;
        let mut connection = store.writer().await;
        let engine = connection.engine().await.map_err(|error| store.error(error))?;
        if !paths::leads_to(engine, &sealed.tree).await.map_err(|error| store.broken(error))? {
            return Err(store.broken(Broken::Absent("its root is not the checkpoint's".to_owned())).into());
        }
        let mut lookup = Signers::new(known);
        let (mut signers, mut unknown) = (Vec::new(), Vec::new());
        for name in selected.key_names(engine).await.map_err(|error| store.error(error))? {
            let found = lookup.find(engine, &name).await.map_err(|error| store.error(error))?;
            checking.signer(&name, found);
            match found {
                Some(key) => signers.push(key),
                None => unknown.push(name),
            }
        }
        Ok(Records { paths: Paths::new(sealed.tree.size), checking, signers, unknown })
    }

    /// Records with their paths, in the order of their rows.
    pub(super) async fn take(&mut self, store: &Store, rows: &[Row]) -> Result<Vec<(Item, Checked)>, Failed> {
        let mut connection = store.writer().await;
        let engine = connection.engine().await.map_err(|error| store.error(error))?;
        let mut taken = Vec::with_capacity(rows.len());
        for row in rows {
            let (n, index) = (row.count(1), row.count(0) - 1);
            let item = prove::item(engine, &mut self.paths, row, row.text(4), n, index).await;
            let item = item.map_err(|error| unread(store, row, error))?;
            let checked = self.checking.take(&item).map_err(|what| corrupt(row, what))?;
            if checked.head.run != row.text(4) || checked.head.n != n {
                return Err(corrupt(row, "its head is of another record").into());
            }
            taken.push((item, checked));
        }
        Ok(taken)
    }
}
