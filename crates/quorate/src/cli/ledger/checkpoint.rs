//! `quorate ledger checkpoint`.

use clap::Args;

use crate::cli::arguments::{ShapeArguments, Tabular};
use crate::cli::exit::{Exit, stopped};
use crate::cli::render;
use crate::cli::review::ended;
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
    #[command(flatten)]
    shape: ShapeArguments,
}

pub(in crate::cli) async fn run(
    arguments: Arguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let format = arguments.shape.format.into();
    let desk = match runs::desk(environment, &arguments.shape.places.places()).await {
        Ok(desk) => desk,
        Err(stop) => return stopped(&stop, format, terminal),
    };
    let sealed = checkpoint::checkpoint(&desk).await.map(|done| {
        desk.absorb(done.report);
        match arguments.shape.format {
            Tabular::Human => render::ledger::checkpoint(&done.sealed),
            Tabular::Json => render::ledger::checkpoint_json(&done.sealed),
        }
    });
    ended(sealed, desk, format, terminal).await
}
