//! The ledger's runs: listing, resuming, counting and verifying them, and proofs for outsiders.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use quorate_diagnostics::{Body, Report, codes};
use quorate_ledger::note::Verifier;
use quorate_ledger::prove;
use serde_json::Value;

use super::builder::Quorate;
use super::convene::Decision;
use super::error::{Error, ErrorKind};
use super::events::Run;
use super::review::Review;
use super::service::ledger::{prove as proving, verify};
use super::service::run_spec::RunOptions;
use super::service::runs::{self, RunReport};
use super::service::{audit, resume};

pub use quorate_ledger::prove::{InvalidProof, Proof, TrustedKey, VerifiedProof};
pub use quorate_ledger::runs::{RunFilter, RunRow};
pub use quorate_ledger::signing::PublicKey;
pub use quorate_ledger::stats::ReviewFilter;

/// The report of a recorded run, finished or not.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Recorded {
    /// A council's review.
    Review(Review),
    /// An assembly's decision.
    Decision(Decision),
}

impl Recorded {
    fn new(report: RunReport, warnings: Report) -> Self {
        match report {
            RunReport::Review(report) => Recorded::Review(Review::new(report, warnings)),
            RunReport::Assembly(report) => Recorded::Decision(Decision::new(report, warnings)),
        }
    }

    /// The report as `quorate show --format json` prints it.
    pub fn to_json(&self) -> Value {
        match self {
            Recorded::Review(review) => review.to_json(),
            Recorded::Decision(decision) => decision.to_json(),
        }
    }

    /// The outcome and its reasons as plain text.
    pub fn brief(&self) -> String {
        match self {
            Recorded::Review(review) => review.brief(),
            Recorded::Decision(decision) => decision.brief(),
        }
    }
}

impl Quorate {
    /// The ledger's runs, at most `limit`: open ones first, in each part the newest first.
    ///
    /// # Errors
    /// If the ledger does not exist or does not answer.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::{Quorate, ledger::{RunFilter, Recorded}};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let runs = quorate.runs(&RunFilter::default(), 10).await?;
    /// assert_eq!(runs.len(), 1);
    /// let Recorded::Review(review) = quorate.show("latest").await? else { panic!("it is a review") };
    /// assert_eq!(review.run(), &*runs[0].run);
    /// assert!(quorate.verify().await?.holds());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn runs(&self, filter: &RunFilter, limit: u32) -> Result<Vec<RunRow>, Error> {
        let session = runs::open_read_only(&self.environment, &self.places).await?;
        let listed = runs::list(&session, filter, limit).await;
        session.close().await;
        Ok(listed?.runs.into_iter().map(|listed| listed.run).collect())
    }

    /// A run by its id, a prefix of its id, or `latest`.
    ///
    /// # Errors
    /// If the run does not exist, or its records were changed.
    pub async fn show(&self, run: &str) -> Result<Recorded, Error> {
        let (session, run) = runs::open_run(&self.environment, &self.places, run).await?;
        let shown = runs::load_report(&session, &run).await;
        let warnings = session.close().await;
        Ok(Recorded::new(shown?, warnings))
    }

    /// Continues a run that was interrupted or whose members lack answers; recorded answers are not asked for again.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::{Event, Quorate, ledger::Recorded};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let mut run = quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").start();
    /// let Some(Event::Opened { run: id }) = run.next().await else { panic!("it begins with that") };
    /// drop(run); // simulates a crash
    /// let Recorded::Review(review) = quorate.resume(&id).finish().await? else { panic!("it is a review") };
    /// assert_eq!(review.run(), &*id);
    /// assert!(review.verdict().is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "nothing happens until it is polled"]
    pub fn resume(&self, run: &str) -> Run<Recorded> {
        let (quorate, run) = (self.clone(), run.to_owned());
        Run::new(move |observer| async move {
            let Quorate { environment, places, .. } = quorate;
            let (session, run) = Box::pin(runs::open_run_as_recorded(&environment, places, &run)).await?;
            let options = RunOptions::default();
            let resumed = Box::pin(resume::resume(&session, &run, &options, None, observer)).await;
            let warnings = session.close().await;
            Ok(Recorded::new(resumed?, warnings))
        })
    }

    /// Verifies the ledger: its chain, signatures and log. Differences are in the result, not an error. Await it for the
    /// result; a missing or unreadable ledger is an error.
    pub fn verify(&self) -> Verifying {
        let request =
            verify::VerifyRequest { places: self.places.clone(), ..verify::VerifyRequest::default() };
        Verifying { quorate: self.clone(), request }
    }

    /// The statistics of the council that the filter selects; empty for a workspace with neither log nor ledger.
    ///
    /// # Errors
    /// If the configuration is refused, or log or ledger cannot be read.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::{Quorate, ledger::ReviewFilter};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let audit = quorate.audit(ReviewFilter::default()).await?;
    /// assert_eq!(audit.to_json()["reviews"], 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn audit(&self, filter: ReviewFilter) -> Result<CouncilAudit, Error> {
        let request = audit::AuditRequest { filter, reindex: false };
        if let Some(empty) = audit::empty(&self.environment, &self.places, &request)? {
            return Ok(CouncilAudit { audit: empty, warnings: Report::new() });
        }
        let session = runs::open(&self.environment, &self.places).await?;
        let audited = audit::audit(&session, request).await;
        let warnings = session.close().await;
        Ok(CouncilAudit { audit: audited?, warnings })
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
    /// let proof = quorate.prove(review.run()).await?.text()?;
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

/// The statistics of a council.
#[derive(Debug, Clone)]
pub struct CouncilAudit {
    audit: audit::Audit,
    warnings: Report,
}

impl CouncilAudit {
    /// The report as `quorate audit --format json` prints it; `quorate schema audit` prints its schema.
    pub fn to_json(&self) -> Value {
        audit::json(&self.audit)
    }

    /// The warnings of the workspace.
    pub fn warnings(&self) -> &Report {
        &self.warnings
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
