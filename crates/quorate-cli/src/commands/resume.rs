//! `quorate resume`.

use std::sync::Arc;

use clap::Args;
use quorate_diagnostics::{Body, codes};
use quorate_protocol::Name;

use super::interruption::decided_report;
use super::print_report;
use super::show::unsupported_format;
use crate::arguments::{FailOnArguments, PathArguments, ReviewArguments};
use crate::exit::{Exit, exit_with_error};
use crate::interrupt::{Interrupted, until_interrupted};
use crate::progress::Progress;
use crate::render::Format;
use crate::session::print_error;
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::resume;
use quorate::service::runs::{self, RunReport};
use quorate::service::session::LedgerSession;

/// Resume a run that was interrupted, crashed, or ended with INCOMPLETE
///
/// Asks only for missing answers; existing ones cost nothing again. The manifests, the prompts, the executors' settings
/// and the text must be unchanged. The exit code is the verdict, as for `review` or `convene`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate resume r7k2\n  quorate resume r7k2 --timeout 10m --max-calls 30"
)]
pub(super) struct Arguments {
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

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
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
    arguments: &Arguments,
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
