//! The folder of a cassette: finds, checks and writes its files. The files may come from a checkout of somebody else's, so
//! links, pipes, long files and what is no recording are refused, and nothing is written over another file.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::executor::{ConfigError, Failure};

use super::recording::{Recording, Request};
use crate::regular_file;

/// The longest recording, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// The most recordings of a folder.
const MAX_FILES: usize = 5_000;
/// The most that is read of a folder to compare its recordings, in bytes.
const MAX_FOLDER_BYTES: usize = 64 << 20;

pub(super) struct Folder {
    /// The directory that the path is relative to.
    root: PathBuf,
    /// The path as written.
    written: String,
}

impl Folder {
    pub(super) fn new(root: &Path, written: &str) -> Self {
        Folder { root: root.to_owned(), written: written.to_owned() }
    }

    /// The path as the settings have it.
    pub(super) fn shown(&self) -> &str {
        &self.written
    }

    fn path(&self) -> PathBuf {
        self.root.join(&self.written)
    }

    /// A file as messages name it.
    fn shown_file(&self, name: &str) -> String {
        format!("{}/{name}", self.written.trim_end_matches('/'))
    }

    /// Refuses a link on the way to the folder.
    fn ensure_no_link(&self) -> Result<(), String> {
        let mut path = self.root.clone();
        for part in Path::new(&self.written).components() {
            path.push(part);
            regular_file::reject_symlink(&path)
                .map_err(|error| format!("`{}`: {}: {error}", self.written, part.as_os_str().display()))?;
        }
        Ok(())
    }

    /// The recording of a request, if there is one.
    pub(super) fn find(&self, request: &Request) -> Result<Option<Recording>, Failure> {
        let name = request.file_name();
        self.ensure_no_link().map_err(Failure::never)?;
        match self.read(&name) {
            Ok(None) => Ok(None),
            Ok(Some(recording)) if recording.request.is_same(request) => Ok(Some(recording)),
            Ok(Some(recording)) => Err(Failure::never(format!(
                "`{}` was changed by hand: its request is another one, in {}",
                self.shown_file(&name),
                request.difference(&recording.request)
            ))),
            Err(refused) => Err(Failure::never(refused)),
        }
    }

    /// Reads a recording; `None` if there is no such file.
    fn read(&self, name: &str) -> Result<Option<Recording>, String> {
        let refused = |why: String| format!("`{}` is no recording: {why}", self.shown_file(name));
        match regular_file::read_no_symlink(&self.path().join(name), MAX_FILE_BYTES) {
            Ok(text) => Recording::parse(&text).map(Some).map_err(refused),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(refused(error.to_string())),
        }
    }

    /// The names of all recordings, sorted.
    #[expect(clippy::disallowed_methods, reason = "this module is where recordings are read")]
    fn names(&self) -> Result<Vec<String>, String> {
        self.ensure_no_link()?;
        let unreadable =
            |error: std::io::Error| format!("cannot read the folder `{}`: {error}", self.written);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.path()).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".json") && !name.starts_with('.') {
                names.push(name);
            }
            if names.len() > MAX_FILES {
                return Err(format!("the folder `{}` has more than {MAX_FILES} recordings", self.written));
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// All recordings with their names.
    fn recordings(&self) -> Result<Vec<(String, Recording)>, String> {
        let mut left = MAX_FOLDER_BYTES;
        let mut all = Vec::new();
        for name in self.names()? {
            if let Some(recording) = self.read(&name)? {
                let size = recording.text().len();
                left = left.checked_sub(size).ok_or_else(|| {
                    format!("the recordings of `{}` are larger than {MAX_FOLDER_BYTES} bytes", self.written)
                })?;
                all.push((name, recording));
            }
        }
        Ok(all)
    }

    /// Names and content of all recordings, for a hash.
    pub(super) fn contents(&self) -> Result<String, String> {
        let all = self.recordings()?;
        Ok(all
            .iter()
            .map(|(name, recording)| format!("{name} {}\n", sha256_hex(recording.text().as_bytes())))
            .collect())
    }

    /// Checks every recording; the number of them.
    pub(super) fn check(&self) -> Result<usize, ConfigError> {
        let checked = self.recordings();
        checked.map(|all| all.len()).map_err(|why| ConfigError::for_key("dir", why))
    }

    /// Checks the recordings that there are. The folder itself may be missing.
    pub(super) fn check_for_writing(&self) -> Result<(), ConfigError> {
        match self.path().symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            _ => self.check().map(drop),
        }
    }

    /// The failure of a request without a recording: what differs from the nearest one.
    pub(super) fn missing(&self, request: &Request) -> Failure {
        let all = match self.recordings() {
            Ok(all) => all,
            Err(refused) => return Failure::never(refused),
        };
        let compared = all.iter().map(|(name, recording)| (name, request.difference(&recording.request)));
        let nearest = compared.min_by_key(|(_, difference)| difference.distance());
        let why = match nearest {
            None => format!("`{}` has no recordings", self.written),
            Some((name, difference)) => {
                format!("the nearest recording, `{}`, differs in {difference}", self.shown_file(name))
            }
        };
        Failure::never(format!("no answer to this question is recorded: {why}"))
    }

    /// Writes a recording; if another one of the same request is there, that is returned, and nothing is written.
    pub(super) async fn write(&self, recording: &Recording) -> Result<Option<Recording>, Failure> {
        let name = recording.request.file_name();
        self.ensure_no_link().map_err(Failure::never)?;
        let (dir, path, text) = (self.path(), self.path().join(&name), recording.text());
        // A sync may take long. A started task also ends if the caller is dropped.
        let written = tokio::task::spawn_blocking(move || write_new(&dir, &path, text.as_bytes())).await;
        match written.map_err(std::io::Error::other).flatten() {
            Ok(()) => Ok(None),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.find(&recording.request),
            Err(error) => Err(Failure::never(format!(
                "cannot write the recording `{}`: {error}",
                self.shown_file(&name)
            ))),
        }
    }
}

/// Writes a file as a whole, where there is none: an existing file or link in its place stays.
#[expect(clippy::disallowed_methods, reason = "this module is where recordings are written")]
fn write_new(dir: &Path, path: &Path, text: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    let mut file = tempfile::Builder::new().prefix(".writing-").tempfile_in(dir)?;
    file.write_all(text)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    Ok(())
}
