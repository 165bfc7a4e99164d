//! `quorate state`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::say::ConversationArguments;
use crate::arguments::PathArguments;
use crate::exit::{Exit, exit_with_error};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::runtime::conversation;

/// Print the state of a participant of a runtime, as JSON
///
/// A participant without state has the empty object.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  quorate state swarm.yaml reviewer")]
pub(super) struct Arguments {
    /// The manifest, or a directory with a multi-agent.yaml in it
    #[arg(value_name = "MANIFEST")]
    manifest: PathBuf,
    /// The participant's id
    #[arg(value_name = "PARTICIPANT", value_parser = NonEmptyStringValueParser::new())]
    participant: String,
    #[command(flatten)]
    conversation: ConversationArguments,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.conversation.format;
    match read(arguments, environment, terminal).await {
        Ok(()) => Exit::DONE,
        Err(error) => exit_with_error(&error, format.into(), terminal),
    }
}

async fn read(
    arguments: Arguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<(), ServiceError> {
    let participant = arguments.participant;
    let runtime =
        arguments.conversation.open(arguments.manifest, &arguments.places, environment, terminal)?;
    let state = conversation::state(&runtime, &participant).await?;
    terminal.data(&format!("{:#}\n", serde_json::Value::Object(state)));
    Ok(())
}
