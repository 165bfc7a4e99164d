//! Sweeping a workspace: reviewing all watched files that are due.

use std::sync::Arc;

use globset::GlobBuilder;
use quorate_diagnostics::{Body, Report, codes};
use serde_json::Value;

use super::builder::Quorate;
use super::error::{Error, ErrorKind};
use super::service::sweep::SweepReport;
use super::service::{runs, sweep};

pub use super::service::estimate::Estimate;
pub use super::service::sweep::{
    FileFilter, JudgedPolicy, SweepMode, SweepObserver, SweepRequest, SweptFile, SweptOutcome,
};

impl Quorate {
    /// Reviews the files below the council's `watch.paths` that are due. A confined workspace skips files outside of its
    /// root.
    ///
    /// # Errors
    /// If no folder can be read, the executor is refused, or the ledger fails.
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
    /// let sweep = quorate.sweep(request, Arc::new(())).await?;
    /// assert_eq!(sweep.files()[0].path, "drafts/post.md");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn sweep(
        &self,
        mut request: SweepRequest,
        observer: Arc<dyn SweepObserver>,
    ) -> Result<Sweep, Error> {
        if let Some(root) = &self.root {
            request.filter.below = Some(root.dir().to_owned());
        }
        let session = Arc::new(runs::open_for_writing(&self.environment, &self.places).await?);
        let swept = sweep::sweep(&session, &request, observer).await;
        let warnings = match Arc::into_inner(session) {
            Some(session) => session.close().await,
            None => Report::new(),
        };
        Ok(Sweep { report: swept?, warnings })
    }
}

impl FileFilter {
    /// Accepts the files whose path from the workspace's directory matches a pattern such as `drafts/**/*.md`.
    ///
    /// # Errors
    /// If the pattern is invalid.
    pub fn matching(pattern: &str) -> Result<FileFilter, Error> {
        let glob = GlobBuilder::new(pattern).literal_separator(true).build().map_err(|error| {
            let body = Body::new(format!("`pattern`: {error}")).help("write drafts/**/*.md");
            Error::new(ErrorKind::Configuration, codes::USAGE, body)
        })?;
        Ok(FileFilter { below: None, pattern: Some(glob.compile_matcher()) })
    }
}

/// The result of a sweep.
#[derive(Debug, Clone)]
pub struct Sweep {
    report: SweepReport,
    warnings: Report,
}

impl Sweep {
    /// The result for every file, by path.
    pub fn files(&self) -> &[SweptFile] {
        &self.report.files
    }

    /// The expected cost of the reviews, in a dry run.
    pub fn estimate(&self) -> Option<&Estimate> {
        self.report.estimate.as_ref()
    }

    /// The warnings of the workspace, and files that could not be read.
    pub fn warnings(&self) -> &Report {
        &self.warnings
    }

    /// The report as `quorate sweep --format json` prints it.
    pub fn to_json(&self) -> Value {
        sweep::json(&self.report)
    }
}

/// Ignores the progress.
impl SweepObserver for () {
    fn planned(&self, _: usize) {}
    fn started(&self, _: &str) {}
    fn ended(&self, _: &SweptFile) {}
}
