//! Sweep: reviews every file below the watched paths that is due and not yet judged.

pub(super) mod find;
pub mod json;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobMatcher;
use quorate_kernel::observer::NoopObserver;
use quorate_protocol::Name;
use quorate_protocol::modes::council::Setup;
use quorate_protocol::policy::{Policy, Verdict};
use tokio::task::JoinSet;

use super::artifact::Artifact;
use super::error::ServiceError;
use super::estimate::Estimate;
use super::paths::display_path;
use super::report::Report;
use super::review::spec::{self, ReviewInput};
use super::run_options::RunOptions;
use super::run_spec::RunSpec;
use super::runs::RunReport;
use super::session::LedgerSession;
use super::trust::Permit;
use super::worker_thread::run_on_own_thread;
use super::{resume, review};
use find::{DueFile, Found, find};

#[derive(Debug, Clone)]
pub struct Request {
    /// Skips files changed before this time, in milliseconds since the Unix epoch.
    pub since_ms: Option<i64>,
    /// Whether to review content again that was already judged.
    pub judged: JudgedPolicy,
    /// Whether to call members.
    pub mode: Mode,
    /// The filter on watched files.
    pub filter: FileFilter,
    /// The number of concurrent reviews.
    pub jobs: usize,
    /// `--policy`, overrides the council's file.
    pub policy: Option<Policy>,
    /// The options of each review.
    pub options: RunOptions,
}

/// A filter on watched files; by default all pass.
#[derive(Debug, Clone, Default)]
pub struct FileFilter {
    /// Files below this directory, symlinks followed.
    pub below: Option<PathBuf>,
    /// Files whose path from the working directory matches.
    pub pattern: Option<GlobMatcher>,
}

impl FileFilter {
    fn matches(&self, session: &LedgerSession, path: &Path) -> bool {
        let inside = |dir: &PathBuf| {
            let real = |path: &Path| path.canonicalize().ok();
            real(path).zip(real(dir)).is_some_and(|(path, dir)| path.starts_with(dir))
        };
        let named = |pattern: &GlobMatcher| pattern.is_match(display_path(&session.environment, path));
        self.below.as_ref().is_none_or(inside) && self.pattern.as_ref().is_none_or(named)
    }
}

/// What to do with content that this council has judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JudgedPolicy {
    Skip,
    /// `--force`.
    Repeat,
}

/// Whether a sweep calls members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Run,
    /// `--dry-run`: lists the due files and the expected cost.
    DryRun,
}

/// The result for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweptFile {
    /// The path as shown to the user.
    pub path: String,
    /// Its tier; 0 if the file was not read.
    pub tier: u8,
    pub artifact_type: String,
    /// The model's reason for the tier, if a model chose it.
    pub tier_reason: Option<String>,
    pub outcome: Outcome,
}

/// What a sweep did with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Judged {
        run: String,
        verdict: Verdict,
        /// The first thing to change, if any.
        fix: Option<String>,
    },
    /// It would be reviewed.
    Due,
    /// Its tier is not reviewed.
    TierSkipped,
    /// Its tier is sampled, and it is not in the sample.
    NotSampled,
    /// This council has judged this content.
    AlreadyJudged,
    /// It is in the queue.
    Queued {
        run: String,
        /// `ready`, `leased`, `done`, `dead` or `cancelled`.
        state: &'static str,
        /// Whether this sweep queued it.
        is_new: bool,
    },
    /// It could not be reviewed.
    Failed { why: String },
}

/// Receives a sweep's progress.
pub trait SweepObserver: Send + Sync {
    /// The number of reviews to do.
    fn planned(&self, reviews: usize);
    fn started(&self, path: &str);
    fn ended(&self, swept: &SweptFile);
}

/// The result of a sweep.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SweepReport {
    /// The result for every file, by path.
    pub files: Vec<SweptFile>,
    /// The expected cost of the reviews, in a dry run.
    pub estimate: Option<Estimate>,
}

/// Sweeps. Neither an empty nor a large set of files is an error.
///
/// # Errors
/// If no folder can be read, the executor is refused, or the ledger fails.
#[crate::boxed]
pub async fn sweep(
    session: &Arc<LedgerSession>,
    request: &Request,
    watcher: Arc<dyn SweepObserver>,
) -> Result<SweepReport, ServiceError> {
    let spec = spec::build(&session.environment, &session.workspace, &request.options, request.policy)?;
    let permit = match request.mode {
        Mode::Run => Some(spec.admit(&session.environment)?),
        Mode::DryRun => None,
    };
    let Found { mut files, due, estimate, judged } = find(session, request, &spec, permit).await?;
    let undecided = session.store.undecided_runs(&spec.fingerprint("").combined()).await?;
    watcher.planned(due.len());
    let Some(permit) = permit else { return Ok(SweepReport { files, estimate }) };
    let (session, options, policy) = (Arc::clone(session), request.options.clone(), request.policy);
    let skips_judged_by = match request.judged {
        JudgedPolicy::Skip => Some(spec.fingerprint("").combined()),
        JudgedPolicy::Repeat => None,
    };
    let observer = watcher;
    let work =
        SweepRun { session, spec, permit, options, policy, undecided, judged, skips_judged_by, observer };
    let work = Arc::new(work);
    let mut due = due.into_iter();
    // One thread each, so that reviews use all cores without blocking others; dropping the set drops them.
    let mut reviews = JoinSet::new();
    loop {
        while reviews.len() < request.jobs.max(1)
            && let Some((swept, draft)) = due.next()
        {
            let work = Arc::clone(&work);
            reviews.spawn(run_on_own_thread(async move { work.sweep_file(swept, *draft).await }));
        }
        match reviews.join_next().await {
            None => break,
            Some(Ok(swept)) => {
                work.observer.ended(&swept);
                files.push(swept);
            }
            Some(Err(gone)) => match gone.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => unreachable!("reviews are only cancelled all together, by dropping the set"),
            },
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(SweepReport { files, estimate })
}

/// State that all reviews of a sweep share.
struct SweepRun {
    session: Arc<LedgerSession>,
    spec: RunSpec<Setup>,
    permit: Permit,
    options: RunOptions,
    policy: Option<Policy>,
    /// Runs that an earlier sweep left open, by subject and artifact hash.
    undecided: BTreeMap<(String, String), Name>,
    /// The content that this council has judged; empty if it is judged again.
    judged: BTreeMap<String, Name>,
    /// The hash of the council whose verdicts are not asked for again; `None` if they are.
    skips_judged_by: Option<String>,
    observer: Arc<dyn SweepObserver>,
}

impl SweepRun {
    /// Reviews one text. A failure does not stop the other reviews.
    async fn sweep_file(&self, mut swept: SweptFile, draft: DueFile) -> SweptFile {
        self.observer.started(&swept.path);
        swept.outcome = match self.outcome_of(&swept, draft).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::Failed { why: error.first_message() },
        };
        swept
    }

    async fn outcome_of(&self, swept: &SweptFile, draft: DueFile) -> Result<Outcome, ServiceError> {
        let artifact = draft.read_in_place(&self.session)?;
        // The file may have changed since it was triaged; its current text is judged.
        if artifact.sha256 != draft.sha256
            && let Some(run) = self.judged.get(&artifact.sha256)
        {
            self.session.ensure_unaltered(run).await?;
            return Ok(Outcome::AlreadyJudged);
        }
        // Another process may judge it meanwhile, or have judged it since the triage.
        let mut _alone = None;
        if let Some(council) = &self.skips_judged_by {
            _alone = review::hold_text(&self.session, &artifact.sha256).await?;
            if let Some(run) = self.session.store.last_judgement(council, &artifact.sha256).await? {
                self.session.ensure_unaltered(&run).await?;
                return Ok(Outcome::AlreadyJudged);
            }
        }
        // A tier that a model chose for another text does not apply.
        let (tier, tier_source) = match draft.tier_source {
            Some(_) if artifact.sha256 != draft.sha256 => (review::STRICTEST_TIER, None),
            source => (swept.tier, source),
        };
        let artifact = Artifact { display_name: swept.path.clone(), ..artifact };
        let input = ReviewInput { artifact, artifact_type: swept.artifact_type.clone(), tier, tier_source };
        Ok(match self.judge(&input).await? {
            (run, Some(verdict), fix) => Outcome::Judged { run, verdict, fix },
            (run, None, _) => Outcome::Failed { why: format!("run {run} has no verdict") },
        })
    }

    async fn judge(
        &self,
        input: &ReviewInput,
    ) -> Result<(String, Option<Verdict>, Option<String>), ServiceError> {
        let report = match self.try_resume(input).await {
            Some(report) => report,
            None => {
                let indexed = self.session.sync_log_index().await?;
                let observer = Arc::new(NoopObserver);
                spec::start(&self.spec, &self.session, input, indexed, self.permit, observer).await?
            }
        };
        let fix = report.first_fix();
        Ok((report.run, report.verdict, fix))
    }

    /// Resumes a run that an interrupted sweep left open on the same text, so that no call is paid twice. Leaves alone a run
    /// that cannot be resumed or that another process holds.
    async fn try_resume(&self, input: &ReviewInput) -> Option<Report> {
        let artifact = &input.artifact;
        let run = self.undecided.get(&(artifact.display_name.clone(), artifact.sha256.clone()))?;
        let resumed = resume::resume(&self.session, run, &self.options, self.policy, Arc::new(NoopObserver));
        match resumed.await.ok()? {
            RunReport::Review(report) => Some(*report),
            RunReport::Assembly(_) => None,
        }
    }
}

/// The worst exit class of a sweep: 0 if everything due was judged, 3 if something is INCOMPLETE or failed.
pub fn exit_code(all: &[SweptFile]) -> u8 {
    let bad = |file: &SweptFile| match &file.outcome {
        Outcome::Judged { verdict, .. } => *verdict == Verdict::Incomplete,
        // It was queued before, and a dead task does not continue by itself.
        Outcome::Queued { state, .. } => *state == "dead",
        Outcome::Failed { .. } => true,
        _ => false,
    };
    if all.iter().any(bad) { 3 } else { 0 }
}

/// The start of a span that ends now.
pub fn since(session: &LedgerSession, text: &str) -> Result<Option<i64>, super::since::Error> {
    super::since::parse(text, session.environment.clock.now_ms())
}
