//! Errors of records that were not written, or may not have been.

use quorate_kernel::ports::ledger::Error;
use quorate_protocol::Name;

use super::super::address::Address;
use super::super::gap_check::Gap;
use super::PreparedAppend;

/// Which records an append has.
pub(super) struct RecordRange {
    run: Name,
    from: u64,
    count: u64,
}

impl RecordRange {
    pub(super) fn from_append(append: &PreparedAppend) -> RecordRange {
        RecordRange { run: append.run.clone(), from: append.from, count: append.entries.len() as u64 }
    }
}

impl std::fmt::Display for RecordRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RecordRange { run, from, count } = self;
        match count {
            1 => write!(f, "record {run}/{from}"),
            _ => write!(f, "records {run}/{from} to {run}/{}", from + count.saturating_sub(1)),
        }
    }
}

pub(super) fn write_error(
    address: &Address,
    place: &RecordRange,
    in_doubt: bool,
    error: &sqlx::Error,
) -> Error {
    if let Some(refused) = Gap::refusal(error) {
        return refused;
    }
    match in_doubt {
        true => Error::InDoubt {
            run: place.run.clone(),
            what: format!("cannot tell whether the ledger {address} took {place}: {error}"),
        },
        false => Error::Unavailable {
            what: format!("the ledger {address} did not take {place}: {error}"),
            source: None,
        },
    }
}
