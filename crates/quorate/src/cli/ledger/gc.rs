//! `quorate ledger gc`.

use clap::Args;

use crate::cli::arguments::{ShapeArguments, Tabular};
use crate::cli::exit::{Exit, stopped};
use crate::cli::render;
use crate::cli::review::{failed, warnings};
use crate::cli::terminal::Terminal;
use crate::service::environment::Environment;
use crate::service::ledger::gc;
use crate::service::runs;

/// Erase for good what members said once its days are over; hashes and outcomes stay
///
/// How long it is kept says `audit.consultations.retention` of an assembly, and `retention` under `[ledger]` in
/// quorate.toml for reviews and runtimes. Runs on hold, and those that have not ended, are left alone.
/// council_log.jsonl keeps its lines.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate ledger gc --dry-run\n  quorate ledger gc\n  quorate ledger gc --format json"
)]
pub(in crate::cli) struct Arguments {
    /// Say what would be erased, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    shape: ShapeArguments,
}

pub(in crate::cli) async fn run(
    arguments: Arguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let format = arguments.shape.format.into();
    let desk = match runs::desk_to_look(environment, &arguments.shape.places.places()).await {
        Ok(desk) => desk,
        Err(stop) => return stopped(&stop, format, terminal),
    };
    let exit = match gc::gc(&desk, arguments.dry_run).await {
        Ok(collected) => {
            terminal.data(&match arguments.shape.format {
                Tabular::Human => render::retention::collected(&collected, terminal.stdout),
                Tabular::Json => render::retention::collected_json(&collected),
            });
            match gc::unfinished(&collected) {
                Some(stop) => failed(&stop, &desk, render::Format::Human, terminal),
                None => {
                    warnings(&desk, terminal);
                    Exit::DONE
                }
            }
        }
        Err(stop) => failed(&stop, &desk, format, terminal),
    };
    desk.close().await;
    exit
}
