//! Replay: derives a run's verdict from the ledger again, without calling a member (X11).

use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::Kind;
use quorate_kernel::record::{self, Outcome};
use quorate_kernel::replay::{ReplayResult, replay as derive};
use quorate_ledger::council_log::line::SUPERSEDED;
use quorate_protocol::modes::council::Setup;
use quorate_protocol::{Json, Name, Protocol};
use serde_json::Map;

use super::error::ServiceError;
use super::run_opened;
use super::run_spec::ProtocolSetup as _;
use super::session::LedgerSession;

/// The result of a replay.
#[derive(Debug)]
pub struct Replay {
    pub run: Name,
    /// The recorded verdict; `None` while the run is undecided.
    pub recorded: Option<String>,
    /// The derived verdict.
    pub replayed: Option<String>,
    pub result: ReplayResult,
}

/// Replays a run.
///
/// # Errors
/// If the run's records or texts are incomplete, or another version of the mode wrote it.
#[crate::boxed]
pub async fn replay(session: &LedgerSession, run: &Name) -> Result<Replay, ServiceError> {
    let mut history = session.history(run).await?;
    // No protocol derives the verdict of a run that was closed because its draft changed.
    history.facts.retain(|(kind, data)| word(kind, data).as_deref() != Some(SUPERSEDED));
    let inputs = session.load_inputs(&history).await?;
    let result = derive(&history, inputs, &mut *protocol(&history)?);
    let verdict =
        |facts: &[(String, Map<String, Json>)]| facts.iter().rev().find_map(|(kind, data)| word(kind, data));
    Ok(Replay {
        run: run.clone(),
        recorded: verdict(&history.facts),
        replayed: verdict(&result.facts),
        result,
    })
}

/// A new instance of the run's protocol.
fn protocol(history: &History) -> Result<Box<dyn Protocol>, ServiceError> {
    let fresh: Option<Box<dyn Protocol>> = match run_opened::is_assembly(history) {
        true => run_opened::assembly_setup(history).map(|setup| setup.protocol()).transpose()?,
        false => {
            let setup = serde_json::from_value::<Setup>(history.opened.setup.clone()).ok();
            setup.map(|setup| setup.protocol()).transpose()?
        }
    };
    fresh
        .filter(|protocol| protocol.version() == history.opened.protocol)
        .ok_or_else(|| run_opened::unknown_version(history))
}

/// The word for an outcome: its verdict.
fn word(kind: &str, data: &Map<String, Json>) -> Option<String> {
    let outcome: Outcome = (kind == Kind::Outcome.as_str()).then(|| record::read(data).ok())??;
    outcome.verdict
}
