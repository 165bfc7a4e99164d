//! Rollback protection (D12): the last checkpoint that the ledger's own key signed, stored outside of the ledger.
//!
//! There are two copies, each in a file named after the ledger's identity (its origin): one in `keys/checkpoints/`
//! beside the key, one in the user's state directory. A ledger that does not extend both was rolled back, cut or
//! replaced. Both places also record the origin of each ledger's file or database, so that a ledger with another
//! identity cannot silently replace it, with or without its keys. The state directory also records which ledgers were
//! created on this machine or accepted by a person. A copy alone does not show that, because this program saves one for
//! every ledger that it writes to, including one from a checkout.
//!
//! This module owns the files. [`crate::Store::has_checkpoint`] and [`crate::verify`] decide whether the ledger extends a
//! checkpoint.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use quorate_kernel::entropy::sha256_hex;

use crate::files;
use crate::keys::{self, KeyDirectory};
use crate::note::{Checkpoint, Cosigner, MAX_NOTE_BYTES};
use crate::signing::PublicKey;
use crate::store::address::StoreAddress;

/// The directory of the copies, below `keys/` and below the state directory.
const DIR_NAME: &str = "checkpoints";

/// The locations of a ledger's copies.
#[derive(Debug, Clone)]
pub struct CheckpointFiles {
    keys: KeyDirectory,
    state: Option<PathBuf>,
    address: StoreAddress,
}

/// The local state of a ledger.
#[derive(Debug, Clone, Default)]
pub struct LocalCheckpoints {
    /// The copies that exist.
    pub copies: Vec<CheckpointCopy>,
    /// The saved origin of the ledger's file or database, if it differs from the ledger's current origin.
    pub replaced_origin: Option<String>,
    /// The keys that a person accepted for this ledger on this machine without a voucher.
    pub accepted_keys: Vec<PublicKey>,
}

/// A copy of the last checkpoint.
#[derive(Debug, Clone)]
pub struct CheckpointCopy {
    pub path: PathBuf,
    /// The signed note, or why the file does not contain one.
    pub note: Result<String, String>,
}

/// Why a copy cannot be saved.
#[derive(Debug, thiserror::Error)]
pub enum LocalCheckpointError {
    /// The checkpoint is not a signed note.
    #[error("cannot save the checkpoint: {0}")]
    NotACheckpoint(String),
    /// The existing copy and the checkpoint contradict each other.
    #[error("cannot replace the checkpoint in {}: {why}", path.display())]
    Contradicts { path: PathBuf, why: String },
    /// The operating system reported an error.
    #[error(transparent)]
    File(#[from] keys::KeyFileError),
}

impl CheckpointFiles {
    /// The local checkpoints of the ledger at an address. `state` is the user's state directory for Quorate, if any.
    pub fn new(address: &StoreAddress, state: Option<&Path>) -> Self {
        CheckpointFiles {
            keys: KeyDirectory::new(address.dir()),
            state: state.map(Path::to_owned),
            address: address.clone(),
        }
    }

    /// Reads the local state of the ledger with this origin; `None` is a ledger without a checkpoint.
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
                copies.copies.extend(copy_at(path, identity));
            }
        }
        copies.accepted_keys = origin.map(|origin| self.accepted_keys(origin)).unwrap_or_default();
        // A ledger without a checkpoint cannot be the one that had checkpoints.
        copies.replaced_origin = pinned.into_iter().find(|pinned| origin != Some(pinned));
        copies
    }

    /// Saves a checkpoint in both places. Never replaces the saved checkpoint with a checkpoint of fewer records:
    /// another process may have signed a later one meanwhile.
    ///
    /// # Errors
    /// One error for each place that cannot be written.
    pub fn save(&self, note: &str) -> Result<(), Vec<LocalCheckpointError>> {
        let checkpoint =
            Checkpoint::from_note(note).map_err(|why| vec![LocalCheckpointError::NotACheckpoint(why)])?;
        let mut errors = Vec::new();
        for path in self.note_paths(checkpoint.origin()) {
            errors.extend(self.save_at(&path, note, &checkpoint).err());
        }
        errors.extend(
            self.origin_paths().iter().filter_map(|pin| self.save_origin(pin, checkpoint.origin()).err()),
        );
        if is_there(&self.told_path()) {
            errors.extend(remove(&self.told_path()).err());
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// The last checkpoint that a witness signed; `None` without one.
    pub fn read_cosigned(&self, origin: &str, cosigner: &Cosigner) -> Option<CheckpointCopy> {
        copy_at(self.cosigned_path(origin, cosigner), origin)
    }

    /// Saves the keys that a person accepted for this ledger on this machine, in addition to earlier ones.
    ///
    /// # Errors
    /// If one of the places cannot be written.
    pub fn accept_keys(&self, origin: &str, keys: &[PublicKey]) -> Result<(), LocalCheckpointError> {
        for path in self.accepted_paths(origin) {
            let mut accepted = accepted_keys_in(&path);
            accepted.extend(keys.iter().filter(|key| !accepted.contains(key)).copied().collect::<Vec<_>>());
            let lines: String = accepted.iter().map(|key| format!("{key}\n")).collect();
            self.replace_if(&path, &lines, |_| Ok(true))?;
        }
        Ok(())
    }

    /// If the user's state directory knows the ledger, it alone decides: the file beside the key belongs to the ledger,
    /// and any user who can write to its directory controls that file. On a machine that does not know the ledger, the
    /// file beside the key is the only source.
    fn accepted_keys(&self, origin: &str) -> Vec<PublicKey> {
        let [beside, in_state @ ..] = &*self.note_paths(origin) else { return Vec::new() };
        let knows =
            |note: &&PathBuf| [(*note).clone(), accepted_path(note)].iter().any(|path| is_there(path));
        accepted_keys_in(&accepted_path(in_state.iter().find(knows).unwrap_or(beside)))
    }

    fn accepted_paths(&self, origin: &str) -> Vec<PathBuf> {
        self.note_paths(origin).iter().map(|note| accepted_path(note)).collect()
    }

    /// Saves a checkpoint that a witness signed, unless the saved one covers more records.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save_cosigned(&self, note: &str, cosigner: &Cosigner) -> Result<(), LocalCheckpointError> {
        let checkpoint = Checkpoint::from_note(note).map_err(LocalCheckpointError::NotACheckpoint)?;
        self.save_at(&self.cosigned_path(checkpoint.origin(), cosigner), note, &checkpoint)
    }

    /// Records in the user's state directory that a new ledger was created here with this key.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn note_begun(&self, key: &PublicKey) -> Result<(), LocalCheckpointError> {
        let Some(path) = self.begun_path() else { return Ok(()) };
        self.replace_if(&path, &format!("{key}\n"), |_| Ok(true))
    }

    /// Whether a new ledger was created here with one of the keys.
    pub fn was_begun(&self, keys: &[PublicKey]) -> bool {
        let begun = self.begun_path().map(|path| accepted_keys_in(&path)).unwrap_or_default();
        begun.iter().any(|key| keys.contains(key))
    }

    /// Records that this machine knows the ledger with this origin: it was created here, or a person accepted it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn note_known(&self, origin: &str) -> Result<(), LocalCheckpointError> {
        let Some(path) = self.known_path(origin) else { return Ok(()) };
        self.replace_if(&path, &format!("{origin}\n"), |_| Ok(false))
    }

    /// Whether this machine knows the ledger. Returns `true` without a state directory, because nothing else records
    /// it.
    pub fn is_known(&self, origin: &str) -> bool {
        self.known_path(origin).is_none_or(|path| is_there(&path))
    }

    /// Records that a user was told why the ledger is not sealed; returns `false` if that was recorded before. The next
    /// saved checkpoint ends it.
    pub fn note_told(&self) -> bool {
        let path = self.told_path();
        let is_new = !is_there(&path);
        if is_new {
            // If it cannot be written, the user is told again.
            let _ = self.replace_if(&path, "", |_| Ok(false));
        }
        is_new
    }

    fn told_path(&self) -> PathBuf {
        self.origin_paths().pop().unwrap_or_else(|| self.origin_path()).with_extension("told")
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

    /// Moves the copies of a ledger to `aside/`, because a person accepted its rollback.
    ///
    /// # Errors
    /// If one cannot be moved. Others may have been moved before.
    pub fn discard(&self, origin: Option<&str>) -> std::io::Result<()> {
        let copies = self.read(origin);
        // A ledger without a checkpoint counts as a different ledger from the one recorded here.
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
            files::quarantine_bytes(self.address.dir(), name, &bytes)?;
            files::remove(&path)?;
        }
        Ok(())
    }

    /// Moves the state beside the ledger to `aside/`, because a new ledger starts at this address in place of a broken
    /// file. The user's state directory keeps its entries until a person accepts that the ledger was lost.
    pub(crate) fn quarantine(&self) -> std::io::Result<()> {
        let path = self.origin_path();
        if path.exists() {
            files::quarantine_file(self.address.dir(), &path)?;
        }
        Ok(())
    }

    /// The files of a ledger's copies: beside the key, and in the state directory, if there is one.
    fn note_paths(&self, origin: &str) -> Vec<PathBuf> {
        // An origin may contain any characters, so files are named after its hash.
        let name = format!("{}.note", sha256_hex(origin.as_bytes()));
        let state = self.state.as_ref().map(|state| state.join(DIR_NAME).join(&name));
        std::iter::once(self.key_side_dir().join(&name)).chain(state).collect()
    }

    fn key_side_dir(&self) -> PathBuf {
        self.keys.path().join(DIR_NAME)
    }

    /// The file beside the key that records the origin of the ledger at this address.
    fn origin_path(&self) -> PathBuf {
        self.key_side_dir().join(origin_file_name(&self.address.identity()))
    }

    /// The files that record the origin. The state directory has one for the configured path and one for the resolved
    /// path, so that replacing a directory with a link does not hide a replaced ledger.
    fn origin_paths(&self) -> Vec<PathBuf> {
        let mut pins = vec![self.origin_path()];
        let Some(state) = self.state.as_ref().map(|state| state.join(DIR_NAME)) else { return pins };
        let names = match &self.address {
            StoreAddress::File(path) => {
                let dir = std::fs::canonicalize(self.address.dir());
                let led_to = dir.ok().zip(path.file_name()).map(|(dir, name)| dir.join(name));
                let named = std::path::absolute(path).ok();
                named.into_iter().chain(led_to).map(|path| path.to_string_lossy().into_owned()).collect()
            }
            StoreAddress::Postgres { .. } => BTreeSet::from([self.address.identity()]),
        };
        pins.extend(names.iter().map(|name| state.join(origin_file_name(name))));
        pins
    }

    fn save_at(&self, path: &Path, note: &str, new: &Checkpoint) -> Result<(), LocalCheckpointError> {
        let contradicts = |why: String| LocalCheckpointError::Contradicts { path: path.to_owned(), why };
        self.replace_if(path, note, |before| {
            let before = note_of_origin(before, new.origin())
                .and_then(|note| Checkpoint::from_note(&note))
                .map_err(contradicts)?;
            let (before, after) = (before.tree(), new.tree());
            if before.size == after.size && before.root != after.root {
                let why = format!("it has another root for the same {} records", after.size);
                return Err(contradicts(why));
            }
            Ok(before.size < after.size)
        })
    }

    fn save_origin(&self, path: &Path, origin: &str) -> Result<(), LocalCheckpointError> {
        self.replace_if(path, &format!("{origin}\n"), |before| {
            match before.trim_end_matches('\n') == origin {
                true => Ok(false),
                false => Err(LocalCheckpointError::Contradicts {
                    path: path.to_owned(),
                    why: format!("it is of {before:?}"),
                }),
            }
        })
    }

    /// Writes a file under the directory's lock, unless its existing contents contradict the new ones.
    fn replace_if(
        &self,
        path: &Path,
        new: &str,
        replaces: impl FnOnce(&str) -> Result<bool, LocalCheckpointError>,
    ) -> Result<(), LocalCheckpointError> {
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
            Err(why) => Err(LocalCheckpointError::Contradicts { path: path.to_owned(), why }),
        })
    }
}

fn origin_file_name(name: &str) -> String {
    format!("{}.origin", &sha256_hex(name.as_bytes())[..32])
}

fn remove(path: &Path) -> Result<(), LocalCheckpointError> {
    files::remove(path).map_err(|error| io_error("remove", path, error))
}

fn io_error(doing: &'static str, path: &Path, source: std::io::Error) -> LocalCheckpointError {
    keys::KeyFileError::Io { doing, path: path.to_owned(), source }.into()
}

/// The path of the accepted keys, beside a copy.
fn accepted_path(note: &Path) -> PathBuf {
    note.with_extension("accepted")
}

/// Whether a path exists, or its existence is unknown.
fn is_there(path: &Path) -> bool {
    !path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// The keys in a file, one per line. Ignores malformed lines.
fn accepted_keys_in(path: &Path) -> Vec<PublicKey> {
    let text = text(path).ok().flatten().unwrap_or_default();
    text.lines().filter_map(|line| PublicKey::from_text(line).ok()).collect()
}

/// Reads a file; `None` if it does not exist.
fn text(path: &Path) -> Result<Option<String>, String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        files::open(path)?.take(MAX_NOTE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) if bytes.len() > MAX_NOTE_BYTES => Err(format!("it is longer than {MAX_NOTE_BYTES} bytes")),
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8".to_owned()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(format!("it cannot be read: {error}")),
    }
}

/// The copy of a ledger's checkpoint at a path, if the file exists.
fn copy_at(path: PathBuf, origin: &str) -> Option<CheckpointCopy> {
    let note = match text(&path) {
        Ok(text) => note_of_origin(&text?, origin),
        Err(why) => Err(why),
    };
    Some(CheckpointCopy { path, note })
}

/// Parses a note as a checkpoint of this ledger.
fn note_of_origin(note: &str, origin: &str) -> Result<String, String> {
    let checkpoint = Checkpoint::from_note(note)?;
    match checkpoint.origin() == origin {
        true => Ok(note.to_owned()),
        false => Err(format!("it is of another ledger, {}", checkpoint.origin())),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests look at the files themselves")]

    use super::*;
    use crate::merkle::TreeHead;
    use crate::note::Signer;
    use crate::signing::SecretKey;

    fn note(origin: &str, size: u64, root: u8) -> String {
        let signer = Signer::new(origin, SecretKey::from_seed(&[7; 32])).unwrap();
        Checkpoint::new(origin, TreeHead { size, root: [root; 32] })
            .unwrap()
            .sign(&signer)
            .unwrap()
            .to_string()
    }

    /// A ledger's directory, a state directory, and the copies of two ledgers that share both.
    fn two_ledgers() -> (tempfile::TempDir, CheckpointFiles, CheckpointFiles) {
        let dir = tempfile::tempdir().unwrap();
        let (ledgers, state) = (dir.path().join("ledgers"), dir.path().join("state"));
        let of = |name: &str| CheckpointFiles::new(&StoreAddress::File(ledgers.join(name)), Some(&state));
        let (a, b) = (of("a.db"), of("b.db"));
        (dir, a, b)
    }

    fn sizes(kept: &LocalCheckpoints) -> Vec<Option<u64>> {
        let size =
            |copy: &CheckpointCopy| Some(Checkpoint::from_note(copy.note.as_ref().ok()?).ok()?.tree().size);
        kept.copies.iter().map(size).collect()
    }

    #[test]
    fn two_ledgers_of_a_directory_have_copies_of_their_own() {
        // D12
        let (_dir, a, b) = two_ledgers();
        a.save(&note("a", 3, 1)).unwrap();
        b.save(&note("b", 9, 2)).unwrap();
        assert_eq!(sizes(&a.read(Some("a"))), [Some(3), Some(3)]);
        assert_eq!(sizes(&b.read(Some("b"))), [Some(9), Some(9)]);
        assert_eq!((a.read(Some("a")).replaced_origin, b.read(Some("b")).replaced_origin), (None, None));
        // The file at the path is another ledger now, or a new one.
        assert_eq!(a.read(Some("c")).replaced_origin.as_deref(), Some("a"));
        assert_eq!(sizes(&a.read(None)), [Some(3), Some(3)]);
    }

    #[test]
    fn the_state_directory_knows_which_ledger_stood_at_a_path() {
        // D12: the files beside the ledger are replaced by those of another ledger.
        let (dir, a, b) = two_ledgers();
        a.save(&note("a", 3, 1)).unwrap();
        std::fs::remove_dir_all(dir.path().join("ledgers")).unwrap();
        assert_eq!(a.read(Some("c")).replaced_origin.as_deref(), Some("a"));
        assert_eq!(sizes(&a.read(None)), [Some(3)], "and what a new one would have to lead to");
        assert!(a.save(&note("c", 1, 3)).is_err());
        a.discard(Some("c")).unwrap();
        a.save(&note("c", 1, 3)).unwrap();
        assert_eq!(a.read(Some("c")).replaced_origin, None);
        // Another path has no recorded origin, and neither has any path without a state directory.
        assert_eq!(b.read(Some("b")).replaced_origin, None);
        assert_eq!(
            CheckpointFiles::new(&StoreAddress::File(dir.path().join("moved/a.db")), a.state.as_deref())
                .read(Some("c"))
                .replaced_origin,
            None
        );
        std::fs::remove_dir_all(dir.path().join("state")).unwrap();
        std::fs::remove_dir_all(dir.path().join("ledgers")).unwrap();
        assert_eq!(a.read(Some("d")).replaced_origin, None);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_place_of_a_directory_does_not_hide_which_ledger_it_was() {
        // D12
        let (dir, a, _) = two_ledgers();
        a.save(&note("a", 3, 1)).unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::rename(path("ledgers"), path("moved")).unwrap();
        std::fs::create_dir(path("others")).unwrap();
        std::os::unix::fs::symlink(path("others"), path("ledgers")).unwrap();
        assert_eq!(a.read(Some("c")).replaced_origin.as_deref(), Some("a"));
    }

    #[test]
    fn an_older_checkpoint_replaces_nothing_and_a_contradicting_one_is_refused() {
        // D12
        let (_dir, a, _) = two_ledgers();
        a.save(&note("a", 5, 1)).unwrap();
        a.save(&note("a", 3, 9)).unwrap();
        assert_eq!(sizes(&a.read(Some("a"))), [Some(5), Some(5)]);
        let errors = a.save(&note("a", 5, 2)).unwrap_err();
        assert!(
            matches!(
                errors[..],
                [LocalCheckpointError::Contradicts { .. }, LocalCheckpointError::Contradicts { .. }]
            ),
            "{errors:?}"
        );
        a.save(&note("a", 6, 2)).unwrap();
        assert_eq!(sizes(&a.read(Some("a"))), [Some(6), Some(6)]);
    }

    #[test]
    fn garbage_in_a_copy_is_said_and_not_replaced() {
        // D12
        let (_dir, a, _) = two_ledgers();
        a.save(&note("a", 5, 1)).unwrap();
        let path = a.read(Some("a")).copies[1].path.clone();
        for garbage in ["", "nonsense", "\u{2014} a b\n", &note("b", 5, 1)] {
            std::fs::write(&path, garbage).unwrap();
            let kept = a.read(Some("a"));
            assert!(kept.copies[0].note.is_ok() && kept.copies[1].note.is_err(), "{kept:?}");
            assert_eq!(a.save(&note("a", 6, 2)).unwrap_err().len(), 1);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), garbage);
        }
        std::fs::write(&path, [0xff; 9]).unwrap();
        assert!(a.read(Some("a")).copies[1].note.is_err());
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(a.read(Some("a")).copies[1].note.is_err());
    }

    #[test]
    fn what_is_given_up_lies_aside() {
        // D12
        let (dir, a, b) = two_ledgers();
        a.save(&note("a", 5, 1)).unwrap();
        b.save(&note("b", 5, 1)).unwrap();
        a.discard(Some("a")).unwrap();
        assert_eq!(sizes(&a.read(Some("a"))), []);
        assert_eq!(sizes(&b.read(Some("b"))), [Some(5), Some(5)]);
        assert_eq!(std::fs::read_dir(dir.path().join("ledgers/aside")).unwrap().count(), 2);
        a.save(&note("a", 2, 3)).unwrap();
        assert_eq!(sizes(&a.read(Some("a"))), [Some(2), Some(2)]);
        // A new ledger starts at the address, before its first checkpoint.
        a.discard(None).unwrap();
        a.save(&note("c", 1, 3)).unwrap();
        assert_eq!(
            (a.read(Some("c")).replaced_origin, sizes(&a.read(Some("c")))),
            (None, vec![Some(1), Some(1)])
        );
    }

    #[test]
    fn a_killed_process_leaves_nothing_behind() {
        // D3
        let (_dir, a, _) = two_ledgers();
        a.save(&note("a", 5, 1)).unwrap();
        a.keys.create(keys::KeyPurpose::Ledger).unwrap();
        let left = ["", "checkpoints"].map(|below| a.keys.path().join(below).join(".new-x1y2z3"));
        for path in &left {
            std::fs::write(path, "quorate:ed25519:secret:").unwrap();
        }
        a.save(&note("a", 6, 1)).unwrap();
        a.keys.remove_leftovers().unwrap();
        assert!(!left[0].exists() && !left[1].exists());
        std::fs::write(&left[0], "quorate:ed25519:secret:").unwrap();
        a.keys.rotate(keys::KeyPurpose::Ledger, crate::signing::SecretKey::generate(), 1_000).unwrap();
        assert!(!left[0].exists());
        assert!(a.keys.key_path(keys::KeyPurpose::Ledger).exists());
    }
}
