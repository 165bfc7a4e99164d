//! Reads the path of the written file from the events that tools send to their hooks on standard input.

use std::path::{Path, PathBuf};

use quorate::service::disk;
use quorate::service::error::{ExitClass, ServiceError};
use quorate_diagnostics::{Body, codes};
use serde_json::Value;

/// The largest event, in bytes: some contain the whole written text.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The tools that write a file.
const WRITING: [&str; 4] = ["Write", "Edit", "MultiEdit", "NotebookEdit"];

/// The format of a tool's event.
pub(super) struct Event {
    pub(super) is_claude: bool,
    tool: &'static str,
    /// JSON pointers to the file's path; the first existing one counts.
    paths: &'static [&'static str],
    /// A JSON pointer to the base directory of a relative path.
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
    /// Reads standard input and returns the path of the written file; `None` for an event without one.
    ///
    /// # Errors
    /// If standard input is not such an event.
    pub(super) fn read(&self, directory: &Path) -> Result<Option<PathBuf>, ServiceError> {
        let no_event = |why: String| {
            let body = Body::new(format!("standard input is not an event of {}: {why}", self.tool));
            let help = "run `quorate init wiring` to configure the tool's hooks";
            ServiceError::new(ExitClass::Usage, codes::USAGE, body.help(help))
        };
        let bytes = disk::read_stdin(MAX_BYTES).map_err(|error| no_event(error.to_string()))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(no_event(format!("it has more than {} MiB", MAX_BYTES / (1024 * 1024))));
        }
        let event: Value = serde_json::from_slice(&bytes).map_err(|error| no_event(error.to_string()))?;
        if !event.is_object() {
            return Err(no_event("it is not a JSON object".to_owned()));
        }
        let Some(written) = self.paths.iter().find_map(|pointer| event.pointer(pointer)) else {
            // Tools that write no file have no path. Without the tool's name the event is invalid.
            return match event["tool_name"].as_str() {
                Some(tool) if !WRITING.contains(&tool) => Ok(None),
                _ => Err(no_event("it does not name the written file".to_owned())),
            };
        };
        let written = written.as_str().ok_or_else(|| no_event("the file's path is not text".to_owned()))?;
        let start = event.pointer(self.directory).and_then(Value::as_str).map_or(directory, Path::new);
        Ok(Some(directory.join(start).join(written)))
    }
}
