//! What records say: one type for each kind. The types own the form of records in the ledger, which does not change: fields
//! are added, and one that is not there reads as nothing.
//!
//! [`Entry::of`] makes an entry from a record's data, [`Record::read`] reads it back. A field that an old version did
//! not write, or that has another type than it should have, reads as its default where it is only shown; where something
//! follows from it, it is an `Option` whose reader refuses `None`.

mod consultation;
mod host;
mod ledger;
mod opened;
mod outcome;
mod playbook;
mod run;
mod spent;
mod turn;

use quorate_protocol::Json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Map;

use crate::ports::ledger::{Entry, Kind, Record};

pub use consultation::{Attempt, Consultation, Status};
pub use host::{Gathered, HostRule, Match};
pub use ledger::{
    AcceptedKey, Checkpoint, Erased, GivenUp, Held, Imported, RecordRange, Released, RolledBack,
};
pub use opened::{ExecutorUsed, Input, Producer, Queued, RunAudit, RunOpened, TierSource};
pub use outcome::{
    AppliedRule, Contribution, CountedAnswer, CountedVote, Decision, ExactRatio, Fragment, Message, Node,
    Objection, Outcome, Risk, Rollup, Violation,
};
pub use playbook::{LockException, PlaybookEventData, Scores};
pub use run::{Charged, Compares, Keyring, Override, Reserved, RunEnded, RunIntent};
pub use spent::{Money, Spent};
pub use turn::{AppendedTurn, FailedTurn, SettledTurn, Turn};

/// The data of a kind of records.
pub trait RecordData: Serialize + DeserializeOwned {
    const KIND: Kind;

    /// The data as it is recorded, the same as [`to_data`]. A type with JSON values moves them instead of copying them.
    fn into_data(self) -> Map<String, Json> {
        to_data(&self)
    }
}

impl Entry {
    pub fn of<T: RecordData>(data: &T, at_ms: i64) -> Entry {
        Entry { kind: T::KIND, at_ms, data: to_data(data) }
    }

    /// As [`Entry::of`], without a copy of the data.
    pub fn from_data<T: RecordData>(data: T, at_ms: i64) -> Entry {
        Entry { kind: T::KIND, at_ms, data: data.into_data() }
    }
}

impl Record {
    /// Its data, where it is of that kind and was not erased.
    ///
    /// # Errors
    /// When the data is not as that kind has it.
    pub fn read<T: RecordData>(&self) -> Result<Option<T>, serde_json::Error> {
        self.data.as_ref().filter(|_| self.is(T::KIND)).map(read).transpose()
    }
}

/// The data of a record as it is recorded.
pub fn to_data(data: &impl Serialize) -> Map<String, Json> {
    // A struct of fields with text keys is an object; nothing else is recorded.
    match serde_json::to_value(data) {
        Ok(Json::Object(data)) => data,
        _ => Map::new(),
    }
}

/// Reads the data of a record.
///
/// # Errors
/// When it is not as that type has it.
pub fn read<T: DeserializeOwned>(data: &Map<String, Json>) -> Result<T, serde_json::Error> {
    T::deserialize(data)
}

/// The verdict that a record of any kind names.
pub fn verdict(data: &Map<String, Json>) -> Option<String> {
    read::<Outcome>(data).ok()?.verdict
}

/// A field that is only shown: of another type than it should have, it reads as nothing.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(field: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Json::deserialize(field)?).unwrap_or_default())
}

/// Of a list, the items that are as they should be.
fn readable_items<'de, D: Deserializer<'de>, T: DeserializeOwned>(field: D) -> Result<Vec<T>, D::Error> {
    let items: Vec<Json> = lenient(field)?;
    Ok(items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect())
}
