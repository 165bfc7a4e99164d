//! What is recorded of playbooks: events, in one stream for each scope.

use quorate_kernel::ports::ledger::{PlaybookEvent, Record};
use quorate_kernel::record::{self, PlaybookEventData};
use quorate_manifest::workspace::Scope;
use quorate_protocol::{Json, Name};
use serde::{Deserialize, Serialize};

/// The stream of records about playbooks, of the workspace; a tenant's has its name behind it.
const STREAM: &str = "playbooks";

/// Something that happened to a playbook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangeEvent {
    /// What: the record's kind.
    pub event: String,
    pub slug: String,
    pub words: String,
    /// What is recorded besides.
    pub data: Json,
}

impl ChangeEvent {
    /// An event of a playbook.
    pub fn new(event: PlaybookEvent, slug: &str, words: impl Into<String>, data: Json) -> Self {
        ChangeEvent { event: event.as_str().to_owned(), slug: slug.to_owned(), words: words.into(), data }
    }
}

/// What a record says of a playbook; `None` where it was erased or cannot be read.
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
