//! What one attempt needs besides its process: its files, and a limit on the concurrent attempts of one program.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use quorate_kernel::files;
use quorate_kernel::ports::executor::{Admission, Failure, Settings};
use quorate_protocol::Json;
use tempfile::TempDir;
use tokio::sync::Semaphore;

use super::running_process::STDOUT_CAP;

/// The files of one attempt.
#[derive(Debug)]
pub(super) struct AttemptFiles {
    dir: TempDir,
}

impl AttemptFiles {
    /// A fresh directory with the schema and the servers, if given.
    #[expect(clippy::disallowed_methods, reason = "the files of an attempt are written here")]
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
        let text = files::read_text(&self.last_message_path(), STDOUT_CAP as u64).ok()?;
        Some(text).filter(|text| !text.trim().is_empty())
    }
}

/// The lowest default: the members of one council.
const MIN_DEFAULT: usize = 4;

/// Directory, name and limit: an executor whose limit changed counts as another.
type LimitKey = (PathBuf, String, usize);

static LIMITS: Mutex<BTreeMap<LimitKey, Arc<Semaphore>>> = Mutex::new(BTreeMap::new());

/// The permits of one executor.
#[derive(Debug, Clone)]
pub(super) struct Concurrency(Arc<Semaphore>);

impl Concurrency {
    /// The permits of the executor with these settings.
    pub(super) fn for_executor(settings: &Settings, most: Option<usize>) -> Self {
        let most = most.unwrap_or_else(default_limit).min(Semaphore::MAX_PERMITS);
        let key = (settings.dir.clone(), settings.name.clone(), most);
        let mut rooms = LIMITS.lock().unwrap_or_else(PoisonError::into_inner);
        Concurrency(Arc::clone(rooms.entry(key).or_insert_with(|| Arc::new(Semaphore::new(most)))))
    }

    pub(super) async fn acquire(&self) -> Admission {
        match Arc::clone(&self.0).acquire_owned().await {
            Ok(permit) => Admission::with_permit(permit),
            // It is never closed.
            Err(_) => Admission::default(),
        }
    }
}

/// One for each core, and at least [`MIN_DEFAULT`].
fn default_limit() -> usize {
    std::thread::available_parallelism().map_or(MIN_DEFAULT, |cores| cores.get().max(MIN_DEFAULT))
}

#[cfg(all(test, unix))]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "the tests replace the files of an attempt")]

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
