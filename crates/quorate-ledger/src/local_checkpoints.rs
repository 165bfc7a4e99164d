//! Rollback protection (D12): the last checkpoint that the ledger's own key signed, stored outside of the ledger.
//!
//! There are two copies, each in a file named after the ledger's identity (its origin): one in `keys/checkpoints/` beside the
//! key, one in the user's state directory. A ledger that does not lead to both was rolled back, cut or replaced. In both places
//! stands, too, which ledger each file or database was, so that one with another identity does not take its place unnoticed,
//! with its keys or without. The state directory says besides which ledgers were begun on this machine or accepted by a person:
//! a copy alone is made of any ledger that is written to here, also of one that came with a checkout.
//!
//! This module owns the files. [`crate::Store::has_checkpoint`] and [`crate::verify`] decide whether the ledger extends a
//! checkpoint.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use quorate_kernel::entropy::sha256_hex;

use crate::files;
use crate::keys::{self, Directory};
use crate::note::{Checkpoint, Cosigner, MAX_BYTES, Note};
use crate::quarantine;
use crate::signing::PublicKey;
use crate::store::address::Address;

/// The directory of the copies, below `keys/` and below the state directory.
const DIR_NAME: &str = "checkpoints";

/// Where the copies of a ledger are.
#[derive(Debug, Clone)]
pub struct CheckpointFiles {
    keys: Directory,
    state: Option<PathBuf>,
    address: Address,
}

/// What is kept of a ledger.
#[derive(Debug, Clone, Default)]
pub struct LocalCheckpoints {
    /// The copies that are there.
    pub copies: Vec<CheckpointCopy>,
    /// The origin that was kept for the ledger's file or database, where it is not the one that the ledger has.
    pub replaced_origin: Option<String>,
    /// The keys of the ledger that a person accepted on this machine, though no key before them vouches for them.
    pub accepted_keys: Vec<PublicKey>,
}

/// A copy of the last checkpoint.
#[derive(Debug, Clone)]
pub struct CheckpointCopy {
    pub path: PathBuf,
    /// The signed note, or why the file holds none.
    pub note: Result<String, String>,
}

/// Why a copy is not written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The checkpoint is no signed note.
    #[error("cannot keep the checkpoint: {0}")]
    NotACheckpoint(String),
    /// The copy that is there and the checkpoint cannot both be of one ledger.
    #[error("cannot replace the checkpoint in {}: {why}", path.display())]
    Contradicts { path: PathBuf, why: String },
    /// The file system refuses.
    #[error(transparent)]
    File(#[from] keys::Error),
}

impl CheckpointFiles {
    /// The local checkpoints of the ledger at an address. `state` is the user's state directory for Quorate, if any.
    pub fn new(address: &Address, state: Option<&Path>) -> Self {
        CheckpointFiles {
            keys: Directory::new(address.dir()),
            state: state.map(Path::to_owned),
            address: address.clone(),
        }
    }

    /// Reads what is kept of the ledger with this origin; `None` is a ledger without a checkpoint.
    pub fn read(&self, origin: Option<&str>) -> LocalCheckpoints {
        let mut copies = LocalCheckpoints::default();
        let mut pinned = BTreeSet::new();
        for pin in self.origin_paths() {
            match text(&pin) {
                Ok(text) => pinned.extend(text.map(|text| text.trim_end_matches('\n').to_owned())),
                Err(why) => copies.copies.push(CheckpointCopy { path: pin, note: Err(why) }),
            }
        }
        let identities: Vec<&str> = match origin {
            Some(origin) => vec![origin],
            None => pinned.iter().map(String::as_str).collect(),
        };
        for identity in &identities {
            for path in self.note_paths(identity) {
                let found = text(&path)
                    .and_then(|text| text.map(|text| note_of_origin(&text, Some(identity))).transpose());
                copies.copies.extend(found.transpose().map(|note| CheckpointCopy { path, note }));
            }
        }
        copies.copies.extend(self.legacy_copy(&identities));
        copies.accepted_keys = origin.map(|origin| self.accepted_keys(origin)).unwrap_or_default();
        // One without a checkpoint is not the one that had some.
        copies.replaced_origin = pinned.into_iter().find(|pinned| origin != Some(pinned));
        copies
    }

    /// Keeps a checkpoint in both places. One over fewer records than the copy that is there is not written: another
    /// process signed a later one meanwhile.
    ///
    /// # Errors
    /// What could not be written, one for each place.
    pub fn save(&self, note: &str) -> Result<(), Vec<Error>> {
        let checkpoint = parse_checkpoint(note).map_err(|why| vec![Error::NotACheckpoint(why)])?;
        let mut errors = Vec::new();
        for path in self.note_paths(checkpoint.origin()) {
            errors.extend(self.save_at(&path, note, &checkpoint).err());
        }
        errors.extend(
            self.origin_paths().iter().filter_map(|pin| self.save_origin(pin, checkpoint.origin()).err()),
        );
        // A version before this one kept one file for all ledgers of the directory.
        if errors.is_empty()
            && let Err(error) = self.migrate_legacy()
        {
            errors.push(error);
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// The last checkpoint that a witness signed; `None` without one.
    pub fn read_cosigned(&self, origin: &str, cosigner: &Cosigner) -> Option<CheckpointCopy> {
        let path = self.cosigned_path(origin, cosigner);
        let note =
            text(&path).and_then(|text| text.map(|text| note_of_origin(&text, Some(origin))).transpose());
        note.transpose().map(|note| CheckpointCopy { path, note })
    }

    /// Keeps the keys of this ledger that a person accepted on this machine, with those that were accepted before.
    ///
    /// # Errors
    /// When they cannot be written in one of the places.
    pub fn accept_keys(&self, origin: &str, keys: &[PublicKey]) -> Result<(), Error> {
        for path in self.accepted_paths(origin) {
            let mut accepted = accepted_keys_in(&path);
            accepted.extend(keys.iter().filter(|key| !accepted.contains(key)).copied().collect::<Vec<_>>());
            let lines: String = accepted.iter().map(|key| format!("{key}\n")).collect();
            self.replace_if(&path, &lines, |_| Ok(true))?;
        }
        Ok(())
    }

    /// A user's state directory that knows the ledger decides alone: what is beside the key comes with the ledger, from whoever
    /// can write its directory. Where it does not know the ledger, as on another machine, that is all there is.
    fn accepted_keys(&self, origin: &str) -> Vec<PublicKey> {
        let [beside, in_state @ ..] = &*self.note_paths(origin) else { return Vec::new() };
        let knows =
            |note: &&PathBuf| [(*note).clone(), accepted_path(note)].iter().any(|path| is_there(path));
        accepted_keys_in(&accepted_path(in_state.iter().find(knows).unwrap_or(beside)))
    }

    fn accepted_paths(&self, origin: &str) -> Vec<PathBuf> {
        self.note_paths(origin).iter().map(|note| accepted_path(note)).collect()
    }

    /// Keeps a checkpoint that a witness signed, unless one over more records is kept.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save_cosigned(&self, note: &str, cosigner: &Cosigner) -> Result<(), Error> {
        let checkpoint = parse_checkpoint(note).map_err(Error::NotACheckpoint)?;
        self.save_at(&self.cosigned_path(checkpoint.origin(), cosigner), note, &checkpoint)
    }

    /// Notes in the user's state directory that a new ledger was begun here, with this key.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn note_begun(&self, key: &PublicKey) -> Result<(), Error> {
        let Some(path) = self.begun_path() else { return Ok(()) };
        self.replace_if(&path, &format!("{key}\n"), |_| Ok(true))
    }

    /// Whether a new ledger was begun here with one of the keys.
    pub fn was_begun(&self, keys: &[PublicKey]) -> bool {
        let begun = self.begun_path().map(|path| accepted_keys_in(&path)).unwrap_or_default();
        begun.iter().any(|key| keys.contains(key))
    }

    /// Notes that the ledger with this origin is known here: it was begun on this machine, or a person accepted it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn note_known(&self, origin: &str) -> Result<(), Error> {
        let Some(path) = self.known_path(origin) else { return Ok(()) };
        self.replace_if(&path, &format!("{origin}\n"), |_| Ok(false))
    }

    /// Whether it is known here; without a state directory there is nothing that could say so, and it is.
    pub fn is_known(&self, origin: &str) -> bool {
        self.known_path(origin).is_none_or(|path| is_there(&path))
    }

    fn begun_path(&self) -> Option<PathBuf> {
        self.origin_paths().get(1).map(|pin| pin.with_extension("begun"))
    }

    fn known_path(&self, origin: &str) -> Option<PathBuf> {
        self.note_paths(origin).get(1).map(|note| note.with_extension("known"))
    }

    fn cosigned_path(&self, origin: &str, cosigner: &Cosigner) -> PathBuf {
        let name = sha256_hex(format!("{origin}\n{}", cosigner.name()).as_bytes());
        self.key_side_dir().join(format!("{name}.cosigned"))
    }

    /// Takes the copies of a ledger away, since a person said that it was rolled back on purpose. They are moved to
    /// `aside/`.
    ///
    /// # Errors
    /// When one cannot be moved; then the others may have been.
    pub fn discard(&self, origin: Option<&str>) -> std::io::Result<()> {
        let copies = self.read(origin);
        // A ledger without a checkpoint counts as another one than the one stored here.
        let other = copies.replaced_origin.is_some() || origin.is_none();
        let mut paths: Vec<PathBuf> = copies.copies.into_iter().map(|copy| copy.path).collect();
        let pins =
            self.origin_paths().into_iter().filter(|pin| other && pin.exists() && !paths.contains(pin));
        let pins: Vec<PathBuf> = pins.collect();
        paths.extend(pins);
        for path in paths {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("checkpoint");
            let mut bytes = Vec::new();
            files::open(&path)?.read_to_end(&mut bytes)?;
            quarantine::write(self.address.dir(), name, &bytes)?;
            files::remove(&path)?;
        }
        Ok(())
    }

    /// Another ledger begins at this address, since the file that was there is broken and set aside: what was kept beside it
    /// goes to `aside/`. What the user's state directory says stays, until a person accepts that the ledger was lost.
    pub(crate) fn quarantine(&self) -> std::io::Result<()> {
        for path in
            [self.origin_path(), self.keys.legacy_checkpoint_path()].iter().filter(|path| path.exists())
        {
            quarantine::move_file(self.address.dir(), path)?;
        }
        Ok(())
    }

    /// The files of a ledger's copies: beside the key, and in the state directory, if any.
    fn note_paths(&self, origin: &str) -> Vec<PathBuf> {
        // An origin may be any text: its hash is a file's name everywhere.
        let name = format!("{}.note", sha256_hex(origin.as_bytes()));
        let state = self.state.as_ref().map(|state| state.join(DIR_NAME).join(&name));
        std::iter::once(self.key_side_dir().join(&name)).chain(state).collect()
    }

    fn key_side_dir(&self) -> PathBuf {
        self.keys.path().join(DIR_NAME)
    }

    /// The file beside the key that has the origin of the ledger that lies here.
    fn origin_path(&self) -> PathBuf {
        self.key_side_dir().join(origin_file_name(&self.address.identity()))
    }

    /// The files that have it. In the state directory it is under the ledger's path as it is named and as it leads there:
    /// a link in the place of a directory makes it no other ledger's.
    fn origin_paths(&self) -> Vec<PathBuf> {
        let mut pins = vec![self.origin_path()];
        let Some(state) = self.state.as_ref().map(|state| state.join(DIR_NAME)) else { return pins };
        let names = match &self.address {
            Address::File(path) => {
                let dir = std::fs::canonicalize(self.address.dir());
                let led_to = dir.ok().zip(path.file_name()).map(|(dir, name)| dir.join(name));
                let named = std::path::absolute(path).ok();
                named.into_iter().chain(led_to).map(|path| path.to_string_lossy().into_owned()).collect()
            }
            Address::Postgres { .. } => BTreeSet::from([self.address.identity()]),
        };
        pins.extend(names.iter().map(|name| state.join(origin_file_name(name))));
        pins
    }

    /// The one file that an older version kept for all ledgers of a directory, where it is of this one or unreadable.
    fn legacy_copy(&self, identities: &[&str]) -> Option<CheckpointCopy> {
        let path = self.keys.legacy_checkpoint_path();
        let note = match text(&path) {
            // It was not synced: a loss of power could leave it empty.
            Ok(found) => found.filter(|text| !text.is_empty())?,
            Err(why) => return Some(CheckpointCopy { path, note: Err(why) }),
        };
        match parse_checkpoint(&note) {
            // Of another ledger of the directory.
            Ok(checkpoint) if !identities.contains(&checkpoint.origin()) => None,
            Ok(_) => Some(CheckpointCopy { path, note: Ok(note) }),
            Err(why) => Some(CheckpointCopy { path, note: Err(why) }),
        }
    }

    fn migrate_legacy(&self) -> Result<(), Error> {
        let path = self.keys.legacy_checkpoint_path();
        let Ok(Some(note)) = text(&path) else { return Ok(()) };
        if let Ok(checkpoint) = parse_checkpoint(&note) {
            for file in self.note_paths(checkpoint.origin()) {
                self.save_at(&file, &note, &checkpoint)?;
            }
        }
        let removed = files::remove(&path);
        removed.map_err(|source| keys::Error::Io { doing: "remove", path, source }.into())
    }

    fn save_at(&self, path: &Path, note: &str, new: &Checkpoint) -> Result<(), Error> {
        let contradicts = |why: String| Error::Contradicts { path: path.to_owned(), why };
        self.replace_if(path, note, |before| {
            let before = note_of_origin(before, Some(new.origin()))
                .and_then(|note| parse_checkpoint(&note))
                .map_err(contradicts)?;
            let (before, after) = (before.tree(), new.tree());
            if before.size == after.size && before.root != after.root {
                let why = format!("it has another root for the same {} records", after.size);
                return Err(contradicts(why));
            }
            Ok(before.size < after.size)
        })
    }

    fn save_origin(&self, path: &Path, origin: &str) -> Result<(), Error> {
        self.replace_if(path, &format!("{origin}\n"), |before| {
            match before.trim_end_matches('\n') == origin {
                true => Ok(false),
                false => {
                    Err(Error::Contradicts { path: path.to_owned(), why: format!("it is of {before:?}") })
                }
            }
        })
    }

    /// Writes a file unless the one that is there says otherwise, while no other process does.
    fn replace_if(
        &self,
        path: &Path,
        new: &str,
        replaces: impl FnOnce(&str) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let dir = path.parent().unwrap_or(path);
        match dir.starts_with(self.keys.path()) {
            true => self.keys.ensure_exists()?,
            false => dir
                .parent()
                .map_or(Ok(()), files::ensure_private_dir)
                .map_err(|error| io_error("make", dir, error))?,
        }
        files::ensure_private_dir(dir).map_err(|error| io_error("make", dir, error))?;
        keys::replace_locked(dir, path, new, || match text(path) {
            Ok(None) => Ok(true),
            Ok(Some(before)) => replaces(&before),
            Err(why) => Err(Error::Contradicts { path: path.to_owned(), why }),
        })
    }
}

fn origin_file_name(name: &str) -> String {
    format!("{}.origin", &sha256_hex(name.as_bytes())[..32])
}

fn io_error(doing: &'static str, path: &Path, source: std::io::Error) -> Error {
    keys::Error::Io { doing, path: path.to_owned(), source }.into()
}

/// The file of accepted keys beside a copy.
fn accepted_path(note: &Path) -> PathBuf {
    note.with_extension("accepted")
}

/// Whether there is something at a path, or it cannot be known.
fn is_there(path: &Path) -> bool {
    !path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// The keys in a file, one in each line. A line that is no key accepts none.
fn accepted_keys_in(path: &Path) -> Vec<PublicKey> {
    let text = text(path).ok().flatten().unwrap_or_default();
    text.lines().filter_map(|line| PublicKey::from_text(line).ok()).collect()
}

/// A file's text; `None` where it is not there.
fn text(path: &Path) -> Result<Option<String>, String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        files::open(path)?.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) if bytes.len() > MAX_BYTES => Err(format!("it is longer than {MAX_BYTES} bytes")),
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8".to_owned()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(format!("it cannot be read: {error}")),
    }
}

/// A note that is a checkpoint of this ledger.
fn note_of_origin(note: &str, origin: Option<&str>) -> Result<String, String> {
    let checkpoint = parse_checkpoint(note)?;
    match origin.is_some_and(|origin| origin != checkpoint.origin()) {
        true => Err(format!("it is of another ledger, {}", checkpoint.origin())),
        false => Ok(note.to_owned()),
    }
}

/// The text of a note, signatures unchecked.
pub(crate) fn parse_checkpoint(note: &str) -> Result<Checkpoint, String> {
    let note = Note::parse(note.as_bytes()).map_err(|error| error.to_string())?;
    Checkpoint::parse(note.text()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
