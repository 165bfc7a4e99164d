//! `[executors.<name>]`: the configuration of one executor. Keys that are not common to all executors are passed to the
//! adapter verbatim.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Map;

use super::{Block, ExecutorTable};
use crate::tree::{Field, Fields};

const MAX_RETRIES: i64 = 100;

/// The keys that select the adapter or its program; one of them is required.
const TARGET_KEYS: [&str; 4] = ["kind", "preset", "cli", "command"];

pub(super) fn read(field: &Field<'_>) -> Option<ExecutorTable> {
    let mut fields = field.fields()?;
    let written = fields.optional("kind");
    let timeout = fields.optional("timeout").and_then(|field| field.duration());
    let retries = retries(&mut fields);
    let block = block(field, &fields);
    if written.is_none() && !TARGET_KEYS.iter().any(|key| block.json.contains_key(*key)) {
        let message = format!("`{}` has no `kind`", field.path());
        field.invalid_with(message, "add `kind`, `preset`, `cli` or `command`");
    }
    let kind = match written {
        Some(field) => Some((field.non_blank_text()?.to_owned(), field.place())),
        None => None,
    };
    Some(ExecutorTable { kind, timeout, retries, block })
}

/// Reads `retries`.
pub(crate) fn retries(fields: &mut Fields<'_>) -> Option<u32> {
    let retries = fields.optional("retries")?.integer(0, MAX_RETRIES)?;
    u32::try_from(retries).ok()
}

/// The keys that the caller has not read, verbatim, each with its place.
pub(crate) fn block(field: &Field<'_>, fields: &Fields<'_>) -> Block {
    let mut json = Map::new();
    let mut keys = BTreeMap::new();
    for (key, value) in fields.rest() {
        json.insert(key.to_owned(), value.json());
        keys.insert(key.to_owned(), value.key_place());
    }
    Block { json, place: field.key_place(), keys, source: Arc::clone(fields.source_file().text()) }
}
