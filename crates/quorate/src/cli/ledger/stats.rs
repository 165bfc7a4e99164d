//! `quorate ledger stats`.

use clap::Args;

use crate::cli::arguments::{PlaceArguments, Tabular};
use crate::cli::exit::{Exit, stopped};
use crate::cli::render;
use crate::cli::review::{failed, warnings};
use crate::cli::terminal::Terminal;
use crate::service::environment::Environment;
use crate::service::ledger::stats;
use crate::service::runs;

/// Say what the ledger holds: size, growth, last checkpoint, what is not sealed yet
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  quorate ledger stats\n  quorate ledger stats --format json")]
pub(in crate::cli) struct Arguments {
    /// How it is printed
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
    let desk = match runs::desk_to_look(environment, &arguments.places.places()).await {
        Ok(desk) => desk,
        Err(stop) => return stopped(&stop, format, terminal),
    };
    let exit = match stats::stats(&desk).await {
        Ok(counted) => {
            warnings(&desk, terminal);
            terminal.data(&match arguments.format {
                Tabular::Human => render::ledger::stats(&counted, terminal.stdout),
                Tabular::Json => render::ledger::stats_json(&counted),
            });
            Exit::DONE
        }
        Err(stop) => failed(&stop, &desk, format, terminal),
    };
    desk.close().await;
    exit
}
