//! `quorate ledger checkpoint`.

use clap::Args;

use crate::cli::arguments::{PlaceArguments, Tabular};
use crate::cli::exit::{Exit, stopped};
use crate::cli::render;
use crate::cli::review::{failed, warnings};
use crate::cli::terminal::Terminal;
use crate::service::environment::Environment;
use crate::service::ledger::checkpoint;
use crate::service::runs;

/// Sign what the ledger holds now: how many records, and the root of their tree
///
/// Each run is sealed so when it ends. Where nothing came since, the last checkpoint is shown.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate ledger checkpoint\n  quorate ledger checkpoint > checkpoint.txt"
)]
pub(in crate::cli) struct Arguments {
    /// How it is printed: as the signed note itself, or as one JSON object
    #[arg(long, value_enum, default_value_t = Tabular::Human)]
    format: Tabular,
    #[command(flatten)]
    places: PlaceArguments,
}

pub(in crate::cli) async fn run(
    arguments: Arguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let format = arguments.format.into();
    let desk = match runs::desk(environment, &arguments.places.places()).await {
        Ok(desk) => desk,
        Err(stop) => return stopped(&stop, format, terminal),
    };
    let exit = match checkpoint::checkpoint(&desk).await {
        Ok(done) => {
            desk.absorb(done.report);
            warnings(&desk, terminal);
            terminal.data(&match arguments.format {
                Tabular::Human => render::ledger::checkpoint(&done.sealed),
                Tabular::Json => render::ledger::checkpoint_json(&done.sealed),
            });
            Exit::DONE
        }
        Err(stop) => failed(&stop, &desk, format, terminal),
    };
    desk.close().await;
    exit
}
