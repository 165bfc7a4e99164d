//! The commands on recorded runs: `quorate runs`, `show`, `replay`, `resume`, `compare`, `override` and `watch`.

use std::sync::Arc;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::live::{WatchEventKind, Watcher};
use quorate::service::runs::RunReport;
use quorate::service::session::LedgerSession;
use quorate::service::{compare, finalize, resume, runs};
use quorate_diagnostics::{Body, codes};
use quorate_ledger::runs::RunFilter;
use quorate_protocol::Name;
use quorate_protocol::policy::Verdict;

use super::print_report::decided_report;
use super::{print_report, report};
use crate::arguments::{
    EventsArguments, FailOnArguments, HumanOrJson, PathArguments, ReviewArguments, since, verdict_parser,
};
use crate::events::{Events, Role};
use crate::exit::{Exit, exit_with_error};
use crate::exit::{print_error, print_result, print_result_as, seal_and_close, with_session};
use crate::interrupt::{Interrupted, until_interrupted};
use crate::progress::Progress;
use crate::render;
use crate::render::{Extent, Format};
use crate::terminal::Terminal;

/// List the runs of the ledger: open ones first, in each part the newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate runs\n  quorate runs --limit 5 --format json\n  quorate runs --verdict hold --type linkedin_post --since 30d\n  quorate runs --mode voting\n  quorate runs --producer copywriter"
)]
pub(super) struct RunsArguments {
    /// The most runs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Only this verdict or outcome, for example hold or pass; open for undecided runs
    #[arg(long, value_name = "VERDICT", ignore_case = true, value_parser = PossibleValuesParser::new(runs::VERDICTS))]
    verdict: Option<String>,
    /// Only this type of artifact
    #[arg(long = "type", value_name = "TYPE")]
    artifact_type: Option<String>,
    /// Only reviews (council), or assemblies of this mode
    #[arg(long, value_name = "MODE", ignore_case = true, value_parser = PossibleValuesParser::new(runs::MODES))]
    mode: Option<String>,
    /// Only runs on what this operator made: `--made-by` of review and convene
    #[arg(long, value_name = "OPERATOR")]
    producer: Option<String>,
    /// Only runs opened since then: 24h, 7d, a date, or all
    #[arg(long, value_name = "WHEN", default_value = "all")]
    since: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run_runs(
    arguments: RunsArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let format = arguments.format.into();
    let since_ms = match since(&arguments.since, environment) {
        Ok(since_ms) => since_ms,
        Err(error) => return exit_with_error(&error, format, terminal),
    };
    let filter = RunFilter {
        since_ms,
        verdict: arguments.verdict,
        artifact_type: arguments.artifact_type,
        mode: arguments.mode.map(|mode| mode.to_lowercase()),
        producer: arguments.producer,
        after: None,
    };
    let opened = runs::open_read_only(environment, &arguments.places.path_overrides()).await;
    with_session(opened, format, terminal, async |session| {
        let page = runs::list(session, &filter, arguments.limit).await?;
        let count = match page.next {
            Some(_) => runs::count(session, &filter).await?,
            None => 0,
        };
        let is_altered = page.is_altered();
        let all = page.runs;
        let text = match arguments.format {
            HumanOrJson::Human if all.is_empty() && filter != RunFilter::default() => {
                "No run fits.\n".to_owned()
            }
            HumanOrJson::Human => render::runs::human(&all, terminal.stdout),
            HumanOrJson::Json => render::runs::json(&all),
        };
        let exit = print_result(&text, session, terminal);
        let more = count.saturating_sub(all.len() as u64);
        if more > 0 {
            let (runs, are) = if more == 1 { ("run", "is") } else { ("runs", "are") };
            terminal.hint(&format!("{more} more {runs} {are} not shown: `--limit {count}` shows all"));
        }
        Ok(if is_altered { Exit::CHECK_FAILED } else { exit })
    })
    .await
}

/// Derive a run's verdict again from the ledger alone
///
/// Calls no executor. Exits with 0 if the derived outcome equals the recorded one, byte for byte, and with 1 if it differs.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  quorate replay r7k2")]
pub(super) struct ReplayArguments {
    /// The run's id, a prefix of it, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run_replay(
    arguments: ReplayArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let format = arguments.format.into();
    let (session, run) =
        match runs::open_run(environment, &arguments.places.path_overrides(), &arguments.run).await {
            Ok(opened) => opened,
            Err(error) => return exit_with_error(&error, format, terminal),
        };
    let exit = match resume::replay(&session, &run).await {
        Ok(replayed) => {
            let text = match arguments.format {
                HumanOrJson::Human => render::runs::replay_text(&replayed),
                HumanOrJson::Json => render::runs::replayed_json(&replayed),
            };
            terminal.data(&text);
            if replayed.result.differences.is_empty() { Exit::DONE } else { Exit::CHECK_FAILED }
        }
        Err(error) => print_error(&error, &session, format, terminal),
    };
    session.close().await;
    exit
}

/// Resume a run that was interrupted, crashed, or ended with INCOMPLETE
///
/// Asks only for missing answers; existing ones cost nothing again. The manifests, the prompts, the executors' settings
/// and the text must be unchanged. The exit code is the verdict, as for `review` or `convene`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate resume r7k2\n  quorate resume r7k2 --timeout 10m --max-calls 30"
)]
pub(super) struct ResumeArguments {
    /// The run's id, a prefix of it, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// How the verdict is printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    #[command(flatten)]
    fail: FailOnArguments,
    #[command(flatten)]
    review: ReviewArguments,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run_resume(
    arguments: ResumeArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let format = arguments.format;
    let opened = runs::open_run_as_recorded(environment, arguments.places.path_overrides(), &arguments.run);
    let (session, run) = match Box::pin(opened).await {
        Ok(opened) => opened,
        Err(error) => return exit_with_error(&error, format, terminal),
    };
    let progress = Arc::new(Progress::new(terminal.shows_progress));
    let resumed = until_interrupted(Box::pin(resume_run(&session, &run, &arguments, progress.clone()))).await;
    progress.clear();
    let exit = match resumed {
        Err(Interrupted) => {
            let report = decided_report(&progress, &session, terminal).await;
            print_report::interrupted(report.as_ref(), &session, format, terminal)
        }
        Ok(Ok(mut report)) => {
            if let RunReport::Review(review) = &mut report {
                review.fail_on = arguments.fail.fail_on();
            }
            print_report::any(&report, &session, format, terminal)
        }
        // A usage error is printed in the readable format.
        Ok(Err(error)) if error.class == ExitClass::Usage => {
            print_error(&error, &session, Format::Human, terminal)
        }
        Ok(Err(error)) => print_error(&error, &session, format, terminal),
    };
    session.close().await;
    exit
}

async fn resume_run(
    session: &LedgerSession,
    run: &Name,
    arguments: &ResumeArguments,
    progress: Arc<Progress>,
) -> Result<RunReport, ServiceError> {
    if runs::is_assembly(session, run).await? {
        // Checked before members are asked.
        if matches!(arguments.format, Format::Sarif | Format::Github | Format::Gitlab) {
            return Err(unsupported_format(run));
        }
        if arguments.fail.fail_on().is_some() {
            let body = Body::new(format!("{run} is an assembly's, and --fail-on is for reviews"));
            return Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body));
        }
    }
    let (options, policy) = (arguments.review.answers.options(), arguments.review.policy());
    resume::resume(session, run, &options, policy, progress).await
}

/// Compare two runs on one artifact: findings kept, new and gone, and who changed position
///
/// With one run, compares the run before it on the same artifact with it. `quorate schema compare` describes the JSON.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate compare latest\n  quorate compare r7k2 r9m4\n  quorate compare r7k2 latest --format json"
)]
pub(super) struct CompareArguments {
    /// One run: its id, a prefix of it, or `latest`. Two runs: the earlier one, then the later one
    #[arg(value_name = "RUN", num_args = 1..=2, required = true)]
    runs: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run_compare(
    arguments: CompareArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let opened = runs::open_read_only(environment, &arguments.places.path_overrides()).await;
    with_session(opened, arguments.format.into(), terminal, async |session| {
        let (a, b) = match &arguments.runs[..] {
            [a, b] => (Some(&**a), &**b),
            runs => (None, runs.first().map_or("", String::as_str)),
        };
        let compared = compare::compare_named(session, a, b).await?;
        let text = match arguments.format {
            HumanOrJson::Human => render::runs::comparison(&compared, terminal.stdout),
            HumanOrJson::Json => format!("{:#}\n", serde_json::json!(compared)),
        };
        Ok(print_result(&text, session, terminal))
    })
    .await
}

/// Follow runs of any process or machine
///
/// Shows a run from its beginning to its end; with --all every run of the ledger from now on, until Ctrl-C. The command
/// writes nothing to the ledger, and reads new records twice a second; with --events it reads them when a worker reports
/// them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate watch r4n9k2m\n  quorate watch latest --format json\n  quorate watch --all --ledger postgres://quorate@db/quorate"
)]
pub(super) struct WatchArguments {
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

pub(super) async fn run_watch(
    arguments: WatchArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
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
                    HumanOrJson::Human => render::runs::run_event(&event, arguments.all, terminal.stdout),
                    HumanOrJson::Json => format!("{}\n", event.json()),
                });
                if event.what == WatchEventKind::Ended && !arguments.all {
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

/// Show the outcome of a run, and its reasons
///
/// Exits with 0 for every verdict: only `review`, `convene` and `resume` exit with the verdict. Exits with 1 if the run differs
/// from what was recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  quorate show r7k2\n  quorate show r7k2 --format markdown | pbcopy")]
pub(super) struct ShowArguments {
    /// The run's id, a prefix of it, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = ShownFormat::Human)]
    format: ShownFormat,
    #[command(flatten)]
    places: PathArguments,
}

/// The formats of findings and outcomes, and the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ShownFormat {
    /// For people
    Human,
    /// One JSON object
    Json,
    /// Markdown for a pull request
    Markdown,
    /// SARIF 2.1.0, for code scanning tools
    Sarif,
    /// GitHub workflow annotations
    Github,
    /// A GitLab Code Quality report
    Gitlab,
    /// What `quorate report` writes
    Html,
}

pub(super) async fn run_show(
    arguments: ShowArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let format = match arguments.format {
        ShownFormat::Human => Format::Human,
        ShownFormat::Json => Format::Json,
        ShownFormat::Markdown => Format::Markdown,
        ShownFormat::Sarif => Format::Sarif,
        ShownFormat::Github => Format::Github,
        ShownFormat::Gitlab => Format::Gitlab,
        ShownFormat::Html => {
            return report::show(&arguments.run, &arguments.places, environment, terminal).await;
        }
    };
    let session = match runs::open_read_only(environment, &arguments.places.path_overrides()).await {
        Ok(session) => session,
        Err(error) => return exit_with_error(&error, format, terminal),
    };
    let exit = match runs::find_report(&session, &arguments.run).await {
        Ok(report) => {
            let text = match report {
                RunReport::Review(report) => {
                    Some(render::report(&report, format, Extent::Full, terminal.stdout))
                }
                RunReport::Assembly(report) => {
                    render::convene::report(&report, format, Extent::Full, terminal.stdout)
                }
            };
            match text {
                Some(text) => print_result_as(format, &text, &session, terminal),
                None => print_error(&unsupported_format(&arguments.run), &session, Format::Human, terminal),
            }
        }
        Err(error) => print_error(&error, &session, format, terminal),
    };
    session.close().await;
    exit
}

/// The refusal of a format for findings in files, which cannot show an assembly's outcome.
pub(super) fn unsupported_format(run: &str) -> ServiceError {
    let body = Body::new(format!("run {run} is an assembly's: `sarif` and `github` are for reviews"))
        .help("`--format human`, `json` or `markdown` shows an assembly");
    ServiceError::new(ExitClass::Usage, codes::USAGE, body)
}

/// Record a person's decision against the council's
///
/// The council's verdict stays; the decision, its reason and its author are recorded with it, in the ledger and as a line
/// of the log. `quorate audit` counts overrides. The author is `--by`, else Git's identity in this directory.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  quorate override r7k2 --verdict ship --reason \"legal cleared the price claim\" --by \"Ada <ada@example.org>\""
)]
pub(super) struct OverrideArguments {
    /// The run's id, a prefix of it, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// The decision
    #[arg(long, ignore_case = true, value_parser = verdict_parser(VERDICTS))]
    verdict: Verdict,
    /// The reason
    #[arg(long, value_name = "R")]
    reason: String,
    /// The author; by default Git's `user.name <user.email>`
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    #[command(flatten)]
    places: PathArguments,
}

/// The verdicts of `--verdict`, with their help.
const VERDICTS: [(Verdict, &str); 3] = [
    (Verdict::Ship, "Publish it"),
    (Verdict::Revise, "Change it first"),
    (Verdict::Hold, "Do not publish it"),
];

pub(super) async fn run_override(
    arguments: OverrideArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let (session, run) = match runs::open_run_for_append(
        environment,
        &arguments.places.path_overrides(),
        &arguments.run,
    )
    .await
    {
        Ok(opened) => opened,
        Err(error) => return exit_with_error(&error, Format::Human, terminal),
    };
    let verdict = arguments.verdict;
    let decision = finalize::Decision { verdict, reason: &arguments.reason, by: arguments.by.as_deref() };
    let exit = match finalize::override_run(&session, &run, decision).await {
        Ok(report) => print_result(
            &render::report(&report, Format::Human, Extent::Screen, terminal.stdout),
            &session,
            terminal,
        ),
        Err(error) => print_error(&error, &session, Format::Human, terminal),
    };
    Box::pin(seal_and_close(session, terminal)).await;
    exit
}
