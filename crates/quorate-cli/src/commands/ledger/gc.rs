//! `quorate ledger gc`.

use clap::Args;

use crate::arguments::{HumanOrJson, OutputArguments};
use crate::exit::{Exit, exit_with_error};
use crate::render;
use crate::session::{print_result, with_session};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::ledger::gc;
use quorate::service::runs;

/// Erase for good what members said once its days are over; hashes and outcomes stay
///
/// How long it is kept says `audit.consultations.retention` of an assembly, and `retention` under `[ledger]` in
/// quorate.toml for reviews and runtimes. Runs on hold, and those that have not ended, are left alone.
/// council_log.jsonl keeps its lines.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate ledger gc --dry-run\n  quorate ledger gc\n  quorate ledger gc --format json"
)]
pub(crate) struct Arguments {
    /// Say what would be erased, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    shape: OutputArguments,
}

pub(crate) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.shape.format.into();
    let opened = runs::open_read_only(environment, &arguments.shape.places.path_overrides()).await;
    with_session(opened, format, terminal, async |session| {
        let collected = gc::gc(session, arguments.dry_run).await?;
        let text = match arguments.shape.format {
            HumanOrJson::Human => render::retention::collected(&collected, terminal.stdout),
            HumanOrJson::Json => render::retention::collected_json(&collected),
        };
        let exit = print_result(&text, session, terminal);
        Ok(match gc::unfinished_error(&collected) {
            Some(error) => exit_with_error(&error, render::Format::Human, terminal),
            None => exit,
        })
    })
    .await
}
