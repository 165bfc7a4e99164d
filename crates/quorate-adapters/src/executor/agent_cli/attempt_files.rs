//! The files that some CLIs read or write beside their streams: the schema, the MCP servers, and the last message.
//! They live in a private directory that is removed when the attempt ends.

#![expect(clippy::disallowed_methods, reason = "this is where the files of an attempt are reached")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use quorate_kernel::ports::executor::Failure;
use quorate_protocol::Json;
use tempfile::TempDir;

use super::pipes::STDOUT_CAP;
use crate::regular_file;

/// The files of one attempt.
#[derive(Debug)]
pub(super) struct AttemptFiles {
    dir: TempDir,
}

impl AttemptFiles {
    /// A fresh directory with the schema and the servers, if given.
    pub(super) fn new(schema: Option<&Json>, servers: Option<&Json>) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::failed(format!("no temporary files can be written ({error}); check TMPDIR"))
        };
        let owner_only = std::fs::Permissions::from_mode(0o700);
        let dir =
            tempfile::Builder::new().prefix("quorate-").permissions(owner_only).tempdir().map_err(failed)?;
        let files = AttemptFiles { dir };
        for (path, content) in [(files.schema_path(), schema), (files.servers_path(), servers)] {
            if let Some(content) = content {
                std::fs::write(path, content.to_string()).map_err(failed)?;
            }
        }
        Ok(files)
    }

    pub(super) fn schema_path(&self) -> PathBuf {
        self.dir.path().join("schema.json")
    }

    pub(super) fn servers_path(&self) -> PathBuf {
        self.dir.path().join("mcp.json")
    }

    /// The file that the CLI writes its last message to.
    pub(super) fn last_message_path(&self) -> PathBuf {
        self.dir.path().join("last-message.txt")
    }

    /// The last message; `None` if the file is missing, is not text, or exceeds the cap of any output.
    pub(super) fn read_last_message(&self) -> Option<String> {
        // The command may have put anything in its place.
        let text = regular_file::read_text(&self.last_message_path(), STDOUT_CAP as u64).ok()?;
        Some(text).filter(|text| !text.trim().is_empty())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_pipe_in_place_of_the_last_message_does_not_block() {
        let files = AttemptFiles::new(None, None).unwrap();
        mknodat(CWD, files.last_message_path(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(files.read_last_message(), None);
        std::fs::remove_file(files.last_message_path()).unwrap();
        std::fs::write(files.last_message_path(), "said").unwrap();
        assert_eq!(files.read_last_message().as_deref(), Some("said"));
        std::fs::write(files.last_message_path(), vec![b'x'; STDOUT_CAP + 1]).unwrap();
        assert_eq!(files.read_last_message(), None);
    }
}
