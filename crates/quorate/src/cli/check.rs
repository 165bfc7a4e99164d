//! `quorate check`.

use std::path::PathBuf;

use clap::Args;

use super::exit::{Exit, stopped};
use super::render::{self, Format};
use super::terminal::Terminal;
use crate::service::environment::Environment;
use crate::service::modularity;

/// Check that nothing that produces artifacts knows of the council
///
/// Scans `agents/*/prompt.md`, OPERATOR.md, PERSONA.md and playbooks below a directory for references to the review,
/// so that either can be taken away. Exits with 0 when there are none and with 1 when there are.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  quorate check --modularity ../our-agents --format github")]
pub(super) struct Arguments {
    /// The directory of the host whose agents are scanned
    #[arg(long, value_name = "DIR", required = true)]
    modularity: PathBuf,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let dir = environment.directory.join(&arguments.modularity);
    let scanned = match modularity::scan(&dir, &arguments.modularity) {
        Ok(scanned) => scanned,
        Err(stop) => return stopped(&stop, arguments.format, terminal),
    };
    terminal.data(&render::diagnostics(&scanned.report, arguments.format, terminal.stdout));
    let hits = scanned.report.refusals.len();
    terminal.talk(&format!("{} files scanned, {hits} references", scanned.files));
    if scanned.report.refused() { Exit::REFUSED } else { Exit::DONE }
}
