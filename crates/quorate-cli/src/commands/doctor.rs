//! `quorate doctor`.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::arguments::{EventsArguments, HumanOrJson, PathArguments};
use crate::events;
use crate::exit::{Exit, exit_with_error};
use crate::render;
use crate::terminal::Terminal;
use quorate::service::doctor::{self, Check, Status};
use quorate::service::environment::Environment;

/// Check that everything that a review needs is in place
///
/// Calls each executor once, with a harmless text; one that is paid for each question only with --ask. Exits with 0 if all is well and with 5 if something does not work.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  quorate doctor --seconds 30")]
pub(super) struct Arguments {
    /// The timeout of each executor, in seconds
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Also ask executors that are paid for each question
    #[arg(long)]
    ask: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    events: EventsArguments,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.format.into();
    let timeout = Duration::from_secs(arguments.seconds);
    let mut checks =
        match doctor::doctor(environment, &arguments.places.path_overrides(), timeout, arguments.ask).await {
            Ok(checks) => checks,
            Err(error) => return exit_with_error(&error, format, terminal),
        };
    checks.extend(events::check(arguments.events).await);
    let text = match arguments.format {
        HumanOrJson::Human => render::doctor::human(&checks, terminal.stdout),
        HumanOrJson::Json => {
            let check_json = |check: &Check| json!({"name": check.name, "state": status_word(check.status), "detail": check.detail});
            format!("{:#}\n", json!({"checks": checks.iter().map(check_json).collect::<Vec<_>>()}))
        }
    };
    terminal.data(&text);
    match checks.iter().any(|check| check.status == Status::Failed) {
        true => Exit::UNUSABLE,
        false => Exit::DONE,
    }
}

fn status_word(state: Status) -> &'static str {
    match state {
        Status::Passed => "good",
        Status::Warning => "noted",
        Status::Failed => "bad",
    }
}
