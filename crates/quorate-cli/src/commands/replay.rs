//! `quorate replay`.

use clap::Args;

use crate::arguments::{HumanOrJson, PathArguments};
use crate::exit::{Exit, exit_with_error};
use crate::render;
use crate::session::print_error;
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::{replay, runs};

/// Derive a run's verdict again from the ledger alone
///
/// Calls no executor. Exits with 0 if the derived outcome equals the recorded one, byte for byte, and with 1 if it differs.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  quorate replay r7k2")]
pub(super) struct Arguments {
    /// The run's id, a prefix of it, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.format.into();
    let (session, run) =
        match runs::open_run(environment, &arguments.places.path_overrides(), &arguments.run).await {
            Ok(opened) => opened,
            Err(error) => return exit_with_error(&error, format, terminal),
        };
    let exit = match replay::replay(&session, &run).await {
        Ok(replayed) => {
            let text = match arguments.format {
                HumanOrJson::Human => render::replay::human(&replayed),
                HumanOrJson::Json => render::replay::json(&replayed),
            };
            terminal.data(&text);
            if replayed.result.differences.is_empty() { Exit::DONE } else { Exit::CHECK_FAILED }
        }
        Err(error) => print_error(&error, &session, format, terminal),
    };
    session.close().await;
    exit
}
