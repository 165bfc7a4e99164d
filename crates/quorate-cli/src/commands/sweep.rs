//! `quorate sweep`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::Args;

use crate::arguments::{HumanOrJson, PathArguments, QueueArguments, ReviewArguments, since};
use crate::exit::{Exit, exit_with_error};
use crate::exit::{print_error, print_warnings};
use crate::interrupt::{Interrupted, until_interrupted};
use crate::progress::SweepProgress;
use crate::render;
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::runs;
use quorate::service::session::LedgerSession;
use quorate::service::sweep::{
    self, JudgedPolicy, SweepMode, SweepObserver, SweepReport, SweepRequest, SweptFile,
};
#[cfg(not(feature = "postgres"))]
use quorate::service::workspace::PathOverrides;

/// Review every due file below watch.paths that was not judged yet
///
/// Tier 1 is always reviewed, tier 2 never, tier 3 one in five by a stable hash. Files that this council has judged (same
/// content, same prompts, executor and policy) are skipped. The number of files is not limited.
///
/// Exits with 0 when every due file was judged, whatever the verdicts, and with 3 when one could not be.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate sweep --since 24h\n  quorate sweep --since all --dry-run\n  quorate sweep --jobs 4 --format json\n  quorate sweep --enqueue --wait --ledger postgres://quorate@db/quorate"
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

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.format.into();
    let since_ms = match since(&arguments.since, environment.clock.now_ms()) {
        Ok(since_ms) => since_ms,
        Err(error) => return exit_with_error(&error, format, terminal),
    };
    let request = SweepRequest {
        since_ms,
        judged: if arguments.force { JudgedPolicy::Repeat } else { JudgedPolicy::Skip },
        mode: if arguments.dry_run { SweepMode::DryRun } else { SweepMode::Run },
        filter: sweep::FileFilter::default(),
        jobs: usize::from(arguments.jobs),
        policy: arguments.review.policy(),
        options: arguments.review.answers.options(),
    };
    let places = arguments.places.path_overrides();
    let opened = match arguments.queue.enqueue {
        true => open_queue(environment, &places).await,
        false => runs::open_for_writing(environment, &places).await,
    };
    let session = match opened {
        Ok(session) => session,
        Err(error) => return exit_with_error(&error, format, terminal),
    };
    let session = Arc::new(session);
    let progress = Arc::new(RecordingProgress {
        progress: SweepProgress::new(terminal.shows_progress),
        ended: Mutex::default(),
    });
    let result = match arguments.queue.enqueue {
        true => until_interrupted(enqueue(&session, &request, &arguments.queue, progress.clone())).await,
        false => until_interrupted(sweep::sweep(&session, &request, progress.clone())).await,
    };
    progress.progress.clear();
    let print = |all: &SweepReport| {
        terminal.data(&match arguments.format {
            HumanOrJson::Human => render::sweep::human(all, terminal.stdout),
            HumanOrJson::Json => format!("{:#}\n", sweep::json(all)),
        });
    };
    let exit = match result {
        Err(Interrupted) => {
            session.interrupt();
            let mut files = std::mem::take(&mut *progress.ended());
            files.sort_by(|left, right| left.path.cmp(&right.path));
            if !files.is_empty() {
                print(&SweepReport { files, estimate: None });
            }
            terminal.status(match arguments.queue.enqueue {
                true => "interrupted; what is queued stays queued, and `quorate queue status` shows it",
                false => "interrupted; `quorate runs` lists the open runs, and the next sweep continues with the rest",
            });
            Exit::INTERRUPTED
        }
        Ok(Ok(all)) => {
            print_warnings(&session, terminal);
            print(&all);
            Exit::verdict(sweep::exit_code(&all.files))
        }
        Ok(Err(error)) => print_error(&error, &session, format, terminal),
    };
    if let Some(session) = Arc::into_inner(session) {
        session.close().await;
    }
    exit
}

/// Queues the due files, and waits for them with `--wait`.
#[cfg(feature = "postgres")]
async fn enqueue(
    session: &Arc<LedgerSession>,
    request: &SweepRequest,
    queue: &QueueArguments,
    progress: Arc<RecordingProgress>,
) -> Result<SweepReport, ServiceError> {
    let mut report =
        quorate::service::queue::enqueue::enqueue_sweep(session, request, &queue.options()).await?;
    if queue.wait {
        quorate::service::queue::manage::wait_for_sweep(session, &mut report, &*progress).await?;
    }
    Ok(report)
}

#[cfg(feature = "postgres")]
use quorate::service::queue::open_for_writing as open_queue;

#[cfg(not(feature = "postgres"))]
async fn open_queue(_: &Environment, _: &PathOverrides) -> Result<LedgerSession, ServiceError> {
    Err(crate::exit::feature_missing("postgres"))
}

#[cfg(not(feature = "postgres"))]
async fn enqueue(
    _: &Arc<LedgerSession>,
    _: &SweepRequest,
    _: &QueueArguments,
    _: Arc<RecordingProgress>,
) -> Result<SweepReport, ServiceError> {
    Err(crate::exit::feature_missing("postgres"))
}

/// Shows the progress of a sweep, and keeps its results in case it is interrupted.
struct RecordingProgress {
    progress: SweepProgress,
    ended: Mutex<Vec<SweptFile>>,
}

impl RecordingProgress {
    fn ended(&self) -> MutexGuard<'_, Vec<SweptFile>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SweepObserver for RecordingProgress {
    fn planned(&self, reviews: usize) {
        self.progress.planned(reviews);
    }

    fn started(&self, path: &str) {
        self.progress.started(path);
    }

    fn ended(&self, swept: &SweptFile) {
        self.progress.ended(swept);
        RecordingProgress::ended(self).push(swept.clone());
    }
}
