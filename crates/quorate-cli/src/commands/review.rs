//! `quorate review`.
//!
//! Several texts are reviewed one after the other, each as if it were the only one, and the worst exit code is the command's.
//! `--dry-run` estimates the cost; it asks no member, and neither needs nor creates a ledger.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use quorate::init::EXAMPLE_DRAFT;
use quorate::review::{Estimates, ReviewOutcome, ReviewedDraft, Reviewing, Reviews, TierPolicy};
use quorate::{Error, ErrorKind, Outcome, Quorate, Review, ReviewRequest, RunOptions, Tier};
use quorate_diagnostics::{Body, codes};

use crate::arguments::{FailOnArguments, PathArguments, ProducerArguments, ReviewArguments};
use crate::environment::variable;
use crate::exit::{Ended, Exit, exit_with_error, warn};
use crate::progress::{Progress, Shown};
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
    after_help = "Examples:\n  quorate review --example\n  quorate review draft.md\n  quorate review draft.md --executor claude --timeout 5m\n  quorate review draft.md --executor anthropic --dry-run\n  quorate review 'posts/**/*.md' --fail-on hold\n  git show HEAD:post.md | quorate review - --type blog_post --format json\n  quorate review draft.md --format short\n  quorate review draft.md --format sarif > quorate.sarif"
)]
pub(super) struct Arguments {
    /// The texts: files, patterns such as 'posts/*.md', or - for standard input
    #[arg(value_name = "FILE", required_unless_present = "example")]
    files: Vec<PathBuf>,
    /// Review a text that comes with the program
    #[arg(long, conflicts_with = "files")]
    example: bool,
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
    /// Show all details: every issue, every answer, and the reasoning
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

pub(super) async fn run(arguments: Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let format = terminal.format;
    let (settings, is_single, reviewings) = prepare(arguments, quorate, terminal)?;
    if settings.is_dry_run {
        return print_estimates(reviewings, terminal).await;
    }
    // If a later text cannot be reviewed, not even the first one is.
    if !is_single {
        reviewings.iter().try_for_each(Reviewing::check)?;
    }
    let names: Vec<String> = reviewings.iter().map(|reviewing| reviewing.name().into_owned()).collect();
    let mut done: Vec<ReviewedDraft> = Vec::with_capacity(names.len());
    for (reviewing, name) in reviewings.into_iter().zip(&names) {
        let progress = Progress::new(terminal.progress);
        let result =
            Box::pin(progress.follow(reviewing.start_tiered())).await.map(|Outcome { value, warnings }| {
                warn(&warnings, terminal);
                value
            });
        if let Ok(ReviewOutcome::Judged(review)) = &result
            && (is_single || !matches!(format, Format::Json | Format::Sarif | Format::Gitlab))
        {
            if !done.is_empty() && format != Format::Short {
                terminal.data("\n");
            }
            terminal.data_as(format, &render::report(review, settings.extent, terminal));
        }
        let continues = result.is_ok();
        done.push(ReviewedDraft { name: name.clone(), result });
        if !continues {
            break;
        }
    }
    match is_single {
        true => end_single(&done, &settings, terminal),
        false => end_several(&names, &done, terminal),
    }
    Ok(Exit(quorate::review::worst_exit_code(done.iter().map(ReviewedDraft::exit_code))))
}

/// The options that apply to every text.
struct Settings {
    extent: Extent,
    is_dry_run: bool,
    /// Whether an executor is named.
    has_executor: bool,
}

/// Reads all texts.
fn prepare(
    arguments: Arguments,
    quorate: &Quorate,
    terminal: &Terminal,
) -> Result<(Settings, bool, Vec<Reviewing>), Error> {
    let quorate = arguments.places.apply(quorate);
    let request = ReviewRequest {
        artifact_type: arguments.artifact_type,
        tier: arguments.tier.and_then(|tier| Tier::from_number(u64::from(tier))),
        tier_policy: if arguments.tiered { TierPolicy::Obey } else { TierPolicy::Ignore },
        policy: arguments.review.policy,
        fail_on: arguments.fail.fail_on,
        options: RunOptions { producer: arguments.producer.producer(), ..arguments.review.answers.options() },
    };
    let settings = Settings {
        extent: render::extent(arguments.full),
        is_dry_run: arguments.dry_run,
        has_executor: request.options.executor.is_some(),
    };
    if arguments.example {
        let reviewing = quorate.review_text(EXAMPLE_DRAFT.0, EXAMPLE_DRAFT.1).request(request);
        return Ok((settings, true, vec![reviewing.load()?]));
    }
    let named = quorate.drafts(&arguments.files)?;
    warn(&named.warnings, terminal);
    let reviewing = |draft| quorate.review(draft).request(request.clone()).load();
    let reviewings = named.value.drafts.into_iter().map(reviewing).collect::<Result<_, _>>()?;
    Ok((settings, named.value.is_single, reviewings))
}

/// Ends a command with one text, whose report is printed.
fn end_single(done: &[ReviewedDraft], settings: &Settings, terminal: &Terminal) {
    match done {
        [ReviewedDraft { result: Ok(ReviewOutcome::Judged(review)), .. }] => {
            hint_at_model(review, settings, terminal);
        }
        [ReviewedDraft { result: Ok(ReviewOutcome::Skipped { tier, artifact_type, reason }), .. }] => {
            match terminal.format {
                // Without a review, the output has the form of several reviews.
                Format::Json => terminal.data(&render::json_text(&Reviews::of(done))),
                Format::Sarif => terminal.data(&render::sarif(&[])),
                Format::Gitlab => terminal.data(&render::gitlab(&[])),
                Format::Human | Format::Short | Format::Markdown | Format::Github => {}
            }
            let by_model = reason.as_ref().map_or(String::new(), |reason| {
                format!(" (a model said: {})", render::layout::one_line(reason))
            });
            terminal.hint(&format!(
                "skipped: tier {tier} (type {artifact_type}) is not reviewed{by_model}; leave --tiered out to review it"
            ));
        }
        [ReviewedDraft { result: Err(error), .. }] => {
            exit_with_error(error, terminal.format, terminal);
        }
        _ => {}
    }
}

/// Ends a command with several texts. A text that cannot be reviewed has ended the batch; the reports before it are printed.
fn end_several(names: &[String], done: &[ReviewedDraft], terminal: &Terminal) {
    let reports: Vec<&Review> = done
        .iter()
        .filter_map(|reviewed| match &reviewed.result {
            Ok(ReviewOutcome::Judged(review)) => Some(&**review),
            _ => None,
        })
        .collect();
    let failed = done.last().and_then(|reviewed| reviewed.result.as_ref().err());
    match terminal.format {
        format @ (Format::Json | Format::Sarif | Format::Gitlab) => {
            terminal.data(&match format {
                Format::Json => render::json_text(&Reviews::of(done)),
                Format::Sarif => render::sarif(&reports),
                _ => render::gitlab(&reports),
            });
            match failed {
                Some(error) if format == Format::Gitlab || error.kind() == ErrorKind::Interrupted => {
                    exit_with_error(error, Format::Human, terminal);
                }
                Some(error) => warn(error.warnings(), terminal),
                None => {}
            }
        }
        format @ (Format::Human | Format::Short | Format::Markdown | Format::Github) => {
            let mut summary = String::from("\n");
            for (at, name) in names.iter().enumerate() {
                let word = done.get(at).map_or("not reached", ReviewedDraft::word);
                summary.push_str(&format!("{word:<10}  {name}\n"));
            }
            terminal.hint(&summary);
            // Last, since it names the command that continues.
            if let Some(error) = failed {
                exit_with_error(error, format, terminal);
            }
        }
    }
}

/// Hints at a model if the rubric answered and the environment has a key. The rubric stays the default, since models cost money.
fn hint_at_model(review: &Review, settings: &Settings, terminal: &Terminal) {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.trim().is_empty());
    if !settings.has_executor
        && terminal.progress == Shown::All
        && let Some((preset, name)) = review.executor_with_key(is_set)
    {
        terminal.hint(&format!("{name} is set: `--executor {preset}` asks a model in place of the rubric"));
    }
}

/// `--dry-run`.
async fn print_estimates(reviewings: Vec<Reviewing>, terminal: &Terminal) -> Ended {
    if !matches!(terminal.format, Format::Human | Format::Json) {
        let body = Body::new("`--dry-run` prints no verdict").help("use `--format human` or `--format json`");
        return Err(Error::new(ErrorKind::InvalidRequest, codes::USAGE, body));
    }
    let mut estimates = Vec::with_capacity(reviewings.len());
    for reviewing in reviewings {
        estimates.push((reviewing.name().into_owned(), reviewing.estimate_with_time().await?));
    }
    terminal.data(&render::human_or_json(&Estimates::of(estimates), Estimates::doc, terminal));
    if terminal.format == Format::Human {
        terminal.status(quorate::view::ESTIMATE_NOTE);
    }
    Ok(Exit::DONE)
}
