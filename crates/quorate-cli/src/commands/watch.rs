//! `quorate watch`.

use clap::Args;

use crate::arguments::{EventsArguments, HumanOrJson, PathArguments};
use crate::events::{Events, Role};
use crate::exit::{Exit, exit_with_error};
use crate::interrupt::{Interrupted, until_interrupted};
use crate::render;
use crate::session::with_session;
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::runs;
use quorate::service::watch::{Watcher, What};

/// Follow runs of any process or machine
///
/// Shows a run from its beginning to its end; with --all every run of the ledger from now on, until Ctrl-C. The command
/// writes nothing to the ledger, and reads new records twice a second; with --events it reads them when a worker reports
/// them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate watch r4n9k2m\n  quorate watch latest --format json\n  quorate watch --all --ledger postgres://quorate@db/quorate"
)]
pub(super) struct Arguments {
    /// The run, by id, the beginning of one, or latest
    #[arg(value_name = "RUN", required_unless_present = "all", conflicts_with = "all")]
    run: Option<String>,
    /// Every run, from now on
    #[arg(long)]
    all: bool,
    /// Output format: a line for each event
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    events: EventsArguments,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.format;
    let mut events = match Events::connect(arguments.events, Role::Listens, environment).await {
        Ok(events) => events,
        Err(error) => return exit_with_error(&error, format.into(), terminal),
    };
    let opened = runs::open_read_only(environment, &arguments.places.path_overrides()).await;
    with_session(opened, format.into(), terminal, async |session| {
        let mut watcher = match &arguments.run {
            Some(run) => Watcher::one(session, run).await?,
            None => Watcher::all(session).await?,
        };
        if arguments.all {
            terminal.hint("following every run from now on; Ctrl-C ends it");
        }
        let following = async {
            loop {
                let event = watcher.next().await?;
                terminal.data(&match format {
                    HumanOrJson::Human => render::watch::event(&event, arguments.all, terminal.stdout),
                    HumanOrJson::Json => format!("{}\n", event.json()),
                });
                if event.what == What::Ended && !arguments.all {
                    return Ok(Exit::DONE);
                }
            }
        };
        let following = async {
            tokio::select! {
                ended = following => ended,
                () = terminal.reader_gone() => Ok(Exit::DONE),
            }
        };
        match until_interrupted(events.during(following, terminal)).await {
            Ok(ended) => ended,
            // With --all, Ctrl-C is the regular end.
            Err(Interrupted) if arguments.all => Ok(Exit::DONE),
            Err(Interrupted) => Ok(Exit::INTERRUPTED),
        }
    })
    .await
}
