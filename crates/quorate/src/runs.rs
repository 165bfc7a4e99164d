//! The ledger's runs: listing, showing and resuming them.

use quorate_diagnostics::Report;
use serde_json::Value;

use super::builder::Quorate;
use super::convene::Decision;
use super::error::Error;
use super::events::Run;
use super::review::Review;
use super::service::resume;
use super::service::run_spec::RunOptions;
use super::service::runs::{self, RunReport};

pub use quorate_ledger::runs::{RunFilter, RunRow};

/// The report of a recorded run, finished or not.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Recorded {
    /// A council's review.
    Review(Box<Review>),
    /// An assembly's decision.
    Decision(Decision),
}

impl Recorded {
    fn new(report: RunReport, warnings: Report) -> Self {
        match report {
            RunReport::Review(report) => Recorded::Review(report),
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
    /// use quorate::{Quorate, runs::{RunFilter, Recorded}};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let runs = quorate.runs(&RunFilter::default(), 10).await?;
    /// assert_eq!(runs.len(), 1);
    /// let Recorded::Review(review) = quorate.show("latest").await? else { panic!("it is a review") };
    /// assert_eq!(&*review.run, &*runs[0].run);
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
    /// use quorate::{Event, Quorate, runs::Recorded};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let mut run = quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").start();
    /// let Some(Event::Opened { run: id }) = run.next().await else { panic!("it begins with that") };
    /// drop(run); // simulates a crash
    /// let Recorded::Review(review) = quorate.resume(&id).finish().await? else { panic!("it is a review") };
    /// assert_eq!(&*review.run, &*id);
    /// assert!(review.verdict.is_some());
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
}
