//! Whether an assembly is due (A7): compares its `defaults` with its last run in the ledger.

use quorate_diagnostics::{Body, codes};
use quorate_manifest::assembly::Mode;
use quorate_protocol::Name;
use quorate_protocol::assembly::Setup;
use quorate_protocol::gather;
use serde_json::json;

use super::inputs::ConveneInput;
use crate::service::error::ServiceError;
use crate::service::run_opened::is_assembly;
use crate::service::run_spec::RunSpec;
use crate::service::session::LedgerSession;

/// The default interval of a periodic assembly, in milliseconds.
const DEFAULT_INTERVAL_MS: i64 = 60_000;
/// The default number of new messages that makes an assembly due; `metadata.quorate.everyMessages` overrides it.
const DEFAULT_EVERY_MESSAGES: u64 = 10;

/// Whether an assembly is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    Yes,
    /// Not due, and why.
    No(String),
}

/// Compares an assembly's `defaults` with its last run. An assembly without a run is due, unless only a person convenes it.
///
/// # Errors
/// If the ledger does not answer, or the heuristic is a custom one that is not registered.
#[crate::boxed]
pub async fn check_due(
    session: &LedgerSession,
    input: &ConveneInput,
    spec: &RunSpec<Setup>,
) -> Result<Due, ServiceError> {
    let defaults = input.resolution.resolved.defaults.as_ref();
    let heuristic = defaults.and_then(|default| default.trigger_heuristic.as_deref());
    let interval_ms =
        defaults.and_then(|default| default.trigger_interval_ms).map_or(DEFAULT_INTERVAL_MS, i64::from);
    let Some(heuristic) = heuristic else { return Ok(Due::Yes) };
    if heuristic == "manual" {
        return Ok(Due::No("only a person convenes it (triggerHeuristic: manual)".to_owned()));
    }
    let Some(last) = last_completed_run(session, &spec.setup.assembly).await? else { return Ok(Due::Yes) };
    Ok(match heuristic {
        "periodic" => {
            let since_ms = session.environment.clock.now_ms() - last.opened_ms;
            match since_ms >= interval_ms {
                true => Due::Yes,
                false => Due::No(format!("it ran {since_ms} ms ago and is due every {interval_ms} ms")),
            }
        }
        "on-mode-change" => match last.opened.setup["request"] == json!(spec.setup.request) {
            true => Due::No("its subject has not changed since the last run".to_owned()),
            false => Due::Yes,
        },
        "every-n-messages" => {
            let ours = input.resolution.resolved.metadata.get("quorate");
            let every =
                ours.and_then(|ours| ours.get("everyMessages")?.as_u64()).unwrap_or(DEFAULT_EVERY_MESSAGES);
            // All messages of another conversation are new.
            let same = last.opened.subject.as_ref() == Some(&input.subject.display_name);
            let before = last.opened.messages.filter(|_| same).unwrap_or(0);
            let new = message_count(input).saturating_sub(before);
            match new >= every {
                true => Due::Yes,
                false => {
                    Due::No(format!("{new} new messages since the last run, and it is due after {every}"))
                }
            }
        }
        other => {
            let body = Body::new(format!("unknown trigger heuristic `{other}`"));
            let help =
                "convene without --if-due, or write every-n-messages, on-mode-change, periodic or manual";
            return Err(ServiceError::configuration(codes::KIND_UNKNOWN, body.help(help)));
        }
    })
}

/// The assembly's last run with an answer; a run without answers does not count.
async fn last_completed_run(
    session: &LedgerSession,
    assembly: &Name,
) -> Result<Option<quorate_kernel::history::History>, ServiceError> {
    for run in session.store.runs_of_type(assembly).await? {
        let history = session.partial_history(&run).await?;
        let incomplete = || history.outcome().is_none_or(|outcome| outcome.is_incomplete());
        if is_assembly(&history) && !incomplete() {
            return Ok(Some(history));
        }
    }
    Ok(None)
}

/// The number of messages of a conversation; an unparsable text counts as one.
pub(in crate::service) fn message_count(input: &ConveneInput) -> u64 {
    let subject = &input.subject;
    let read = (input.request.mode() == Mode::Advisory)
        .then(|| gather::parse_conversation(&subject.display_name, &subject.text).ok())
        .flatten();
    read.map_or(1, |read| read.messages.len() as u64)
}
