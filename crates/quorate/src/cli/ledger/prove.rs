//! `quorate ledger prove`.

use clap::Args;

use crate::cli::arguments::PlaceArguments;
use crate::cli::exit::{Exit, stopped};
use crate::cli::render::Format;
use crate::cli::review::{failed, warnings};
use crate::cli::terminal::Terminal;
use crate::service::environment::Environment;
use crate::service::ledger::prove;
use crate::service::runs;
use crate::service::stop::{Class, Stop};

/// Prove to somebody without the ledger that a record, or a run, is in it
///
/// Writes a file that `quorate ledger check-proof` checks offline: the records with their bodies, the last checkpoint, and
/// what leads from one to the other.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate ledger prove r7k2 > proof.json\n  quorate ledger prove r7k2m9q4xa1bc/5 > proof.json"
)]
pub(in crate::cli) struct Arguments {
    /// A record (`<run>/<n>`), or a run: its id, or the beginning of it
    #[arg(value_name = "RECORD|RUN")]
    what: String,
    #[command(flatten)]
    places: PlaceArguments,
}

pub(in crate::cli) async fn run(
    arguments: Arguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let desk = match runs::desk_to_look(environment, &arguments.places.places()).await {
        Ok(desk) => desk,
        Err(stop) => return stopped(&stop, Format::Human, terminal),
    };
    let proved = match prove::prove(&desk, &arguments.what).await {
        Ok(proof) => proof.text().map_err(|error| {
            let body = quorate_diagnostics::Body::new(error.to_string());
            Stop::new(Class::Bug, quorate_diagnostics::codes::LEDGER_CORRUPT, body)
        }),
        Err(stop) => Err(stop),
    };
    let exit = match proved {
        Ok(text) => {
            warnings(&desk, terminal);
            // A proof stays as it is, byte for byte.
            terminal.verbatim(&text);
            Exit::DONE
        }
        Err(stop) => failed(&stop, &desk, Format::Human, terminal),
    };
    desk.close().await;
    exit
}
