//! The ledger's runs: listing, showing, comparing, watching, resuming and replaying them, and a person's decision on one.

use std::sync::Arc;

use super::builder::Quorate;
use super::error::Error;
use super::events::Run;
use super::review::Review;
use super::service::live::{self, Watcher};
use super::service::session::LedgerSession;
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
pub use super::service::runs::{MODES, Recorded, RunList, RunsRequest, VERDICTS};
pub use quorate_kernel::history::Difference;
pub use quorate_ledger::runs::{ListedRun, RunCursor, RunFilter};

impl Quorate {
    /// Works on the ledger, which must exist, and closes it.
    pub(crate) async fn on_ledger<T: Send, Work: Future<Output = Result<T, Error>> + Send>(
        &self,
        work: impl FnOnce(Arc<LedgerSession>) -> Work + Send,
    ) -> Result<Outcome<T>, Error> {
        let session = self.open_existing().await?;
        let done = work(session.clone()).await;
        session.finish(done).await
    }

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
    /// assert_eq!(review.run, *listed.runs[0].run);
    /// assert!(quorate.replay("latest").await?.identical);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn runs(&self, request: RunsRequest) -> Result<Outcome<RunList>, Error> {
        self.on_ledger(|session| async move { runs::list(&session, &request).await }).await
    }

    /// A run by its id, a prefix of its id, or `latest`.
    ///
    /// # Errors
    /// If the run does not exist, or its records were changed.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// use quorate::runs::Recorded;
    ///
    /// let Recorded::Review(review) = quorate.show("latest").await?.value else { panic!("it is a review") };
    /// println!("{}", review.because);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn show(&self, run: &str) -> Result<Outcome<Recorded>, Error> {
        self.on_ledger(|session| async move { runs::find_report(&session, run).await }).await
    }

    /// Compares two runs on one artifact: findings kept, new and gone, and members that changed position.
    ///
    /// # Errors
    /// If a run does not exist, or they are not on one artifact or not of one kind.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// use quorate::runs::CompareRequest;
    ///
    /// quorate.review_text("draft.md", "The meeting moved to Friday at ten.\n").await?;
    /// let request = CompareRequest { a: None, b: "latest".to_owned() };
    /// let compared = quorate.compare(request).await?;
    /// assert!(!compared.same_text);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn compare(&self, request: CompareRequest) -> Result<Outcome<Comparison>, Error> {
        self.on_ledger(|session| async move { compare::compare(&session, &request).await }).await
    }

    /// Derives a run's outcome again from its records; asks no member.
    ///
    /// # Errors
    /// If the run does not exist, its records or texts are incomplete, or another version of its mode wrote it.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let replay = quorate.replay("latest").await?;
    /// assert!(replay.identical);
    /// assert_eq!(replay.recorded, replay.replayed);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn replay(&self, run: &str) -> Result<Outcome<Replay>, Error> {
        self.on_ledger(|session| async move {
            let run = session.find_run(run).await?.run;
            resume::replay(&session, &run).await
        })
        .await
    }

    /// Records a person's decision beside the council's verdict, with its reason. Returns the review with it.
    ///
    /// # Errors
    /// If the run does not exist, is undecided, an assembly's or imported, the reason is empty or too long, the decider
    /// is unknown, or the ledger is read-only.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// use quorate::{Verdict, runs::OverrideRequest};
    ///
    /// let request = OverrideRequest {
    ///     run: "latest".to_owned(),
    ///     verdict: Verdict::Hold,
    ///     reason: "the date is confidential".to_owned(),
    ///     by: Some("Ada".to_owned()),
    /// };
    /// let review = quorate.override_verdict(request).await?.value;
    /// assert_eq!(review.overridden.expect("a decision").by, "Ada");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn override_verdict(&self, request: OverrideRequest) -> Result<Outcome<Review>, Error> {
        self.on_ledger(|session| async move { finalize::override_run(&session, &request).await }).await
    }

    /// The records of a run after the one with the number `after`, at most 1,000.
    ///
    /// # Errors
    /// If the run does not exist, or the ledger does not answer.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let page = quorate.records("latest", None).await?;
    /// assert!(!page.records.is_empty());
    /// assert_eq!(page.next, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn records(&self, run: &str, after: Option<u64>) -> Result<Outcome<RunRecords>, Error> {
        self.on_ledger(|session| async move { live::records(&session, run, after).await }).await
    }

    /// How far a run is: each member's questions, and what was spent of the budget.
    ///
    /// # Errors
    /// If the run does not exist, or the ledger does not answer.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let live = quorate.live("latest").await?;
    /// assert!(live.ended);
    /// assert_eq!(live.asked, live.done);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn live(&self, run: &str) -> Result<Outcome<Live>, Error> {
        self.on_ledger(|session| async move { live::load(&session, run).await }).await
    }

    /// The id of a run by a prefix of it or `latest`.
    ///
    /// # Errors
    /// If none or several match.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let run = quorate.find_run("latest").await?;
    /// assert_eq!(quorate.find_run(&run[..8]).await?, run);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn find_run(&self, run: &str) -> Result<Name, Error> {
        let found = self.on_ledger(|session| async move { session.find_run(run).await }).await?;
        Ok(found.value.run)
    }

    /// The process that works on a run, or whether the run was interrupted or has ended.
    ///
    /// # Errors
    /// If the run does not exist, or the ledger does not answer.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// use quorate::runs::LiveState;
    ///
    /// assert_eq!(quorate.run_state("latest").await?, LiveState::Ended);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn run_state(&self, run: &str) -> Result<LiveState, Error> {
        let state = self.on_ledger(|session| async move {
            let row = session.find_run(run).await?;
            Ok(match live::driver(&session, &row.run).await? {
                LiveState::Interrupted if row.ended => LiveState::Ended,
                state => state,
            })
        });
        Ok(state.await?.value)
    }

    /// The newest decided run before this one on the same artifact.
    ///
    /// # Errors
    /// If the run does not exist, or the ledger does not answer.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let first = quorate.find_run("latest").await?;
    /// quorate.review_text("draft.md", "The meeting moved to Friday at ten.\n").await?;
    /// assert_eq!(quorate.previous_run("latest").await?, Some(first));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn previous_run(&self, run: &str) -> Result<Option<Name>, Error> {
        let previous = self.on_ledger(|session| async move {
            let run = session.find_run(run).await?.run;
            Ok(session.store.previous_run(&run).await?)
        });
        Ok(previous.await?.value)
    }

    /// Follows a run from its beginning, or with `None` all runs from now on, in any process.
    ///
    /// # Errors
    /// If the run does not exist, or the ledger does not answer.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// # quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// use quorate::runs::WatchEventKind;
    ///
    /// let mut watch = quorate.watch(Some("latest")).await?;
    /// let event = watch.next().await?;
    /// assert_eq!((event.n, event.what), (0, WatchEventKind::Opened));
    /// watch.close().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
