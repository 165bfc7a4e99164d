//! Sweeping a workspace: reviewing all watched files that are due.

use std::sync::{Arc, Mutex, PoisonError};

use globset::GlobBuilder;
use quorate_diagnostics::{Body, codes};

use super::builder::Quorate;
use super::error::{Error, ErrorKind};
use super::events::{Interruption, Run};
use super::service::{runs, sweep};
use super::session::{OpenSession, Outcome};

#[cfg(all(feature = "cluster", feature = "postgres"))]
pub use super::cluster::queue::QueueOptions;
pub use super::service::estimate::{Estimate, ExecutorEstimate};
pub use super::service::sweep::{
    FileFilter, JudgedPolicy, Sweep, SweepMode, SweepObserver, SweepRequest, SweptFile, SweptOutcome,
};

impl Quorate {
    /// Reviews the files below the council's `watch.paths` that are due. A confined workspace skips files outside of its
    /// root. It fails if no folder can be read, the executor is refused, or the ledger fails. An interruption ends it with
    /// the files that were reviewed.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use std::sync::Arc;
    ///
    /// use quorate::Quorate;
    /// use quorate::sweep::{SweepMode, SweepRequest};
    ///
    /// let council = "
    /// deliberators:
    ///   - {id: skeptic, prompt: builtin:skeptic}
    ///   - {id: evidence, prompt: builtin:evidence}
    ///   - {id: strategy, prompt: builtin:strategy}
    /// adjudicator: {prompt: builtin:adjudicator}
    /// watch: {paths: [./drafts/]}
    /// ";
    /// std::fs::write(dir.path().join("council.yaml"), council)?;
    /// std::fs::create_dir(dir.path().join("drafts"))?;
    /// std::fs::write(dir.path().join("drafts/post.md"), "The meeting moved to Tuesday at ten.\n")?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let request = SweepRequest { mode: SweepMode::DryRun, ..SweepRequest::default() };
    /// let sweep = quorate.sweep(request, Arc::new(())).finish().await?;
    /// assert_eq!(sweep.files[0].path, "drafts/post.md");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "nothing happens until it is polled"]
    pub fn sweep(&self, mut request: SweepRequest, observer: Arc<dyn SweepObserver>) -> Run<Outcome<Sweep>> {
        request.filter.below = self.root.as_ref().map(|root| root.dir().to_owned()).or(request.filter.below);
        let quorate = self.clone();
        Run::new(move |_, interruption| async move {
            let session = quorate.open(runs::open_for_writing(&quorate.environment, &quorate.places)).await?;
            let ended = Arc::new(Ended { observer, files: Mutex::default() });
            let sweeping = sweep::sweep(&session, &request, ended.clone());
            let swept = ended.until_interrupted(&session, &interruption, sweeping).await;
            session.finish(swept).await
        })
    }

    /// As [`sweep`](Self::sweep), but queues the reviews for workers, and with `wait` waits until they have ended. The ledger
    /// is in a Postgres database.
    #[cfg(all(feature = "cluster", feature = "postgres"))]
    #[must_use = "nothing happens until it is polled"]
    pub fn enqueue_sweep(
        &self,
        mut request: SweepRequest,
        queue: QueueOptions,
        wait: bool,
        observer: Arc<dyn SweepObserver>,
    ) -> Run<Outcome<Sweep>> {
        use super::cluster::queue::enqueue;

        request.filter.below = self.root.as_ref().map(|root| root.dir().to_owned()).or(request.filter.below);
        let quorate = self.clone();
        Run::new(move |_, interruption| async move {
            let session = quorate.queue().open_for_writing().await?;
            let ended = Arc::new(Ended { observer, files: Mutex::default() });
            let sweeping = async {
                let mut swept = enqueue::enqueue_sweep(&session, &request, &queue).await?;
                if wait {
                    enqueue::wait_for_sweep(&session, &mut swept, &*ended).await?;
                }
                Ok(swept)
            };
            let swept = ended.until_interrupted(&session, &interruption, sweeping).await;
            session.finish(swept).await
        })
    }
}

/// Keeps the files that have ended, for the result of an interrupted sweep.
struct Ended {
    observer: Arc<dyn SweepObserver>,
    files: Mutex<Vec<SweptFile>>,
}

impl Ended {
    async fn until_interrupted(
        &self,
        session: &OpenSession,
        interruption: &Interruption,
        sweeping: impl Future<Output = Result<Sweep, Error>> + Send,
    ) -> Result<Sweep, Error> {
        tokio::select! {
            biased;
            swept = sweeping => return swept,
            () = interruption.requested() => session.interrupt(),
        }
        let mut files = std::mem::take(&mut *self.files.lock().unwrap_or_else(PoisonError::into_inner));
        files.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(Sweep { files, estimate: None, is_interrupted: true })
    }
}

impl SweepObserver for Ended {
    fn planned(&self, reviews: usize) {
        self.observer.planned(reviews);
    }

    fn started(&self, path: &str) {
        self.observer.started(path);
    }

    fn ended(&self, swept: &SweptFile) {
        self.observer.ended(swept);
        self.files.lock().unwrap_or_else(PoisonError::into_inner).push(swept.clone());
    }
}

impl FileFilter {
    /// Accepts the files whose path from the workspace's directory matches a pattern such as `drafts/**/*.md`.
    ///
    /// # Errors
    /// If the pattern is invalid.
    ///
    /// ```
    /// use quorate::sweep::FileFilter;
    ///
    /// assert!(FileFilter::matching("drafts/**/*.md").is_ok());
    /// assert!(FileFilter::matching("drafts/{a").is_err());
    /// # Ok::<(), quorate::Error>(())
    /// ```
    pub fn matching(pattern: &str) -> Result<FileFilter, Error> {
        let glob = GlobBuilder::new(pattern).literal_separator(true).build().map_err(|error| {
            let body = Body::new(format!("`pattern`: {error}")).help("write drafts/**/*.md");
            Error::new(ErrorKind::Configuration, codes::USAGE, body)
        })?;
        Ok(FileFilter { below: None, pattern: Some(glob.compile_matcher()) })
    }
}

/// Ignores the progress.
impl SweepObserver for () {
    fn planned(&self, _: usize) {}
    fn started(&self, _: &str) {}
    fn ended(&self, _: &SweptFile) {}
}
