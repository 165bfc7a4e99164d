//! What is recorded: runs, how they go on, whether the ledger is as it was written, and proofs for others.

use quorate_ledger::prove;

use crate::builder::Quorate;
use crate::convene::Decision;
use crate::error::Error;
use crate::events::Run;
use crate::review::Review;
use crate::service::ledger::{prove as proving, verify};
use crate::service::resume;
use crate::service::run_options::RunOptions;
use crate::service::runs::{self, RunReport};

pub use quorate_ledger::prove::{InvalidProof, Proof, TrustedKey, VerifiedProof};
pub use quorate_ledger::runs::{Filter, Run as RunRow};
pub use quorate_ledger::signing::PublicKey;

/// A run that came to something, or will.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Recorded {
    /// A council's.
    Review(Review),
    /// An assembly's.
    Decision(Decision),
}

impl From<RunReport> for Recorded {
    fn from(report: RunReport) -> Self {
        match report {
            RunReport::Review(report) => Recorded::Review(Review::new(report)),
            RunReport::Assembly(report) => Recorded::Decision(Decision::new(report)),
        }
    }
}

impl Quorate {
    /// The runs of the ledger, newest first, at most so many.
    ///
    /// # Errors
    /// When there is no ledger yet, or it does not answer.
    pub async fn runs(&self, filter: &Filter, limit: u32) -> Result<Vec<RunRow>, Error> {
        let session = runs::open_read_only(&self.environment, &self.places).await?;
        let listed = runs::list(&session, filter, limit).await;
        session.close().await;
        Ok(listed?)
    }

    /// A run by its id, the beginning of one, or `latest`.
    ///
    /// # Errors
    /// When there is no such run, or its records are not what they were.
    pub async fn show(&self, run: &str) -> Result<Recorded, Error> {
        let (session, run) = runs::open_run(&self.environment, &self.places, run).await?;
        let shown = runs::load_report(&session, &run).await;
        session.close().await;
        Ok(shown?.into())
    }

    /// Goes on with a run that was interrupted, or whose members lack answers: what is recorded is not asked again.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::{Event, Quorate, ledger::Recorded};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let mut run = quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").start();
    /// let Some(Event::Opened { run: id }) = run.next().await else { panic!("it begins with that") };
    /// drop(run); // as a crash would
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
            let Quorate { environment, places } = quorate;
            let (session, run) = Box::pin(runs::open_run_as_recorded(&environment, places, &run)).await?;
            let options = RunOptions::default();
            let resumed = Box::pin(resume::resume(&session, &run, &options, None, observer)).await;
            session.close().await;
            Ok(resumed?.into())
        })
    }

    /// Verifies the ledger against itself, its keys and the log. What differs is in the result, and is no error.
    ///
    /// # Errors
    /// When there is no ledger, or it cannot be read.
    pub async fn verify(&self) -> Result<Verified, Error> {
        let request = verify::Request { places: self.places.clone(), ..verify::Request::default() };
        let verified = verify::verify(&self.environment, &request).await?;
        Ok(Verified(verified))
    }

    /// The proof of a run's records, or of one of them (`run/n`), for somebody who has no access to the ledger.
    ///
    /// # Errors
    /// When there is no such record, it is not sealed yet, or something of it is not what it was.
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
    /// // Whoever has the proof needs neither ledger nor workspace, but the ledger's key over another way.
    /// let checked = ledger::check(&proof, &[], &[])?;
    /// assert!(checked.trusted_key.is_none(), "no key was given to hold it against");
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

/// What verifying the ledger came to.
#[derive(Debug)]
pub struct Verified(verify::Verification);

impl Verified {
    /// Whether everything is as it was written.
    pub fn holds(&self) -> bool {
        self.0.report.is_clean()
    }

    /// What differs, in words, the first so many.
    pub fn differences(&self) -> impl Iterator<Item = &str> {
        self.0.report.divergences.iter().map(|one| &*one.what)
    }

    /// The report as `quorate ledger verify --format json` prints it.
    pub fn to_json(&self) -> String {
        verify::json::json(&self.0)
    }
}

/// Checks a proof, with neither ledger nor workspace: its records stood in a ledger whose key signed that.
/// [`VerifiedProof::trusted_key`] is `None` where none of `keys` did, which a forger's proof would give, too. A key is read by
/// [`TrustedKey::from_text`], from what `quorate keys export ledger` prints.
///
/// # Errors
/// When it is no proof, or does not hold.
pub fn check(proof: &str, keys: &[TrustedKey], signers: &[PublicKey]) -> Result<VerifiedProof, InvalidProof> {
    prove::check_proof(proof, keys, signers)
}
