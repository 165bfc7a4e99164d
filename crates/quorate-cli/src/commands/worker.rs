//! `quorate worker`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use quorate::Quorate;

use crate::arguments::{EventsArguments, HumanOrJson, PathArguments, duration};
use crate::exit::Ended;
use crate::terminal::Terminal;

/// Run queued reviews and convenings until it is stopped
///
/// A worker claims tasks of the queue in the ledger's Postgres database for its free slots, and decides them with the
/// executors of its own quorate.toml. It needs nothing else of the machine that queued them. If it dies, another worker
/// continues its runs within 16 seconds, and only calls without a recorded answer are repeated. With --events it announces
/// new records to followers.
///
/// After SIGTERM or Ctrl-C it claims no more tasks, ends its runs within --grace, and gives the rest back; a second signal
/// ends it at once. With --until-empty it exits with 3 if one of its tasks is dead.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate worker --ledger postgres://quorate@db/quorate\n  quorate worker --slots 8 --class large\n  quorate worker --until-empty --format json"
)]
pub(super) struct Arguments {
    /// How many runs it holds at once
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=512))]
    slots: u16,
    /// Only tasks of this class (`--worker-class` of those who queue); repeatable
    #[arg(long = "class", value_name = "NAME", default_value = "default")]
    classes: Vec<String>,
    /// How long its runs may go on after it was told to stop
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = duration)]
    grace: Duration,
    /// End when the queue has nothing left for it
    #[arg(long)]
    until_empty: bool,
    /// Output format: a line for each task that has ended
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    events: EventsArguments,
    /// Serve numbers for Prometheus at this address, as 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    places: PathArguments,
}

/// The command of a build without the feature.
#[cfg(not(feature = "postgres"))]
pub(super) async fn run(_: Arguments, _: &Quorate, _: &Terminal) -> Ended {
    Err(crate::exit::feature_missing("postgres"))
}

#[cfg(feature = "postgres")]
pub(super) async fn run(arguments: Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    use quorate::cluster::queue::{WorkerEvent, WorkerOptions};
    use quorate::view::wording::amount;

    use crate::events::{Events, Role};
    use crate::exit::{Exit, warn};
    use crate::interrupt::{exit_as_interrupted_on_signal, exit_cleanly_on_signal, until_interrupted};

    let quorate = arguments.places.apply(&crate::metrics::serve(arguments.metrics, quorate)?);
    let mut sent = Events::connect(arguments.events, Role::Works, &quorate).await?;
    let options = WorkerOptions {
        slots: usize::from(arguments.slots),
        classes: arguments.classes,
        grace: arguments.grace,
        until_empty: arguments.until_empty,
    };
    let show = |event: WorkerEvent| match event {
        WorkerEvent::Started { ledger, warnings } => {
            exit_cleanly_on_signal();
            let tasks = amount(options.slots as u64, "task");
            terminal
                .hint(&format!("working at up to {tasks} of {ledger} at once; SIGTERM or Ctrl-C stops it"));
            warn(&warnings, terminal);
        }
        WorkerEvent::Unavailable(why) => {
            terminal.status(&format!("cannot read the queue, trying again: {why}"));
        }
        WorkerEvent::Ended(attempt) => terminal.data(&match arguments.format {
            HumanOrJson::Human => attempt.line(terminal.stdout),
            HumanOrJson::Json => format!("{}\n", serde_json::json!(attempt)),
        }),
    };
    let stop = async {
        let _ = until_interrupted(std::future::pending::<()>()).await;
        // The next signal ends the process at once.
        exit_as_interrupted_on_signal();
        terminal.hint(
            "stopping: the worker ends its runs and claims no more tasks; a second signal ends it at once",
        );
    };
    let done = sent.during(Box::pin(quorate.queue().work(&options, show, stop)), terminal).await;
    let ended = done.map(|summary| {
        warn(&summary.warnings, terminal);
        terminal.hint(&summary.text());
        if options.until_empty && summary.dead > 0 { Exit::INCOMPLETE } else { Exit::DONE }
    });
    sent.close().await;
    ended
}
