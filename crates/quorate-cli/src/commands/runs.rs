//! The commands on recorded runs: `quorate runs`, `show`, `replay`, `resume`, `compare`, `override` and `watch`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use quorate::runs::{
    CompareRequest, Comparison, MODES, OverrideRequest, Recorded, Replay, ResumeRequest, RunFilter, RunList,
    RunsRequest, VERDICTS, WatchEventKind,
};
use quorate::{Error, ErrorKind, Quorate, Verdict};
use quorate_diagnostics::render::TextOptions;
use quorate_diagnostics::{Body, codes};
use serde_json::json;

use super::report;
use crate::arguments::{
    EventsArguments, FailOnArguments, HumanOrJson, OutputArguments, PathArguments, ReviewArguments, one_of,
    since, verdict_parser,
};
use crate::events::{Events, Role};
use crate::exit::{Ended, Exit, exit_with_error, print_outcome, print_recorded, show};
use crate::interrupt::{Interrupted, until_interrupted};
use crate::progress::Progress;
use crate::render::{self, Extent, Format, extent};
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
    #[arg(long, value_name = "VERDICT", ignore_case = true, value_parser = PossibleValuesParser::new(VERDICTS))]
    verdict: Option<String>,
    /// Only this type of artifact
    #[arg(long = "type", value_name = "TYPE")]
    artifact_type: Option<String>,
    /// Only reviews (council), or assemblies of this mode
    #[arg(long, value_name = "MODE", ignore_case = true, value_parser = PossibleValuesParser::new(MODES))]
    mode: Option<String>,
    /// Only runs on what this operator made: `--made-by` of review and convene
    #[arg(long, value_name = "OPERATOR")]
    producer: Option<String>,
    /// Only runs opened since then: 24h, 7d, a date, or all
    #[arg(long, value_name = "WHEN", default_value = "all")]
    since: String,
    #[command(flatten)]
    shape: OutputArguments,
}

pub(super) async fn run_runs(arguments: RunsArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let filter = RunFilter {
        since_ms: since(&arguments.since, quorate.now_ms())?,
        verdict: arguments.verdict,
        artifact_type: arguments.artifact_type,
        mode: arguments.mode.map(|mode| mode.to_lowercase()),
        producer: arguments.producer,
        after: None,
    };
    let request = RunsRequest { filter, limit: arguments.limit };
    let listed = arguments.shape.apply(quorate).runs(request).await?;
    let is_altered = listed.is_altered();
    // Runs can be decided between the list and the count.
    let unshown = listed.all.map(|all| (all, all.saturating_sub(listed.runs.len() as u64)));
    let exit = show(Ok(listed), RunList::doc, terminal)?;
    if let Some((all, more @ 1..)) = unshown {
        let (runs, are) = if more == 1 { ("run", "is") } else { ("runs", "are") };
        terminal.hint(&format!("{more} more {runs} {are} not shown: `--limit {all}` shows all"));
    }
    Ok(if is_altered { Exit::CHECK_FAILED } else { exit })
}

/// Derive a run's verdict again from the ledger alone
///
/// Calls no executor. Exits with 0 if the derived outcome equals the recorded one, byte for byte, and with 1 if it differs.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  quorate replay r7k2")]
pub(super) struct ReplayArguments {
    /// The run's id, a prefix of it, `latest`, or a file for the newest run about it
    #[arg(value_name = "RUN|FILE")]
    run: String,
    #[command(flatten)]
    shape: OutputArguments,
}

pub(super) async fn run_replay(arguments: ReplayArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let replayed = arguments.shape.apply(quorate).replay(&arguments.run).await?;
    let is_identical = replayed.identical;
    let exit = show(Ok(replayed), Replay::doc, terminal)?;
    Ok(if is_identical { exit } else { Exit::CHECK_FAILED })
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
    /// The run's id, a prefix of it, `latest`, or a file for the newest run about it
    #[arg(value_name = "RUN|FILE")]
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

pub(super) async fn run_resume(arguments: ResumeArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let ResumeArguments { mut run, format, fail, review, places } = arguments;
    let quorate = places.apply(quorate);
    // Checked before members are asked; what is resumed is then the run that was checked.
    if matches!(format, Format::Sarif | Format::Github | Format::Gitlab)
        && let Ok(shown) = quorate.show(&run).await
    {
        match shown.value {
            Recorded::Decision(_) => return Ok(unsupported_format(&run, terminal)),
            Recorded::Review(review) => run = review.run,
        }
    }
    let (options, policy, fail_on) = (review.answers.options(), review.policy, fail.fail_on);
    let request = ResumeRequest { run, options, policy, fail_on };
    match Progress::new(terminal.progress).follow(quorate.resume(request)).await {
        Ok(recorded) => print_recorded(&recorded, terminal),
        // A usage error is printed in the readable format.
        Err(error) if error.kind() == ErrorKind::InvalidRequest => {
            Ok(exit_with_error(&error, Format::Human, terminal))
        }
        Err(error) => Err(error),
    }
}

/// Compare two runs on one artifact: findings kept, new and gone, and who changed position
///
/// With one run, compares the run before it on the same artifact with it. `quorate schema compare` describes the JSON.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate compare draft.md\n  quorate compare r7k2 r9m4\n  quorate compare r7k2 latest --format json"
)]
pub(super) struct CompareArguments {
    /// One run: its id, a prefix of it, `latest`, or a file for the newest run about it. Two runs: the earlier one first
    #[arg(value_name = "RUN|FILE", num_args = 1..=2, required = true)]
    runs: Vec<String>,
    #[command(flatten)]
    shape: OutputArguments,
}

pub(super) async fn run_compare(
    arguments: CompareArguments,
    quorate: &Quorate,
    terminal: &Terminal,
) -> Ended {
    let mut runs = arguments.runs.into_iter().rev();
    let request = CompareRequest { b: runs.next().unwrap_or_default(), a: runs.next() };
    show(arguments.shape.apply(quorate).compare(request).await, Comparison::doc, terminal)
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

pub(super) async fn run_watch(arguments: WatchArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let mut events = Events::connect(arguments.events, Role::Listens, quorate).await?;
    let mut watch = arguments.places.apply(quorate).watch(arguments.run.as_deref()).await?;
    if arguments.all {
        terminal.hint("following every run from now on; Ctrl-C ends it");
    }
    let options = TextOptions { width: usize::MAX, ..terminal.stdout };
    let following = async {
        loop {
            let event = watch.next().await?;
            terminal.data(&match arguments.format {
                HumanOrJson::Human => event.doc(arguments.all).text(options),
                HumanOrJson::Json => format!("{}\n", json!(event)),
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
    let ended = until_interrupted(events.during(following, terminal)).await;
    watch.close().await;
    match ended {
        Ok(ended) => ended,
        // With --all, Ctrl-C is the regular end.
        Err(Interrupted) if arguments.all => Ok(Exit::DONE),
        Err(Interrupted) => Ok(Exit::INTERRUPTED),
    }
}

/// Show the outcome of a run, and its reasons
///
/// Exits with 0 for every verdict: only `review`, `convene` and `resume` exit with the verdict. Exits with 1 if the run differs
/// from what was recorded.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate show draft.md\n  quorate show r7k2 --full\n  quorate show r7k2 --format markdown | pbcopy"
)]
pub(super) struct ShowArguments {
    /// The run's id, a prefix of it, `latest`, or a file for the newest run about it
    #[arg(value_name = "RUN|FILE")]
    run: String,
    /// Output format
    #[arg(long, value_parser = one_of(SHOWN_FORMATS), default_value = "human")]
    format: ShownFormat,
    /// Show all details: every issue, every answer, the reasoning, the rules and the cost
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    places: PathArguments,
}

#[derive(Debug, Clone, Copy)]
enum ShownFormat {
    Outcome,
    /// The report.
    Html,
}

/// The formats of `--format`, with their help.
const SHOWN_FORMATS: [(&str, ShownFormat, &str); 8] = [
    ("human", ShownFormat::Outcome, "For people"),
    ("short", ShownFormat::Outcome, "A line for each issue"),
    ("json", ShownFormat::Outcome, "One JSON object"),
    ("markdown", ShownFormat::Outcome, "Markdown for a pull request"),
    ("sarif", ShownFormat::Outcome, "SARIF 2.1.0, for code scanning tools"),
    ("github", ShownFormat::Outcome, "GitHub workflow annotations"),
    ("gitlab", ShownFormat::Outcome, "A GitLab Code Quality report"),
    ("html", ShownFormat::Html, "What `quorate report` writes"),
];

pub(super) async fn run_show(arguments: ShowArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let quorate = arguments.places.apply(quorate);
    if matches!(arguments.format, ShownFormat::Html) {
        return report::show(arguments.run, &quorate, terminal).await;
    }
    let shown = quorate.show(&arguments.run).await?;
    match render::recorded(&shown, extent(arguments.full), terminal) {
        Some(text) => print_outcome(&shown, &text, terminal),
        None => Ok(unsupported_format(&arguments.run, terminal)),
    }
}

/// Refuses a format for findings in files, which cannot show an assembly's outcome. The refusal is text to read.
fn unsupported_format(run: &str, terminal: &Terminal) -> Exit {
    let body = Body::new(format!("run {run} is an assembly's: `sarif` and `github` are for reviews"))
        .help("`--format human`, `json` or `markdown` shows an assembly");
    let error = Error::new(ErrorKind::InvalidRequest, codes::USAGE, body);
    exit_with_error(&error, Format::Human, terminal)
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
    /// The run's id, a prefix of it, `latest`, or a file for the newest run about it
    #[arg(value_name = "RUN|FILE")]
    run: String,
    /// The decision
    #[arg(long, ignore_case = true, value_parser = verdict_parser(DECISIONS))]
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
const DECISIONS: [(Verdict, &str); 3] = [
    (Verdict::Ship, "Publish it"),
    (Verdict::Revise, "Change it first"),
    (Verdict::Hold, "Do not publish it"),
];

pub(super) async fn run_override(
    arguments: OverrideArguments,
    quorate: &Quorate,
    terminal: &Terminal,
) -> Ended {
    let OverrideArguments { run, verdict, reason, by, places } = arguments;
    let request = OverrideRequest { run, verdict, reason, by };
    let review = places.apply(quorate).override_verdict(request).await?;
    print_outcome(&review, &review.doc(Extent::Screen).text(terminal.stdout), terminal)
}
