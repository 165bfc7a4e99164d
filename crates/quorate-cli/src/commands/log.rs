//! `quorate log`.

use std::path::PathBuf;

use clap::Args;

use super::say::ConversationArguments;
use crate::arguments::{HumanOrJson, PathArguments};
use crate::exit::{Exit, exit_with_error};
use crate::interrupt::{Interrupted, until_interrupted};
use crate::render::{self, Format, conversation};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::runtime::Runtime;
use quorate::service::runtime::conversation::ConversationReader;

/// Print a conversation
///
/// With --format json it prints one object, with --follow one line of JSON for each turn. With --records it prints the
/// ledger's records: which members were asked, the result of each attempt, and the outcome of each turn.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate log swarm.yaml --last 20\n  quorate log swarm.yaml --follow\n  quorate log swarm.yaml --records"
)]
pub(super) struct Arguments {
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

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.conversation.format;
    match until_interrupted(print_conversation(arguments, environment, terminal)).await {
        // An interrupt is the usual end of --follow.
        Err(Interrupted) => Exit::DONE,
        Ok(Ok(())) => Exit::DONE,
        Ok(Err(error)) => exit_with_error(&error, format.into(), terminal),
    }
}

async fn print_conversation(
    arguments: Arguments,
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
