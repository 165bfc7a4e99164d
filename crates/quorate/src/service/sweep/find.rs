//! Finds the files to review in a sweep: files below the watched folders, by tier, content and history.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use futures::StreamExt as _;
use quorate_diagnostics::{Body, codes};
use quorate_kernel::record::TierSource;
use quorate_manifest::council::tiers::Tier;
use quorate_protocol::modes::council::Setup;
use quorate_protocol::{Name, Part, PartKind};

use super::{JudgedPolicy, Mode, Outcome, Request, SweptFile};
use crate::service::artifact::{self, Artifact, Subject};
use crate::service::disk::{self, FileEntry};
use crate::service::error::ServiceError;
use crate::service::estimate::{self, Estimate};
use crate::service::paths::display_path;
use crate::service::review;
use crate::service::run_spec::RunSpec;
use crate::service::session::{LedgerSession, altered_error};
use crate::service::tier_model::{SortedText, TierModel};
use crate::service::trust::{self, Permit, TrustRequest};
use crate::service::workspace::boundary;

/// The files of a sweep.
pub(in crate::service) struct Found {
    /// Files that are not due, by path; in a dry run also those that are.
    pub(in crate::service) files: Vec<SweptFile>,
    pub(in crate::service) due: Vec<(SweptFile, Box<DueFile>)>,
    /// The expected cost of the reviews, in a dry run.
    pub(in crate::service) estimate: Option<Estimate>,
    /// The content that this council has judged; empty if it is judged again.
    pub(in crate::service) judged: BTreeMap<String, Name>,
}

/// Finds the files below the watched folders, and those that are due. Without a permit, asks no model for a tier.
pub(in crate::service) async fn find(
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
    all.extend(judged_before.into_iter().map(|(swept, run)| match altered.get(&run) {
        None => swept,
        Some(finding) => SweptFile {
            outcome: Outcome::Failed { why: altered_error(&run, finding).first_message() },
            ..swept
        },
    }));
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
        let body = Body::new("cannot sweep: council.yaml has no `watch.paths`");
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
                        Body::new(format!("skipped {target}: a link leads out of the watched folder {written}"));
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
                    outcome: Outcome::Failed { why: error.to_string() },
                };
                unread.push((error.kind(), swept));
            }
        }
    }
    // A missing folder may be for later drafts; if all folders are missing, nothing was swept.
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

/// The tiers that a model chooses, by the hash of the text. A dry run asks no model and uses only recorded tiers.
async fn sort_by_model(
    session: &LedgerSession,
    request: &Request,
    permit: Option<Permit>,
    found: &[FileEntry],
) -> Result<BTreeMap<String, SortedText>, ServiceError> {
    let council = &session.workspace.council;
    let read = |path: PathBuf| artifact::read(&Subject::File(path), &session.environment.directory).ok();
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
    /// The run that judged it; its row must be compared with its records (D13).
    JudgedBefore(SweptFile, Name),
    Due(SweptFile, Box<DueFile>),
}

/// A draft that is due. Its text is read again when its review starts: all texts together may exceed memory.
pub(in crate::service) struct DueFile {
    path: PathBuf,
    /// Its path when it was found: a link created since may lead out of the watched folder.
    place: Option<PathBuf>,
    pub(in crate::service) sha256: String,
    pub(in crate::service) tier_source: Option<TierSource>,
}

impl DueFile {
    /// Reads it, unless it was moved since the search.
    pub(in crate::service) fn read_in_place(
        &self,
        session: &LedgerSession,
    ) -> Result<Artifact, ServiceError> {
        if disk::canonical(&self.path) != self.place {
            let body = Body::new("it was moved during the sweep");
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
    if let Some(run) = judged.get(&sha256) {
        return Triage::JudgedBefore(swept(tier, source, Outcome::AlreadyJudged), run.clone());
    }
    if !planned.insert(sha256.clone()) && again == JudgedPolicy::Skip {
        return Triage::Now(swept(tier, source, Outcome::AlreadyJudged));
    }
    let tier_source = source.cloned();
    Triage::Due(
        swept(tier, source, Outcome::Due),
        Box::new(DueFile { place: disk::canonical(&found.path), path: found.path, sha256, tier_source }),
    )
}
