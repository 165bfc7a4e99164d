//! `quorate ledger checkpoint`.

use clap::Args;

use crate::arguments::{HumanOrJson, OutputArguments};
use crate::exit::Exit;
use crate::render;
use crate::session::{print_result, with_session};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::ledger::checkpoint;
use quorate::service::runs;

/// Sign what the ledger holds now: how many records, and the root of their tree
///
/// Each run is sealed so when it ends. The whole ledger is verified first; one that differs from what was recorded is not
/// signed. Where nothing came since the last checkpoint, that one is shown.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate ledger checkpoint\n  quorate ledger checkpoint > checkpoint.txt"
)]
pub(crate) struct Arguments {
    /// Sign records of the ledger's own that are not signed, since an older version wrote them: look at them first
    #[arg(long)]
    accept_unsigned: bool,
    #[command(flatten)]
    shape: OutputArguments,
}

pub(crate) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.shape.format.into();
    let opened = runs::open(environment, &arguments.shape.places.path_overrides()).await;
    with_session(opened, format, terminal, async |session| {
        if arguments.accept_unsigned {
            let accepted = checkpoint::accept_unsigned(session).await?;
            terminal.status(&render::ledger::accepted_unsigned(&accepted));
        }
        let sealed = checkpoint::checkpoint_verified(session).await?;
        session.absorb(sealed.report);
        let text = match arguments.shape.format {
            HumanOrJson::Human => render::ledger::checkpoint(&sealed.sealed),
            HumanOrJson::Json => render::ledger::checkpoint_json(&sealed.sealed),
        };
        Ok(print_result(&text, session, terminal))
    })
    .await
}
