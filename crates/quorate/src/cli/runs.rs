//! `quorate runs`.

use clap::Args;

use super::arguments::{PlaceArguments, Tabular};
use super::exit::{Exit, stopped};
use super::render;
use super::review::{failed, warnings};
use super::terminal::Terminal;
use crate::service::environment::Environment;
use crate::service::runs;

/// List the runs of the ledger, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  quorate runs\n  quorate runs --limit 5 --format json")]
pub(super) struct Arguments {
    /// How many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// How they are printed
    #[arg(long, value_enum, default_value_t = Tabular::Human)]
    format: Tabular,
    #[command(flatten)]
    places: PlaceArguments,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.format.into();
    let desk = match runs::desk_to_look(environment, &arguments.places.places()).await {
        Ok(desk) => desk,
        Err(stop) => return stopped(&stop, format, terminal),
    };
    let exit = match runs::runs(&desk, arguments.limit).await {
        Ok(all) => {
            warnings(&desk, terminal);
            let text = match arguments.format {
                Tabular::Human => render::runs::human(&all, terminal.stdout),
                Tabular::Json => render::runs::json(&all),
            };
            terminal.data(&text);
            Exit::DONE
        }
        Err(stop) => failed(&stop, &desk, format, terminal),
    };
    desk.close().await;
    exit
}
