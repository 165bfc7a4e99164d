//! What the desk signs: it remembers the signer of each run that it works on, so that a key is fetched once.

use std::sync::PoisonError;

use quorate_kernel::history::History;
use quorate_manifest::assembly::audit::Signing;
use quorate_protocol::Name;

use super::Desk;
use crate::service::keys::Keys;
use crate::service::signer::{Signer, Whose};
use crate::service::stop::Stop;

impl Desk {
    /// Where the keys are.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Has the records of a run signed from here on, if its signer has a key.
    pub fn sign(&self, run: &Name, signer: Signer) {
        signer.sign(&self.store, run);
        self.signers.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone(), signer);
    }

    /// Has what is appended to a run that began with signatures signed as well.
    ///
    /// # Errors
    /// When the run is signed, and there is no key that may sign for it.
    pub async fn sign_again(&self, history: &History, whose: Whose) -> Result<(), Stop> {
        if self.signer(&history.run).is_none()
            && let Some(signer) = Signer::again(self.keys(), &self.store, history, whose).await?
        {
            self.sign(&history.run, signer);
        }
        Ok(())
    }

    /// Has what is appended to a stream beside the runs signed where it began so; a stream that begins with a run whose
    /// signatures are required begins with signatures.
    ///
    /// # Errors
    /// When the stream is signed, and there is no key that may sign for it.
    pub async fn sign_beside(&self, stream: &Name, run: Option<&Name>) -> Result<(), Stop> {
        if self.signer(stream).is_some() {
            return Ok(());
        }
        match run.and_then(|run| self.signer(run)) {
            Some(signer) if signer.signing() == Signing::Required => self.sign(stream, signer),
            _ if self.store.is_signed(stream).await? => {
                let signer = Signer::new(self.keys(), Signing::Required, None).await?;
                self.sign(stream, signer);
            }
            _ => {}
        }
        Ok(())
    }

    fn signer(&self, run: &Name) -> Option<Signer> {
        self.signers.lock().unwrap_or_else(PoisonError::into_inner).get(run).cloned()
    }
}
