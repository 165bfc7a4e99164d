//! `quorate worker`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use crate::arguments::{EventsArguments, HumanOrJson, PathArguments, duration};

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

#[cfg(not(feature = "postgres"))]
pub(super) use missing::run;
#[cfg(feature = "postgres")]
pub(super) use working::run;

/// The command of a build without the feature.
#[cfg(not(feature = "postgres"))]
mod missing {
    use super::Arguments;
    use crate::exit::{Exit, exit_without_feature};
    use crate::terminal::Terminal;
    use quorate::service::environment::Environment;

    pub(crate) async fn run(_: Arguments, _: &Environment, terminal: &Terminal) -> Exit {
        exit_without_feature("postgres", terminal)
    }
}

/// The command of a build with the feature.
#[cfg(feature = "postgres")]
mod working {
    use std::sync::Arc;

    use tokio::sync::{mpsc, watch};

    use super::Arguments;
    use crate::arguments::HumanOrJson;
    use crate::events::{Events, Role};
    use crate::exit::{Exit, exit_with_error};
    use crate::exit::{print_error, print_warnings};
    use crate::interrupt::{
        Interrupted, exit_as_interrupted_on_signal, exit_cleanly_on_signal, until_interrupted,
    };
    use crate::metrics;
    use crate::render;
    use crate::terminal::Terminal;
    use quorate::service::environment::Environment;
    use quorate::service::queue::worker::{WorkerEvent, WorkerOptions, work};
    use quorate::service::queue::{self, manage};

    pub(crate) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
        let format = arguments.format.into();
        let environment = &match metrics::serve(arguments.metrics, environment) {
            Ok(environment) => environment,
            Err(error) => return exit_with_error(&error, format, terminal),
        };
        let mut sent = match Events::connect(arguments.events, Role::Works, environment).await {
            Ok(sent) => sent,
            Err(error) => return exit_with_error(&error, format, terminal),
        };
        let opened = queue::open_for_writing(environment, &arguments.places.path_overrides()).await;
        let session = match opened {
            Ok(session) => Arc::new(session),
            Err(error) => return exit_with_error(&error, format, terminal),
        };
        exit_cleanly_on_signal();
        let options = WorkerOptions {
            slots: usize::from(arguments.slots),
            classes: arguments.classes,
            grace: arguments.grace,
            until_empty: arguments.until_empty,
        };
        let (events, mut told) = mpsc::unbounded_channel();
        let (stop, stopped) = watch::channel(false);
        let show = |event: &WorkerEvent| match (arguments.format, event) {
            (_, WorkerEvent::Unavailable(why)) => {
                terminal.status(&format!("cannot read the queue, trying again: {why}"));
            }
            (HumanOrJson::Human, WorkerEvent::Ended(task, end)) => {
                terminal.data(&render::queue::task_end(task, end, terminal.stdout));
            }
            (HumanOrJson::Json, WorkerEvent::Ended(task, end)) => {
                terminal.data(&format!("{}\n", manage::task_end_json(task, end)));
            }
        };
        terminal.hint(&format!(
            "working at up to {} of {} at once; SIGTERM or Ctrl-C stops it",
            render::queue::tasks(u64::from(arguments.slots)),
            session.store.address()
        ));
        print_warnings(&session, terminal);
        let working = async {
            let mut working = std::pin::pin!(work(&session, &options, events, stopped));
            let mut is_stopping = false;
            loop {
                let signal = async {
                    match is_stopping {
                        // The next signal ends the process at once.
                        true => std::future::pending().await,
                        false => until_interrupted(std::future::pending::<()>()).await,
                    }
                };
                tokio::select! {
                    done = &mut working => break done,
                    Some(event) = told.recv() => show(&event),
                    Err(Interrupted) = signal => {
                        is_stopping = true;
                        exit_as_interrupted_on_signal();
                        let _ = stop.send(true);
                        terminal.hint("stopping: the worker ends its runs and claims no more tasks; a second signal ends it at once");
                    }
                }
            }
        };
        let done = sent.during(working, terminal).await;
        while let Ok(event) = told.try_recv() {
            show(&event);
        }
        print_warnings(&session, terminal);
        let exit = match done {
            Ok(summary) => {
                terminal.hint(&render::queue::summary(&summary));
                match options.until_empty && summary.dead > 0 {
                    true => Exit::INCOMPLETE,
                    false => Exit::DONE,
                }
            }
            Err(error) => print_error(&error, &session, format, terminal),
        };
        sent.close().await;
        if let Some(session) = Arc::into_inner(session) {
            session.close().await;
        }
        exit
    }
}
