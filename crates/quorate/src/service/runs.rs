//! The runs of a ledger: listing them, and opening the desk for one.

use std::path::Path;

use quorate_diagnostics::{Body, codes};
use quorate_ledger::runs::{Filter, Run};
use quorate_protocol::Name;

use super::desk::Desk;
use super::environment::Environment;
use super::ledger::{checkpoint, gc};
use super::resume;
use super::stop::Stop;
use super::workspace::{self, Places};
use super::{convene, report};

/// The newest runs of those that a filter lets through, newest first.
///
/// # Errors
/// When the ledger does not answer.
pub async fn runs(desk: &Desk, filter: &Filter, limit: u32) -> Result<Vec<Run>, Stop> {
    Ok(desk.store.runs_of(filter, limit).await?)
}

/// Opens the desk of the working directory.
///
/// # Errors
/// When configuration or ledger are unusable.
pub async fn desk(environment: &Environment, places: &Places) -> Result<Desk, Stop> {
    let workspace = workspace::load(environment, places, &environment.directory)?;
    Desk::open(environment.clone(), workspace).await
}

/// Opens the desk of the working directory for work that will be logged.
///
/// # Errors
/// When configuration or ledger are unusable, or the log cannot be appended to.
pub async fn desk_to_work(environment: &Environment, places: &Places) -> Result<Desk, Stop> {
    let workspace = workspace::load(environment, places, &environment.directory)?;
    Desk::open_to_work(environment.clone(), workspace).await
}

/// Opens the desk of the working directory, unless there is no ledger yet: looking makes none.
///
/// # Errors
/// When configuration or ledger are unusable, or there is no ledger.
pub async fn desk_to_look(environment: &Environment, places: &Places) -> Result<Desk, Stop> {
    let workspace = workspace::load(environment, places, &environment.directory)?;
    if !workspace.ledger.may_be_there() {
        let ledger = workspace::shown_ledger(environment, &workspace.ledger);
        let body = Body::new(format!("there is no ledger {ledger} yet"));
        let help = "review something first, or name a ledger with `--ledger`";
        return Err(Stop::not_found(codes::RUN_UNKNOWN, body.help(help)));
    }
    Desk::open(environment.clone(), workspace).await
}

/// Opens the desk of the working directory for one run.
///
/// # Errors
/// When configuration or ledger are unusable, or there is no such run.
pub async fn open_here(
    environment: &Environment,
    places: &Places,
    prefix: &str,
) -> Result<(Desk, Name), Stop> {
    let desk = desk_to_look(environment, places).await?;
    let run = desk.find(prefix).await?.run;
    Ok((desk, run))
}

/// Opens the desk of the working directory for one run that is added to. Only the ledger that a run was recorded in adds to
/// it, so that an imported run is refused.
///
/// # Errors
/// As [`open_here`], and when the run was imported.
pub async fn open_to_add(
    environment: &Environment,
    places: &Places,
    prefix: &str,
) -> Result<(Desk, Name), Stop> {
    let (desk, run) = open_here(environment, places, prefix).await?;
    if desk.store.is_imported(&run).await? {
        desk.close().await;
        let body = Body::new(format!("run {run} was recorded in another ledger and imported from there"));
        let help = "only the ledger that it was recorded in can add to it; `quorate show` and `quorate replay` work here";
        return Err(Stop::configuration(codes::RUN_IMPORTED, body.help(help)));
    }
    Ok((desk, run))
}

/// As [`open_to_add`], with the council and the executors that the run was started with, unless a configuration is named.
/// Ledger, keys, log and witness are those of the working directory's workspace: what a record says of paths decides about
/// none of them.
///
/// # Errors
/// As [`open_to_add`], and when that configuration is unusable.
pub async fn open_as_it_was(
    environment: &Environment,
    places: Places,
    prefix: &str,
) -> Result<(Desk, Name), Stop> {
    let (desk, run) = Box::pin(open_to_add(environment, &places, prefix)).await?;
    let started = resume::start(&desk.history_left(&run).await?);
    let config = places.config.or(started.config);
    let places = Places { config, ledger: Some(desk.workspace.ledger.named()) };
    let start = started.host.as_deref().and_then(Path::parent).unwrap_or(&environment.directory);
    let workspace = workspace::load(environment, &places, start)?;
    let same = |desk: &Desk| {
        (&desk.workspace.council_path, &desk.workspace.host_path)
            == (&workspace.council_path, &workspace.host_path)
    };
    if same(&desk) {
        return Ok((desk, run));
    }
    let here = desk.close_and_keep().await;
    Ok((Box::pin(Desk::open_with(environment.clone(), here, workspace)).await?, run))
}

/// A run as it is shown.
pub enum Shown {
    /// A council's.
    Review(Box<report::Report>),
    /// An assembly's.
    Assembly(Box<convene::report::Report>),
}

/// Whether a run is an assembly's.
///
/// # Errors
/// When its records are not there, not whole, or corrupt.
pub async fn is_assembly(desk: &Desk, run: &Name) -> Result<bool, Stop> {
    Ok(convene::is_assembly(&desk.history_left(run).await?))
}

/// The report of a run.
///
/// # Errors
/// As [`is_assembly`].
pub async fn shown(desk: &Desk, run: &Name) -> Result<Shown, Stop> {
    let history = desk.history_left(run).await?;
    Ok(match convene::is_assembly(&history) {
        true => Shown::Assembly(Box::new(convene::report::of(desk, &history).await?)),
        false => Shown::Review(Box::new(desk.report_of(&history).await?)),
    })
}

/// What a run came to although its command was interrupted: the outcome was recorded first. `None` of a run that can
/// be resumed, and where the ledger does not answer in time. What follows from the outcome is done as far as time allows.
///
/// # Errors
/// As [`is_assembly`].
pub async fn decided_before_interruption(desk: &Desk, run: &Name) -> Result<Option<Shown>, Stop> {
    let read = async {
        desk.store.settled().await;
        match desk.history_left(run).await?.outcome() {
            Some(_) => shown(desk, run).await.map(Some),
            None => Ok(None),
        }
    };
    let Some(shown) = checkpoint::in_time(&desk.store, Box::pin(read)).await.transpose()?.flatten() else {
        return Ok(None);
    };
    let rest = async {
        desk.conclude(run).await?;
        gc::after_run(desk, run).await
    };
    if checkpoint::in_time(&desk.store, Box::pin(rest)).await.transpose()?.is_none() {
        let body = Body::new(format!("run {run} came to a verdict, and its line is not logged yet"));
        desk.warn(codes::LOG_BEHIND, body.help("it follows at the next start"));
    }
    Ok(Some(shown))
}
