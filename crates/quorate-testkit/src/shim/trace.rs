//! The shim's trace: one event for each call, in order.

use std::path::Path;

use super::{CALLS, Call, value_of_name};

/// A call, or a traced message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub call: Call,
    /// Offset in the file, in bytes; a truncation's new length; 1 if an opening created the file, 2 if it emptied the file;
    /// 1 for a link.
    pub offset: u64,
    /// The system's error number, 0 for success.
    pub error: i32,
    /// Relative to the directory.
    pub path: String,
    /// The written data; a rename's new path; an opened file's inode; for a synced directory a line for each file, with inode
    /// and name.
    pub bytes: Vec<u8>,
}

impl Event {
    /// Whether it succeeded and created a file.
    pub fn created_file(&self) -> bool {
        self.call == Call::Open && self.offset == 1 && self.error == 0
    }
}

/// Reads a trace. An event that a killed process did not write completely is omitted.
///
/// # Errors
/// When the file cannot be read or is not a trace.
#[expect(clippy::disallowed_methods, reason = "this module reads what the shim wrote")]
pub fn read(file: &Path) -> Result<Vec<Event>, String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut rest = &bytes[..];
    let mut events = Vec::new();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (head, length) = head(&rest[..end])
            .ok_or_else(|| format!("{} has an invalid trace at event {}", file.display(), events.len()))?;
        let Some(bytes) = rest.get(end + 1..end + 1 + length) else { break };
        events.push(Event { bytes: bytes.to_owned(), ..head });
        rest = rest.get(end + 2 + length..).unwrap_or_default();
    }
    Ok(events)
}

/// An event without its bytes, and their number.
fn head(line: &[u8]) -> Option<(Event, usize)> {
    let mut parts = std::str::from_utf8(line).ok()?.splitn(5, ' ');
    let call = value_of_name(&CALLS, parts.next()?)?;
    let offset = parts.next()?.parse().ok()?;
    let length = parts.next()?.parse().ok()?;
    let error = parts.next()?.parse().ok()?;
    let path = parts.next()?.to_owned();
    Some((Event { call, offset, error, path, bytes: Vec::new() }, length))
}
