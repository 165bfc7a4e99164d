//! Recorded events of playbooks, in one stream for each scope.

use quorate_kernel::ports::ledger::{PlaybookEvent, Record};
use quorate_kernel::record::{self, PlaybookEventData};
use quorate_manifest::workspace::Scope;
use quorate_protocol::{Json, Name};
use serde::{Deserialize, Serialize};

/// The workspace's stream; a tenant's has the tenant's name appended.
const STREAM: &str = "playbooks";

/// An event of a playbook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangeEvent {
    /// The record's kind.
    pub event: String,
    pub slug: String,
    pub words: String,
    /// The record's further fields.
    pub data: Json,
}

impl ChangeEvent {
    pub fn new(event: PlaybookEvent, slug: &str, words: impl Into<String>, data: Json) -> Self {
        ChangeEvent { event: event.as_str().to_owned(), slug: slug.to_owned(), words: words.into(), data }
    }
}

/// The playbook event of a record; `None` if the record was erased or is malformed.
pub fn event(record: &Record) -> Option<PlaybookEventData> {
    record::read(record.data.as_ref()?).ok()
}

/// The stream of a scope.
pub fn stream(scope: &Scope) -> Name {
    match scope.folder() {
        top if top.is_empty() => STREAM.into(),
        tenant => format!("{STREAM}/{tenant}").into(),
    }
}
