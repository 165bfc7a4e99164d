//! What the shim traced: one event per call, in the order in which they happened.

use std::path::Path;

use super::{CALLS, Call, value_of_name};

/// A call, or something that was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub call: Call,
    /// Where in the file, in bytes; a truncation's new length; 1 for an opening that made the file and 2 for one that emptied
    /// it; 1 for a second name.
    pub offset: u64,
    /// The system's error number, 0 where it went well.
    pub error: i32,
    /// The path below the directory.
    pub path: String,
    /// What was written; a rename's new path; an opened file's inode; a line for each file of a synced directory, inode and
    /// name.
    pub bytes: Vec<u8>,
}

impl Event {
    /// Whether it went well and made a file.
    pub fn created_file(&self) -> bool {
        self.call == Call::Open && self.offset == 1 && self.error == 0
    }
}

/// Reads a trace. What a process that was killed had not written to its end is left out.
///
/// # Errors
/// When the file cannot be read or is no trace.
#[expect(clippy::disallowed_methods, reason = "this module reads what the shim wrote")]
pub fn read(file: &Path) -> Result<Vec<Event>, String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut rest = &bytes[..];
    let mut events = Vec::new();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (head, length) = head(&rest[..end])
            .ok_or_else(|| format!("{} is no trace at event {}", file.display(), events.len()))?;
        let Some(bytes) = rest.get(end + 1..end + 1 + length) else { break };
        events.push(Event { bytes: bytes.to_owned(), ..head });
        rest = rest.get(end + 2 + length..).unwrap_or_default();
    }
    Ok(events)
}

/// An event without its bytes, and how many these are.
fn head(line: &[u8]) -> Option<(Event, usize)> {
    let mut parts = std::str::from_utf8(line).ok()?.splitn(5, ' ');
    let call = value_of_name(&CALLS, parts.next()?)?;
    let offset = parts.next()?.parse().ok()?;
    let length = parts.next()?.parse().ok()?;
    let error = parts.next()?.parse().ok()?;
    let path = parts.next()?.to_owned();
    Some((Event { call, offset, error, path, bytes: Vec::new() }, length))
}
