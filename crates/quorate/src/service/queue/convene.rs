//! Queues convenings of an assembly, one for each subject.

use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use quorate_ledger::store::tasks::TaskState;
use quorate_protocol::Name;
use quorate_protocol::assembly::Setup;

use super::bundle::{Audit, Bundle, Kind};
use super::enqueue::{Enqueuer, Item, Queued};
use super::wait::Waiting;
use super::{QueueOptions, ensure_queue};
use crate::service::convene::inputs::Inputs;
use crate::service::convene::{self, ConveneInput, Request, due, spec};
use crate::service::disk;
use crate::service::environment::Environment;
use crate::service::error::ServiceError;
use crate::service::run_spec::RunSpec;
use crate::service::session::LedgerSession;
use crate::service::signer;
use crate::service::sweep::JudgedPolicy;
use crate::service::workspace;
use crate::service::workspace::{PathOverrides, Workspace};

/// A convening in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedSubject {
    /// The subject's path, as shown to the user.
    pub path: String,
    pub run: Name,
    pub state: TaskState,
    /// Whether this command queued it.
    pub is_new: bool,
    /// The decision, once [`wait`] has returned.
    pub outcome: Option<String>,
    /// The error of a dead task.
    pub error: Option<String>,
}

/// Prepares the inputs: one for each file of a folder, or the input of a single file.
///
/// # Errors
/// As [`convene::prepare`], and if the folder cannot be read.
pub fn prepare(
    environment: &Environment,
    places: &PathOverrides,
    request: &Request,
) -> Result<(Vec<ConveneInput>, Workspace), ServiceError> {
    let host = &*environment.host;
    let named = |inputs: &mut Inputs| {
        let Inputs { conversation, proposal, topic, request, .. } = inputs;
        [conversation, proposal, topic, request].into_iter().find_map(Option::take)
    };
    let mut request = request.clone();
    let folder = named(&mut request.inputs.clone()).filter(|path| environment.directory.join(path).is_dir());
    let Some(folder) = folder else {
        let (input, workspace) = convene::prepare(environment, places, &request, host)?;
        return Ok((vec![input], workspace));
    };
    let (mut inputs, mut workspace) = (Vec::new(), None);
    for file in subjects(&environment.directory, &folder)? {
        let Inputs { conversation, proposal, topic, request: asked, .. } = &mut request.inputs;
        for path in [conversation, proposal, topic, asked].into_iter().flatten() {
            path.clone_from(&file);
        }
        let (input, loaded) = convene::prepare(environment, places, &request, host)?;
        inputs.push(input);
        workspace = Some(loaded);
    }
    Ok((inputs, workspace.expect("a folder without files was refused")))
}

/// The files of a folder, each the subject of a convening.
///
/// # Errors
/// If the folder cannot be read, or has none.
fn subjects(directory: &Path, named: &Path) -> Result<Vec<PathBuf>, ServiceError> {
    let path = directory.join(named);
    let unreadable = |why: String| {
        let body = Body::new(format!("cannot read the folder {}: {why}", named.display()));
        ServiceError::configuration(codes::ARTIFACT_UNREADABLE, body)
    };
    let found = disk::walk(&path).map_err(|error| unreadable(error.to_string()))?;
    let mut files: Vec<PathBuf> = found
        .into_iter()
        .filter(|entry| workspace::is_inside(&path, &entry.path))
        .map(|entry| named.join(entry.path.strip_prefix(&path).unwrap_or(&entry.path)))
        .collect();
    files.sort();
    match files.is_empty() {
        true => Err(unreadable("the folder has no files".to_owned())),
        false => Ok(files),
    }
}

/// Queues a convening about each input without asking a member. All inputs have the same assembly and request.
///
/// # Errors
/// If the assembly cannot be queued, or the server does not answer.
#[crate::boxed]
pub async fn convene(
    session: &LedgerSession,
    inputs: &[ConveneInput],
    spec: &RunSpec<Setup>,
    queue: &QueueOptions,
    judged: JudgedPolicy,
) -> Result<Vec<QueuedSubject>, ServiceError> {
    ensure_queue(session)?;
    let Some(first) = inputs.first() else { return Ok(Vec::new()) };
    let resolved = &first.resolution.resolved;
    signer::ensure_signable(resolved)?;
    let opened = spec::described(spec, first);
    let bundle = Bundle::of(Kind::Assembly, spec, &session.workspace, opened, Some(Audit::of(resolved)))?;
    let enqueuer = Enqueuer::new(session, &bundle, queue, judged, None).await?;
    spec.record_compositions(session).await?;
    let mut items = Vec::with_capacity(inputs.len());
    for input in inputs {
        let (part, redactions) = spec::redacted_input(spec, input).await?;
        items.push(Item {
            producer: spec.options.producer.as_ref().map(|producer| producer.recorded(&part.text)),
            part,
            redactions,
            artifact: input.subject.clone(),
            artifact_type: None,
            tier: None,
            tier_source: None,
            priors: None,
            messages: Some(due::message_count(input)),
        });
    }
    let queued = enqueuer.add(items).await?;
    let subject = |(input, queued): (&ConveneInput, Queued)| QueuedSubject {
        path: spec.redaction.redactor.redact(&input.subject.display_name).0,
        run: queued.run,
        state: queued.state,
        is_new: queued.is_new,
        outcome: None,
        error: None,
    };
    Ok(inputs.iter().zip(queued).map(subject).collect())
}

/// Waits until all convenings have ended, and sets their outcomes.
///
/// # Errors
/// When the ledger does not answer.
#[crate::boxed]
pub async fn wait(session: &LedgerSession, queued: &mut [QueuedSubject]) -> Result<(), ServiceError> {
    let mut waiting = Waiting::for_runs(queued.iter().map(|subject| subject.run.clone()));
    loop {
        let ended = waiting.next(session).await?;
        if ended.is_empty() {
            return Ok(());
        }
        for task in ended {
            let outcome = match task.state {
                TaskState::Done => session.partial_history(&task.run).await?.outcome(),
                _ => None,
            };
            let word = outcome.and_then(|outcome| outcome.word().map(str::to_owned));
            for subject in queued.iter_mut().filter(|subject| subject.run == task.run) {
                subject.state = task.state;
                subject.outcome.clone_from(&word);
                subject.error.clone_from(&task.error);
            }
        }
    }
}

/// Whether a convening ended without an outcome.
pub fn has_failed(queued: &[QueuedSubject]) -> bool {
    queued.iter().any(|subject| subject.outcome.is_none())
}
