//! The data of records: one type for each kind. The types own the form of records in the ledger, which does not change: fields
//! are added, and one that is not there reads as nothing.
//!
//! [`Entry::of`] makes an entry from a record's data, [`Record::read`] reads it back. A field that an old version did
//! not write, or that has another type than it should have, reads as its default where it is only shown; where something
//! follows from it, it is an `Option` whose reader refuses `None`.

/// Defines the data of kinds of records, each as `struct Name: Kind`, and parts of such data. A field of another type than
/// it should have reads as its default.
///
/// - `field?: T` is an `Option<T>`; it is not written if it is `None`.
/// - `field[]: T` is a `Vec<T>`; its invalid items are dropped, and it is not written if it is empty.
/// - `field: T = "read"` is read by this function, and `field: T = plain` must be valid.
/// - `..field: T` takes the other fields.
macro_rules! record_data {
    (@fields [$($head:tt)*] [$($done:tt)*]) => {
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
        #[serde(default)]
        $($head)* { $($done)* }
    };
    (@fields $head:tt [$($done:tt)*] $(#[$meta:meta])* pub $field:ident?: $type:ty, $($rest:tt)*) => {
        record_data! { @fields $head [$($done)*
            $(#[$meta])*
            #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
            pub $field: Option<$type>,
        ] $($rest)* }
    };
    (@fields $head:tt [$($done:tt)*] $(#[$meta:meta])* pub $field:ident[]: $type:ty, $($rest:tt)*) => {
        record_data! { @fields $head [$($done)*
            $(#[$meta])*
            #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
            pub $field: Vec<$type>,
        ] $($rest)* }
    };
    (@fields $head:tt [$($done:tt)*] $(#[$meta:meta])* pub ..$field:ident: $type:ty, $($rest:tt)*) => {
        record_data! { @fields $head [$($done)* $(#[$meta])* #[serde(flatten)] pub $field: $type,] $($rest)* }
    };
    (@fields $head:tt [$($done:tt)*] $(#[$meta:meta])* pub $field:ident: $type:ty = plain, $($rest:tt)*) => {
        record_data! { @fields $head [$($done)* $(#[$meta])* pub $field: $type,] $($rest)* }
    };
    (@fields $head:tt [$($done:tt)*] $(#[$meta:meta])* pub $field:ident: $type:ty = $read:literal, $($rest:tt)*) => {
        record_data! { @fields $head [$($done)*
            $(#[$meta])*
            #[serde(deserialize_with = $read)]
            pub $field: $type,
        ] $($rest)* }
    };
    (@fields $head:tt [$($done:tt)*] $(#[$meta:meta])* pub $field:ident: $type:ty, $($rest:tt)*) => {
        record_data! { @fields $head [$($done)*
            $(#[$meta])*
            #[serde(deserialize_with = "lenient")]
            pub $field: $type,
        ] $($rest)* }
    };
    ($($(#[$meta:meta])* pub struct $name:ident $(: $kind:ident)? { $($fields:tt)* })*) => {
        $(
            record_data! { @fields [$(#[$meta])* pub struct $name] [] $($fields)* }

            $(impl RecordData for $name {
                const KIND: Kind = Kind::$kind;
            })?
        )*
    };
}

mod consultation;
mod outcome;
mod run;

use std::collections::BTreeMap;
use std::ops::Range;

use quorate_protocol::overlay::{Eviction, Overlay};
use quorate_protocol::{Json, Name};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Map;

use crate::ports::ledger::{Entry, Kind, Record};

pub use consultation::{Attempt, Consultation, MissingSample, Samples, Spent, Status, Tried};
pub use outcome::{
    AppliedRule, Contribution, CountedAnswer, CountedVote, ExactRatio, Fragment, Message, Node, Objection,
    Outcome, Risk, Rollup, Violation, VoteCount,
};
pub use run::{Compares, Keyring, Override, Reserved, RunEnded, RunIntent, SampledInvocation};
pub use run::{ExecutorUsed, Gap, HiddenText, Input, Producer, Queued, RunAudit, RunOpened, TierSource};
pub use run::{Gathered, HostRule, Match};

/// The data of a kind of records.
pub trait RecordData: Serialize + DeserializeOwned {
    const KIND: Kind;

    /// The data of the record, the same as [`to_data`]. A type with JSON values moves them instead of copying them.
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
    /// If the data does not have the shape of that kind.
    pub fn read<T: RecordData>(&self) -> Result<Option<T>, serde_json::Error> {
        self.data.as_ref().filter(|_| self.is(T::KIND)).map(read).transpose()
    }
}

/// The data as recorded.
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
/// If it does not have the shape of that type.
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

/// The valid items of a list; the others are dropped.
fn readable_items<'de, D: Deserializer<'de>, T: DeserializeOwned>(field: D) -> Result<Vec<T>, D::Error> {
    let items: Vec<Json> = lenient(field)?;
    Ok(items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect())
}

record_data! {
    /// From now on no text of a run is erased, regardless of age.
    #[derive(Eq)]
    pub struct Held: Held {
        pub run: String,
        pub by: String,
        pub reason: Option<String>,
    }

    /// A run may be erased again once its retention ends.
    #[derive(Eq)]
    pub struct Released: Released {
        pub run: String,
        pub by: String,
    }

    /// Runs were taken in from another ledger.
    pub struct Imported: Imported {
        pub runs: Vec<String> = "readable_items",
        /// How many records they have.
        pub records: u64,
        /// By run, the records whose bodies were not there.
        pub erased: BTreeMap<String, Vec<RecordRange>>,
        /// The other ledger.
        pub origin: String,
        /// Its size and root, as the note says.
        pub size: u64,
        pub root: String,
        pub note: Option<String>,
        pub keys: Json = plain,
        /// The key that a person vouched for.
        pub vouched: Json = plain,
        pub file_sha256: String,
    }

    /// A person accepted that the ledger has lost records that its key had signed.
    #[derive(Eq)]
    pub struct RolledBack: RolledBack {
        pub reason: String,
        pub by: String,
        /// The checkpoints that do not hold any more.
        pub given_up: Vec<GivenUp> = "readable_items",
        /// The ledger that was kept here before, where this is another one.
        pub replaced: Option<String>,
    }

    /// A copy of a checkpoint.
    #[derive(Eq)]
    pub struct GivenUp {
        /// `None` where it could not be read.
        pub note: Option<String>,
    }
}

/// Records by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RecordRange {
    One(u64),
    FirstToLast([u64; 2]),
}

impl RecordRange {
    /// `None` if no number follows the last.
    pub fn range(self) -> Option<Range<u64>> {
        match self {
            RecordRange::One(n) => Some(n..n.saturating_add(1)),
            RecordRange::FirstToLast([first, last]) => Some(first..last.checked_add(1)?),
        }
    }
}

record_data! {
    /// Bodies of a run were erased.
    pub struct Erased: Erased {
        pub run: Option<String>,
        /// Ranges of numbers, each with its first and last.
        pub records: Option<Vec<RecordRange>>,
        /// Texts, by SHA-256.
        pub bodies: Option<Vec<String>>,
        /// `retention` or `consultations_off`.
        pub reason: Option<String>,
        /// After how many days; `None` where nothing was to be kept beyond the run's end.
        pub days: Option<u32>,
    }
}

/// The ledger up to here was sealed. Malformed fields make it unusable as a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub origin: String,
    /// Over how many records.
    pub size: u64,
    /// The tree's root, hexadecimal.
    pub root: String,
    /// The signed note; `None` if the checkpoint is unsigned.
    #[serde(default, deserialize_with = "lenient")]
    pub note: Option<String>,
    /// Who verifies it, one line each.
    pub keys: Vec<String>,
    /// What lets its keys follow those of the signed checkpoint before it where none of these signed it: each the word of
    /// one key for the next. The ledger reads and checks them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vouched: Vec<Json>,
    /// The keys that a person accepts here, since no key before them vouches for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<AcceptedKey>,
}

/// A person accepted a key of the ledger for which no key before it vouches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedKey {
    /// The public key.
    pub key: String,
    pub by: String,
    pub reason: String,
}

impl RecordData for Checkpoint {
    const KIND: Kind = Kind::Checkpoint;
}

record_data! {
    /// A trigger was dispatched, or the conversation was found to differ from the ledger.
    #[derive(Eq)]
    pub struct Turn: Turn {
        pub trigger?: Name,
        /// Who wrote the trigger.
        pub by?: Name,
        /// Who was chosen to answer.
        pub selected?: Vec<Name>,
        /// The answers that are in the conversation.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub appended: Option<Vec<AppendedTurn>> = "some_readable",
        /// Who was chosen and gave no answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub failed: Option<Vec<FailedTurn>> = "some_readable",
        /// The trigger, where it is settled: nothing before it is read again.
        pub cursor?: Name,
        /// The turns that were settled since the last record that has a cursor, up to this one's, in their order (D15).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub settled: Option<Vec<SettledTurn>> = "some_readable",
        /// The number of the cursor's turn in the conversation, counted from 1.
        pub position?: u64,
        /// Why no participant was selected for the trigger; null where no reason is known.
        pub why?: Option<String>,
        /// The answers were found in the conversation after a crash.
        pub recovered?: bool,
        /// How the conversation differs from the ledger.
        pub differs?: String,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendedTurn {
    #[serde(default)]
    pub participant: Name,
    pub turn: Name,
}

/// A settled turn, and the hash of what the conversation had of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledTurn {
    pub turn: Name,
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedTurn {
    pub participant: Name,
    pub why: String,
}

fn some_readable<'de, D, T>(field: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    readable_items(field).map(Some)
}

record_data! {
    /// An event of a playbook; which one, its kind says. Events add what they are about: a gate its evidence, a refusal its codes.
    pub struct PlaybookEventData {
        /// The change that it is a part of.
        pub change?: String,
        /// The playbook; of a composed prompt, its operators.
        pub slug?: String,
        /// What happened, as a message for users.
        pub words?: String,
        pub operator?: String,
        /// The version that is current from here on.
        pub version?: u32,
        /// The hash of the file or of the composed prompt.
        pub sha256?: String,
        /// For a composed prompt: the woven overlays, in order.
        #[serde(skip_serializing_if = "Json::is_null")]
        pub woven: Json = plain,
        /// For a composed prompt: the prompt with each playbook in shadow, by playbook.
        pub shadows?: Map<String, Json>,
        /// Objections of a lock that a person overruled.
        pub exceptions[]: LockException,
        /// The gate that was asked.
        pub gate?: String,
        /// The attempt to pass it, of which a scorer's trials are parts.
        pub attempt?: String,
        /// The text that it was asked about, in a form in which a later attempt on it is recognised.
        #[serde(skip_serializing_if = "Json::is_null")]
        pub text: Json = plain,
        /// The result of a scorer's trial.
        pub scores?: Scores,
        pub ..more: Map<String, Json>,
    }
}

/// What a scorer answers: the agent's score without the playbook and with it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    pub without: f64,
    pub with: f64,
}

/// Words that a person allows although they touch a locked trait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockException {
    #[serde(rename = "trait")]
    pub locked: String,
    pub text: String,
    pub by: String,
    pub reason: String,
}

impl RecordData for Overlay {
    const KIND: Kind = Kind::OverlayAdded;
}

impl RecordData for Eviction {
    const KIND: Kind = Kind::OverlayEvicted;
}
