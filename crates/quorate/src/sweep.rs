//! Sweeping a workspace: finds the files below the watched paths that are due and not yet judged, and reviews them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use globset::{GlobBuilder, GlobMatcher};
use quorate_diagnostics::{Body, codes};
use quorate_kernel::observer::{Observer, RunEvent};
use quorate_kernel::record::TierSource;
use quorate_manifest::council::VerdictPolicy;
use quorate_manifest::council::tiers::Tier;
use quorate_protocol::modes::council::{Setup, read_verdict};
use quorate_protocol::policy::Verdict;
use quorate_protocol::{Name, Part, PartKind};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::builder::Quorate;
use super::error::{Error, ErrorKind};
use super::events::{Interruption, Run};
use super::jobs::Reporter;
use super::service::artifact::{self, Artifact, Draft};
use super::service::disk::{self, FileEntry, display_path};
use super::service::report::{Review, verdict_exit_code};
use super::service::resume::ResumeRequest;
use super::service::review::{self, ReviewInput};
use super::service::run_spec::{RunOptions, RunSpec};
use super::service::runs::{self, Recorded};
use super::service::session::{LedgerSession, altered_error};
use super::service::tier_model::SortedText;
use super::service::trust::requests::TrustRequest;
use super::service::trust::{self, Permit};
use super::service::{estimate, resume, workspace};
use super::session::{OpenSession, Outcome};
use super::worker_thread::run_on_own_thread;

pub use super::service::estimate::{Estimate, ExecutorEstimate};

/// A sweep over the watched files.
#[derive(Debug, Clone)]
pub struct SweepRequest {
    /// Skips files changed before this time, in milliseconds since the Unix epoch.
    pub since_ms: Option<i64>,
    /// Whether to review content again that was already judged.
    pub judged: JudgedPolicy,
    /// Whether to call members.
    pub mode: SweepMode,
    /// The filter on watched files.
    pub filter: FileFilter,
    /// The number of concurrent reviews.
    pub jobs: usize,
    /// Overrides the policy of the council's file.
    pub policy: Option<VerdictPolicy>,
    /// The options of each review.
    pub options: RunOptions,
}

impl Default for SweepRequest {
    fn default() -> Self {
        SweepRequest {
            since_ms: None,
            judged: JudgedPolicy::Skip,
            mode: SweepMode::Run,
            filter: FileFilter::default(),
            jobs: 4,
            policy: None,
            options: RunOptions::default(),
        }
    }
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
    /// Does not review it again.
    Skip,
    /// Reviews it again.
    Repeat,
}

/// Whether a sweep calls members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepMode {
    /// Reviews the files.
    Run,
    /// Lists the due files and the expected cost.
    DryRun,
}

/// The result for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweptFile {
    /// The path as shown to the user.
    pub path: String,
    /// Its tier; 0 if the file was not read.
    pub tier: u8,
    /// Its type, by the council's tier rules.
    pub artifact_type: String,
    /// The model's reason for the tier, if a model chose it.
    pub tier_reason: Option<String>,
    /// What became of it.
    pub outcome: SweptOutcome,
}

/// What a sweep did with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SweptOutcome {
    /// The council has judged it.
    Judged {
        /// The run's id.
        run: String,
        /// The verdict.
        verdict: Verdict,
        /// The reason in a few words; empty for a SHIP without suggestions.
        why: String,
        /// The first thing to change, if any.
        fix: Option<String>,
        /// Whether a stand-in gave one of the answers, so that the next sweep judges the file again.
        has_stand_ins: bool,
    },
    /// It would be reviewed.
    Due,
    /// Its tier is not reviewed.
    TierSkipped,
    /// Its tier is sampled, and it is not in the sample.
    NotSampled,
    /// This council has judged this content.
    AlreadyJudged {
        /// The recorded verdict, or a person's decision about it; `None` for the second file of this sweep with that content.
        verdict: Option<Verdict>,
    },
    /// It is in the queue.
    Queued {
        /// The run's id.
        run: String,
        /// `ready`, `leased`, `done`, `dead` or `cancelled`.
        state: &'static str,
        /// Whether this sweep queued it.
        is_new: bool,
    },
    /// It could not be reviewed.
    Failed {
        /// The first message of the error.
        why: String,
    },
}

impl SweptOutcome {
    /// The outcome of a review that has ended.
    pub(crate) fn of(review: &Review) -> Self {
        let run = review.run.clone();
        match review.verdict {
            Some(verdict) => {
                let (why, fix) = (review.short_reason(), review.first_fix());
                SweptOutcome::Judged { run, verdict, why, fix, has_stand_ins: review.has_stand_ins }
            }
            None => SweptOutcome::Failed { why: format!("run {run} has no verdict") },
        }
    }
}

/// A step of a sweep.
#[derive(Debug)]
pub enum SweepEvent<'s> {
    /// The number of reviews to do is known.
    Planned(usize),
    /// The review of the file with this path begins.
    Started(&'s str),
    /// A member waits for a service: `skeptic: HTTP 503 from 127.0.0.1:8080, trying again in 4 s (6 of 20)`.
    Waiting(&'s str),
    /// The review of a file has ended.
    Ended(&'s SweptFile),
}

/// Receives a sweep's progress.
pub type SweepObserver = Arc<dyn Fn(SweepEvent<'_>) + Send + Sync>;

impl<F: Send + Sync + 'static> Reporter<F> {
    /// Updates the job of a sweep.
    pub fn swept(&self, event: &SweepEvent<'_>) {
        match event {
            SweepEvent::Planned(reviews) => {
                self.update(|progress| progress.planned = u32::try_from(*reviews).ok());
            }
            SweepEvent::Started(path) => self.update(|progress| {
                progress.asked += 1;
                progress.last = Some(format!("{path} is reviewed"));
            }),
            SweepEvent::Waiting(line) => self.update(|progress| progress.last = Some((*line).to_owned())),
            SweepEvent::Ended(swept) => self.ended(format!("{} is done", swept.path)),
        }
    }
}

/// The result of a sweep.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sweep {
    /// The result for every file, by path.
    pub files: Vec<SweptFile>,
    /// The expected cost of the reviews, in a dry run.
    pub estimate: Option<Estimate>,
    /// Whether the caller interrupted it, so that files are missing.
    pub is_interrupted: bool,
}

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
    /// let sweep = quorate.sweep(request, Arc::new(|_| {})).finish().await?;
    /// assert_eq!(sweep.files[0].path, "drafts/post.md");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "nothing happens until it is polled"]
    pub fn sweep(&self, mut request: SweepRequest, observer: SweepObserver) -> Run<Outcome<Sweep>> {
        request.filter.below = self.root.as_ref().map(|root| root.dir().to_owned()).or(request.filter.below);
        let quorate = self.clone();
        Run::new(move |_, interruption| async move {
            let session = quorate.open(runs::open_for_writing(&quorate.environment, &quorate.places)).await?;
            let ended = Ended::new(observer);
            let sweeping = sweep(&session, &request, ended.clone());
            let swept = ended.until_interrupted(&session, &interruption, sweeping).await;
            session.finish(swept).await
        })
    }
}

/// Keeps the files that have ended, for the result of an interrupted sweep.
#[derive(Clone)]
pub(crate) struct Ended {
    observer: SweepObserver,
    files: Arc<Mutex<Vec<SweptFile>>>,
}

impl Ended {
    pub(crate) fn new(observer: SweepObserver) -> Ended {
        Ended { observer, files: Arc::default() }
    }

    pub(crate) fn tell(&self, event: SweepEvent<'_>) {
        if let SweepEvent::Ended(swept) = event {
            self.files.lock().unwrap_or_else(PoisonError::into_inner).push(swept.clone());
        }
        (self.observer)(event);
    }

    /// The result of a sweep, or after an interruption the files that have ended.
    pub(crate) async fn until_interrupted(
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

/// Sweeps. Neither an empty nor a large set of files is an error.
///
/// # Errors
/// If no folder can be read, the executor is refused, or the ledger fails.
#[crate::boxed]
async fn sweep(
    session: &Arc<LedgerSession>,
    request: &SweepRequest,
    observer: Ended,
) -> Result<Sweep, Error> {
    let spec = review::build(&session.environment, &session.workspace, &request.options, request.policy)?;
    let permit = match request.mode {
        SweepMode::Run => Some(spec.admit(&session.environment)?),
        SweepMode::DryRun => None,
    };
    let Found { mut files, due, estimate, judged } = find(session, request, &spec, permit).await?;
    let undecided = session.store.undecided_runs(&spec.fingerprint("").combined()).await?;
    observer.tell(SweepEvent::Planned(due.len()));
    let Some(permit) = permit else { return Ok(Sweep { files, estimate, is_interrupted: false }) };
    let (session, options, policy) = (Arc::clone(session), request.options.clone(), request.policy);
    let is_skipped = request.judged == JudgedPolicy::Skip;
    let skips_judged_by = is_skipped.then(|| spec.fingerprint("").combined());
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
                work.observer.tell(SweepEvent::Ended(&swept));
                files.push(swept);
            }
            Some(Err(gone)) => match gone.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => unreachable!("reviews are only cancelled all together, by dropping the set"),
            },
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Sweep { files, estimate, is_interrupted: false })
}

/// State that all reviews of a sweep share.
struct SweepRun {
    session: Arc<LedgerSession>,
    spec: RunSpec<Setup>,
    permit: Permit,
    options: RunOptions,
    policy: Option<VerdictPolicy>,
    /// Runs that an earlier sweep left open, by subject and artifact hash.
    undecided: BTreeMap<(String, String), Name>,
    /// The content that this council has judged; empty if it is judged again.
    judged: BTreeMap<String, Name>,
    /// The hash of the council whose verdicts are not asked for again; `None` if they are.
    skips_judged_by: Option<String>,
    observer: Ended,
}

impl SweepRun {
    /// Reviews one text. A failure does not stop the other reviews.
    async fn sweep_file(&self, mut swept: SweptFile, draft: DueFile) -> SweptFile {
        self.observer.tell(SweepEvent::Started(&swept.path));
        swept.outcome = match self.outcome_of(&swept, draft).await {
            Ok(outcome) => outcome,
            Err(error) => SweptOutcome::Failed { why: error.first_message() },
        };
        swept
    }

    async fn outcome_of(&self, swept: &SweptFile, draft: DueFile) -> Result<SweptOutcome, Error> {
        let artifact = draft.read_in_place(&self.session)?;
        // The file may have changed since it was triaged; its current text is judged.
        if artifact.sha256 != draft.sha256
            && let Some(run) = self.judged.get(&artifact.sha256)
        {
            self.session.ensure_unaltered(run).await?;
            return already_judged(&self.session, run).await;
        }
        // Another process may judge it meanwhile, or have judged it since the triage.
        let mut _alone = None;
        if let Some(council) = &self.skips_judged_by {
            _alone = review::hold_text(&self.session, &artifact.sha256).await?;
            if let Some(run) = self.session.store.last_own_judgement(council, &artifact.sha256).await? {
                self.session.ensure_unaltered(&run).await?;
                return already_judged(&self.session, &run).await;
            }
        }
        // A tier that a model chose for another text does not apply.
        let (tier, tier_source) = match draft.tier_source {
            Some(_) if artifact.sha256 != draft.sha256 => (review::STRICTEST_TIER, None),
            source => (swept.tier, source),
        };
        let artifact = Artifact { display_name: swept.path.clone(), ..artifact };
        let input = ReviewInput { artifact, artifact_type: swept.artifact_type.clone(), tier, tier_source };
        Ok(SweptOutcome::of(&self.judge(&input).await?))
    }

    async fn judge(&self, input: &ReviewInput) -> Result<Review, Error> {
        Ok(match self.try_resume(input).await {
            Some(report) => report,
            None => {
                let indexed = self.session.sync_log_index().await?;
                let (spec, observer) = (&self.spec, self.observer());
                review::start(spec, &self.session, input, indexed, self.permit, observer).await?
            }
        })
    }

    /// Passes the waits of one review on to the observer of the sweep.
    fn observer(&self) -> Arc<dyn Observer> {
        let observer = self.observer.clone();
        let tell = move |line: &String| observer.tell(SweepEvent::Waiting(line));
        Arc::new(move |event: RunEvent| event.wait_line().iter().for_each(&tell))
    }

    /// Resumes a run that an interrupted sweep left open on the same text, so that no call is paid twice. Leaves alone
    /// a run that cannot be resumed or that another process holds.
    async fn try_resume(&self, input: &ReviewInput) -> Option<Review> {
        let artifact = &input.artifact;
        let run = self.undecided.get(&(artifact.display_name.clone(), artifact.sha256.clone()))?;
        let request =
            ResumeRequest { options: self.options.clone(), policy: self.policy, ..ResumeRequest::default() };
        let resumed = resume::resume(&self.session, run, &request, self.observer());
        match resumed.await.ok()? {
            Recorded::Review(report) => Some(*report),
            Recorded::Decision(_) => None,
        }
    }
}

impl Sweep {
    /// 3 if a file is INCOMPLETE or failed, else the code of the worst verdict, also an earlier one, that is at least `fail_on`,
    /// else 0; 130 after an interruption.
    pub fn exit_code(&self, fail_on: Verdict) -> u8 {
        let (least, incomplete) = (verdict_exit_code(fail_on), verdict_exit_code(Verdict::Incomplete));
        let code = |file: &SweptFile| match &file.outcome {
            SweptOutcome::Judged { verdict, .. } | SweptOutcome::AlreadyJudged { verdict: Some(verdict) } => {
                verdict_exit_code(*verdict)
            }
            // It was queued before, and a dead task does not continue by itself.
            SweptOutcome::Queued { state: "dead", .. } | SweptOutcome::Failed { .. } => incomplete,
            _ => 0,
        };
        match self.is_interrupted {
            true => ErrorKind::Interrupted.code(),
            false => self.files.iter().map(code).filter(|code| *code >= least).max().unwrap_or(0),
        }
    }

    /// The sweep as `quorate sweep --format json` prints it: `{"files": [{path, tier, artifact_type, tier_reason, fate, run,
    /// verdict, why, fix_first}]}`, in the order given. A dry run adds `estimate`, a queued file its `state`, and a file
    /// that stand-ins judged `stand_ins`.
    pub fn to_json(&self) -> Value {
        let mut all = json!({ "files": self.files.iter().map(object).collect::<Vec<_>>() });
        if let Some(estimate) = &self.estimate {
            all["estimate"] = json!(estimate);
        }
        all
    }
}

fn object(file: &SweptFile) -> Value {
    let fix = if let SweptOutcome::Judged { fix, .. } = &file.outcome { fix.as_deref() } else { None };
    let (outcome, run, verdict, why) = match &file.outcome {
        SweptOutcome::Judged { run, verdict, .. } => ("judged", Some(run), Some(verdict.as_str()), None),
        SweptOutcome::Due => ("due", None, None, None),
        SweptOutcome::TierSkipped => ("tier_skipped", None, None, None),
        SweptOutcome::NotSampled => ("not_sampled", None, None, None),
        SweptOutcome::AlreadyJudged { .. } => ("already_judged", None, None, None),
        SweptOutcome::Queued { run, is_new: true, .. } => ("queued", Some(run), None, None),
        SweptOutcome::Queued { run, .. } => ("queued_before", Some(run), None, None),
        SweptOutcome::Failed { why } => ("failed", None, None, Some(why)),
    };
    let mut object = json!({
        "path": file.path, "tier": file.tier, "artifact_type": file.artifact_type,
        "tier_reason": file.tier_reason,
        "fate": outcome, "run": run, "verdict": verdict, "why": why, "fix_first": fix,
    });
    match &file.outcome {
        SweptOutcome::Queued { state, .. } => object["state"] = json!(state),
        SweptOutcome::Judged { has_stand_ins: true, .. } => object["stand_ins"] = json!(true),
        _ => {}
    }
    object
}

/// The files of a sweep.
pub(crate) struct Found {
    /// Files that are not due, by path; in a dry run also those that are.
    pub(crate) files: Vec<SweptFile>,
    pub(crate) due: Vec<(SweptFile, Box<DueFile>)>,
    /// The expected cost of the reviews, in a dry run.
    pub(crate) estimate: Option<Estimate>,
    /// The content that this council has judged; empty if it is judged again.
    pub(crate) judged: BTreeMap<String, Name>,
}

/// Finds the files below the watched folders, and those that are due. Without a permit, asks no model for a tier.
pub(crate) async fn find(
    session: &LedgerSession,
    request: &SweepRequest,
    spec: &RunSpec<Setup>,
    permit: Option<Permit>,
) -> Result<Found, Error> {
    let mut all = Vec::new();
    let mut estimate = (request.mode == SweepMode::DryRun).then(Estimate::default);
    let mut due = Vec::new();
    let judged = match request.judged {
        JudgedPolicy::Skip => session.store.judged_artifacts(&spec.fingerprint("").combined()).await?,
        JudgedPolicy::Repeat => BTreeMap::new(),
    };
    let mut planned = BTreeSet::new();
    let mut judged_before = Vec::new();
    let (found, unread) = files(session, request)?;
    all.extend(unread);
    let sorted = sort_by_model(session, request, permit, &found).await?;
    for found in found {
        // Lets an interruption through: reading files has no other await.
        tokio::task::yield_now().await;
        match triage(session, found, &sorted, &judged, &mut planned, request.judged) {
            Triage::Now(swept) => all.push(swept),
            Triage::JudgedBefore(swept, run) => judged_before.push((swept, run)),
            Triage::Due(swept, draft) => match &mut estimate {
                Some(estimate) => {
                    let part = Part::new(PartKind::Artifact, &*swept.path, draft.read(session)?.text);
                    estimate.add(estimate::estimate(spec, part)?);
                    all.push(swept);
                }
                None => due.push((swept, draft)),
            },
        }
    }
    let runs = judged_before.iter().map(|(_, run)| run.clone()).collect();
    let altered = session.store.compare_rows(&runs).await?;
    for (swept, run) in judged_before {
        let outcome = match altered.get(&run) {
            None => already_judged(session, &run).await?,
            Some(finding) => SweptOutcome::Failed { why: altered_error(&run, finding).first_message() },
        };
        all.push(SweptFile { outcome, ..swept });
    }
    all.sort_by(|a, b| a.path.cmp(&b.path));
    if let Some(estimate) = estimate.as_mut().filter(|estimate| estimate.calls > 0) {
        estimate.last_run_ms = estimate::last_run_ms(spec, &session.store).await?;
    }
    Ok(Found { files: all, due, estimate, judged })
}

/// The outcome of content that a run has judged, whose row was compared with its records (D13).
async fn already_judged(session: &LedgerSession, run: &Name) -> Result<SweptOutcome, Error> {
    let row = session.find_run(run).await?;
    let counts = row.overridden.or(row.verdict);
    Ok(SweptOutcome::AlreadyJudged { verdict: counts.as_deref().and_then(read_verdict) })
}

/// The files below the watched folders, and the unreadable folders. A missing folder is only a warning, unless all are
/// missing.
fn files(session: &LedgerSession, request: &SweepRequest) -> Result<(Vec<FileEntry>, Vec<SweptFile>), Error> {
    let council = &session.workspace.council;
    if council.watch.paths.is_empty() {
        let body = Body::new("cannot sweep: council.yaml has no `watch.paths`");
        return Err(Error::configuration(
            codes::COUNCIL_INVALID,
            body.help("add `watch: {paths: [./drafts/]}`"),
        ));
    }
    let workspace = &session.workspace;
    let council_path = workspace.council_path.clone().unwrap_or_default();
    let root = workspace.config_path.as_deref().or(workspace.council_path.as_deref()).and_then(Path::parent);
    let acts = workspace::of_watch(council, root.unwrap_or(&council.dir));
    trust::admit(&session.environment, vec![TrustRequest { file: council_path, acts }])?;
    let (mut files, mut unread) = (Vec::new(), Vec::new());
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    for written in &council.watch.paths {
        let path = council.dir.join(Path::new(written));
        match disk::walk(&path) {
            Ok(found) => {
                let (inside, elsewhere): (Vec<_>, Vec<_>) =
                    found.into_iter().partition(|entry| disk::is_inside(&path, &entry.path));
                for entry in elsewhere {
                    let target = display_path(&session.environment, &entry.path);
                    let body = Body::new(format!(
                        "skipped {target}: a link leads out of the watched folder {written}"
                    ));
                    let help = "watch the folder that it leads to, or review the file by its name";
                    session.warn(codes::WATCH_UNREADABLE, body.help(help));
                }
                files.extend(inside.into_iter().filter(|entry| seen.insert(entry.path.clone())));
            }
            Err(error) => {
                session.warn(codes::WATCH_UNREADABLE, Body::new(format!("watch path {written}: {error}")));
                let swept = SweptFile {
                    path: display_path(&session.environment, &path),
                    tier: 0,
                    artifact_type: String::new(),
                    tier_reason: None,
                    outcome: SweptOutcome::Failed { why: error.to_string() },
                };
                unread.push((error.kind(), swept));
            }
        }
    }
    // A missing folder may be for later drafts; if all folders are missing, nothing was swept.
    let all_unread = unread.len() == council.watch.paths.len();
    unread.retain(|(why, _)| all_unread || *why != std::io::ErrorKind::NotFound);
    files.retain(|file| {
        request.since_ms.is_none_or(|since| file.modified_ms >= since)
            && !session.workspace.guard.is_recorded_to(&file.path)
            && request.filter.matches(session, &file.path)
    });
    Ok((files, unread.into_iter().map(|(_, swept)| swept).collect()))
}

/// The tiers that a model chooses, by the hash of the text. A dry run asks no model and uses only recorded tiers.
async fn sort_by_model(
    session: &LedgerSession,
    request: &SweepRequest,
    permit: Option<Permit>,
    found: &[FileEntry],
) -> Result<BTreeMap<String, SortedText>, Error> {
    let council = &session.workspace.council;
    let read = |path: PathBuf| artifact::read(&Draft::File(path), &session.environment.directory).ok();
    // Each text is read again when its question is put, since all texts together may exceed memory. The triage reports
    // unreadable files.
    let mut questions: BTreeMap<String, PathBuf> = BTreeMap::new();
    for file in found {
        if council.tiers.classify(&review::relative_path(&council.dir, &file.path)).asks_model
            && let Some(artifact) = read(file.path.clone())
        {
            questions.entry(artifact.sha256).or_insert_with(|| file.path.clone());
        }
    }
    let mut sorted = BTreeMap::new();
    if questions.is_empty() {
        return Ok(sorted);
    }
    let model = &review::tier_model(session, &request.options, permit).await?;
    let ask = |(sha256, path): (String, PathBuf)| async move {
        let said = match (permit.is_some(), read(path.clone())) {
            (true, Some(artifact)) if artifact.sha256 == sha256 => {
                let display_name = display_path(&session.environment, &path);
                Some(model.sort(session, &Artifact { display_name, ..artifact }).await?)
            }
            _ => model.recorded(&sha256),
        };
        Ok::<_, Error>(said.map(|said| (sha256, said)))
    };
    let mut answers = futures::stream::iter(questions).map(ask).buffer_unordered(request.jobs.max(1));
    while let Some(answer) = answers.next().await {
        sorted.extend(answer?);
    }
    Ok(sorted)
}

enum Triage {
    Now(SweptFile),
    /// The run that judged it; its row must be compared with its records (D13).
    JudgedBefore(SweptFile, Name),
    Due(SweptFile, Box<DueFile>),
}

/// A draft that is due. Its text is read again when its review starts: all texts together may exceed memory.
pub(crate) struct DueFile {
    path: PathBuf,
    /// Its path when it was found: a link created since may lead out of the watched folder.
    place: Option<PathBuf>,
    pub(crate) sha256: String,
    pub(crate) tier_source: Option<TierSource>,
}

impl DueFile {
    /// Reads it, unless it was moved since the search.
    pub(crate) fn read_in_place(&self, session: &LedgerSession) -> Result<Artifact, Error> {
        if disk::canonical(&self.path) != self.place {
            let body = Body::new("it was moved during the sweep");
            return Err(Error::configuration(codes::ARTIFACT_UNREADABLE, body));
        }
        let artifact = self.read(session)?;
        session.workspace.guard.ensure_unrecorded(&artifact)?;
        Ok(artifact)
    }

    fn read(&self, session: &LedgerSession) -> Result<Artifact, Error> {
        artifact::read(&Draft::File(self.path.clone()), &session.environment.directory)
    }
}

/// Decides by a file's tier, content and history.
fn triage(
    session: &LedgerSession,
    found: FileEntry,
    sorted: &BTreeMap<String, SortedText>,
    judged: &BTreeMap<String, Name>,
    planned: &mut BTreeSet<String>,
    again: JudgedPolicy,
) -> Triage {
    let path =
        session.workspace.redaction.redactor.redact(&display_path(&session.environment, &found.path)).0;
    let relative = review::relative_path(&session.workspace.council.dir, &found.path);
    let classified = session.workspace.council.tiers.classify(&relative);
    let swept = |tier: Tier, source: Option<&TierSource>, outcome| SweptFile {
        path: path.clone(),
        tier: tier.number(),
        artifact_type: classified.artifact_type.clone(),
        tier_reason: source.map(|source| source.reason.clone()),
        outcome,
    };
    if classified.tier == Tier::Two {
        return Triage::Now(swept(Tier::Two, None, SweptOutcome::TierSkipped));
    }
    let sha256 = match artifact::read(&Draft::File(found.path.clone()), &session.environment.directory) {
        Ok(artifact) => artifact.sha256,
        Err(error) => {
            return Triage::Now(swept(
                classified.tier,
                None,
                SweptOutcome::Failed { why: error.first_message() },
            ));
        }
    };
    let sorted = sorted.get(&sha256).filter(|_| classified.asks_model);
    let source = sorted.map(|sorted| &sorted.source);
    let tier = sorted.map_or(classified.tier, |sorted| sorted.tier);
    if !review::is_due(tier, &relative, &sha256) {
        let outcome = if tier == Tier::Two { SweptOutcome::TierSkipped } else { SweptOutcome::NotSampled };
        return Triage::Now(swept(tier, source, outcome));
    }
    if let Some(run) = judged.get(&sha256) {
        let outcome = SweptOutcome::AlreadyJudged { verdict: None };
        return Triage::JudgedBefore(swept(tier, source, outcome), run.clone());
    }
    if !planned.insert(sha256.clone()) && again == JudgedPolicy::Skip {
        return Triage::Now(swept(tier, source, SweptOutcome::AlreadyJudged { verdict: None }));
    }
    let tier_source = source.cloned();
    Triage::Due(
        swept(tier, source, SweptOutcome::Due),
        Box::new(DueFile { place: disk::canonical(&found.path), path: found.path, sha256, tier_source }),
    )
}
