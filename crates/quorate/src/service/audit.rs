//! Audit: statistics on a council over time, on its producers and on its members' agreement, from its log; costs, from the
//! ledger.

pub mod costs;
pub mod json;

use std::collections::BTreeMap;
use std::path::Path;

use quorate_diagnostics::{Body, codes};
use quorate_ledger::Store;
use quorate_ledger::council_log::priors::Producers;
use quorate_ledger::council_log::stats;
use quorate_ledger::council_log::stats::Agreement;
use quorate_ledger::council_log::stats::{self, LogStats};
use quorate_ledger::stats::ReviewFilter;
use quorate_ledger::council_log::{self, CountedLog};
use quorate_protocol::Name;

use super::disk;
use super::environment::Environment;
use super::error::ServiceError;
use super::guard::Guard;
use super::paths::{absolute, display_path};
use super::session::LedgerSession;
use super::workspace::{self, PathOverrides};
use costs::Costs;

#[derive(Debug, Clone, Default)]
pub struct Request {
    pub filter: ReviewFilter,
    /// Whether to read the whole log instead of its index.
    pub reindex: bool,
}

#[derive(Debug, Clone)]
pub struct Audit {
    /// The log's path, as shown to the user.
    pub log: String,
    pub filter: ReviewFilter,
    pub stats: LogStats,
    pub producers: Producers,
    pub agreement: Agreement,
    /// The costs of the ledger's runs; a log alone has none.
    pub costs: Costs,
    /// Runs whose lines or rows differ from their records, with what differs; they are not counted (D13).
    pub altered: BTreeMap<Name, String>,
    /// Lines of the log that cannot be read.
    pub corrupt_lines: u64,
    /// Whether the log exists.
    pub log_exists: bool,
}

/// An empty audit, for a workspace with neither log nor ledger; creates neither.
///
/// # Errors
/// If the configuration is refused.
pub fn empty(
    environment: &Environment,
    places: &PathOverrides,
    request: &Request,
) -> Result<Option<Audit>, ServiceError> {
    let workspace = workspace::load(environment, places, &environment.directory)?;
    let nothing = !workspace.log.is_file() && !workspace.ledger.may_exist();
    Ok(nothing.then(|| Audit {
        log: display_path(environment, &workspace.log),
        filter: request.filter.clone(),
        stats: LogStats::default(),
        producers: Producers::default(),
        agreement: Agreement::default(),
        costs: Costs::default(),
        altered: BTreeMap::new(),
        corrupt_lines: 0,
        log_exists: false,
    }))
}

/// Audits a log on its own, without ledger or configuration.
///
/// # Errors
/// If the log does not exist or cannot be read.
#[crate::boxed]
pub async fn audit_file(
    environment: &Environment,
    log: &Path,
    filter: ReviewFilter,
) -> Result<Audit, ServiceError> {
    let path = absolute(&environment.directory, log);
    if !path.exists() {
        let body = Body::new(format!("cannot read the log {}: it does not exist", log.display()));
        let help =
            "pass a council_log.jsonl with `--log`; without `--log` the audit reads this workspace's log";
        return Err(ServiceError::not_found(codes::FILE_UNREADABLE, body.help(help)));
    }
    if path.is_dir() {
        let body = Body::new(format!("cannot read the log {}: it is a directory", log.display()));
        let help = "pass the file, as in `--log .quorate/council_log.jsonl`";
        return Err(ServiceError::configuration(codes::FILE_UNREADABLE, body.help(help)));
    }
    let store = Store::open_log_only(&path).await?;
    let indexed = council_log::sync(&store, &path).await?;
    let counted = council_log::without_ledger(&store, indexed).await?;
    let (stats, producers, agreement) = count(&store, &counted, &filter).await?;
    Ok(Audit {
        log: display_path(environment, &path),
        filter,
        stats,
        producers,
        agreement,
        costs: Costs::default(),
        altered: counted.altered,
        corrupt_lines: indexed.corrupt,
        log_exists: true,
    })
}

/// Counts the lines of a log.
async fn count(
    store: &Store,
    counted: &CountedLog,
    filter: &ReviewFilter,
) -> Result<(LogStats, Producers, Agreement), ServiceError> {
    let (stats, producers) = stats::stats(store, counted, filter).await?;
    Ok((stats, producers, stats::agreement(store, counted, filter).await?))
}

/// Writes an audit to a file, replacing it. Refuses the audited log and the ledger's own files.
///
/// # Errors
/// If the file cannot be written.
pub fn write(environment: &Environment, audit: &Audit, path: &Path, text: &str) -> Result<(), ServiceError> {
    let path = absolute(&environment.directory, path);
    let refused = |why: &str| {
        let body =
            Body::new(format!("cannot write the audit to {}: {why}", display_path(environment, &path)));
        ServiceError::configuration(codes::FILE_UNWRITABLE, body.help("choose another name"))
    };
    Guard::of_log(&environment.directory.join(&audit.log)).ensure_free(environment, &path)?;
    if disk::canonical_or_new(&path).ancestors().skip(1).any(|dir| dir.ends_with(".quorate")) {
        return Err(refused("a ledger is stored there"));
    }
    disk::write_file(&path, text.as_bytes()).map_err(|error| refused(&error.to_string()))
}

/// Audits the session's log.
///
/// # Errors
/// If log or ledger cannot be read.
#[crate::boxed]
pub async fn audit(session: &LedgerSession, request: Request) -> Result<Audit, ServiceError> {
    if request.reindex {
        council_log::forget_index(&session.store, &session.workspace.log).await?;
    }
    let indexed = session.compared_log_index().await?;
    let counted = council_log::compare(&session.store, &session.workspace.log, indexed).await?;
    let (stats, producers, agreement) = count(&session.store, &counted, &request.filter).await?;
    let costs = Costs::load(session, &request.filter).await?;
    Ok(Audit {
        log: display_path(&session.environment, &session.workspace.log),
        filter: request.filter,
        stats,
        producers,
        agreement,
        costs,
        altered: counted.altered,
        corrupt_lines: indexed.corrupt,
        log_exists: session.workspace.log.is_file(),
    })
}

/// A percentage in the form that every view shows, rounded half up; `None` if `total` is 0.
pub fn percent(part: u64, total: u64) -> Option<String> {
    let rounded = (200 * u128::from(part) + u128::from(total)).checked_div(2 * u128::from(total))?;
    Some(format!("{rounded}%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_half_up() {
        let shares = [(0, 3), (1, 3), (2, 3), (1, 8), (3, 3), (1, 200)]
            .map(|(part, total)| percent(part, total).unwrap());
        assert_eq!(shares, ["0%", "33%", "67%", "13%", "100%", "1%"]);
        assert_eq!(percent(0, 0), None);
        assert_eq!(percent(u64::MAX, u64::MAX).as_deref(), Some("100%"));
    }
}
