//! `quorate ledger stats`.

use clap::Args;

use crate::arguments::{HumanOrJson, OutputArguments};
use crate::exit::Exit;
use crate::render;
use crate::session::{print_result, with_session};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::ledger::stats;
use quorate::service::runs;

/// Say what the ledger holds: size, growth, last checkpoint, what is not sealed yet
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  quorate ledger stats\n  quorate ledger stats --format json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    shape: OutputArguments,
}

pub(crate) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.shape.format.into();
    let opened = runs::open_read_only(environment, &arguments.shape.places.path_overrides()).await;
    with_session(opened, format, terminal, async |session| {
        let counted = stats::stats(session).await?;
        let text = match arguments.shape.format {
            HumanOrJson::Human => render::ledger::stats(&counted, terminal.stdout),
            HumanOrJson::Json => render::ledger::stats_json(&counted),
        };
        Ok(print_result(&text, session, terminal))
    })
    .await
}
