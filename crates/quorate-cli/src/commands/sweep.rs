//! `quorate sweep`.

use std::sync::Arc;

use clap::Args;
use clap::builder::TypedValueParser;
use quorate::sweep::{JudgedPolicy, SweepEvent, SweepMode, SweepRequest};
use quorate::{Quorate, Verdict};

use crate::arguments::{HumanOrJson, PathArguments, QueueArguments, ReviewArguments, since, verdict_parser};
use crate::exit::{Ended, Exit, warn};
use crate::progress::{Progress, Shown, SweepProgress};
use crate::render::extent;
use crate::terminal::Terminal;

/// Review every due file below watch.paths that was not judged yet
///
/// Tier 1 is always reviewed, tier 2 never, tier 3 one in five by a stable hash. Files that this council has judged (same
/// content, same prompts, executor and policy) are skipped. The number of files is not limited.
///
/// Exits with 0 when every due file was judged, whatever the verdicts, and with 3 when one could not be. With --fail-on, the
/// worst verdict decides, also an earlier one of a file that is skipped: 1 REVISE, 2 HOLD.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate sweep --since 24h\n  quorate sweep --since all --dry-run\n  quorate sweep --since all --fail-on revise\n  quorate sweep --jobs 4 --format json\n  quorate sweep --enqueue --wait --ledger postgres://quorate@db/quorate"
)]
pub(super) struct Arguments {
    /// Only files changed since then: 24h, 7d, a date, or all
    #[arg(long, value_name = "WHEN", default_value = "24h")]
    since: String,
    /// Review files again that were judged before
    #[arg(long)]
    force: bool,
    /// Only list what would be reviewed, and what that would cost
    #[arg(long, conflicts_with = "enqueue")]
    dry_run: bool,
    /// Exit with the code of the worst verdict if it is at least this one
    #[arg(long, value_name = "VERDICT", value_parser = fail_on(), default_value = "incomplete", conflicts_with = "dry_run")]
    fail_on: Verdict,
    /// Show also the type, the tier and the run of each file
    #[arg(long)]
    full: bool,
    /// The number of concurrent reviews
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    queue: QueueArguments,
    #[command(flatten)]
    review: ReviewArguments,
    #[command(flatten)]
    places: PathArguments,
}

fn fail_on() -> impl TypedValueParser<Value = Verdict> {
    verdict_parser([
        (Verdict::Revise, "Any verdict but SHIP fails"),
        (Verdict::Hold, "REVISE passes, too"),
        (Verdict::Incomplete, "Only INCOMPLETE and unreadable files fail"),
    ])
}

pub(super) async fn run(arguments: Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let fail_on = arguments.fail_on;
    let request = SweepRequest {
        since_ms: since(&arguments.since, quorate.now_ms())?,
        judged: if arguments.force { JudgedPolicy::Repeat } else { JudgedPolicy::Skip },
        mode: if arguments.dry_run { SweepMode::DryRun } else { SweepMode::Run },
        jobs: usize::from(arguments.jobs),
        policy: arguments.review.policy,
        options: arguments.review.answers.options(),
        ..SweepRequest::default()
    };
    let quorate = arguments.places.apply(quorate);
    let progress = Arc::new(SweepProgress::new(terminal.progress));
    let shown = progress.clone();
    let observer = Arc::new(move |event: SweepEvent<'_>| shown.show(&event));
    let sweeping = match arguments.queue.enqueue {
        false => quorate.sweep(request, observer),
        #[cfg(feature = "postgres")]
        true => quorate.enqueue_sweep(request, arguments.queue.options(), arguments.queue.wait, observer),
        #[cfg(not(feature = "postgres"))]
        true => return Err(crate::exit::feature_missing("postgres")),
    };
    // A sweep reports to its own observer.
    let silent = Progress::new(Shown::Nothing);
    let swept = silent.follow(sweeping).await;
    progress.clear();
    let swept = swept?;
    if !swept.is_interrupted {
        warn(&swept.warnings, terminal);
    }
    if !swept.is_interrupted || !swept.files.is_empty() {
        terminal.data(&match arguments.format {
            HumanOrJson::Human => swept.doc(extent(arguments.full)).text(terminal.stdout),
            HumanOrJson::Json => format!("{:#}\n", swept.to_json()),
        });
    }
    if swept.is_interrupted {
        terminal.status(match arguments.queue.enqueue {
            true => "interrupted; what is queued stays queued, and `quorate queue status` shows it",
            false => {
                "interrupted; the answers so far are recorded, and the same command continues with the rest"
            }
        });
    }
    Ok(Exit(swept.exit_code(fail_on)))
}
