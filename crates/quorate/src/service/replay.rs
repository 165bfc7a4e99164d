//! Derive a run's verdict again from the ledger alone, asking nobody (X11).

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_kernel::replay::{Replayed, replay as derive};
use quorate_protocol::modes::council::{Council, Setup, VERSION};
use quorate_protocol::{Json, Name, Protocol as _};

use super::desk::Desk;
use super::stop::Stop;

/// What a replay says.
#[derive(Debug)]
pub struct Replay {
    /// The run.
    pub run: Name,
    /// The recorded verdict; `None` while nothing is decided.
    pub recorded: Option<String>,
    /// The verdict that follows now.
    pub replayed: Option<String>,
    /// The whole.
    pub result: Replayed,
}

/// Replays a run.
///
/// # Errors
/// When the run's records or texts are not whole, or another version of the mode wrote it.
pub async fn replay(desk: &Desk, run: &Name) -> Result<Replay, Stop> {
    let history = desk.history(run).await?;
    let inputs = desk.inputs(&history).await?;
    let mut council = Council::new(setup(&history)?);
    let result = derive(&history, inputs, &mut council);
    let verdict = |facts: &[(String, serde_json::Map<String, Json>)]| {
        let outcome = facts.iter().rev().find(|(kind, _)| kind == "outcome");
        outcome.and_then(|(_, data)| data.get("verdict")?.as_str().map(str::to_owned))
    };
    Ok(Replay {
        run: run.clone(),
        recorded: verdict(&history.facts),
        replayed: verdict(&result.facts),
        result,
    })
}

fn setup(history: &History) -> Result<Setup, Stop> {
    let protocol = history.opened.get("protocol").and_then(Json::as_str).unwrap_or_default();
    let setup = history.opened.get("setup").cloned().unwrap_or(Json::Null);
    let known = serde_json::from_value::<Setup>(setup)
        .ok()
        .filter(|setup| Council::new(setup.clone()).version() == protocol);
    known.ok_or_else(|| {
        let body =
            Body::new(format!("run {} was held by `{protocol}`; this program knows {VERSION}", history.run));
        Stop::configuration(codes::FINGERPRINT_CHANGED, body)
    })
}
