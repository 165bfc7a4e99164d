//! The commands on conversations: `quorate say`, `quorate log` and `quorate state`.

use std::io::Read as _;
use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::runtime::conversation::{AuthorRule, ConversationReader, DEFAULT_SPEAKER, post};
use quorate::service::runtime::{self, Runtime, RuntimeRequest};
use quorate_diagnostics::{Body, codes};

use crate::arguments::{HumanOrJson, PathArguments};
use crate::exit::{Exit, exit_with_error};
use crate::interrupt::{Interrupted, until_interrupted};
use crate::render::{self, Format, conversation};
use crate::terminal::Terminal;

/// Append a turn to a conversation
///
/// This command asks no participant: a `quorate run --watch` on the same manifest answers the turn.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate say swarm.yaml '@Reviewer please look at the draft'\n  git diff | quorate say swarm.yaml - --as ada"
)]
pub(super) struct SayArguments {
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
        let request = RuntimeRequest { path: manifest, root: self.root.clone(), ..RuntimeRequest::default() };
        let runtime =
            runtime::open(environment, &places.path_overrides(), &request, &environment.registries)?;
        terminal.status(&render::diagnostics(&runtime.report, Format::Human, terminal.stderr));
        Ok(runtime)
    }
}

pub(super) async fn run_say(arguments: SayArguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.conversation.format;
    match append_turn(arguments, environment, terminal).await {
        Ok(()) => Exit::DONE,
        Err(error) => exit_with_error(&error, format.into(), terminal),
    }
}

async fn append_turn(
    arguments: SayArguments,
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

/// Print a conversation
///
/// With --format json it prints one object, with --follow one line of JSON for each turn. With --records it prints the
/// ledger's records: which members were asked, the result of each attempt, and the outcome of each turn.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate log swarm.yaml --last 20\n  quorate log swarm.yaml --follow\n  quorate log swarm.yaml --records"
)]
pub(super) struct LogArguments {
    /// The manifest, or a directory with a multi-agent.yaml in it
    #[arg(value_name = "MANIFEST")]
    manifest: PathBuf,
    /// Only the last N turns
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    last: Option<u32>,
    /// Print new turns as they come, until interrupted
    #[arg(long, short)]
    follow: bool,
    /// The ledger's records of it, in place of the turns
    #[arg(long, conflicts_with_all = ["follow", "last"])]
    records: bool,
    #[command(flatten)]
    conversation: ConversationArguments,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run_log(arguments: LogArguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.conversation.format;
    match until_interrupted(print_conversation(arguments, environment, terminal)).await {
        // An interrupt is the usual end of --follow.
        Err(Interrupted) => Exit::DONE,
        Ok(Ok(())) => Exit::DONE,
        Ok(Err(error)) => exit_with_error(&error, format.into(), terminal),
    }
}

async fn print_conversation(
    arguments: LogArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<(), ServiceError> {
    let format = arguments.conversation.format;
    let runtime =
        arguments.conversation.open(arguments.manifest, &arguments.places, environment, terminal)?;
    if arguments.records {
        let records = runtime.records().await?;
        terminal.data(&match format {
            HumanOrJson::Human => conversation::records(&records),
            HumanOrJson::Json => conversation::records_json(&runtime, &records),
        });
        return Ok(());
    }
    let mut reading = ConversationReader::shared(&runtime).await?;
    let last = arguments.last.map(|count| count as usize);
    let line = |turn: &_| match format {
        HumanOrJson::Human => conversation::turn(turn, terminal.stdout),
        HumanOrJson::Json => format!("{}\n", conversation::turn_json(turn)),
    };
    if format == HumanOrJson::Json && !arguments.follow {
        let turns = reading.last(last).await?;
        terminal.data(&conversation::log_json(&runtime, &turns));
        return refuse_altered(&runtime).await;
    }
    match last {
        Some(_) => reading.last(last).await?.iter().for_each(|turn| terminal.data(&line(turn))),
        None => loop {
            let page = reading.next_page().await?;
            if page.is_empty() {
                break;
            }
            page.iter().for_each(|turn| terminal.data(&line(turn)));
        },
    }
    if !arguments.follow {
        return refuse_altered(&runtime).await;
    }
    if let Err(altered) = refuse_altered(&runtime).await {
        terminal.status(&render::diagnostics(&altered.report, Format::Human, terminal.stderr));
    }
    loop {
        tokio::select! {
            changed = reading.changed() => changed?,
            () = terminal.reader_gone() => return Ok(()),
        }
        reading.next_page().await?.iter().for_each(|turn| terminal.data(&line(turn)));
    }
}

/// Fails if the conversation differs from the ledger (D15).
async fn refuse_altered(runtime: &Runtime) -> Result<(), ServiceError> {
    let altered = runtime.find_alterations().await?;
    match altered.has_refusals() {
        true => Err(ServiceError::from_report(ExitClass::Refused, altered)),
        false => Ok(()),
    }
}

/// Print the state of a participant of a runtime, as JSON
///
/// A participant without state has the empty object.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  quorate state swarm.yaml reviewer")]
pub(super) struct StateArguments {
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

pub(super) async fn run_state(
    arguments: StateArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let format = arguments.conversation.format;
    match read(arguments, environment, terminal).await {
        Ok(()) => Exit::DONE,
        Err(error) => exit_with_error(&error, format.into(), terminal),
    }
}

async fn read(
    arguments: StateArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<(), ServiceError> {
    let participant = arguments.participant;
    let runtime =
        arguments.conversation.open(arguments.manifest, &arguments.places, environment, terminal)?;
    let state = quorate::service::runtime::conversation::state(&runtime, &participant).await?;
    terminal.data(&format!("{:#}\n", serde_json::Value::Object(state)));
    Ok(())
}
