//! Proving records to somebody who does not have the ledger.

use quorate_diagnostics::{Body, codes};
use quorate_kernel::ports::ledger::Ledger as _;
use quorate_ledger::prove::{Proof, Unproven};
use quorate_protocol::Name;

use super::trust;
use crate::service::desk::Desk;
use crate::service::stop::Stop;

/// The proof of a record (`<run>/<n>`), or of all records of a run or a stream. A run may be named by the beginning of its id.
///
/// # Errors
/// When there is no such record, it is not sealed yet, or nobody signed the last checkpoint.
pub async fn prove(desk: &Desk, what: &str) -> Result<Proof, Stop> {
    let (run, n) = find(desk, what).await?;
    let known = trust::known_signers(desk).await;
    desk.store.prove(&run, n, &known).await.map_err(|error| refused(desk, &run, error))
}

/// What a run, a stream or a record is called by.
async fn find(desk: &Desk, what: &str) -> Result<(Name, Option<u64>), Stop> {
    if is_stream(desk, what).await? {
        return Ok((what.into(), None));
    }
    if let Some((run, n)) = what.rsplit_once('/')
        && let Ok(n) = n.parse()
    {
        let run = match is_stream(desk, run).await? {
            true => run.into(),
            false => desk.find(run).await?.run,
        };
        return Ok((run, Some(n)));
    }
    Ok((desk.find(what).await?.run, None))
}

/// Whether there is a stream of just this name.
pub(super) async fn is_stream(desk: &Desk, name: &str) -> Result<bool, Stop> {
    Ok(!desk.store.tail(&name.into(), 1).await?.is_empty())
}

fn refused(desk: &Desk, run: &Name, error: Unproven) -> Stop {
    match error {
        Unproven::Unknown { id } => {
            let body = Body::new(format!("the ledger has no record {id}"));
            let help = format!("`quorate show {run}` shows what it has of the run");
            Stop::not_found(codes::RUN_UNKNOWN, body.help(help))
        }
        Unproven::Unsealed { id } => {
            unsealed(desk, &format!("record {id} is not sealed yet, so that nothing proves it"))
        }
        Unproven::Unsigned => {
            let body = Body::new("nobody signed the last checkpoint, so that a proof would prove nothing");
            let help =
                "`quorate keys init` makes the ledger a key, and `quorate ledger checkpoint` signs with it";
            Stop::configuration(codes::CHECKPOINT_UNSIGNED, body.help(help))
        }
        Unproven::Ledger(error) => error.into(),
    }
}

/// What is not under a checkpoint yet.
pub(super) fn unsealed(desk: &Desk, what: &str) -> Stop {
    let help = format!("seal the ledger with `quorate ledger checkpoint{}`", desk.ledger_flag());
    Stop::configuration(codes::RECORD_UNSEALED, Body::new(what).help(help))
}
