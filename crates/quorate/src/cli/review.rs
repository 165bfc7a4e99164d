//! `quorate review`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use quorate_manifest::council::tiers::Tier;

use super::arguments::{FailArguments, PlaceArguments, ProducerArguments, ReviewArguments};
use super::desk::{failed, warnings};
use super::exit::{Exit, stopped};
use super::interrupt::{Interrupted, or_interrupted};
use super::interrupted::interrupted;
use super::progress::Progress;
use super::render::{self, Format};
use super::terminal::Terminal;
use crate::service::artifact::Subject;
use crate::service::desk::Desk;
use crate::service::environment::Environment;
use crate::service::report::Report;
use crate::service::review::{self, Request, Reviewed, Tiered};
use crate::service::sitting::Options;

/// Review one text: SHIP, REVISE or HOLD, with a brief
///
/// Four deliberators answer in parallel, read each other and answer again; an adjudicator merges; a policy judges.
/// Without any configuration the built-in council sits on the built-in rubric, which asks no model.
///
/// The exit code is the verdict: 0 SHIP, 1 REVISE, 2 HOLD, 3 INCOMPLETE, 4 not found, 5 unusable configuration or
/// input, 6 skipped by its tier (with --tiered), 64 wrong command line. With --fail-on, milder verdicts exit with 0.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate review draft.md\n  quorate review draft.md --executor claude --timeout 5m\n  git show HEAD:post.md | quorate review - --type blog_post --format json\n  quorate review draft.md --format sarif > quorate.sarif"
)]
pub(super) struct Arguments {
    /// The text, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The artifact's type, under which verdicts are remembered; without it what the tier rules say
    #[arg(long = "type", value_name = "TYPE", value_parser = NonEmptyStringValueParser::new())]
    artifact_type: Option<String>,
    /// The artifact's tier, in place of what the tier rules say
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=3))]
    tier: Option<u8>,
    /// Obey the tier as a sweep does: tier 2 is skipped, tier 3 sampled, with exit code 6
    #[arg(long)]
    tiered: bool,
    /// How the verdict is printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    #[command(flatten)]
    fail: FailArguments,
    #[command(flatten)]
    producer: ProducerArguments,
    #[command(flatten)]
    review: ReviewArguments,
    #[command(flatten)]
    places: PlaceArguments,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.format;
    let subject = match arguments.file.as_os_str() == "-" {
        true => Subject::Stdin,
        false => Subject::File(arguments.file),
    };
    let request = Request {
        subject,
        artifact_type: arguments.artifact_type,
        tier: arguments.tier.and_then(|tier| Tier::from_number(u64::from(tier))),
        tiered: if arguments.tiered { Tiered::Obeyed } else { Tiered::Shown },
        options: Options { producer: arguments.producer.producer(), ..arguments.review.options() },
    };
    let (desk, artifact) = match review::open(environment, &arguments.places.places(), &request.subject).await
    {
        Ok(opened) => opened,
        Err(stop) => return stopped(&stop, format, terminal),
    };
    let progress = Arc::new(Progress::new(terminal.watched));
    let reviewed = or_interrupted(review::review(&desk, artifact, &request, progress.clone())).await;
    progress.clear();
    let exit = match reviewed {
        Err(Interrupted) => interrupted(&progress, &desk, format, terminal).await,
        Ok(Ok(Reviewed::Judged(mut report))) => {
            report.fail_on = arguments.fail.fail_on();
            judged(&report, &desk, format, terminal)
        }
        Ok(Ok(Reviewed::Skipped { tier, artifact_type })) => {
            warnings(&desk, terminal);
            terminal.talk(&format!(
                "skipped: tier {tier} (type {artifact_type}) is not reviewed; leave --tiered out to review it"
            ));
            Exit::SKIPPED
        }
        Ok(Err(stop)) => failed(&stop, &desk, format, terminal),
    };
    desk.close().await;
    exit
}

/// Prints a report; the exit code is its verdict.
pub(super) fn judged(report: &Report, desk: &Desk, format: Format, terminal: &Terminal) -> Exit {
    warnings(desk, terminal);
    terminal.data_in(format, &render::report(report, format, terminal.stdout));
    Exit::verdict(report.exit())
}
