//! `quorate models`.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::arguments::{HumanOrJson, PathArguments};
use crate::exit::{Exit, exit_with_error};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::models;

const TIMEOUT: Duration = Duration::from_secs(30);

/// List the models that an executor can ask
///
/// Asks the service for its list, one model a line. No model is asked.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate models anthropic\n  quorate models ollama\n  quorate models http://localhost:8080/v1"
)]
pub(super) struct Arguments {
    /// A table `[executors.<name>]` of quorate.toml, a preset, or the address of a server
    #[arg(value_name = "EXECUTOR")]
    executor: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let places = arguments.places.path_overrides();
    match models::models(environment, &places, &arguments.executor, TIMEOUT).await {
        Ok(models) => {
            terminal.data(&match arguments.format {
                HumanOrJson::Human => models.iter().map(|model| format!("{model}\n")).collect::<String>(),
                HumanOrJson::Json => {
                    format!("{:#}\n", json!({"executor": arguments.executor, "models": models}))
                }
            });
            Exit::DONE
        }
        Err(error) => exit_with_error(&error, arguments.format.into(), terminal),
    }
}
