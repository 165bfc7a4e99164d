//! `quorate resume`.

use std::sync::Arc;

use clap::Args;

use super::arguments::{PlaceArguments, ReviewArguments};
use super::exit::{Exit, stopped};
use super::interrupt::{Interrupted, or_interrupted};
use super::progress::Progress;
use super::render::Format;
use super::review::{failed, interrupted, judged};
use super::terminal::Terminal;
use crate::service::environment::Environment;
use crate::service::resume;
use crate::service::runs;

/// Go on with a run that was interrupted, crashed, or came to INCOMPLETE
///
/// Asks only for what has no answer yet; what was answered is not paid for again. The council, its prompts, the
/// executor's settings and the text must be as they were. The exit code is the verdict, as for `review`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate resume r7k2\n  quorate resume r7k2 --timeout 10m --max-calls 30"
)]
pub(super) struct Arguments {
    /// The run's id, or the beginning of it
    #[arg(value_name = "RUN")]
    run: String,
    /// How the verdict is printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    #[command(flatten)]
    review: ReviewArguments,
    #[command(flatten)]
    places: PlaceArguments,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.format;
    let (desk, run) = match runs::open_as_it_was(environment, arguments.places.places(), &arguments.run).await
    {
        Ok(opened) => opened,
        Err(stop) => return stopped(&stop, format, terminal),
    };
    let progress = Arc::new(Progress::new(terminal.watched));
    let options = arguments.review.options();
    let resumed = or_interrupted(resume::resume(&desk, &run, &options, progress.clone())).await;
    progress.clear();
    let exit = match resumed {
        Err(Interrupted) => interrupted(&progress, &desk, terminal),
        Ok(Ok(report)) => judged(&report, &desk, format, terminal),
        Ok(Err(stop)) => failed(&stop, &desk, format, terminal),
    };
    desk.close().await;
    exit
}
