//! `quorate review`.
//!
//! Several texts are reviewed one after the other, each as if it were the only one, and the worst exit code is the command's.
//! `--dry-run` estimates the cost; it asks no member, and neither needs nor creates a ledger.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use quorate::service::artifact::{self, Artifact};
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::estimate::Estimate;
use quorate::service::report::Review;
use quorate::service::review::{self, ReviewOutcome, ReviewRequest, TierPolicy};
use quorate::service::run_spec::RunOptions;
use quorate::service::runs::Recorded;
use quorate::service::schemas::REVIEWS;
use quorate::service::session::LedgerSession;
use quorate::service::workspace::PathOverrides;
use quorate::service::{estimate, review as reviews};
use quorate_adapters::executor::{llm, rubric};
use quorate_diagnostics::render::machine::diagnostics_json;
use quorate_diagnostics::{Body, codes};
use quorate_manifest::council::tiers::Tier;
use serde_json::{Value, json};

use super::print_report;
use crate::arguments::{FailOnArguments, PathArguments, ProducerArguments, ReviewArguments};
use crate::environment::variable;
use crate::exit::print_warnings;
use crate::exit::{Exit, exit_with_error};
use crate::interrupt::{Interrupted, interrupt_next, until_interrupted};
use crate::progress::Progress;
use crate::render::{self, Extent, Format};
use crate::terminal::Terminal;

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
    let expanded = match artifact::expand_subjects(environment, &arguments.files) {
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
        request: ReviewRequest {
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
        return estimate_all(&artifacts, &settings, environment, terminal);
    }
    let artifact = match <[Artifact; 1]>::try_from(artifacts) {
        Ok([artifact]) if expanded.is_single => artifact,
        Ok(of_pattern) => {
            return Box::pin(review_all(of_pattern.into(), &settings, environment, terminal)).await;
        }
        Err(artifacts) => return Box::pin(review_all(artifacts, &settings, environment, terminal)).await,
    };
    let name = artifact.display_name.clone();
    let (outcome, session) = Box::pin(review(artifact, &settings, environment, terminal)).await;
    if matches!(outcome, Outcome::Skipped { .. }) {
        match format {
            // Without a review, the output has the form of several reviews.
            Format::Json => {
                let reviews = all_json(std::iter::once((&*name, &outcome)), Exit::SKIPPED);
                terminal.data(&format!("{reviews:#}\n"));
            }
            Format::Sarif => terminal.data(&render::sarif(&[])),
            Format::Gitlab => terminal.data(&render::gitlab(&[])),
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
                format!(" (a model said: {})", crate::render::layout::one_line(&reason))
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
    pub(super) request: ReviewRequest,
}

/// The result of one text.
pub(super) enum Outcome {
    Judged(Box<Review>),
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
        Err(Interrupted) => match print_report::decided_report(&progress, &session, terminal).await {
            Some(Recorded::Review(report)) => {
                interrupt_next();
                Outcome::Judged(report)
            }
            Some(Recorded::Decision(_)) | None => Outcome::Interrupted,
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
fn hint_at_model(report: &Review, settings: &ReviewSettings, terminal: &Terminal) {
    let is_default = settings.request.options.executor.is_none() && report.executor == rubric::KIND;
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.trim().is_empty());
    if is_default
        && terminal.shows_progress
        && let Some((preset, name)) = llm::with_key(is_set)
    {
        terminal.hint(&format!("{name} is set: `--executor {preset}` asks a model in place of the rubric"));
    }
}

fn print(report: &Review, format: Format, extent: Extent, terminal: &Terminal) {
    terminal.data_as(format, &render::report(report, format, extent, terminal.stdout));
}

/// Reviews one text after the other. A text that cannot be reviewed ends the batch; the reports before it are printed.
async fn review_all(
    artifacts: Vec<Artifact>,
    settings: &ReviewSettings,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let names: Vec<String> = artifacts.iter().map(|artifact| artifact.display_name.clone()).collect();
    for artifact in &artifacts {
        // If a later text cannot be reviewed, not even the first one is.
        if let Err(error) = reviews::check(environment, &settings.places, artifact, &settings.request) {
            return exit_with_error(&error, settings.format, terminal);
        }
    }
    let mut done = Vec::with_capacity(artifacts.len());
    for artifact in artifacts {
        let reviewed = review(artifact, settings, environment, terminal);
        let (outcome, session) = Box::pin(reviewed).await;
        if let Outcome::Judged(report) = &outcome
            && !matches!(settings.format, Format::Json | Format::Sarif | Format::Gitlab)
        {
            if !done.is_empty() {
                terminal.data("\n");
            }
            print(report, settings.format, settings.extent, terminal);
        }
        if let Some(session) = session {
            session.close().await;
        }
        let continues = matches!(outcome, Outcome::Judged(_) | Outcome::Skipped { .. });
        done.push(outcome);
        if !continues {
            break;
        }
    }
    let exit = worst(done.iter().map(exit_of));
    match settings.format {
        Format::Json => {
            terminal.data(&format!("{:#}\n", all_json(names.iter().map(String::as_str).zip(&done), exit)));
        }
        Format::Sarif => terminal.data(&render::sarif(&reports(&done))),
        Format::Gitlab => {
            terminal.data(&render::gitlab(&reports(&done)));
            if let Some(Outcome::Failed(error)) = done.last() {
                terminal.status(&render::diagnostics(&error.report, Format::Human, terminal.stderr));
            }
        }
        Format::Human | Format::Markdown | Format::Github => {
            if let Some(Outcome::Failed(error)) = done.last() {
                exit_with_error(error, settings.format, terminal);
            }
            terminal.hint(&batch_summary(&names, &done));
        }
    }
    exit
}

/// The exit code of a command with several reviews.
pub(in crate::commands) fn worst(exits: impl Iterator<Item = Exit>) -> Exit {
    exits.max_by_key(|exit| rank(*exit)).unwrap_or(Exit::DONE)
}

/// The severity of an exit code among those of several reviews.
pub(in crate::commands) fn rank(exit: Exit) -> u8 {
    match exit.code() {
        0 => 0,
        6 => 1,
        1 => 2,
        2 => 3,
        3 => 4,
        _ => 5,
    }
}

pub(in crate::commands) fn exit_of(ended: &Outcome) -> Exit {
    match ended {
        Outcome::Judged(report) => Exit::verdict(report.exit_code()),
        Outcome::Skipped { .. } => Exit::SKIPPED,
        Outcome::Failed(error) => Exit::verdict(error.class.code()),
        Outcome::Interrupted => Exit::INTERRUPTED,
    }
}

fn reports(done: &[Outcome]) -> Vec<&Review> {
    done.iter()
        .filter_map(|ended| match ended {
            Outcome::Judged(report) => Some(&**report),
            Outcome::Skipped { .. } | Outcome::Failed(_) | Outcome::Interrupted => None,
        })
        .collect()
}

/// Each review as one object, in the given order; one without a verdict has the reason.
pub(in crate::commands) fn all_json<'r>(
    reviews: impl Iterator<Item = (&'r str, &'r Outcome)>,
    exit: Exit,
) -> Value {
    let review_json = |(name, outcome): (&str, &Outcome)| match outcome {
        Outcome::Judged(report) => report.to_json(),
        Outcome::Skipped { tier, artifact_type, reason } => {
            let skipped = json!({"tier": tier, "artifact_type": artifact_type, "tier_reason": reason});
            json!({"artifact": name, "exit": exit_of(outcome).code(), "skipped": skipped})
        }
        Outcome::Failed(error) => {
            json!({"artifact": name, "exit": exit_of(outcome).code(), "diagnostics": diagnostics_json(&error.report)})
        }
        Outcome::Interrupted => json!({"artifact": name, "exit": exit_of(outcome).code(), "diagnostics": []}),
    };
    let reviews: Vec<Value> = reviews.map(review_json).collect();
    json!({"schema": REVIEWS, "exit": exit.code(), "reviews": reviews})
}

/// One line for each text, in the given order.
fn batch_summary(names: &[String], done: &[Outcome]) -> String {
    let word = |ended: &Outcome| match ended {
        Outcome::Judged(report) => report.verdict.map_or("OPEN", quorate_protocol::policy::Verdict::as_str),
        Outcome::Skipped { .. } => "skipped by its tier",
        Outcome::Failed(_) => "not reviewed",
        Outcome::Interrupted => "interrupted",
    };
    let mut text = String::from("\n");
    for (at, name) in names.iter().enumerate() {
        let word = done.get(at).map_or("not reached", word);
        text.push_str(&format!("{word:<10}  {name}\n"));
    }
    text
}

fn estimate_all(
    artifacts: &[Artifact],
    settings: &ReviewSettings,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let format = settings.format;
    if !matches!(format, Format::Human | Format::Json) {
        let body = Body::new("`--dry-run` prints no verdict").help("use `--format human` or `--format json`");
        return exit_with_error(&ServiceError::new(ExitClass::Usage, codes::USAGE, body), format, terminal);
    }
    let mut total = Estimate::default();
    let mut texts = Vec::new();
    for artifact in artifacts {
        match review::estimate(environment, &settings.places, artifact, &settings.request) {
            Ok(estimate) => {
                total.add(estimate.clone());
                texts.push((&artifact.display_name, estimate));
            }
            Err(error) => return exit_with_error(&error, format, terminal),
        }
    }
    if format == Format::Json {
        let texts = texts.iter().map(|(name, estimate)| {
            let mut text = estimate.json();
            text["artifact"] = json!(name);
            text
        });
        let texts: Vec<_> = texts.collect();
        let all = json!({"schema": estimate::SCHEMA, "texts": texts, "total": total.json()});
        terminal.data(&format!("{all:#}\n"));
        return Exit::DONE;
    }
    for (name, estimate) in &texts {
        terminal.data(&render::sweep::estimate_text(name, estimate, terminal.stdout));
    }
    if texts.len() > 1 {
        terminal.data(&render::sweep::estimate_text("All of them", &total, terminal.stdout));
    }
    terminal.status(render::sweep::ESTIMATE_NOTE);
    Exit::DONE
}

#[cfg(test)]
mod tests {
    use super::{Exit, rank};

    #[test]
    fn the_worst_verdict_wins_and_what_is_no_verdict_is_worse() {
        let mut codes = [70, 6, 3, 0, 2, 1, 130, 5, 4].map(Exit::verdict);
        codes.sort_by_key(|exit| (rank(*exit), exit.code()));
        assert_eq!(codes.map(Exit::code), [0, 6, 1, 2, 3, 4, 5, 70, 130]);
    }
}
