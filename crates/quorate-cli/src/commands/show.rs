//! `quorate show`.

use clap::{Args, ValueEnum};
use quorate_diagnostics::{Body, codes};

use super::report;
use crate::arguments::PathArguments;
use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Extent, Format};
use crate::session::{print_error, print_result_as};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::runs::{self, RunReport};

/// Show the outcome of a run, and its reasons
///
/// Exits with 0 for every verdict: only `review`, `convene` and `resume` exit with the verdict. Exits with 1 if the run differs
/// from what was recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  quorate show r7k2\n  quorate show r7k2 --format markdown | pbcopy")]
pub(super) struct Arguments {
    /// The run's id, a prefix of it, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = ShownFormat::Human)]
    format: ShownFormat,
    #[command(flatten)]
    places: PathArguments,
}

/// The formats of findings and outcomes, and the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ShownFormat {
    /// For people
    Human,
    /// One JSON object
    Json,
    /// Markdown for a pull request
    Markdown,
    /// SARIF 2.1.0, for code scanning tools
    Sarif,
    /// GitHub workflow annotations
    Github,
    /// A GitLab Code Quality report
    Gitlab,
    /// What `quorate report` writes
    Html,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = match arguments.format {
        ShownFormat::Human => Format::Human,
        ShownFormat::Json => Format::Json,
        ShownFormat::Markdown => Format::Markdown,
        ShownFormat::Sarif => Format::Sarif,
        ShownFormat::Github => Format::Github,
        ShownFormat::Gitlab => Format::Gitlab,
        ShownFormat::Html => {
            return report::show(&arguments.run, &arguments.places, environment, terminal).await;
        }
    };
    let session = match runs::open_read_only(environment, &arguments.places.path_overrides()).await {
        Ok(session) => session,
        Err(error) => return exit_with_error(&error, format, terminal),
    };
    let exit = match runs::find_report(&session, &arguments.run).await {
        Ok(report) => {
            let text = match report {
                RunReport::Review(report) => {
                    Some(render::report(&report, format, Extent::Full, terminal.stdout))
                }
                RunReport::Assembly(report) => {
                    render::convene::report(&report, format, Extent::Full, terminal.stdout)
                }
            };
            match text {
                Some(text) => print_result_as(format, &text, &session, terminal),
                None => print_error(&unsupported_format(&arguments.run), &session, Format::Human, terminal),
            }
        }
        Err(error) => print_error(&error, &session, format, terminal),
    };
    session.close().await;
    exit
}

/// The refusal of a format for findings in files, which cannot show an assembly's outcome.
pub(super) fn unsupported_format(run: &str) -> ServiceError {
    let body = Body::new(format!("run {run} is an assembly's: `sarif` and `github` are for reviews"))
        .help("`--format human`, `json` or `markdown` shows an assembly");
    ServiceError::new(ExitClass::Usage, codes::USAGE, body)
}
