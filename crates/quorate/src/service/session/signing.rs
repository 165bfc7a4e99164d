//! Signing in a session: it remembers the signer of each run that it works on, so that a key is fetched once.

use std::sync::PoisonError;

use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Error, Ledger as _};
use quorate_kernel::record::Keyring;
use quorate_manifest::assembly::Signing;
use quorate_protocol::Name;
use serde_json::json;

use super::LedgerSession;
use crate::service::error::ServiceError;
use crate::service::keys::Keys;
use crate::service::signer::{KeySource, Signer};

impl LedgerSession {
    /// The locations of the keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Signs the records of a run from here on, if its signer has a key.
    pub fn start_signing(&self, run: &Name, signer: Signer) {
        signer.sign(&self.store, run);
        self.signers.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone(), signer);
    }

    /// Signs appends to a run that began with signatures. If the key is newer than the run, first appends a record with its
    /// voucher, and `history` continues after that. Returns `false` if another process was faster and the run must be read
    /// again.
    ///
    /// # Errors
    /// If the run is signed and no key may sign for it, or the record cannot be appended.
    #[crate::boxed]
    pub async fn resume_signing(
        &self,
        history: &mut History,
        whose: KeySource,
    ) -> Result<bool, ServiceError> {
        if self.signer(&history.run).is_some() {
            return Ok(true);
        }
        let Some((signer, vouchers)) =
            Signer::for_existing_run(self.keys(), &self.store, history, whose).await?
        else {
            return Ok(true);
        };
        signer.sign(&self.store, &history.run);
        if !vouchers.is_empty() {
            let vouched = vouchers.iter().map(|voucher| json!(voucher)).collect();
            let entry = Entry::of(&Keyring { vouched }, self.environment.clock.now_ms());
            let append = Append::one(&history.run, history.next, entry, Durability::Written);
            match self.store.append(append).await {
                Ok(next) => history.next = next,
                Err(Error::Conflict { .. }) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        self.start_signing(&history.run, signer);
        Ok(true)
    }

    /// Signs appends to a stream beside the runs if the stream began signed. A new stream begins with signatures if it starts
    /// with a run that requires them.
    ///
    /// # Errors
    /// If the stream is signed and no key may sign for it.
    #[crate::boxed]
    pub async fn sign_stream(&self, stream: &Name, run: Option<&Name>) -> Result<(), ServiceError> {
        if self.signer(stream).is_some() {
            return Ok(());
        }
        match run.and_then(|run| self.signer(run)) {
            Some(signer) if signer.signing() == Signing::Required => self.start_signing(stream, signer),
            _ if self.store.is_signed(stream).await? => {
                let signer = Signer::new(self.keys(), Signing::Required, None).await?;
                self.start_signing(stream, signer);
            }
            _ => {}
        }
        Ok(())
    }

    /// The signer of a stream that this session began or continues.
    pub(super) fn signer(&self, run: &Name) -> Option<Signer> {
        self.signers.lock().unwrap_or_else(PoisonError::into_inner).get(run).cloned()
    }
}
