//! `quorate attest`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use quorate_protocol::Name;
use serde_json::Value;

use crate::arguments::PathArguments;
use crate::exit::{Exit, exit_with_error};
use crate::render::Format;
use crate::render::paint::one_line;
use crate::session::{print_error, print_warnings};
use crate::terminal::Terminal;
use quorate::service::attest::{self, Attestation, LaterVerdict};
use quorate::service::disk;
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::ledger::export::unwritable;
use quorate::service::paths::display_path;
use quorate::service::runs;
use quorate::service::session::LedgerSession;

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
pub(super) struct Arguments {
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

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
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
    arguments: &Arguments,
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
fn make_room(arguments: &Arguments, run: &Name, session: &LedgerSession) -> Result<(), ServiceError> {
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
