//! The events that tools write to their hooks' standard input. What is read of them is a file's path alone.

use std::path::{Path, PathBuf};

use quorate::service::disk;
use quorate::service::error::{ExitClass, ServiceError};
use quorate_diagnostics::{Body, codes};
use serde_json::Value;

/// The largest event, in bytes: some have the whole text that was written.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The tools that write a file.
const WRITING: [&str; 4] = ["Write", "Edit", "MultiEdit", "NotebookEdit"];

/// An event that is about to be read.
pub(super) struct Event {
    pub(super) is_claude: bool,
    tool: &'static str,
    /// Where the file's path is, as JSON pointers; the first that is there counts.
    paths: &'static [&'static str],
    /// Where the directory is that a relative path starts from.
    directory: &'static str,
}

pub(super) fn claude() -> Event {
    Event {
        is_claude: true,
        tool: "Claude Code",
        paths: &["/tool_input/file_path", "/tool_input/notebook_path"],
        directory: "/cwd",
    }
}

pub(super) fn cursor() -> Event {
    Event {
        is_claude: false,
        tool: "Cursor",
        paths: &["/file_path", "/tool_input/file_path"],
        directory: "/workspace_roots/0",
    }
}

impl Event {
    /// Reads standard input, and gives the path of the file that was written; `None` for an event of no file.
    ///
    /// # Errors
    /// If it is no event.
    pub(super) fn read(&self, directory: &Path) -> Result<Option<PathBuf>, ServiceError> {
        let no_event = |why: String| {
            let body = Body::new(format!("standard input is no event of {}: {why}", self.tool));
            let help = "its hooks write one; `quorate init wiring` writes their configuration";
            ServiceError::new(ExitClass::Usage, codes::USAGE, body.help(help))
        };
        let bytes = disk::read_stdin(MAX_BYTES).map_err(|error| no_event(error.to_string()))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(no_event(format!("it has more than {} MiB", MAX_BYTES / (1024 * 1024))));
        }
        let event: Value = serde_json::from_slice(&bytes).map_err(|error| no_event(error.to_string()))?;
        if !event.is_object() {
            return Err(no_event("it is no JSON object".to_owned()));
        }
        let Some(written) = self.paths.iter().find_map(|pointer| event.pointer(pointer)) else {
            // A tool that writes no file has none; without its name it is unknown what happened.
            return match event["tool_name"].as_str() {
                Some(tool) if !WRITING.contains(&tool) => Ok(None),
                _ => Err(no_event("it does not say which file was written".to_owned())),
            };
        };
        let written = written.as_str().ok_or_else(|| no_event("the file's path is no text".to_owned()))?;
        let start = event.pointer(self.directory).and_then(Value::as_str).map_or(directory, Path::new);
        Ok(Some(directory.join(start).join(written)))
    }
}
