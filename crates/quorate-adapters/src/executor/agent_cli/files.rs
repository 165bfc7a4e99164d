//! The files that some CLIs want beside their streams: the schema to read, the MCP servers to use, and the place for
//! the last message. They live in a private directory that is gone when the attempt is over.

#![expect(clippy::disallowed_methods, reason = "this is where the files of an attempt are reached")]

use std::io::Read;
use std::path::PathBuf;

use quorate_kernel::ports::executor::Failure;
use quorate_protocol::Json;
use tempfile::TempDir;

use super::pipes::STDOUT_CAP;

/// The files of one attempt.
#[derive(Debug)]
pub(super) struct AnswerFiles {
    dir: TempDir,
}

impl AnswerFiles {
    /// A fresh directory with the schema and the servers in it, where there are any.
    pub(super) fn new(schema: Option<&Json>, servers: Option<&Json>) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::failed(format!("no temporary files can be written ({error}); check TMPDIR"))
        };
        let dir = tempfile::Builder::new().prefix("quorate-").tempdir().map_err(failed)?;
        let files = AnswerFiles { dir };
        for (path, content) in [(files.schema(), schema), (files.servers(), servers)] {
            if let Some(content) = content {
                std::fs::write(path, content.to_string()).map_err(failed)?;
            }
        }
        Ok(files)
    }

    /// The schema's file.
    pub(super) fn schema(&self) -> PathBuf {
        self.dir.path().join("schema.json")
    }

    /// The file of the MCP servers.
    pub(super) fn servers(&self) -> PathBuf {
        self.dir.path().join("mcp.json")
    }

    /// Where the last message is to be written.
    pub(super) fn last_message(&self) -> PathBuf {
        self.dir.path().join("last-message.txt")
    }

    /// The last message, as far as it is text and within the cap of any output; `None` where there is none.
    pub(super) fn read_last_message(&self) -> Option<String> {
        let mut text = String::new();
        let file = std::fs::File::open(self.last_message()).ok()?;
        file.take(STDOUT_CAP as u64).read_to_string(&mut text).ok()?;
        Some(text).filter(|text| !text.trim().is_empty())
    }
}
