//! Audit: what the log says of a council over time.

use quorate_ledger::council_log::{
    self,
    stats::{self, Filter, Stats},
};

use super::desk::Desk;
use super::environment::Environment;
use super::stop::Stop;
use super::workspace::{self, Places, shown};

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Which lines.
    pub filter: Filter,
    /// Whether the whole log is read again, whatever its index says.
    pub reindex: bool,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Audit {
    /// The log that was read.
    pub log: String,
    /// Which lines.
    pub filter: Filter,
    /// The counts.
    pub stats: Stats,
    /// How many lines of the log cannot be read.
    pub corrupt: u64,
    /// Whether there is a log at all.
    pub present: bool,
}

/// The audit of nothing, where there is neither log nor ledger: looking makes none.
///
/// # Errors
/// When the configuration is refused.
pub fn empty(environment: &Environment, places: &Places, request: &Request) -> Result<Option<Audit>, Stop> {
    let workspace = workspace::load(environment, places, &environment.directory)?;
    let nothing = !workspace.log.is_file() && !workspace.ledger.may_be_there();
    Ok(nothing.then(|| Audit {
        log: shown(environment, &workspace.log),
        filter: request.filter.clone(),
        stats: Stats::default(),
        corrupt: 0,
        present: false,
    }))
}

/// Audits.
///
/// # Errors
/// When log or ledger cannot be read.
pub async fn audit(desk: &Desk, request: Request) -> Result<Audit, Stop> {
    if request.reindex {
        council_log::forget_index(&desk.store, &desk.workspace.log).await?;
    }
    let indexed = desk.index().await?;
    let stats = stats::stats(&desk.store, indexed, &request.filter).await?;
    Ok(Audit {
        log: shown(&desk.environment, &desk.workspace.log),
        filter: request.filter,
        stats,
        corrupt: indexed.corrupt,
        present: desk.workspace.log.is_file(),
    })
}
