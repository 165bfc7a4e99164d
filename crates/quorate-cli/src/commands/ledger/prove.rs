//! `quorate ledger prove`.

use clap::Args;
use quorate_diagnostics::{Body, codes};

use crate::arguments::PathArguments;
use crate::exit::Exit;
use crate::render::Format;
use crate::session::{print_warnings, with_session};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::ledger::prove;
use quorate::service::runs;

/// Prove to somebody without the ledger that a record, or a run, is in it
///
/// Writes a file that `quorate ledger check-proof` checks offline: the records with their bodies, the last checkpoint, and
/// what leads from one to the other.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate ledger prove r7k2 > proof.json\n  quorate ledger prove r7k2m9q4xa1bc/5 > proof.json"
)]
pub(crate) struct Arguments {
    /// A record (`<run>/<n>`), or a run: its id, the beginning of it, or `latest`
    #[arg(value_name = "RECORD|RUN")]
    what: String,
    #[command(flatten)]
    places: PathArguments,
}

pub(crate) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let opened = runs::open_read_only(environment, &arguments.places.path_overrides()).await;
    with_session(opened, Format::Human, terminal, async |session| {
        let proof = prove::prove(session, &arguments.what).await?;
        let text = proof.text().map_err(|error| {
            ServiceError::new(ExitClass::Bug, codes::LEDGER_CORRUPT, Body::new(error.to_string()))
        })?;
        print_warnings(session, terminal);
        // A proof stays as it is, byte for byte.
        terminal.verbatim(&text);
        Ok(Exit::DONE)
    })
    .await
}
