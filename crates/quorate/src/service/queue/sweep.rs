//! Queues the files that a sweep finds due.

use std::collections::BTreeMap;

use quorate_kernel::record::RunOpened;
use quorate_manifest::council::tiers::UNCLASSIFIED;
use quorate_protocol::{Json, Part, PartKind};
use serde_json::json;

use super::bundle::{Bundle, Kind};
use super::enqueue::{Enqueuer, Item};
use super::lines::QueueingLog;
use super::{QueueOptions, ensure_queue};
use crate::service::error::ServiceError;
use crate::service::review;
use crate::service::review::spec;
use crate::service::session::LedgerSession;
use crate::service::sweep::find::{DueFile, Found, find};
use crate::service::sweep::{Outcome, Request, SweepReport, SweptFile};

/// How many texts are read before they are queued, since all of them may exceed memory.
const CHUNK: usize = 256;

/// Queues every due file without asking a member. A model may be asked for tiers.
///
/// # Errors
/// If no folder can be read, the ledger has no queue, or the server does not answer. Files that were queued before stay in
/// the queue.
#[crate::boxed]
pub async fn sweep(
    session: &LedgerSession,
    request: &Request,
    queue: &QueueOptions,
) -> Result<SweepReport, ServiceError> {
    ensure_queue(session)?;
    let workspace = &session.workspace;
    let spec = spec::build(&session.environment, workspace, &request.options, request.policy)?;
    let permit = match workspace.council.tiers.may_ask_model() {
        true => Some(spec.admit(&session.environment)?),
        false => None,
    };
    let opened = RunOpened { files: json!(workspace.council.files), ..RunOpened::default() };
    let bundle = Bundle::of(Kind::Council, &spec, workspace, opened, None)?;
    let indexed = session.sync_log_index().await?;
    let log = Some(QueueingLog::of(session, indexed.bytes)?);
    let enqueuer = Enqueuer::new(session, &bundle, queue, request.judged, log).await?;
    let Found { mut files, mut due, .. } = find(session, request, &spec, permit).await?;
    let mut known: BTreeMap<String, Vec<Json>> = BTreeMap::new();
    due.reverse();
    while !due.is_empty() {
        let (mut swept, mut items) = (Vec::new(), Vec::new());
        while swept.len() < CHUNK
            && let Some((mut file, draft)) = due.pop()
        {
            match item(session, &file, &draft).await {
                Ok(mut item) => {
                    // Unclassified files have nothing in common, so earlier verdicts do not apply.
                    if file.artifact_type != UNCLASSIFIED {
                        let priors = match known.get(&file.artifact_type) {
                            Some(priors) => priors.clone(),
                            None => {
                                let read = session.priors(indexed, &file.artifact_type).await?;
                                let (read, _) = spec.redaction.redactor.redact_json(Json::Array(read));
                                let read = read.as_array().cloned().unwrap_or_default();
                                known.insert(file.artifact_type.clone(), read.clone());
                                read
                            }
                        };
                        item.priors = Some(priors);
                    }
                    swept.push(file);
                    items.push(item);
                }
                Err(error) => {
                    file.outcome = Outcome::Failed { why: error.first_message() };
                    files.push(file);
                }
            }
        }
        let queued = enqueuer.add(items).await?;
        for (mut file, queued) in swept.into_iter().zip(queued) {
            file.outcome = Outcome::Queued {
                run: queued.run.to_string(),
                state: queued.state.as_str(),
                is_new: queued.is_new,
            };
            files.push(file);
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(SweepReport { files, estimate: None })
}

/// Reads and redacts a draft for the queue.
async fn item(session: &LedgerSession, file: &SweptFile, draft: &DueFile) -> Result<Item, ServiceError> {
    let artifact = draft.read_in_place(session)?;
    let redactor = &session.workspace.redaction.redactor;
    let (text, in_text) =
        session.workspace.redaction.redact_subject(&artifact.display_name, &artifact.text, false).await?;
    let (shown, in_name) = redactor.redact(&file.path);
    let (artifact_type, in_type) = redactor.redact(&file.artifact_type);
    // If the text changed since its tier was determined, the tier does not apply.
    let is_same = draft.tier_source.is_none() || artifact.sha256 == draft.sha256;
    Ok(Item {
        part: Part::new(PartKind::Artifact, shown, text),
        redactions: in_text + in_name + in_type,
        artifact_type: Some(artifact_type),
        tier: Some(if is_same { file.tier } else { review::STRICTEST_TIER }),
        tier_source: draft.tier_source.clone().filter(|_| is_same),
        priors: None,
        producer: None,
        messages: None,
        artifact,
    })
}
