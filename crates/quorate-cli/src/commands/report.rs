//! `quorate report`: a run as one file to send, and the same document for `quorate show --format html`.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::PathArguments;

/// Write a run as one HTML file that proves what it shows
///
/// The file is for readers who have neither Quorate nor the ledger: the decision, the text with its findings, every
/// position, the cost and the proof. A browser verifies it, and so does `quorate ledger check-proof`. New records are sealed
/// first.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate report latest -o report.html\n  quorate report r7k2 --outcome-only -o report.html\n  quorate ledger check-proof report.html --key ledger.pub"
)]
pub(super) struct Arguments {
    /// The run's id, a prefix of it, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// The file, or - for standard output, which is the default unless it is a terminal. It must be a regular file, and not
    /// the ledger, its keys, its log or the configuration
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Leave out the text, and the data of all records but outcomes and people's decisions
    #[arg(long)]
    outcome_only: bool,
    #[command(flatten)]
    places: PathArguments,
}

#[cfg(feature = "serve")]
pub(super) use drawn::{FORMAT, draw, run, show};
#[cfg(not(feature = "serve"))]
pub(super) use missing::{FORMAT, draw, run, show};

/// The command of a build without the feature.
#[cfg(not(feature = "serve"))]
mod missing {
    use super::Arguments;
    use crate::arguments::PathArguments;
    use crate::exit::{Exit, exit_without_feature, feature_missing};
    use crate::terminal::Terminal;
    use quorate::service::environment::Environment;
    use quorate::service::error::ServiceError;
    use quorate::service::ledger::check_proof::ReportFormat;
    use quorate::service::report_file::Scope;
    use quorate::service::session::LedgerSession;

    pub(crate) async fn draw(_: &LedgerSession, _: &str, _: Scope) -> Result<String, ServiceError> {
        Err(feature_missing("serve"))
    }

    /// This build cannot read reports.
    pub(crate) const FORMAT: Option<ReportFormat> = None;

    pub(crate) async fn run(_: Arguments, _: &Environment, terminal: &Terminal) -> Exit {
        exit_without_feature("serve", terminal)
    }

    pub(crate) async fn show(_: &str, _: &PathArguments, _: &Environment, terminal: &Terminal) -> Exit {
        exit_without_feature("serve", terminal)
    }
}

/// The command of a build with the feature.
#[cfg(feature = "serve")]
mod drawn {
    use std::io::{IsTerminal as _, Write as _};
    use std::path::Path;

    use quorate_diagnostics::{Body, codes};
    use quorate_web::report;

    use super::Arguments;
    use crate::arguments::PathArguments;
    use crate::exit::{Exit, exit_with_error};
    use crate::render::Format;
    use crate::session::{print_warnings, with_session};
    use crate::terminal::Terminal;
    use quorate::service::environment::Environment;
    use quorate::service::error::{ExitClass, ServiceError};
    use quorate::service::ledger::check_proof::ReportFormat;
    use quorate::service::ledger::export::{self, StagedFile};
    use quorate::service::report_file::{self, Scope};
    use quorate::service::runs;
    use quorate::service::session::LedgerSession;

    pub(crate) const FORMAT: Option<ReportFormat> = Some(report::FORMAT);

    pub(crate) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
        let out = arguments.out.filter(|out| out.as_os_str() != "-");
        if out.is_none() && std::io::stdout().is_terminal() {
            let body = Body::new("a report is a file for a browser, and standard output is a terminal")
                .help("name a file with `-o report.html`");
            let error = ServiceError::new(ExitClass::Usage, codes::USAGE, body);
            return exit_with_error(&error, Format::Human, terminal);
        }
        let scope = if arguments.outcome_only { Scope::OutcomeOnly } else { Scope::Everything };
        write(&arguments.run, out.as_deref(), scope, &arguments.places, environment, terminal).await
    }

    /// Prints the report of a run.
    pub(crate) async fn show(
        run: &str,
        places: &PathArguments,
        environment: &Environment,
        terminal: &Terminal,
    ) -> Exit {
        write(run, None, Scope::Everything, places, environment, terminal).await
    }

    async fn write(
        run: &str,
        out: Option<&Path>,
        scope: Scope,
        places: &PathArguments,
        environment: &Environment,
        terminal: &Terminal,
    ) -> Exit {
        let opened = runs::open_read_only(environment, &places.path_overrides()).await;
        with_session(opened, Format::Human, terminal, async |session| {
            let staged = out.map(|path| StagedFile::create(session, path)).transpose()?;
            let html = draw(session, run, scope).await?;
            print_warnings(session, terminal);
            match (staged, out) {
                (Some(mut staged), Some(path)) => {
                    staged.write_all(html.as_bytes()).map_err(|error| export::unwritable(path, &error))?;
                    staged.persist()?;
                    terminal.hint(&format!("{}: {} bytes", path.display(), html.len()));
                }
                _ => terminal.exact(&html)?,
            }
            Ok(Exit::DONE)
        })
        .await
    }

    /// A run's report as HTML.
    pub(crate) async fn draw(
        session: &LedgerSession,
        run: &str,
        scope: Scope,
    ) -> Result<String, ServiceError> {
        let run = session.find_run(run).await.map_err(ServiceError::corrupt_as_refused)?.run;
        session.ensure_unaltered(&run).await.map_err(ServiceError::corrupt_as_refused)?;
        let file = report_file::collect(session, &run, scope).await?;
        let html = report::draw(&file).map_err(|why| {
            ServiceError::new(
                ExitClass::Bug,
                codes::PROOF_INVALID,
                Body::new(format!("cannot draw the report: {why}")),
            )
        })?;
        report_file::warn(session, &file, html.len());
        Ok(html)
    }
}
