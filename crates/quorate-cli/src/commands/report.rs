//! `quorate report`: a run as one file to send, and the same document for `quorate show --format html`. `quorate attest`:
//! Sigstore bundles of a decision.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use quorate::service::attest::{self, Attestation, LaterVerdict};
use quorate::service::disk::display_path;
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::ledger::export::unwritable;
use quorate::service::session::LedgerSession;
use quorate::service::{disk, runs};
use quorate_protocol::Name;
use serde_json::Value;

use crate::arguments::PathArguments;
use crate::exit::{Exit, exit_with_error};
use crate::exit::{print_error, print_warnings};
use crate::render::Format;
use crate::render::layout::one_line;
use crate::terminal::Terminal;

#[cfg(feature = "serve")]
pub(super) use drawn::{FORMAT, draw, run_report, show};
#[cfg(not(feature = "serve"))]
pub(super) use missing::{FORMAT, draw, run_report, show};

/// Write a run as one HTML file that proves what it shows
///
/// The file is for readers who have neither Quorate nor the ledger: the decision, the text with its findings, every
/// position, the cost and the proof. A browser verifies it, and so does `quorate ledger check-proof`. New records are sealed
/// first.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate report latest -o report.html\n  quorate report r7k2 --outcome-only -o report.html\n  quorate ledger check-proof report.html --key ledger.pub"
)]
pub(super) struct ReportArguments {
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

/// The command of a build without the feature.
#[cfg(not(feature = "serve"))]
mod missing {
    use super::ReportArguments;
    use crate::arguments::PathArguments;
    use crate::exit::{Exit, exit_without_feature, feature_missing};
    use crate::terminal::Terminal;
    use quorate::service::environment::Environment;
    use quorate::service::error::ServiceError;
    use quorate::service::report_file::ReportFormat;
    use quorate::service::report_file::ReportScope;
    use quorate::service::session::LedgerSession;

    pub(crate) async fn draw(_: &LedgerSession, _: &str, _: ReportScope) -> Result<String, ServiceError> {
        Err(feature_missing("serve"))
    }

    /// This build cannot read reports.
    pub(crate) const FORMAT: Option<ReportFormat> = None;

    pub(crate) async fn run_report(_: ReportArguments, _: &Environment, terminal: &Terminal) -> Exit {
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

    use super::ReportArguments;
    use crate::arguments::PathArguments;
    use crate::exit::{Exit, exit_with_error};
    use crate::exit::{print_warnings, with_session};
    use crate::render::Format;
    use crate::terminal::Terminal;
    use quorate::service::environment::Environment;
    use quorate::service::error::{ExitClass, ServiceError};
    use quorate::service::ledger::export::{self, StagedFile};
    use quorate::service::report_file::ReportFormat;
    use quorate::service::report_file::{self, ReportScope};
    use quorate::service::runs;
    use quorate::service::session::LedgerSession;

    pub(crate) const FORMAT: Option<ReportFormat> = Some(report::FORMAT);

    pub(crate) async fn run_report(
        arguments: ReportArguments,
        environment: &Environment,
        terminal: &Terminal,
    ) -> Exit {
        let out = arguments.out.filter(|out| out.as_os_str() != "-");
        if out.is_none() && std::io::stdout().is_terminal() {
            let body = Body::new("a report is a file for a browser, and standard output is a terminal")
                .help("name a file with `-o report.html`");
            let error = ServiceError::new(ExitClass::Usage, codes::USAGE, body);
            return exit_with_error(&error, Format::Human, terminal);
        }
        let scope = if arguments.outcome_only { ReportScope::OutcomeOnly } else { ReportScope::Everything };
        write(&arguments.run, out.as_deref(), scope, &arguments.places, environment, terminal).await
    }

    /// Prints the report of a run.
    pub(crate) async fn show(
        run: &str,
        places: &PathArguments,
        environment: &Environment,
        terminal: &Terminal,
    ) -> Exit {
        write(run, None, ReportScope::Everything, places, environment, terminal).await
    }

    async fn write(
        run: &str,
        out: Option<&Path>,
        scope: ReportScope,
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
        scope: ReportScope,
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

/// Attest the decision of a run on a text, for a gate that deploys or publishes it
///
/// Writes Sigstore bundles, signed with the key that signs records. RUN.decision.sigstore.json states the decision.
/// RUN.svr.sigstore.json is a simple verification result; it requires a SHIP or a passed vote on exactly these bytes, an
/// answer from every member, no override by a person, and no later verdict of the same council on the text. The command
/// verifies the run's records first.
///
/// Exits with 0 if it wrote both, and with 1 if it wrote only the decision.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate attest latest\n  quorate attest r7k2 --out dist\n  quorate attest r7k2 --predicate-only result > predicate.json\n  quorate keys export --format pem > quorate.pub"
)]
pub(super) struct AttestArguments {
    /// The run's id, a prefix of it, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// The directory to write into
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Print a predicate without signing it, for a tool that signs
    #[arg(long, value_enum, value_name = "WHICH", conflicts_with = "out")]
    predicate_only: Option<Predicate>,
    #[command(flatten)]
    places: PathArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Predicate {
    /// The predicate type urn:quorate:attestation:decision:v1
    Decision,
    /// The predicate type <https://in-toto.io/attestation/svr/v0.2>; exits with 1 if the run does not qualify
    Result,
}

pub(super) async fn run_attest(
    arguments: AttestArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let opened =
        runs::open_run_for_append(environment, &arguments.places.path_overrides(), &arguments.run).await;
    let (session, run) = match opened {
        Ok(opened) => opened,
        Err(error) => return exit_with_error(&error, Format::Human, terminal),
    };
    let attested = match make_room(&arguments, &run, &session) {
        Ok(()) => attest::attest(&session, &run).await,
        Err(error) => Err(error),
    };
    let attested = match attested {
        Ok(attestation) => write(&attestation, &arguments, &session, terminal).await,
        Err(error) => Err(error),
    };
    let exit = match attested {
        Ok(exit) => {
            print_warnings(&session, terminal);
            exit
        }
        Err(error) => print_error(&error, &session, Format::Human, terminal),
    };
    session.close().await;
    exit
}

async fn write(
    attestation: &Attestation,
    arguments: &AttestArguments,
    session: &LedgerSession,
    terminal: &Terminal,
) -> Result<Exit, ServiceError> {
    let no_result = |why: &str| {
        terminal.status(&format!("no simple verification result: {why}"));
        Exit::CHECK_FAILED
    };
    for later in &attestation.later {
        let LaterVerdict { run, verdict, executor, at } = later;
        let line = format!("later verdict on this text: {verdict} by {executor} (run {run}, {at})");
        terminal.status(&one_line(&line));
    }
    if let Some(predicate) = arguments.predicate_only {
        let predicate = match predicate {
            Predicate::Decision => Ok(&attestation.decision),
            Predicate::Result => attestation.result.as_ref(),
        };
        return Ok(match predicate {
            Ok(predicate) => {
                terminal.verbatim(&format!("{predicate:#}\n"));
                Exit::DONE
            }
            Err(why) => no_result(why),
        });
    }
    let key = attest::signing_key(session).await?;
    let save = |kind: &str, bundle: &Value| {
        let path = file(&arguments.out, &attestation.run, kind, session)?;
        disk::write_new(&path, &format!("{bundle:#}\n")).map_err(|error| unwritable(&path, &error))?;
        terminal.data(&format!("{}\n", display_path(&session.environment, &path)));
        Ok::<_, ServiceError>(())
    };
    save("decision", &attestation.decision_bundle(&key))?;
    match attestation.result_bundle(&key) {
        Ok(bundle) => save("svr", &bundle).map(|()| Exit::DONE),
        Err(why) => Ok(no_result(why)),
    }
}

/// Removes the bundles of an earlier command, so that no outdated result can open a gate.
fn make_room(arguments: &AttestArguments, run: &Name, session: &LedgerSession) -> Result<(), ServiceError> {
    if arguments.predicate_only.is_some() {
        return Ok(());
    }
    // Nothing is removed where a later file is refused.
    let files = ["decision", "svr"].map(|kind| file(&arguments.out, run, kind, session));
    files
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?
        .iter()
        .try_for_each(|path| disk::remove(path).map_err(|error| unwritable(path, &error)))
}

/// The path of a bundle, which no file of the workspace may occupy.
fn file(out: &Path, run: &Name, kind: &str, session: &LedgerSession) -> Result<PathBuf, ServiceError> {
    let path = out.join(format!("{run}.{kind}.sigstore.json"));
    session.workspace.guard.ensure_output(&session.environment, &path)
}
