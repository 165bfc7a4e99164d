//! `quorate runs`.

use clap::Args;

use super::arguments::{PlaceArguments, Tabular};
use super::desk::{at_desk, done};
use super::exit::Exit;
use super::render;
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
    let opened = runs::desk_to_look(environment, &arguments.places.places()).await;
    at_desk(opened, format, terminal, async |desk| {
        let all = runs::runs(desk, arguments.limit).await?;
        let text = match arguments.format {
            Tabular::Human => render::runs::human(&all, terminal.stdout),
            Tabular::Json => render::runs::json(&all),
        };
        Ok(done(&text, desk, terminal))
    })
    .await
}
