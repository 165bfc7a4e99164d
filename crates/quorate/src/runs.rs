//! The ledger's runs: listing, showing, comparing, watching, resuming and replaying them, and a person's decision on one.

use super::builder::Quorate;
use super::error::Error;
use super::events::Run;
use super::review::Review;
use super::service::live::{self, Watcher};
use super::service::{compare, finalize, resume, runs};
use super::session::{OpenSession, Outcome};
use quorate_protocol::Name;

pub use super::service::compare::{
    CompareRequest, ComparedKind, ComparedRun, Comparison, Findings, KeptFinding, PositionChange,
};
pub use super::service::finalize::{MAX_BY_CHARS, MAX_REASON_CHARS, OverrideRequest};
pub use super::service::live::{
    Amounts, Live, LiveMember, LiveState, Question, QuestionState, RunRecord, RunRecords, WatchEvent,
    WatchEventKind,
};
pub use super::service::resume::{Replay, ResumeRequest};
pub use super::service::runs::{ListedRun, MODES, Recorded, RunList, RunsRequest, VERDICTS};
pub use quorate_kernel::history::Difference;
pub use quorate_ledger::runs::{RunCursor, RunFilter};

impl Quorate {
    /// The ledger's runs: open ones first, in each part the newest first.
    ///
    /// # Errors
    /// If the ledger does not exist or does not answer.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::Quorate;
    /// use quorate::runs::{Recorded, RunsRequest};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let listed = quorate.runs(RunsRequest::default()).await?.value;
    /// assert_eq!(listed.runs.len(), 1);
    /// let Recorded::Review(review) = quorate.show("latest").await?.value else { panic!("it is a review") };
    /// assert_eq!(review.run, listed.runs[0].run);
    /// assert!(quorate.replay("latest").await?.identical);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn runs(&self, request: RunsRequest) -> Result<Outcome<RunList>, Error> {
        let session = self.open_existing().await?;
        let listed = runs::list(&session, &request).await;
        session.finish(listed).await
    }

    /// A run by its id, a prefix of its id, or `latest`.
    ///
    /// # Errors
    /// If the run does not exist, or its records were changed.
    #[crate::boxed]
    pub async fn show(&self, run: &str) -> Result<Outcome<Recorded>, Error> {
        let session = self.open_existing().await?;
        let shown = runs::find_report(&session, run).await;
        session.finish(shown).await
    }

    /// Compares two runs on one artifact: findings kept, new and gone, and members that changed position.
    ///
    /// # Errors
    /// If a run does not exist, or they are not on one artifact or not of one kind.
    #[crate::boxed]
    pub async fn compare(&self, request: CompareRequest) -> Result<Outcome<Comparison>, Error> {
        let session = self.open_existing().await?;
        let compared = compare::compare_named(&session, &request).await;
        session.finish(compared).await
    }

    /// Derives a run's outcome again from its records; asks no member.
    ///
    /// # Errors
    /// If the run does not exist, its records or texts are incomplete, or another version of its mode wrote it.
    #[crate::boxed]
    pub async fn replay(&self, run: &str) -> Result<Outcome<Replay>, Error> {
        let session = self.open_existing().await?;
        let replayed = async { resume::replay(&session, &session.find_run(run).await?.run).await };
        let replayed = replayed.await;
        session.finish(replayed).await
    }

    /// Records a person's decision beside the council's verdict, with its reason. Returns the review with it.
    ///
    /// # Errors
    /// If the run does not exist, is undecided, an assembly's or imported, the reason is empty or too long, the decider
    /// is unknown, or the ledger is read-only.
    #[crate::boxed]
    pub async fn override_verdict(&self, request: OverrideRequest) -> Result<Outcome<Review>, Error> {
        let session = self.open_existing().await?;
        let overridden = finalize::override_run(&session, &request).await;
        session.finish(overridden).await
    }

    /// The records of a run after the one with the number `after`, at most 1,000.
    ///
    /// # Errors
    /// If the run does not exist, or the ledger does not answer.
    #[crate::boxed]
    pub async fn records(&self, run: &str, after: Option<u64>) -> Result<Outcome<RunRecords>, Error> {
        let session = self.open_existing().await?;
        let records = live::records(&session, run, after).await;
        session.finish(records).await
    }

    /// How far a run is: each member's questions, and what was spent of the budget.
    ///
    /// # Errors
    /// If the run does not exist, or the ledger does not answer.
    #[crate::boxed]
    pub async fn live(&self, run: &str) -> Result<Outcome<Live>, Error> {
        let session = self.open_existing().await?;
        let live = live::load(&session, run).await;
        session.finish(live).await
    }

    /// The id of a run by a prefix of it or `latest`.
    ///
    /// # Errors
    /// If none or several match.
    #[crate::boxed]
    pub async fn find_run(&self, run: &str) -> Result<Name, Error> {
        let session = self.open_existing().await?;
        let found = session.find_run(run).await;
        Ok(session.finish(found).await?.value.run)
    }

    /// The process that works on a run that has not ended, or whose answers are incomplete.
    ///
    /// # Errors
    /// If the run does not exist, or the ledger does not answer.
    #[crate::boxed]
    pub async fn run_state(&self, run: &str) -> Result<LiveState, Error> {
        let session = self.open_existing().await?;
        let state = async { live::driver(&session, &session.find_run(run).await?.run).await };
        let state = state.await;
        Ok(session.finish(state).await?.value)
    }

    /// The newest decided run before this one on the same artifact.
    ///
    /// # Errors
    /// If the run does not exist, or the ledger does not answer.
    #[crate::boxed]
    pub async fn previous_run(&self, run: &str) -> Result<Option<Name>, Error> {
        let session = self.open_existing().await?;
        let previous = async { compare::previous(&session, &session.find_run(run).await?.run).await };
        let previous = previous.await;
        Ok(session.finish(previous).await?.value)
    }

    /// Follows a run from its beginning, or with `None` all runs from now on, in any process.
    ///
    /// # Errors
    /// If the run does not exist, or the ledger does not answer.
    #[crate::boxed]
    pub async fn watch(&self, run: Option<&str>) -> Result<Watch, Error> {
        let session = self.open_existing().await?;
        match Watcher::new(session.clone(), run).await {
            Ok(watcher) => Ok(Watch { watcher, session }),
            Err(error) => Err(session.finish::<()>(Err(error)).await.expect_err("it is the error")),
        }
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
    /// let Recorded::Review(review) = quorate.resume(&*id).finish().await?.value else { panic!("it is a review") };
    /// assert_eq!(&*review.run, &*id);
    /// assert!(review.verdict.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "nothing happens until it is polled"]
    pub fn resume(&self, request: impl Into<ResumeRequest>) -> Run<Outcome<Recorded>> {
        let (quorate, request) = (self.clone(), request.into());
        Run::new(move |observer, interruption| async move {
            let mut found = None;
            let opening = async {
                let places = quorate.places.clone();
                let opened = runs::open_run_as_recorded(&quorate.environment, places, &request.run);
                let (session, run) = Box::pin(opened).await?;
                found = Some(run);
                Ok(session)
            };
            let session = quorate.open(opening).await?;
            let resuming = async {
                let run = match found {
                    Some(run) => run,
                    None => session.find_own_run(&request.run).await?,
                };
                Box::pin(resume::resume(&session, &run, &request, observer)).await
            };
            let resumed = session.until_interrupted(&interruption, resuming, Some).await;
            session.finish(resumed).await
        })
    }
}

/// The events of one run, or of all.
pub struct Watch {
    watcher: Watcher,
    session: OpenSession,
}

impl Watch {
    /// The next event; waits for it.
    ///
    /// # Errors
    /// If the ledger does not answer.
    pub async fn next(&mut self) -> Result<WatchEvent, Error> {
        self.watcher.next().await
    }

    /// Closes the ledger.
    pub async fn close(self) {
        let Watch { watcher, session } = self;
        drop(watcher);
        let _ = session.finish(Ok(())).await;
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
