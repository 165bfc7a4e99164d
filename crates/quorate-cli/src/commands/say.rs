//! `quorate say`.

use std::io::Read as _;
use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use quorate_diagnostics::{Body, codes};

use crate::arguments::{HumanOrJson, PathArguments};
use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Format, conversation};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::runtime::conversation::{AuthorRule, DEFAULT_SPEAKER, post};
use quorate::service::runtime::{self, Request, Runtime};

/// Append a turn to a conversation
///
/// This command asks no participant: a `quorate run --watch` on the same manifest answers the turn.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate say swarm.yaml '@Reviewer please look at the draft'\n  git diff | quorate say swarm.yaml - --as ada"
)]
pub(super) struct Arguments {
    /// The manifest, or a directory with a multi-agent.yaml in it
    #[arg(value_name = "MANIFEST")]
    manifest: PathBuf,
    /// The content; - reads it from standard input
    #[arg(value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    text: String,
    /// The author
    #[arg(long = "as", value_name = "NAME", default_value = DEFAULT_SPEAKER)]
    by: String,
    /// Write also in the name of a participant; prompts and the log show that a person wrote it
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    conversation: ConversationArguments,
    #[command(flatten)]
    places: PathArguments,
}

#[derive(Debug, Clone, Args)]
pub(super) struct ConversationArguments {
    /// The workspace of roles, personas and operators
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    pub(super) format: HumanOrJson,
}

impl ConversationArguments {
    /// Opens the runtime of a manifest, and prints its warnings.
    pub(super) fn open(
        &self,
        manifest: PathBuf,
        places: &PathArguments,
        environment: &Environment,
        terminal: &Terminal,
    ) -> Result<Runtime, ServiceError> {
        let request = Request { path: manifest, root: self.root.clone(), ..Request::default() };
        let runtime = runtime::open(environment, &places.path_overrides(), &request, &environment.host)?;
        terminal.status(&render::diagnostics(&runtime.report, Format::Human, terminal.stderr));
        Ok(runtime)
    }
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.conversation.format;
    match append_turn(arguments, environment, terminal).await {
        Ok(()) => Exit::DONE,
        Err(error) => exit_with_error(&error, format.into(), terminal),
    }
}

async fn append_turn(
    arguments: Arguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<(), ServiceError> {
    let text = text_argument(&arguments.text)?;
    let format = arguments.conversation.format;
    let runtime =
        arguments.conversation.open(arguments.manifest, &arguments.places, environment, terminal)?;
    let rule = if arguments.yes { AuthorRule::Anyone } else { AuthorRule::PeopleOnly };
    let turn = post(&runtime, &text, &arguments.by, rule).await?;
    runtime.probable_addressees(&turn.content).iter().for_each(|miss| terminal.status(miss));
    terminal.data(&match format {
        HumanOrJson::Human => format!("{}\n", turn.id),
        HumanOrJson::Json => format!("{:#}\n", conversation::turn_json(&turn)),
    });
    Ok(())
}

/// The content: the argument itself, or standard input.
pub(super) fn text_argument(argument: &str) -> Result<String, ServiceError> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text).map_err(|error| {
        let body = Body::new(format!("standard input cannot be read: {error}"));
        ServiceError::new(ExitClass::Configuration, codes::USAGE, body)
    })?;
    Ok(text.trim_end_matches('\n').to_owned())
}
