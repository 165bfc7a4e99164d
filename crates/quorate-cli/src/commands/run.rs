//! `quorate run`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use quorate_diagnostics::{Body, codes};
use quorate_kernel::turn::{Begin, CycleResult};

use super::conversation::text_argument;
use crate::arguments::{ExecutorArguments, HumanOrJson, PathArguments};
use crate::exit::{Exit, exit_with_error};
use crate::interrupt::{Interrupted, until_interrupted};
use crate::progress::swarm::SwarmProgress;
use crate::render::{self, Format, conversation};
use crate::terminal::Terminal;
use quorate::service::disk::absolute;
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::runtime::conversation::{AuthorRule, DEFAULT_SPEAKER, say};
use quorate::service::runtime::drive::{Retention, RunSummary};
use quorate::service::runtime::drive::{Step, Until, drive};
use quorate::service::runtime::events::{EventFile, FanOut, OpenError};
use quorate::service::runtime::{self, OpenRuntime, Runtime, RuntimeRequest};

/// How long hooks and pending writes may take at the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Run a swarm from its manifest: participants answer the turns of people and of each other
///
/// The manifest (AIP-48) names the participants, the substrate of the conversation, the dispatcher that selects the next
/// speaker, and the store of participants' state. The command prints each turn when it is appended. A restart continues
/// after the last run: every mention is answered exactly once.
///
/// The exit code is 0 when every participant that was asked has answered, 3 when one has not or `maxAgentTurns` stopped a
/// chain of answers, 4 not found, 5 unusable configuration or input, 64 wrong command line.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate run swarm.yaml --say '@Reviewer please look at the draft'\n  quorate run .runtime/multi-agent.yaml --watch\n  quorate run swarm.yaml --once --executor rubric --events events.jsonl\n  quorate run swarm.yaml --serve reviewer --executor claude"
)]
pub(super) struct Arguments {
    /// The manifest, or a directory with a multi-agent.yaml in it
    #[arg(value_name = "MANIFEST")]
    manifest: PathBuf,
    /// Stop once a participant was asked
    #[arg(long, group = "until")]
    once: bool,
    /// Stop when no turn is left to answer (the default)
    #[arg(long, group = "until")]
    until_idle: bool,
    /// Wait for new turns until interrupted
    #[arg(long, group = "until")]
    watch: bool,
    /// Answer for this participant, whose executor is `remote` where the manifest is run; until interrupted
    #[arg(long, value_name = "PARTICIPANT", conflicts_with_all = ["until", "say", "from_now", "events", "format"])]
    serve: Option<String>,
    /// Append this turn first; - reads it from standard input
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    say: Option<String>,
    /// The author of that turn
    #[arg(long = "as", value_name = "NAME", default_value = DEFAULT_SPEAKER, requires = "say")]
    by: String,
    /// Write that turn also in the name of a participant; prompts and the log show that a person wrote it
    #[arg(long, requires = "say")]
    yes: bool,
    /// On the first run: begin after the existing turns, not with the first
    #[arg(long)]
    from_now: bool,
    /// Append every event to this file, as lines of JSON
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// The workspace of roles, personas and operators
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Output format: turns as they come, or one JSON object at the end
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    answers: ExecutorArguments,
    #[command(flatten)]
    places: PathArguments,
}

impl Arguments {
    fn until(&self) -> Until {
        match (self.once, self.watch) {
            (true, _) => Until::Once,
            (_, true) => Until::Watch,
            _ => Until::Idle,
        }
    }
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = Format::from(arguments.format);
    match run_manifest(&arguments, environment, terminal).await {
        Ok(exit) => exit,
        Err(error) => exit_with_error(&error, format, terminal),
    }
}

async fn run_manifest(
    arguments: &Arguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, ServiceError> {
    let options = arguments.answers.options();
    let request = RuntimeRequest {
        path: arguments.manifest.clone(),
        root: arguments.root.clone(),
        executor: options.executor,
        caps: options.caps,
        timeout: options.timeout,
    };
    let runtime =
        runtime::open(environment, &arguments.places.path_overrides(), &request, &environment.registries)?;
    if let Some(participant) = &arguments.serve {
        return serve(participant, &runtime, terminal).await;
    }
    if let Some(path) = &arguments.events {
        runtime.guard.ensure_free(environment, path)?;
    }
    let sinks = EventSinks::open(arguments, environment, terminal)?;
    let ready = runtime.open_ledger().await?;
    terminal.status(&render::diagnostics(&ready.runtime.report, Format::Human, terminal.stderr));
    let exit = run_loop(arguments, &ready, &sinks, terminal).await;
    if exit.as_ref().is_err_and(ServiceError::is_ledger_unavailable) {
        ready.store.interrupt();
    }
    sinks.close(&ready, terminal);
    terminal.status(&render::diagnostics(&ready.seal().await, Format::Human, terminal.stderr));
    ready.close().await;
    exit
}

/// Answers for a participant until a signal ends it.
#[cfg(feature = "nats")]
async fn serve(participant: &str, runtime: &Runtime, terminal: &Terminal) -> Result<Exit, ServiceError> {
    use crate::render::layout::one_line;
    use quorate::service::runtime::ServeEvent;

    terminal.status(&render::diagnostics(&runtime.report, Format::Human, terminal.stderr));
    crate::interrupt::exit_cleanly_on_signal();
    let (tell, mut events) = tokio::sync::mpsc::unbounded_channel();
    let serving = runtime.serve_participant(participant, tell);
    let telling = async {
        while let Some(event) = events.recv().await {
            // The ids are the asking side's.
            terminal.status(&one_line(&match event {
                ServeEvent::Ready { subject } => format!("answers for {participant} on {subject}"),
                ServeEvent::Asked { id } => format!("{id} asked"),
                ServeEvent::Ended { id, failure: None } => format!("{id} answered"),
                ServeEvent::Ended { id, failure: Some(why) } => format!("{id} has no answer: {why}"),
            }));
        }
    };
    match until_interrupted(async { tokio::join!(serving, telling).0 }).await {
        Ok(served) => served.map(|()| Exit::DONE),
        Err(Interrupted) => Ok(Exit::DONE),
    }
}

#[cfg(not(feature = "nats"))]
#[expect(clippy::unused_async, reason = "as with NATS")]
async fn serve(_: &str, _: &Runtime, _: &Terminal) -> Result<Exit, ServiceError> {
    Err(crate::exit::feature_missing("nats"))
}

async fn run_loop(
    arguments: &Arguments,
    ready: &OpenRuntime,
    sinks: &EventSinks,
    terminal: &Terminal,
) -> Result<Exit, ServiceError> {
    let begin = if arguments.from_now { Begin::Now } else { Begin::First };
    let (mut runner, _hold) = ready.runner(begin, sinks.all.clone()).await?;
    let human = arguments.format == HumanOrJson::Human;
    if let Some(text) = &arguments.say {
        let rule = if arguments.yes { AuthorRule::Anyone } else { AuthorRule::PeopleOnly };
        let turn = say(&ready.runtime, &text_argument(text)?, &arguments.by, rule).await?;
        if human {
            terminal.data(&conversation::turn(&turn, terminal.stdout));
        }
    }
    let mut summary = RunSummary::new(if arguments.watch { Retention::Last } else { Retention::All });
    let watching = &sinks.watching;
    let driven =
        until_interrupted(drive(&mut runner, arguments.until(), ready.runtime.wall, |step| match step {
            Step::Cycled(cycled) => {
                watching.clear();
                if let (true, CycleResult::Asked { appended, .. }) = (human, &cycled) {
                    for turn in appended {
                        terminal.data(&conversation::turn(turn, terminal.stdout));
                    }
                }
                summary.take(cycled);
            }
            Step::Waiting => watching.waiting(),
            Step::TimeUp => summary.out_of_time = true,
            Step::Retrying(error, pause) => {
                watching.clear();
                terminal.status(&render::diagnostics(&error.report, Format::Human, terminal.stderr));
                terminal.status(&format!("trying again in {} s", pause.as_secs()));
            }
        }))
        .await;
    watching.clear();
    let interrupted = matches!(driven, Err(Interrupted));
    // From here on a further signal ends the wait: hooks then have as long as everything else.
    let interrupted = interrupted || until_interrupted(runner.settle_hooks()).await.is_err();
    if interrupted {
        ready.store.interrupt();
    }
    let drained = runner.close(SHUTDOWN_TIMEOUT).await;
    if let Ok(driven) = driven {
        driven?;
    }
    let unfinished = match drained {
        Ok(unfinished) => unfinished,
        // The interruption is the outcome; report the records that failed.
        Err(error) if interrupted => {
            let error = ServiceError::from(error);
            terminal.status(&render::diagnostics(&error.report, Format::Human, terminal.stderr));
            None
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(unfinished) = unfinished {
        if human {
            unfinished
                .appended
                .iter()
                .for_each(|turn| terminal.data(&conversation::turn(turn, terminal.stdout)));
        }
        summary.take_unfinished(unfinished);
    }
    summary.interrupted = interrupted;
    summary.ended_once = arguments.once && summary.asked > 0;
    match human {
        true => terminal.hint(&conversation::summary(&summary, arguments.watch)),
        false => terminal.data(&conversation::summary_json(&ready.runtime, &summary)),
    }
    Ok(match (interrupted, summary.is_complete()) {
        (true, _) => Exit::INTERRUPTED,
        (false, true) => Exit::DONE,
        (false, false) => Exit::INCOMPLETE,
    })
}

fn unwritable(path: &Path, unusable: &OpenError) -> ServiceError {
    let (class, help) = match unusable {
        OpenError::NotAnEventFile => {
            (ExitClass::Usage, "name a new file, or one that `--events` has written")
        }
        OpenError::Io(_) => (ExitClass::Configuration, "name a file that can be written"),
    };
    let body = Body::new(format!("cannot write events to {}: {unusable}", path.display()));
    ServiceError::new(class, codes::EVENTS_UNWRITABLE, body.help(help))
}

/// Where events go.
struct EventSinks {
    watching: Arc<SwarmProgress>,
    lines: Option<Arc<EventFile>>,
    all: Arc<FanOut>,
}

impl EventSinks {
    fn open(
        arguments: &Arguments,
        environment: &Environment,
        terminal: &Terminal,
    ) -> Result<EventSinks, ServiceError> {
        let watching =
            Arc::new(SwarmProgress::new(terminal.shows_progress, terminal.verbose, arguments.watch));
        let mut all = FanOut(vec![watching.clone()]);
        let watched = watching.clone();
        let lines = match &arguments.events {
            None => None,
            Some(path) => {
                let file = path.display().to_string();
                let ended = move |error: &std::io::Error| {
                    watched.say(&format!(
                        "cannot write events to {file}: {error}; the run continues without them"
                    ));
                };
                let file = absolute(&environment.directory, path);
                let lines = EventFile::open(&file, ended).map_err(|unusable| unwritable(path, &unusable))?;
                let lines = Arc::new(lines);
                all.0.push(lines.clone());
                Some(lines)
            }
        };
        Ok(EventSinks { watching, lines, all: Arc::new(all) })
    }

    /// Writes the remaining events.
    fn close(&self, ready: &OpenRuntime, terminal: &Terminal) {
        let Some(Err(unwritten)) = self.lines.as_ref().map(|lines| lines.close(ready.store.dir())) else {
            return;
        };
        let message = format!("{} events could not be written: {}", unwritten.count, unwritten.error);
        let body = match unwritten.path {
            Some(path) => Body::new(message).help(format!("they are in {}", path.display())),
            None => Body::new(message).help("free some space: they could not be kept elsewhere either"),
        };
        let mut report = quorate_diagnostics::Report::new();
        report.warn(codes::EVENTS_KEPT_ASIDE, body);
        terminal.status(&render::diagnostics(&report, Format::Human, terminal.stderr));
    }
}
