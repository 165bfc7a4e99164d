//! `quorate eval`: is a council worth its calls?

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use quorate::Quorate;
use quorate::eval::{CoherenceRequest, Control};
use quorate::sweep::SweepEvent;

use crate::arguments::{PathArguments, ReviewArguments};
use crate::exit::{Ended, Exit, warn};
use crate::progress::{Progress, Shown, SweepProgress};
use crate::render::json_text;
use crate::terminal::Terminal;

/// Evaluate a council: is it steady, what does it find, and what does round 2 change?
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate eval coherence examples/launch-post.md\n  quorate eval coherence 'drafts/*.md' --executor claude --dry-run"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Coherence(CoherenceArguments),
}

pub(super) async fn run(arguments: Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let Verb::Coherence(arguments) = arguments.verb;
    coherence(arguments, quorate, terminal).await
}

/// Measure without labels how steady the council and its members are, and what they find
///
/// Makes variants of each draft whose relation to it is known, and lets the council judge them: the same text again, texts that
/// say the same, and texts with an inserted defect or its harmless twin. Reports how often a verdict changed where nothing did,
/// how many defects were found at their line, and what round 2 changed, beside a control in which the members do not read each
/// other. Each share has an interval that holds the true one in 95 of 100 cases.
///
/// The runs are kept in a ledger of their own, `eval/ledger.db` beside the workspace's. A command that was interrupted
/// continues when it is repeated: no recorded answer is asked for again. The inserted sentences are English.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate eval coherence examples/launch-post.md\n  quorate eval coherence 'drafts/*.md' --kinds wrong_sum,insult --executor claude\n  quorate eval coherence draft.md --format json"
)]
struct CoherenceArguments {
    /// The drafts, or patterns such as 'drafts/*.md'
    #[arg(value_name = "DRAFT", required = true)]
    drafts: Vec<PathBuf>,
    /// Only these kinds of defects, with commas between them; by default all 20
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    kinds: Vec<String>,
    /// Do not judge again without showing the members each other's answers
    #[arg(long)]
    no_control: bool,
    /// Only say what it would cost
    #[arg(long)]
    dry_run: bool,
    /// The number of concurrent reviews
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Human)]
    format: ReportFormat,
    #[command(flatten)]
    review: ReviewArguments,
    #[command(flatten)]
    places: PathArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// Text to read
    Human,
    /// Markdown for other documents
    Markdown,
    /// One JSON object
    Json,
}

async fn coherence(arguments: CoherenceArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let quorate = arguments.places.apply(quorate);
    let drafts = quorate.drafts(&arguments.drafts)?;
    warn(&drafts.warnings, terminal);
    let request = CoherenceRequest {
        drafts: drafts.value.drafts,
        kinds: arguments.kinds,
        control: if arguments.no_control { Control::Skip } else { Control::Run },
        jobs: usize::from(arguments.jobs),
        policy: arguments.review.policy,
        options: arguments.review.answers.options(),
    };
    let estimate = quorate.coherence_estimate(&request).await?;
    if arguments.dry_run {
        terminal.data(&match arguments.format {
            ReportFormat::Human => estimate.doc().text(terminal.stdout),
            ReportFormat::Markdown => estimate.doc().markdown(),
            ReportFormat::Json => json_text(&estimate),
        });
        return Ok(Exit::DONE);
    }
    terminal.hint(estimate.doc().text(terminal.stdout).trim_end());
    let progress = Arc::new(SweepProgress::new(terminal.progress));
    let shown = progress.clone();
    let evaluating = quorate.coherence(request, Arc::new(move |event: SweepEvent<'_>| shown.show(&event)));
    // The evaluation reports to its own observer.
    let report = Progress::new(Shown::Nothing).follow(evaluating).await;
    progress.clear();
    let report = report?;
    warn(&report.warnings, terminal);
    terminal.data(&match arguments.format {
        ReportFormat::Human => report.doc().text(terminal.stdout),
        ReportFormat::Markdown => report.doc().markdown(),
        ReportFormat::Json => json_text(&report.value),
    });
    Ok(Exit::DONE)
}
