//! `quorate ledger accept-rollback`.

use clap::Args;

use crate::arguments::{HumanOrJson, OutputArguments};
use crate::exit::Exit;
use crate::render;
use crate::session::{print_result, with_session};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::ledger::rollback;
use quorate::service::runs;

/// Go on with a ledger that was restored from a backup, or begun anew in another one's place
///
/// A ledger that does not lead to the last checkpoint that its key signed on this machine is not signed any more. This
/// command records in the ledger who accepts that and why, moves the kept checkpoint to `aside/`, and signs a new one. A
/// witness that has seen the lost records still contradicts the ledger afterwards.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  quorate ledger accept-rollback --reason \"restored Monday's backup after the disk failed\""
)]
pub(crate) struct Arguments {
    /// What happened: it is recorded in the ledger, and `quorate ledger verify` shows it
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    shape: OutputArguments,
}

pub(crate) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.shape.format;
    let opened = runs::open_read_only(environment, &arguments.shape.places.path_overrides()).await;
    with_session(opened, format.into(), terminal, async |session| {
        let accepted = rollback::accept(session, &arguments.reason).await?;
        let text = match format {
            HumanOrJson::Human => render::ledger::accepted(&accepted),
            HumanOrJson::Json => render::ledger::accepted_json(&accepted),
        };
        Ok(print_result(&text, session, terminal))
    })
    .await
}
