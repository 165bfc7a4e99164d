//! Sweep: reviews everything below the watched paths that is due and not yet judged.

pub mod json;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt as _;
use globset::GlobMatcher;
use quorate_diagnostics::{Body, codes};
use quorate_kernel::observer::NoopObserver;
use quorate_kernel::record::TierSource;
use quorate_manifest::council::tiers::Tier;
use quorate_protocol::modes::council::Setup;
use quorate_protocol::policy::{Policy, Verdict};
use quorate_protocol::{Name, Part, PartKind};
use tokio::task::JoinSet;

use super::artifact::{self, Artifact, Subject};
use super::disk::{self, FileEntry};
use super::error::ServiceError;
use super::estimate::{self, Estimate};
use super::load_report;
use super::paths::display_path;
use super::report::Report;
use super::review::spec::{self, ReviewInput};
use super::run_options::RunOptions;
use super::run_spec::RunSpec;
use super::runs::RunReport;
use super::session::LedgerSession;
use super::tier_model::{SortedText, TierModel};
use super::trust;
use super::trust::Permit;
use super::trust::TrustRequest;
use super::worker_thread::run_on_own_thread;
use super::workspace::boundary;
use super::{resume, review};

#[derive(Debug, Clone)]
pub struct Request {
    /// Skips files changed before this time, in milliseconds since the Unix epoch.
    pub since_ms: Option<i64>,
    /// Whether to review already judged content again.
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

/// Whether members are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Run,
    /// `--dry-run`: only lists what would be reviewed, and what that would cost.
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
    /// Why it has this tier, if a model said so.
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

/// What a sweep came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SweepReport {
    /// The result for every file, by path.
    pub files: Vec<SweptFile>,
    /// What the reviews would cost, where they are only listed.
    pub estimate: Option<Estimate>,
}

/// Sweeps. An empty or large set of files is no error.
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
    let work =
        Arc::new(SweepRun { session, spec, permit, options, policy, undecided, judged, observer: watcher });
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

/// What a sweep finds.
pub(super) struct Found {
    /// What is not due, and in a dry run what is, by path.
    pub(super) files: Vec<SweptFile>,
    pub(super) due: Vec<(SweptFile, Box<DueFile>)>,
    /// What the reviews would cost, in a dry run.
    estimate: Option<Estimate>,
    /// What this council has judged; empty if it is judged again.
    judged: BTreeSet<String>,
}

/// Finds the files below the watched folders, and what of them is due. Without a permit no model is asked for a tier.
pub(super) async fn find(
    session: &LedgerSession,
    request: &Request,
    spec: &RunSpec<Setup>,
    permit: Option<Permit>,
) -> Result<Found, ServiceError> {
    let mut all = Vec::new();
    let mut estimate = (request.mode == Mode::DryRun).then(Estimate::default);
    let mut due = Vec::new();
    let judged = match request.judged {
        JudgedPolicy::Skip => session.store.judged_artifacts(&spec.fingerprint("").combined()).await?,
        JudgedPolicy::Repeat => BTreeSet::new(),
    };
    let mut planned = BTreeSet::new();
    let (found, unread) = files(session, request)?;
    all.extend(unread);
    let sorted = sort_by_model(session, request, permit, &found).await?;
    for found in found {
        // Lets an interruption through: reading files awaits nothing else.
        tokio::task::yield_now().await;
        match triage(session, found, &sorted, &judged, &mut planned, request.judged) {
            Triage::Now(swept) => all.push(swept),
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
    all.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Found { files: all, due, estimate, judged })
}

/// The files below the watched folders, and the unreadable folders. A missing folder is only a warning, unless all are
/// missing.
fn files(
    session: &LedgerSession,
    request: &Request,
) -> Result<(Vec<FileEntry>, Vec<SweptFile>), ServiceError> {
    let council = &session.workspace.council;
    if council.watch.paths.is_empty() {
        let body = Body::new("there is nothing to sweep: no `watch.paths` in council.yaml");
        return Err(ServiceError::configuration(
            codes::COUNCIL_INVALID,
            body.help("add `watch: {paths: [./drafts/]}`"),
        ));
    }
    let workspace = &session.workspace;
    let council_path = workspace.council_path.clone().unwrap_or_default();
    let root = workspace.host_path.as_deref().or(workspace.council_path.as_deref()).and_then(Path::parent);
    let acts = boundary::of_watch(council, root.unwrap_or(&council.dir));
    trust::admit(&session.environment, vec![TrustRequest { file: council_path, acts }])?;
    let (mut files, mut unread) = (Vec::new(), Vec::new());
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    for written in &council.watch.paths {
        let path = council.dir.join(Path::new(written));
        match disk::walk(&path) {
            Ok(found) => {
                let (inside, elsewhere): (Vec<_>, Vec<_>) =
                    found.into_iter().partition(|entry| boundary::is_inside(&path, &entry.path));
                for entry in elsewhere {
                    let target = display_path(&session.environment, &entry.path);
                    let body =
                        Body::new(format!("{target} leads out of the watched folder {written} by a link"));
                    let help = "it is left out; watch the folder that it leads to, or review it by its name";
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
                    outcome: Outcome::Failed { why: error.to_string() },
                };
                unread.push((error.kind(), swept));
            }
        }
    }
    // A missing folder may be for later drafts; if all are missing, nothing was swept.
    let all_unread = unread.len() == council.watch.paths.len();
    unread.retain(|(why, _)| all_unread || *why != std::io::ErrorKind::NotFound);
    let own_files = [Some(&*session.workspace.log), session.workspace.ledger.file()];
    files.retain(|file| {
        request.since_ms.is_none_or(|since| file.modified_ms >= since)
            && !own_files.contains(&Some(&file.path))
            && request.filter.matches(session, &file.path)
    });
    Ok((files, unread.into_iter().map(|(_, swept)| swept).collect()))
}

/// The tiers of the texts whose tier a model is to say, by the hash of the text. A dry run asks no model, and has those
/// that are recorded.
async fn sort_by_model(
    session: &LedgerSession,
    request: &Request,
    permit: Option<Permit>,
    found: &[FileEntry],
) -> Result<BTreeMap<String, SortedText>, ServiceError> {
    let council = &session.workspace.council;
    let read = |path: PathBuf| artifact::read(&Subject::File(path), &session.environment.directory).ok();
    // Texts are read again when they are asked about: all together may exceed memory. What cannot be read is reported
    // where it is triaged.
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
    let model = &TierModel::open(session, &request.options, permit).await?;
    let ask = |(sha256, path): (String, PathBuf)| async move {
        let said = match (permit.is_some(), read(path.clone())) {
            (true, Some(artifact)) if artifact.sha256 == sha256 => {
                let display_name = display_path(&session.environment, &path);
                Some(model.sort(session, &Artifact { display_name, ..artifact }).await?)
            }
            _ => model.recorded(&sha256),
        };
        Ok::<_, ServiceError>(said.map(|said| (sha256, said)))
    };
    let mut answers = futures::stream::iter(questions).map(ask).buffer_unordered(request.jobs.max(1));
    while let Some(answer) = answers.next().await {
        sorted.extend(answer?);
    }
    Ok(sorted)
}

enum Triage {
    Now(SweptFile),
    Due(SweptFile, Box<DueFile>),
}

/// A draft that is due. Its text is read again when its review starts: all texts together may exceed memory.
pub(super) struct DueFile {
    path: PathBuf,
    /// Its path when it was found: a link made since may lead out of the watched folder.
    place: Option<PathBuf>,
    pub(super) sha256: String,
    pub(super) tier_source: Option<TierSource>,
}

impl DueFile {
    /// Reads it, unless it was moved since it was found.
    pub(super) fn read_in_place(&self, session: &LedgerSession) -> Result<Artifact, ServiceError> {
        if disk::canonical(&self.path) != self.place {
            let body = Body::new("it was moved while the sweep went on");
            return Err(ServiceError::configuration(codes::ARTIFACT_UNREADABLE, body));
        }
        let artifact = self.read(session)?;
        session.workspace.guard.ensure_unrecorded(&artifact)?;
        Ok(artifact)
    }

    fn read(&self, session: &LedgerSession) -> Result<Artifact, ServiceError> {
        artifact::read(&Subject::File(self.path.clone()), &session.environment.directory)
    }
}

/// Decides by a file's tier, content and history.
fn triage(
    session: &LedgerSession,
    found: FileEntry,
    sorted: &BTreeMap<String, SortedText>,
    judged: &BTreeSet<String>,
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
        return Triage::Now(swept(Tier::Two, None, Outcome::TierSkipped));
    }
    let sha256 = match artifact::read(&Subject::File(found.path.clone()), &session.environment.directory) {
        Ok(artifact) => artifact.sha256,
        Err(error) => {
            return Triage::Now(swept(classified.tier, None, Outcome::Failed { why: error.first_message() }));
        }
    };
    let sorted = sorted.get(&sha256).filter(|_| classified.asks_model);
    let source = sorted.map(|sorted| &sorted.source);
    let tier = sorted.map_or(classified.tier, |sorted| sorted.tier);
    if !review::is_due(tier, &relative, &sha256) {
        let outcome = if tier == Tier::Two { Outcome::TierSkipped } else { Outcome::NotSampled };
        return Triage::Now(swept(tier, source, outcome));
    }
    if judged.contains(&sha256) || (!planned.insert(sha256.clone()) && again == JudgedPolicy::Skip) {
        return Triage::Now(swept(tier, source, Outcome::AlreadyJudged));
    }
    let tier_source = source.cloned();
    Triage::Due(
        swept(tier, source, Outcome::Due),
        Box::new(DueFile { place: disk::canonical(&found.path), path: found.path, sha256, tier_source }),
    )
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
    /// What this council has judged; empty if it is judged again.
    judged: BTreeSet<String>,
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
        // It may have changed since it was sorted; its current text is judged.
        if artifact.sha256 != draft.sha256 && self.judged.contains(&artifact.sha256) {
            return Ok(Outcome::AlreadyJudged);
        }
        // The tier of another text says nothing of this one.
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
                let run = spec::start(&self.spec, &self.session, input, indexed, self.permit, observer);
                load_report::load(&self.session, &run.await?).await?
            }
        };
        let fix = report.first_fix();
        Ok((report.run, report.verdict, fix))
    }

    /// Resumes a run that an interrupted sweep left open on the same text, so that no call is paid twice. A run that cannot
    /// be resumed, or that another process holds, stays as it is.
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
        Outcome::Failed { .. } => true,
        _ => false,
    };
    if all.iter().any(bad) { 3 } else { 0 }
}

/// Now minus a span.
pub fn since(session: &LedgerSession, text: &str) -> Result<Option<i64>, super::since::Error> {
    super::since::parse(text, session.environment.clock.now_ms())
}
