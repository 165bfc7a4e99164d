//! `_log.md`: what was done to playbooks, in lines for people. Lines are only added, by whoever changes playbooks and by
//! whoever weaves them; the ledger has the same as records.

use std::io;
use std::path::Path;

use quorate_kernel::ports::ledger::Record;
use quorate_manifest::timestamp;
use quorate_playbook::log::{self, Line};
use quorate_protocol::Json;

use super::event::ChangeEvent;
use crate::service::disk::{self, Text};

/// The log of a folder of playbooks.
pub const LOG_FILE: &str = "_log.md";

/// Adds a line for each event that has none yet. `scope` is the folder that nothing may be written outside of.
///
/// # Errors
/// When it cannot be read or written.
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
    // Appended, not written anew: somebody else may be adding a line at this moment.
    let whole = log::append(&current, &new);
    disk::append_below(scope, &path, whole.get(current.len()..).unwrap_or_default().as_bytes())
}

/// The log as the ledger has it, where lines of it are gone; and how many are.
///
/// # Errors
/// When it cannot be read.
pub fn restore_lines(folder: &Path, records: &[Record]) -> io::Result<Option<(String, usize)>> {
    let current = match disk::read_text(&folder.join(LOG_FILE))? {
        Text::Present(text) => text,
        Text::Missing => String::new(),
    };
    let line = |record: &Record| {
        let data = record.data.as_ref()?;
        let text = |key: &str| data.get(key).and_then(Json::as_str);
        let at = timestamp::format(record.at_ms);
        let line = Line { at: &at, event: &record.kind, slug: text("slug")?, words: text("words")? };
        Some(line.to_string())
    };
    let lines: Vec<String> = records.iter().filter_map(line).collect();
    Ok(log::restore(&current, &lines))
}

/// Whether it says something of a playbook already.
pub fn mentions(folder: &Path, slug: &str, words: &str) -> bool {
    let Ok(Text::Present(there)) = disk::read_text(&folder.join(LOG_FILE)) else { return false };
    there.lines().any(|line| line.contains(&format!("`{slug}`")) && line.contains(words))
}
