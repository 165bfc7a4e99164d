//! The ledger's verification, and proofs of its runs for outsiders.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use quorate_diagnostics::{Body, Report, codes};
use quorate_ledger::note::Verifier;
use quorate_ledger::prove;
use serde_json::Value;

use super::builder::Quorate;
use super::error::{Error, ErrorKind};
use super::service::ledger::{prove as proving, verify};
use super::service::runs;

pub use quorate_ledger::prove::{InvalidProof, Proof, TrustedKey, VerifiedProof};
pub use quorate_ledger::signing::PublicKey;

impl Quorate {
    /// Verifies the ledger: its chain, signatures and log. Differences are in the result, not an error. Await it for the
    /// result; a missing or unreadable ledger is an error.
    pub fn verify(&self) -> Verifying {
        let request =
            verify::VerifyRequest { places: self.places.clone(), ..verify::VerifyRequest::default() };
        Verifying { quorate: self.clone(), request }
    }

    /// The proof of a run's records, or of one of them (`run/n`), for a reader without access to the ledger.
    ///
    /// # Errors
    /// If the record does not exist, is not sealed yet, or was changed.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::{Quorate, ledger};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let review = quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let proof = quorate.prove(&review.run).await?.text()?;
    ///
    /// // A verifier needs neither ledger nor workspace, only the ledger's key from a trusted channel.
    /// let checked = ledger::check(&proof, &[], &[])?;
    /// assert!(checked.trusted_key.is_none(), "no trusted key was given");
    /// assert!(quorate.verify().await?.holds());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn prove(&self, what: &str) -> Result<Proof, Error> {
        let session = runs::open_read_only(&self.environment, &self.places).await?;
        let proof = proving::prove(&session, what).await;
        session.close().await;
        Ok(proof?)
    }
}

/// A verification that has not started.
#[derive(Debug, Clone)]
#[must_use = "nothing happens until it is awaited"]
pub struct Verifying {
    quorate: Quorate,
    request: verify::VerifyRequest,
}

impl Verifying {
    /// Trusts the checkpoint over this many records, and verifies only the records after it.
    pub fn since(mut self, records: u64) -> Self {
        self.request.since = Some(records.to_string());
        self
    }

    /// Keys that must have signed a checkpoint: verifiers' lines, public keys, or files with such lines. A confined
    /// workspace accepts no files.
    pub fn keys(mut self, keys: impl IntoIterator<Item = String>) -> Self {
        self.request.keys.extend(keys);
        self
    }

    #[crate::boxed]
    async fn run(self) -> Result<Verified, Error> {
        let Verifying { quorate, request } = self;
        let is_key = |text: &str| Verifier::from_text(text).is_ok() || PublicKey::from_text(text).is_ok();
        if let Some(invalid) = request.keys.iter().find(|key| quorate.root.is_some() && !is_key(key)) {
            let body = Body::new(format!("`keys` has `{invalid}`, which is not a key")).help(
                "give a verifier's line, as `quorate keys export ledger --format note` prints it, or a public key",
            );
            return Err(Error::new(ErrorKind::Configuration, codes::USAGE, body));
        }
        Ok(Verified(verify::verify(&quorate.environment, &request).await?))
    }
}

impl IntoFuture for Verifying {
    type Output = Result<Verified, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Verified, Error>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// The result of a verification.
#[derive(Debug)]
pub struct Verified(verify::Verification);

impl Verified {
    /// Whether no difference was found.
    pub fn holds(&self) -> bool {
        self.0.report.is_clean()
    }

    /// The first differences, in words.
    pub fn differences(&self) -> impl Iterator<Item = &str> {
        self.0.report.divergences.iter().map(|divergence| &*divergence.what)
    }

    /// The warnings of the workspace, and checks that were skipped.
    pub fn warnings(&self) -> &Report {
        &self.0.warnings
    }

    /// The report as `quorate ledger verify --format json` prints it.
    pub fn to_json(&self) -> Value {
        verify::json(&self.0)
    }
}

/// Checks a proof without ledger or workspace: its records were in a ledger whose key signed them.
/// [`VerifiedProof::trusted_key`] is `None` if none of `keys` signed it; that includes forged proofs.
/// [`TrustedKey::from_text`] reads a key that `quorate keys export ledger` printed.
///
/// # Errors
/// If the text is not a proof, or the proof is invalid.
pub fn check(proof: &str, keys: &[TrustedKey], signers: &[PublicKey]) -> Result<VerifiedProof, InvalidProof> {
    prove::check_proof(proof, keys, signers)
}
