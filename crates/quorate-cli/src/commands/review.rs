//! `quorate review`. `review/batch.rs` reviews several texts, `review/dry_run.rs` says what reviews would cost.

pub(super) mod batch;
mod dry_run;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use quorate_manifest::council::tiers::Tier;

use super::interruption;
use crate::arguments::{FailOnArguments, PathArguments, ProducerArguments, ReviewArguments};
use crate::environment::variable;
use crate::exit::{Exit, exit_with_error};
use crate::interrupt::{Interrupted, interrupt_next, until_interrupted};
use crate::progress::Progress;
use crate::render::{self, Extent, Format};
use crate::session::print_warnings;
use crate::terminal::Terminal;
use quorate::service::artifact::{self, Artifact};
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::report::Report;
use quorate::service::review::{self, Request, ReviewOutcome, TierPolicy};
use quorate::service::run_options::RunOptions;
use quorate::service::runs::RunReport;
use quorate::service::session::LedgerSession;
use quorate::service::subjects;
use quorate::service::workspace::PathOverrides;
use quorate_adapters::executor::{llm, rubric};

/// Review texts: SHIP, REVISE or HOLD, with a brief
///
/// Four deliberators answer in parallel, read each other's answers and answer again; an adjudicator merges; a policy
/// decides. Without configuration the built-in council uses the built-in rubric, which calls no model.
///
/// Several texts are read first and then reviewed one after the other; a quoted pattern is expanded. The exit code is that
/// of the worst verdict.
///
/// The exit code is the verdict: 0 SHIP, 1 REVISE, 2 HOLD, 3 INCOMPLETE, 4 not found, 5 unusable configuration or
/// input, 6 skipped by its tier (with --tiered), 64 wrong command line. With --fail-on, milder verdicts exit with 0.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate review draft.md\n  quorate review draft.md --executor claude --timeout 5m\n  quorate review draft.md --executor anthropic --dry-run\n  quorate review 'posts/**/*.md' --fail-on hold\n  git show HEAD:post.md | quorate review - --type blog_post --format json\n  quorate review draft.md --format sarif > quorate.sarif"
)]
pub(super) struct Arguments {
    /// The texts: files, patterns such as 'posts/*.md', or - for standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The artifact's type, under which verdicts are remembered; by default from the tier rules
    #[arg(long = "type", value_name = "TYPE", value_parser = NonEmptyStringValueParser::new())]
    artifact_type: Option<String>,
    /// The artifact's tier, in place of the tier rules
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=3))]
    tier: Option<u8>,
    /// Apply the tier as a sweep does: tier 2 is skipped, tier 3 sampled, with exit code 6
    #[arg(long)]
    tiered: bool,
    /// Ask no member: estimate the calls, tokens and money of the review
    #[arg(long, conflicts_with_all = ["full", "fail_on"])]
    dry_run: bool,
    /// How the verdict is printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Show all details also for a SHIP: every answer, every place with its line, and the reasoning
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    fail: FailOnArguments,
    #[command(flatten)]
    producer: ProducerArguments,
    #[command(flatten)]
    review: ReviewArguments,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.format;
    let expanded = match subjects::expand(environment, &arguments.files) {
        Ok(expanded) => expanded,
        Err(error) => return exit_with_error(&error, format, terminal),
    };
    if !expanded.report.is_empty() {
        terminal.status(&render::diagnostics(&expanded.report, Format::Human, terminal.stderr));
    }
    let read = |subject| artifact::read(subject, &environment.directory);
    let artifacts: Result<Vec<Artifact>, ServiceError> = expanded.subjects.iter().map(read).collect();
    let artifacts = match artifacts {
        Ok(artifacts) => artifacts,
        Err(error) => return exit_with_error(&error, format, terminal),
    };
    let settings = ReviewSettings {
        format,
        extent: if arguments.full { Extent::Full } else { Extent::Screen },
        fail: arguments.fail,
        places: arguments.places.path_overrides(),
        request: Request {
            artifact_type: arguments.artifact_type,
            tier: arguments.tier.and_then(|tier| Tier::from_number(u64::from(tier))),
            tier_policy: if arguments.tiered { TierPolicy::Obey } else { TierPolicy::Ignore },
            policy: arguments.review.policy(),
            options: RunOptions {
                producer: arguments.producer.producer(),
                ..arguments.review.answers.options()
            },
        },
    };
    if arguments.dry_run {
        return dry_run::run(&artifacts, &settings, environment, terminal);
    }
    let artifact = match <[Artifact; 1]>::try_from(artifacts) {
        Ok([artifact]) if expanded.is_single => artifact,
        Ok(of_pattern) => {
            return Box::pin(batch::run(of_pattern.into(), &settings, environment, terminal)).await;
        }
        Err(artifacts) => return Box::pin(batch::run(artifacts, &settings, environment, terminal)).await,
    };
    let name = artifact.display_name.clone();
    let (outcome, session) = Box::pin(review(artifact, &settings, environment, terminal)).await;
    if matches!(outcome, Outcome::Skipped { .. }) {
        match format {
            // Without a review, the output has the form of several reviews.
            Format::Json => {
                let reviews = batch::json(std::iter::once((&*name, &outcome)), Exit::SKIPPED);
                terminal.data(&format!("{reviews:#}\n"));
            }
            Format::Sarif => terminal.data(&render::sarif_of(&[])),
            Format::Gitlab => terminal.data(&render::gitlab_of(&[])),
            Format::Human | Format::Markdown | Format::Github => {}
        }
    }
    let exit = match outcome {
        Outcome::Judged(report) => {
            print(&report, format, settings.extent, terminal);
            hint_at_model(&report, &settings, terminal);
            Exit::verdict(report.exit_code())
        }
        Outcome::Skipped { tier, artifact_type, reason } => {
            let by_model = reason.map_or(String::new(), |reason| {
                format!(" (a model said: {})", crate::render::paint::one_line(&reason))
            });
            terminal.hint(&format!(
                "skipped: tier {tier} (type {artifact_type}) is not reviewed{by_model}; leave --tiered out to review it"
            ));
            Exit::SKIPPED
        }
        Outcome::Failed(error) => exit_with_error(&error, format, terminal),
        Outcome::Interrupted => Exit::INTERRUPTED,
    };
    // The report is final: it does not wait for the ledger to be folded.
    if let Some(session) = session {
        session.close().await;
    }
    exit
}

/// The options that apply to every text.
#[derive(Clone)]
pub(super) struct ReviewSettings {
    pub(super) format: Format,
    pub(super) extent: Extent,
    pub(super) fail: FailOnArguments,
    pub(super) places: PathOverrides,
    pub(super) request: Request,
}

/// The result of one text.
pub(super) enum Outcome {
    Judged(Box<Report>),
    /// Its tier is not reviewed.
    Skipped {
        tier: u8,
        artifact_type: String,
        /// The reason for the tier, if a model chose it.
        reason: Option<String>,
    },
    Failed(ServiceError),
    /// The command was interrupted, and has printed how to resume.
    Interrupted,
}

/// Reviews one text and prints the warnings. The caller prints the result, and then closes the ledger.
pub(super) async fn review(
    artifact: Artifact,
    settings: &ReviewSettings,
    environment: &Environment,
    terminal: &Terminal,
) -> (Outcome, Option<LedgerSession>) {
    let session = match review::open_session(environment, &settings.places, &artifact).await {
        Ok(session) => session,
        Err(error) => return (Outcome::Failed(error), None),
    };
    let progress = Arc::new(Progress::new(terminal.shows_progress));
    let reviewed = review::review(&session, artifact, &settings.request, progress.clone());
    let reviewed = until_interrupted(Box::pin(reviewed)).await;
    progress.clear();
    let ended = match reviewed {
        Err(Interrupted) => match interruption::decided_report(&progress, &session, terminal).await {
            Some(RunReport::Review(report)) => {
                interrupt_next();
                Outcome::Judged(report)
            }
            Some(RunReport::Assembly(_)) | None => Outcome::Interrupted,
        },
        Ok(Ok(ReviewOutcome::Judged(report))) => Outcome::Judged(report),
        Ok(Ok(ReviewOutcome::Skipped { tier, artifact_type, reason })) => {
            Outcome::Skipped { tier, artifact_type, reason }
        }
        Ok(Err(error)) => {
            if error.is_ledger_unavailable() {
                session.interrupt();
            }
            Outcome::Failed(error)
        }
    };
    print_warnings(&session, terminal);
    let ended = match ended {
        Outcome::Judged(mut report) => {
            report.fail_on = settings.fail.fail_on();
            Outcome::Judged(report)
        }
        outcome => outcome,
    };
    (ended, Some(session))
}

/// Hints at a model if the rubric answered and the environment has a key. The rubric stays the default, since models cost money.
fn hint_at_model(report: &Report, settings: &ReviewSettings, terminal: &Terminal) {
    let is_default = settings.request.options.executor.is_none() && report.executor == rubric::KIND;
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.trim().is_empty());
    if is_default
        && terminal.shows_progress
        && let Some((preset, name)) = llm::with_key(is_set)
    {
        terminal.hint(&format!("{name} is set: `--executor {preset}` asks a model in place of the rubric"));
    }
}

fn print(report: &Report, format: Format, extent: Extent, terminal: &Terminal) {
    terminal.data_as(format, &render::report(report, format, extent, terminal.stdout));
}
