//! The `fs` store: one JSON file for each participant in a folder, `./state/<manifest id>` beside the manifest unless the
//! block sets `dir` (K9).
//!
//! The default folder belongs to the conversation that stores a state there first, which the file `.conversation` names.
//! Another conversation with the same manifest id, for example a copy that continues on its own, has a folder below it.
//!
//! A file is replaced as a whole: written to a temporary file, synced, renamed. A file without a JSON object is an error
//! that names it; it is not overwritten, since its content may matter.
//!
//! File names of ids: an id that every file system preserves is used unchanged; otherwise each byte that some file system
//! would change is written as `%` and two hexadecimal digits.
//!
//! No two ids share a name, even where case does not matter: literal letters are always lower case, and a `%` is never
//! literal.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::state::{State, StateError};
use quorate_kernel::registry::BuildContext;
use quorate_manifest::workspace::is_device_name;
use quorate_protocol::Json;
use serde_json::Map;
use sha2::{Digest, Sha256};

use super::check_storable;
use crate::block::Block;
use quorate_kernel::files::{self, Readers};

/// The kind that manifests name.
pub const KIND: &str = "fs";

/// The folder of the default folders, relative to the manifest.
const PARENT_DIR: &str = "state";
/// The file of a default folder that names its conversation.
const OWNER_FILE: &str = ".conversation";
const MAX_OWNER_BYTES: u64 = 64 << 10;

/// The longest state that is read, in bytes.
const MAX_STATE_BYTES: u64 = 64 << 20;

/// Builds the store from its block.
///
/// # Errors
/// When the block has an unknown key, or `dir` is a file.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn State>, ConfigError> {
    let block = Block::parse(build.block, &["kind", "dir"])?;
    let written = block.text("dir")?;
    let dir = written.map_or_else(|| default_dir(build.runtime), str::to_owned);
    let dir = std::path::absolute(build.dir.join(&dir))
        .map_err(|error| ConfigError::for_key("dir", format!("`{dir}` is not a path: {error}")))?;
    if dir.is_file() {
        let message = format!("`{}` is a file; states need a folder", dir.display());
        return Err(
            ConfigError::for_key("dir", message).with_help("name a folder; it is made when it is needed")
        );
    }
    let conversation = written.is_none().then(|| relative_place(build.dir, build.conversation));
    Ok(Arc::new(FsState { dir, conversation }))
}

/// The default of `dir`, relative to the manifest (K9).
pub fn default_dir(runtime: &str) -> String {
    format!("{PARENT_DIR}/{}", encode(runtime))
}

/// A conversation's place, relative to the manifest where it is below it, so that a folder can be moved as a whole.
fn relative_place(dir: &Path, place: &str) -> String {
    let dir = files::real_path(dir);
    Path::new(place).strip_prefix(dir).map_or_else(|_| place.to_owned(), |place| place.display().to_string())
}

/// How often a read is attempted while no descriptor is free, and the pause between attempts.
const MAX_READ_ATTEMPTS: u32 = 100;
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Whether no descriptor was free: `EMFILE` or `ENFILE`, which have no `ErrorKind`.
fn is_out_of_descriptors(error: &std::io::Error) -> bool {
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

struct FsState {
    dir: PathBuf,
    /// The conversation, where `dir` is the default folder.
    conversation: Option<String>,
}

impl FsState {
    /// The folder of the states.
    fn folder(&self) -> std::io::Result<PathBuf> {
        let Some(conversation) = &self.conversation else { return Ok(self.dir.clone()) };
        match files::read_no_symlink(&self.dir.join(OWNER_FILE), MAX_OWNER_BYTES) {
            Ok(owner) if owner == conversation.as_bytes() => Ok(self.dir.clone()),
            Ok(_) => Ok(self.dir.join(hash(conversation))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(self.dir.clone()),
            Err(error) => Err(error),
        }
    }

    /// The file of a participant's state.
    fn path(&self, participant: &str) -> Result<PathBuf, StateError> {
        let folder = self.folder().map_err(|error| {
            StateError::new(format!("cannot read {}", self.dir.join(OWNER_FILE).display()), error)
        })?;
        Ok(folder.join(for_participant(participant)))
    }
}

#[async_trait]
impl State for FsState {
    fn kind(&self) -> &'static str {
        KIND
    }

    async fn read(&self, participant: &str) -> Result<Map<String, Json>, StateError> {
        // Reading a small file here is faster than handing it to another thread.
        let path = self.path(participant)?;
        let mut tries = 1;
        let text = loop {
            match files::read_no_symlink(&path, MAX_STATE_BYTES) {
                // Hooks and others release descriptors; a participant without its state would lose its turn.
                Err(error) if is_out_of_descriptors(&error) && tries < MAX_READ_ATTEMPTS => {
                    tokio::time::sleep(RETRY_DELAY).await
                }
                read => break read,
            }
            tries += 1;
        };
        match text {
            Ok(text) => {
                let state = serde_json::from_slice(&text).map_err(|error| {
                    let message = format!(
                        "the state of `{participant}`, {}, is not a JSON object; mend it, or move it away to begin anew",
                        path.display()
                    );
                    StateError::new(message, error)
                })?;
                check_storable(participant, &state)?;
                Ok(state)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Map::new()),
            Err(error) => Err(StateError::new(format!("cannot read {}", path.display()), error)),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a folder of states is made where it is needed")]
    async fn write(&self, participant: &str, state: &Map<String, Json>) -> Result<(), StateError> {
        check_storable(participant, state)?;
        let cannot = format!("cannot write the state of `{participant}` in {}", self.dir.display());
        if let Some(conversation) = &self.conversation {
            claim(&self.dir, conversation).map_err(|error| StateError::new(cannot.clone(), error))?;
        }
        let path = self.path(participant)?;
        let mut text = match serde_json::to_vec_pretty(state) {
            Ok(text) => text,
            Err(error) => return Err(StateError::new(cannot, error)),
        };
        text.push(b'\n');
        // A sync may take long. A started task also ends if the caller is dropped.
        let write = move || {
            std::fs::create_dir_all(path.parent().ok_or(ErrorKind::InvalidInput)?)?;
            files::write_atomic(&path, &text, Readers::Owner)
        };
        let written = tokio::task::spawn_blocking(write).await;
        written.map_err(std::io::Error::other).flatten().map_err(|error| StateError::new(cannot, error))
    }
}

/// Makes the folder the conversation's, unless it has one already.
#[expect(clippy::disallowed_methods, reason = "this module is where states are written")]
fn claim(dir: &Path, conversation: &str) -> std::io::Result<()> {
    let owner = dir.join(OWNER_FILE);
    if owner.symlink_metadata().is_ok() {
        return Ok(());
    }
    std::fs::create_dir_all(dir)?;
    let mut file = tempfile::Builder::new().prefix(".writing-").tempfile_in(dir)?;
    file.write_all(conversation.as_bytes())?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(&owner) {
        Err(error) if error.error.kind() != ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}

/// The longest name without its extension, in bytes; file systems allow 255, and some encrypting ones 143.
const MAX_NAME_BYTES: usize = 120;

fn for_participant(participant: &str) -> String {
    encode(participant) + ".json"
}

/// The name without an extension.
fn encode(id: &str) -> String {
    let mut name = String::with_capacity(id.len() + 5);
    let last = id.len().saturating_sub(1);
    for (at, byte) in id.bytes().enumerate() {
        let literal = match byte {
            b'a'..=b'z' => at > 0 || !is_device_name(id),
            b'0'..=b'9' | b'-' | b'_' => true,
            b'.' => at > 0 && at < last,
            _ => false,
        };
        match literal {
            true => name.push(char::from(byte)),
            false => name.push_str(&format!("%{byte:02X}")),
        }
    }
    if name.is_empty() {
        name.push('%');
    }
    if name.len() > MAX_NAME_BYTES {
        // `%%` occurs in no other name.
        name = format!("{}%%{}", &name[..MAX_NAME_BYTES / 2], hash(id));
    }
    name
}

fn hash(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_ids_are_their_names_and_others_are_spelt_out() {
        for (id, name) in [
            ("reviewer", "reviewer.json"),
            ("migration-writer_2", "migration-writer_2.json"),
            ("v1.2", "v1.2.json"),
            ("", "%.json"),
            (".", "%2E.json"),
            ("..", "%2E%2E.json"),
            ("../x", "%2E.%2Fx.json"),
            ("Reviewer", "%52eviewer.json"),
            ("con", "%63on.json"),
            ("con.txt", "%63on.txt.json"),
            ("com1", "%63om1.json"),
            ("console", "console.json"),
            ("é", "%C3%A9.json"),
            ("%", "%25.json"),
            ("a ", "a%20.json"),
        ] {
            assert_eq!(for_participant(id), name);
        }
        let long = "x".repeat(5_000);
        assert!(for_participant(&long).len() < 143 && for_participant(&long) != for_participant(&long[1..]));
    }

    #[test]
    fn no_two_ids_share_a_name() {
        use proptest::prelude::*;
        proptest!(|(first in "\\PC{0,60}|[%.a-cA-C]{0,4}", second in "\\PC{0,60}|[%.a-cA-C]{0,4}")| {
            prop_assert!(first == second || for_participant(&first).to_lowercase() != for_participant(&second).to_lowercase());
        });
    }
}
