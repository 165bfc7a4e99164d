//! `_log.md`: events of playbooks, in lines for people. Changes and weaves append lines; the ledger has the same as
//! records.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use quorate_kernel::ports::ledger::{PlaybookEvent, Record};
use quorate_manifest::timestamp;
use quorate_playbook::log::{self, Line};
use quorate_protocol::Json;

use super::event::{ChangeEvent, event};
use crate::service::disk::{self, Text};

/// The log of a playbooks' folder.
pub const LOG_FILE: &str = "_log.md";

/// Adds a line for each unlogged event. `scope` is the folder that writes must stay in.
///
/// # Errors
/// If it cannot be read or written.
pub fn append_lines(scope: &Path, folder: &Path, at_ms: i64, events: &[ChangeEvent]) -> io::Result<()> {
    let path = folder.join(LOG_FILE);
    let current = match disk::read_text(&path)? {
        Text::Present(text) => text,
        Text::Missing => String::new(),
    };
    let at = timestamp::format(at_ms);
    let lines = events
        .iter()
        .map(|one| Line { at: &at, event: &one.event, slug: &one.slug, words: &one.words }.to_string());
    let new: Vec<String> = lines.filter(|line| !log::contains(&current, line)).collect();
    if new.is_empty() {
        return Ok(());
    }
    // Appends instead of rewriting: another process may be adding a line.
    let whole = log::append(&current, &new);
    disk::append_below(scope, &path, whole.get(current.len()..).unwrap_or_default().as_bytes())
}

/// Restores missing lines from the ledger; returns the text and their number.
///
/// # Errors
/// If it cannot be read.
pub fn restore_lines(folder: &Path, records: &[Record]) -> io::Result<Option<(String, usize)>> {
    let current = match disk::read_text(&folder.join(LOG_FILE))? {
        Text::Present(text) => text,
        Text::Missing => String::new(),
    };
    let lines: Vec<String> = records.iter().filter_map(record_line).collect();
    Ok(log::restore(&current, &lines))
}

/// The line of a record; `None` for a trial of a scorer, which is only in the ledger.
fn record_line(record: &Record) -> Option<String> {
    let data = record.data.as_ref().filter(|_| record.kind != PlaybookEvent::Tried.as_str())?;
    let text = |key: &str| data.get(key).and_then(Json::as_str);
    let at = timestamp::format(record.at_ms);
    Some(Line { at: &at, event: &record.kind, slug: text("slug")?, words: text("words")? }.to_string())
}

/// The number of changes of playbooks that the log lacks. Events of weaves do not count, since a weave may run in a
/// read-only workspace.
///
/// # Errors
/// If it cannot be read.
pub fn count_missing_lines(folder: &Path, records: &[Record]) -> io::Result<usize> {
    let current = match disk::read_text(&folder.join(LOG_FILE))? {
        Text::Present(text) => text,
        Text::Missing => String::new(),
    };
    let known: BTreeSet<&str> = current.lines().map(str::trim_end).collect();
    let is_change = |record: &&Record| {
        ![PlaybookEvent::Composed, PlaybookEvent::Skipped].iter().any(|kind| record.kind == kind.as_str())
            && event(record).is_none_or(|event| event.operator.is_none())
    };
    let lines = records.iter().filter(is_change).filter_map(record_line);
    Ok(lines.filter(|line| !known.contains(line.trim_end())).count())
}

/// Whether the log mentions a playbook.
pub fn mentions(folder: &Path, slug: &str, words: &str) -> bool {
    let Ok(Text::Present(there)) = disk::read_text(&folder.join(LOG_FILE)) else { return false };
    there.lines().any(|line| line.contains(&format!("`{slug}`")) && line.contains(words))
}
