//! `quorate ledger stats`.

use clap::Args;

use crate::cli::arguments::{HumanOrJson, OutputArguments};
use crate::cli::exit::Exit;
use crate::cli::render;
use crate::cli::session::{print_result, with_session};
use crate::cli::terminal::Terminal;
use crate::service::environment::Environment;
use crate::service::ledger::stats;
use crate::service::runs;

/// Say what the ledger holds: size, growth, last checkpoint, what is not sealed yet
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  quorate ledger stats\n  quorate ledger stats --format json")]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    shape: OutputArguments,
}

pub(in crate::cli) async fn run(
    arguments: Arguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let format = arguments.shape.format.into();
    let opened = runs::open_read_only(environment, &arguments.shape.places.path_overrides()).await;
    with_session(opened, format, terminal, async |desk| {
        let counted = stats::stats(desk).await?;
        let text = match arguments.shape.format {
            HumanOrJson::Human => render::ledger::stats(&counted, terminal.stdout),
            HumanOrJson::Json => render::ledger::stats_json(&counted),
        };
        Ok(print_result(&text, desk, terminal))
    })
    .await
}
