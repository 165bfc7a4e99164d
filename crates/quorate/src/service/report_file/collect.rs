//! Collects a report file's contents from the ledger.

use std::path::Path;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::ports::ledger::{Kind, Ledger as _};
use quorate_protocol::{Json, Name};

use super::{InvalidContents, ReportFile};
use crate::service::error::{ExitClass, ServiceError};
use crate::service::ledger::{checkpoint, prove};
use crate::service::session::LedgerSession;

/// A larger file is hard to send.
pub const MAX_BYTES_WITHOUT_WARNING: usize = 5_000_000;

/// The parts of a run that leave the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All records of the run, with its texts.
    Everything,
    /// The data of outcomes and of people's decisions; only the heads of other records.
    OutcomeOnly,
}

/// Seals unsealed records, and collects the contents of a run's report file.
///
/// # Errors
/// If the run does not exist or cannot be proven, or the ledger does not answer.
#[crate::boxed]
pub async fn collect(session: &LedgerSession, run: &Name, scope: Scope) -> Result<ReportFile, ServiceError> {
    if session.store.read_only_reason().is_none() {
        session.absorb(checkpoint::checkpoint(session).await?.report);
    }
    let mut proof = prove::prove(session, run).await?;
    let mut texts = Vec::new();
    match scope {
        Scope::OutcomeOnly => {
            let kept = [Kind::Outcome, Kind::Override];
            let full =
                ReportFile::read(text_of(&proof)?, Vec::new()).map_err(|error| unreadable(run, &error))?;
            for (record, proved) in proof.records.iter_mut().zip(&full.proven.records) {
                if !kept.iter().any(|kind| kind.as_str() == proved.kind) {
                    record.data = None;
                }
            }
        }
        Scope::Everything => {
            let opened = session.partial_history(run).await?.opened;
            for (at, input) in opened.inputs.iter().enumerate() {
                texts.extend(session.store.body(&input.sha256).await?.map(|text| (at, text)));
            }
        }
    }
    ReportFile::read(text_of(&proof)?, texts).map_err(|error| unreadable(run, &error))
}

fn text_of(proof: &quorate_ledger::prove::Proof) -> Result<String, ServiceError> {
    proof.text().map_err(|error| {
        ServiceError::new(ExitClass::Bug, codes::LEDGER_CORRUPT, Body::new(error.to_string()))
    })
}

fn unreadable(run: &Name, error: &InvalidContents) -> ServiceError {
    let body = Body::new(format!("cannot report run {run}: {error}"));
    ServiceError::configuration(codes::LEDGER_CORRUPT, body.help("see `quorate ledger verify`"))
}

/// Warns about content that a sender may not want to send. `bytes` is the length of the drawn file.
pub fn warn(session: &LedgerSession, file: &ReportFile, bytes: usize) {
    let paths = absolute_paths(file);
    if let Some(first) = paths.first() {
        let body = Body::new(format!(
            "the report holds {} absolute paths of this machine, such as {first}",
            paths.len()
        ));
        session.warn(
            codes::REPORT_PATHS,
            body.help("`--outcome-only` omits them, with all data but outcomes and people's decisions"),
        );
    }
    if bytes > MAX_BYTES_WITHOUT_WARNING {
        let body = Body::new(format!("the report has {bytes} bytes"));
        session.warn(codes::REPORT_LARGE, body.help("use `--outcome-only` for a small report"));
    }
}

/// The absolute paths in the data of the run's first record, each once.
pub fn absolute_paths(file: &ReportFile) -> Vec<String> {
    fn add(value: &Json, paths: &mut Vec<String>) {
        match value {
            Json::String(text) if Path::new(text).is_absolute() && !paths.contains(text) => {
                paths.push(text.clone());
            }
            Json::Array(items) => items.iter().for_each(|item| add(item, paths)),
            Json::Object(fields) => fields.values().for_each(|field| add(field, paths)),
            _ => {}
        }
    }
    let mut paths = Vec::new();
    let opened = file.proven.records.first().and_then(|record| record.data.as_ref());
    opened.into_iter().flat_map(|data| data.values()).for_each(|value| add(value, &mut paths));
    paths
}
