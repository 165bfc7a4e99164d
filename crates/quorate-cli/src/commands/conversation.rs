//! The commands on conversations: `quorate say`, `quorate log` and `quorate state`.

use std::io::Read as _;
use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use quorate::conversation::{AuthorRule, ConversationRequest, DEFAULT_SPEAKER, SayRequest, ShownTurn};
use quorate::{Conversation, Error, ErrorKind, Quorate, Turn};
use quorate_diagnostics::{Body, codes};
use serde_json::json;

use crate::arguments::{HumanOrJson, PathArguments};
use crate::exit::{Ended, Exit, warn};
use crate::interrupt::until_interrupted;
use crate::render::{Format, conversation, json_text};
use crate::terminal::Terminal;

/// Append a turn to a conversation
///
/// This command asks no participant: a `quorate run --watch` on the same manifest answers the turn.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate say swarm.yaml '@Reviewer please look at the draft'\n  git diff | quorate say swarm.yaml - --as ada"
)]
pub(super) struct SayArguments {
    /// The manifest, a directory with a multi-agent.yaml in it, or the name of a file in runtimes/
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
struct ConversationArguments {
    /// The workspace of roles, personas and operators
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
}

impl ConversationArguments {
    /// Opens the conversation of a manifest, and prints its warnings.
    fn open(
        self,
        path: PathBuf,
        places: PathArguments,
        quorate: &Quorate,
        terminal: &Terminal,
    ) -> Result<Conversation, Error> {
        let request = ConversationRequest { path, root: self.root, ..ConversationRequest::default() };
        let conversation = places.apply(quorate).conversation(request)?;
        warn(conversation.report(), terminal);
        Ok(conversation)
    }
}

pub(super) async fn run_say(arguments: SayArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let (rule, by) = (author_rule(arguments.yes), Some(arguments.by));
    let request = SayRequest { text: text_argument(&arguments.text)?, by, rule, is_shared: true };
    let conversation =
        arguments.conversation.open(arguments.manifest, arguments.places, quorate, terminal)?;
    let turn = conversation.say(&request).await?;
    conversation.near_misses(&turn.content).iter().for_each(|miss| terminal.status(miss));
    terminal.data(&match terminal.format {
        Format::Json => json_text(&ShownTurn::of(&turn)),
        _ => format!("{}\n", turn.id),
    });
    Ok(Exit::DONE)
}

/// Whether the author of a turn may be a participant.
pub(super) fn author_rule(is_confirmed: bool) -> AuthorRule {
    if is_confirmed { AuthorRule::Anyone } else { AuthorRule::PeopleOnly }
}

/// The content: the argument itself, or standard input.
pub(super) fn text_argument(argument: &str) -> Result<String, Error> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text).map_err(|error| {
        let body = Body::new(format!("standard input cannot be read: {error}"));
        Error::new(ErrorKind::Configuration, codes::USAGE, body)
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
    /// The manifest, a directory with a multi-agent.yaml in it, or the name of a file in runtimes/
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

pub(super) async fn run_log(arguments: LogArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let printed = until_interrupted(print_conversation(arguments, quorate, terminal)).await;
    // An interrupt is the usual end of --follow.
    printed.unwrap_or(Ok(Exit::DONE))
}

async fn print_conversation(arguments: LogArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let format = arguments.conversation.format;
    let conversation =
        arguments.conversation.open(arguments.manifest, arguments.places, quorate, terminal)?;
    if arguments.records {
        let records = conversation.records().await?;
        terminal.data(&match format {
            HumanOrJson::Human => conversation::records(&records),
            HumanOrJson::Json => json_text(&json!({"runtime": conversation.id(), "records": records})),
        });
        return Ok(Exit::DONE);
    }
    conversation.ensure_shared()?;
    let mut reader = conversation.reader().await?;
    let last = arguments.last.map(|count| count as usize);
    let print = |turns: &[Turn]| {
        for turn in turns {
            terminal.data(&match format {
                HumanOrJson::Human => conversation::turn(turn, terminal.stdout),
                HumanOrJson::Json => format!("{}\n", json!(ShownTurn::of(turn))),
            });
        }
    };
    if format == HumanOrJson::Json && !arguments.follow {
        let turns: Vec<_> = reader.last(last).await?.iter().map(ShownTurn::of).collect();
        terminal.data(&json_text(&json!({"runtime": conversation.id(), "turns": turns})));
    } else if last.is_some() {
        print(&reader.last(last).await?);
    } else {
        loop {
            let page = reader.next_page().await?;
            if page.is_empty() {
                break;
            }
            print(&page);
        }
    }
    let unaltered = conversation.ensure_unaltered().await;
    if !arguments.follow {
        return unaltered.map(|()| Exit::DONE);
    }
    if let Err(altered) = unaltered {
        warn(altered.report(), terminal);
    }
    loop {
        tokio::select! {
            changed = reader.changed() => changed?,
            () = terminal.reader_gone() => return Ok(Exit::DONE),
        }
        print(&reader.next_page().await?);
    }
}

/// Print the state of a participant of a runtime, as JSON
///
/// A participant without state has the empty object.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  quorate state swarm.yaml reviewer")]
pub(super) struct StateArguments {
    /// The manifest, a directory with a multi-agent.yaml in it, or the name of a file in runtimes/
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

pub(super) async fn run_state(arguments: StateArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let StateArguments { manifest, participant, conversation, places } = arguments;
    let conversation = conversation.open(manifest, places, quorate, terminal)?;
    terminal.data(&json_text(&conversation.participant_state(&participant).await?));
    Ok(Exit::DONE)
}
