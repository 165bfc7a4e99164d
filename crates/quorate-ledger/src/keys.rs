//! Key files: the secret keys below a ledger's directory, their permissions, and their rotation.
//!
//! `keys/ledger.ed25519` signs the ledger's checkpoints, `keys/signing.ed25519` the records of runs (D3). Each holds only a
//! key's text, in a directory that only its owner can enter. A file is written atomically, and only [`KeyDirectory::rotate`]
//! replaces a key; it keeps the public half of the old one, so that its signatures stay verifiable.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::NamedTempFile;
use zeroize::Zeroizing;

use crate::files::{ensure_ledger_dir, ensure_private_dir, ensure_quorate_dir, open, remove};
use crate::signing::{InvalidKey, PublicKey, SecretKey, SigningContext, Voucher};

/// The purpose of a key in the ledger's key directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum KeyPurpose {
    /// It signs the ledger's checkpoints.
    #[serde(rename = "checkpoints")]
    Ledger,
    /// It signs the records of runs.
    #[serde(rename = "records")]
    Signing,
}

impl KeyPurpose {
    /// The name of the purpose, and the stem of the key's file name.
    pub fn as_str(self) -> &'static str {
        match self {
            KeyPurpose::Ledger => "ledger",
            KeyPurpose::Signing => "signing",
        }
    }
}

/// The directory of a ledger's keys, which may not exist yet.
#[derive(Debug, Clone)]
pub struct KeyDirectory {
    path: PathBuf,
}

/// Why a key cannot be read or written. Messages never contain the contents of a file.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The operating system reported an error.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// The failed operation, as a verb.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Users other than the owner can access the key.
    #[error("{} has the permissions {mode:04o}: other users can access the secret key", path.display())]
    Exposed {
        /// The file or directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file does not contain a key.
    #[error("{} does not contain a key", path.display())]
    NotAKey { path: PathBuf, source: InvalidKey },
    /// A key exists already. It is never overwritten.
    #[error("{} already exists; keys are never overwritten", path.display())]
    AlreadyExists { path: PathBuf },
    /// The key to replace does not exist.
    #[error("{} does not exist", path.display())]
    Missing { path: PathBuf },
}

impl KeyDirectory {
    /// The key directory of the ledger in `ledger_dir`.
    pub fn new(ledger_dir: &Path) -> Self {
        KeyDirectory { path: ledger_dir.join("keys") }
    }

    /// The path of a key's file.
    pub fn key_path(&self, purpose: KeyPurpose) -> PathBuf {
        self.path.join(format!("{}.ed25519", purpose.as_str()))
    }

    /// Reads a key; `None` if the file does not exist.
    ///
    /// # Errors
    /// [`KeyFileError`] if the file cannot be read, does not contain a key, or is accessible to other users.
    pub fn load(&self, purpose: KeyPurpose) -> Result<Option<SecretKey>, KeyFileError> {
        check_directory(&self.path)?;
        read(&self.key_path(purpose))
    }

    /// Creates a key. The file is durable when this returns.
    ///
    /// # Errors
    /// [`KeyFileError::AlreadyExists`] if there is a key, and [`KeyFileError::Io`].
    pub fn create(&self, purpose: KeyPurpose) -> Result<SecretKey, KeyFileError> {
        self.insert(purpose, SecretKey::generate())
    }

    /// Stores an existing key unless one is stored.
    ///
    /// # Errors
    /// As [`KeyDirectory::create`].
    pub fn insert(&self, purpose: KeyPurpose, key: SecretKey) -> Result<SecretKey, KeyFileError> {
        self.ensure_exists()?;
        sync_dir(self.path.parent().unwrap_or(&self.path))?;
        let path = self.key_path(purpose);
        let _turn = lock_dir(&self.path)?;
        create_key_file(&self.path, &path, &key.to_text())?;
        Ok(key)
    }

    /// Reads a key, or creates it. Concurrent callers get the same key.
    ///
    /// # Errors
    /// [`KeyFileError`].
    pub fn load_or_create(&self, purpose: KeyPurpose) -> Result<SecretKey, KeyFileError> {
        if let Some(key) = self.load(purpose)? {
            return Ok(key);
        }
        match self.create(purpose) {
            Err(KeyFileError::AlreadyExists { path }) => {
                self.load(purpose)?.ok_or(KeyFileError::Missing { path })
            }
            made => made,
        }
    }

    /// Replaces a key with a new one, such as one that the old key has vouched for. Returns the old public half, which is
    /// durable before the replacement; one of the two keys always exists, even if the process is interrupted.
    ///
    /// An old ledger key also leaves a voucher for the new one, because its secret is gone afterwards and all ledgers of
    /// the directory share the key: each of them continues under the new key by that voucher.
    ///
    /// # Errors
    /// [`KeyFileError::Missing`] if the key to replace does not exist, and [`KeyFileError`].
    pub fn rotate(&self, purpose: KeyPurpose, new: SecretKey, at_ms: i64) -> Result<PublicKey, KeyFileError> {
        let path = self.key_path(purpose);
        let _turn = lock_dir(&self.path)?.ok_or_else(|| KeyFileError::Missing { path: path.clone() })?;
        let secret = self.load(purpose)?.ok_or_else(|| KeyFileError::Missing { path: path.clone() })?;
        let old = secret.public();
        let retired = self.retired_dir(purpose);
        for dir in [&self.path.join("retired"), &retired] {
            ensure_private_dir(dir).map_err(|source| io("make", dir, source))?;
            sync_dir(dir.parent().unwrap_or(dir))?;
        }
        match create_key_file(&self.path, &retired.join(format!("{}.pub", old.id())), &old.to_string()) {
            // Left by an interrupted call.
            Ok(()) | Err(KeyFileError::AlreadyExists { .. }) => {}
            Err(error) => return Err(error),
        }
        if purpose == KeyPurpose::Ledger {
            let voucher = Voucher::sign(SigningContext::LEDGER_VOUCHER, &secret, &new.public(), at_ms);
            let text = format!("{}\n{}", voucher.key, voucher.to_text());
            replace_key_file(&self.path, &retired.join(format!("{}.voucher", old.id())), &text)?;
            sync_dir(&retired)?;
        }
        replace_key_file(&self.path, &path, &new.to_text())?;
        Ok(old)
    }

    /// The public halves of replaced keys, in the order of their file names.
    ///
    /// # Errors
    /// [`KeyFileError`] if one cannot be read.
    pub fn retired(&self, purpose: KeyPurpose) -> Result<Vec<PublicKey>, KeyFileError> {
        read_public_keys(&self.retired_dir(purpose))
    }

    /// The public halves of the key, if it exists, and of those that it replaced.
    ///
    /// # Errors
    /// As [`KeyDirectory::load`] and [`KeyDirectory::retired`].
    pub fn public_keys(&self, purpose: KeyPurpose) -> Result<Vec<PublicKey>, KeyFileError> {
        let now = self.load(purpose)?.map(|key| key.public());
        Ok(now.into_iter().chain(self.retired(purpose)?).collect())
    }

    /// The vouchers of the ledger's old keys for their replacements. Unreadable files are ignored.
    pub fn vouchers(&self) -> Vec<Voucher> {
        read_vouchers(&self.retired_dir(KeyPurpose::Ledger))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes temporary files of killed processes.
    ///
    /// # Errors
    /// [`KeyFileError::Io`].
    pub fn remove_leftovers(&self) -> Result<(), KeyFileError> {
        lock_dir(&self.path).map(drop)
    }

    fn retired_dir(&self, purpose: KeyPurpose) -> PathBuf {
        self.path.join("retired").join(purpose.as_str())
    }

    /// Creates the directory, private and ignored by version control.
    pub(crate) fn ensure_exists(&self) -> Result<(), KeyFileError> {
        ensure_ledger_dir(self.path.parent().unwrap_or(&self.path))
            .and_then(|()| ensure_quorate_dir(&self.path))
            .map_err(|source| io("make", &self.path, source))?;
        check_directory(&self.path)
    }
}

impl KeyDirectory {
    /// Records durably that the plan with this SHA-256 was started.
    ///
    /// # Errors
    /// [`KeyFileError::Io`].
    pub fn note_begun(&self, sha256: &str) -> Result<(), KeyFileError> {
        self.ensure_exists()?;
        let dir = self.begun_dir();
        ensure_private_dir(&dir).map_err(|source| io("make", &dir, source))?;
        sync_dir(&self.path)?;
        replace_locked(&dir, &dir.join(sha256), "", || Ok::<_, KeyFileError>(true))
    }

    /// Whether the plan with this SHA-256 was started here and is not finished. Ignores a file that other users can
    /// access, such as one from a checkout.
    pub fn has_begun(&self, sha256: &str) -> bool {
        let path = self.begun_dir().join(sha256);
        let is_private = |found: &Metadata| check_permissions(&path, found, 0o077).is_ok();
        path.symlink_metadata().is_ok_and(|found| found.is_file() && is_private(&found))
    }

    /// Forgets a finished plan.
    ///
    /// # Errors
    /// [`KeyFileError::Io`].
    pub fn forget_begun(&self, sha256: &str) -> Result<(), KeyFileError> {
        let path = self.begun_dir().join(sha256);
        match remove(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(io("remove", &path, error)),
            _ => Ok(()),
        }
    }

    fn begun_dir(&self) -> PathBuf {
        self.path.join("begun")
    }
}

/// The longest key file, in bytes. A longer file is refused without reading the rest.
const MAX_BYTES: u64 = 1024;

/// The prefix of temporary file names.
const TEMP_PREFIX: &str = ".new-";

/// Reads a file with a secret key; `None` if it does not exist.
///
/// # Errors
/// [`KeyFileError`] if the file cannot be read, does not contain a key, or is accessible to users other than its owner.
pub fn read(path: &Path) -> Result<Option<SecretKey>, KeyFileError> {
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io("read", path, error)),
    };
    // Checks the opened file, so that it cannot be swapped in between.
    let metadata = file.metadata().map_err(|error| io("read", path, error))?;
    if !metadata.is_file() {
        return Err(io("read", path, std::io::Error::new(ErrorKind::InvalidInput, "not a regular file")));
    }
    check_permissions(path, &metadata, 0o077)?;
    let text = text(&file, path)?;
    SecretKey::from_text(&text)
        .map(Some)
        .map_err(|source| KeyFileError::NotAKey { path: path.to_owned(), source })
}

/// Checks that other users cannot change the key directory. A missing directory passes.
fn check_directory(path: &Path) -> Result<(), KeyFileError> {
    match std::fs::metadata(path) {
        Ok(metadata) => check_permissions(path, &metadata, 0o022),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io("read", path, error)),
    }
}

/// Creates a key file. The caller holds the lock on `dir`.
fn create_key_file(dir: &Path, path: &Path, text: &str) -> Result<(), KeyFileError> {
    match write_temp(dir, path, &[text.as_bytes(), b"\n"])?.persist_noclobber(path) {
        Ok(_) => sync_dir(path.parent().unwrap_or(dir)),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
            Err(KeyFileError::AlreadyExists { path: path.to_owned() })
        }
        Err(error) => Err(io("write", path, error.error)),
    }
}

/// Replaces the contents of a key file.
fn replace_key_file(dir: &Path, path: &Path, text: &str) -> Result<(), KeyFileError> {
    write_temp(dir, path, &[text.as_bytes(), b"\n"])?
        .persist(path)
        .map_err(|error| io("write", path, error.error))?;
    sync_dir(dir)
}

/// Writes a text to a path, if `wanted` agrees after the directory is locked. The write is atomic: after a power loss
/// the path has either its old or its new contents.
///
/// # Errors
/// The error of `wanted`, and [`KeyFileError::Io`].
pub(crate) fn replace_locked<E: From<KeyFileError>>(
    dir: &Path,
    path: &Path,
    text: &str,
    wanted: impl FnOnce() -> Result<bool, E>,
) -> Result<(), E> {
    let missing = || io("write", dir, std::io::Error::from(ErrorKind::NotFound));
    let _turn = lock_dir(dir)?.ok_or_else(missing)?;
    if wanted()? {
        let is_new = path.symlink_metadata().is_err();
        let file = write_temp(dir, path, &[text.as_bytes()])?;
        file.persist(path).map_err(|error| io("write", path, error.error))?;
        if is_new {
            sync_dir(dir)?;
        }
    }
    Ok(())
}

/// Writes a temporary file beside its target: synced, and readable only by its owner.
fn write_temp(dir: &Path, path: &Path, parts: &[&[u8]]) -> Result<NamedTempFile, KeyFileError> {
    let write = || {
        let mut file = tempfile::Builder::new().prefix(TEMP_PREFIX).tempfile_in(dir)?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
        file.as_file().sync_all()?;
        Ok(file)
    };
    write().map_err(|error| io("write", path, error))
}

/// Removes temporary files of killed processes. The caller holds the lock on the directory.
#[expect(clippy::disallowed_methods, reason = "this module reads the directories of keys")]
fn remove_leftovers(dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let left = name.as_encoded_bytes().starts_with(TEMP_PREFIX.as_bytes());
        if left && entry.file_type()?.is_file() {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Makes the entries of a directory durable.
fn sync_dir(dir: &Path) -> Result<(), KeyFileError> {
    open(dir).and_then(|dir| dir.sync_all()).map_err(|error| io("write", dir, error))
}

/// Locks a directory for writing until the file is dropped, and removes temporary files of killed processes. Returns
/// `None` if the directory does not exist.
fn lock_dir(dir: &Path) -> Result<Option<File>, KeyFileError> {
    let locked =
        open(dir).and_then(|handle| handle.lock().and_then(|()| remove_leftovers(dir)).map(|()| handle));
    match locked {
        Ok(handle) => Ok(Some(handle)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io("lock", dir, error)),
    }
}

/// The public keys in the `.pub` files of a directory, in the order of their file names.
#[expect(clippy::disallowed_methods, reason = "this module reads the directory of retired keys")]
fn read_public_keys(dir: &Path) -> Result<Vec<PublicKey>, KeyFileError> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io("read", dir, error)),
    };
    let mut keys = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| io("read", dir, error))?.path();
        if path.extension().is_some_and(|extension| extension == "pub") {
            let file = open(&path).map_err(|error| io("read", &path, error))?;
            let key = PublicKey::from_text(&text(&file, &path)?);
            keys.push(key.map_err(|source| KeyFileError::NotAKey { path, source })?);
        }
    }
    keys.sort_by_key(PublicKey::id);
    Ok(keys)
}

/// The vouchers in the `.voucher` files of a directory: a line with the new key, then the voucher's text.
#[expect(clippy::disallowed_methods, reason = "this module reads the directory of retired keys")]
fn read_vouchers(dir: &Path) -> Vec<Voucher> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "voucher"));
    paths.sort();
    let read = |path: &PathBuf| {
        let text = text(&open(path).ok()?, path).ok()?;
        let (key, voucher) = text.trim_end_matches('\n').split_once('\n')?;
        Voucher::from_text(key, voucher)
    };
    paths.iter().filter_map(read).collect()
}

/// Reads a file into memory that is overwritten when it is dropped.
fn text(file: &File, path: &Path) -> Result<Zeroizing<String>, KeyFileError> {
    // Allocated once: a growing buffer would leave copies of the secret behind.
    let mut text = Zeroizing::new(String::with_capacity(1024));
    match file.take(MAX_BYTES).read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            Err(KeyFileError::NotAKey { path: path.to_owned(), source: InvalidKey::Encoding })
        }
        Err(error) => Err(io("read", path, error)),
    }
}

#[cfg(unix)]
fn check_permissions(path: &Path, metadata: &std::fs::Metadata, to_others: u32) -> Result<(), KeyFileError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & to_others == 0 { Ok(()) } else { Err(KeyFileError::Exposed { path: path.to_owned(), mode }) }
}

#[cfg(not(unix))]
fn check_permissions(_: &Path, _: &std::fs::Metadata, _: u32) -> Result<(), KeyFileError> {
    Ok(())
}

fn io(doing: &'static str, path: &Path, source: std::io::Error) -> KeyFileError {
    KeyFileError::Io { doing, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests look at the files themselves")]

    use std::fs;

    use super::*;

    fn directory() -> (tempfile::TempDir, KeyDirectory) {
        let dir = tempfile::tempdir().expect("a directory");
        let keys = KeyDirectory::new(dir.path());
        (dir, keys)
    }

    #[test]
    fn a_key_is_made_once_and_read_again() {
        // D3
        let (_dir, keys) = directory();
        assert!(keys.load(KeyPurpose::Ledger).unwrap().is_none());
        let made = keys.create(KeyPurpose::Ledger).unwrap();
        assert_eq!(keys.load(KeyPurpose::Ledger).unwrap().unwrap().public(), made.public());
        assert!(matches!(keys.create(KeyPurpose::Ledger), Err(KeyFileError::AlreadyExists { .. })));
        assert_eq!(keys.load_or_create(KeyPurpose::Ledger).unwrap().public(), made.public());
        assert_ne!(keys.load_or_create(KeyPurpose::Signing).unwrap().public(), made.public());
    }

    #[test]
    fn many_who_make_a_key_at_once_have_the_same() {
        let (dir, _) = directory();
        let made: Vec<PublicKey> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        KeyDirectory::new(dir.path()).load_or_create(KeyPurpose::Ledger).unwrap().public()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(made.iter().all(|key| *key == made[0]));
    }

    #[test]
    fn a_rotation_keeps_the_public_half_of_what_goes_and_not_its_secret() {
        // D3
        let (dir, keys) = directory();
        let rotate = |to: u8| keys.rotate(KeyPurpose::Ledger, SecretKey::from_seed(&[to; 32]), 1_000);
        let public = |seed: u8| SecretKey::from_seed(&[seed; 32]).public();
        assert!(matches!(rotate(1), Err(KeyFileError::Missing { .. })));
        let first = keys.create(KeyPurpose::Ledger).unwrap();
        keys.create(KeyPurpose::Signing).unwrap();
        assert_eq!(rotate(1).unwrap(), first.public());
        assert_eq!(keys.load(KeyPurpose::Ledger).unwrap().unwrap().public(), public(1));
        rotate(2).unwrap();

        let mut gone = vec![first.public(), public(1)];
        gone.sort_by_key(PublicKey::id);
        assert_eq!(keys.retired(KeyPurpose::Ledger).unwrap(), gone);
        assert!(keys.retired(KeyPurpose::Signing).unwrap().is_empty());

        let left: Vec<String> = files_below(dir.path());
        let files = "two keys, two public halves with their vouchers, and what keeps them out of git";
        assert_eq!(left.len(), 7, "{files}: {left:?}");
        let seed = first.to_text();
        assert!(!left.iter().any(|file| fs::read_to_string(file).unwrap().contains(seed.trim_end())));
    }

    #[test]
    fn what_is_no_key_is_said_without_repeating_it() {
        let (_dir, keys) = directory();
        keys.create(KeyPurpose::Signing).unwrap();
        let path = keys.key_path(KeyPurpose::Signing);
        for text in ["canary", "quorate:ed25519:seed:canary", "", "\u{0}"] {
            fs::write(&path, text).unwrap();
            let error = keys.load(KeyPurpose::Signing).unwrap_err();
            assert!(matches!(error, KeyFileError::NotAKey { .. }), "{error:?}");
            assert!(!format!("{error:?} {error}").contains("canary"));
        }
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(matches!(keys.load(KeyPurpose::Signing), Err(KeyFileError::NotAKey { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn files_are_their_owners_alone_and_others_are_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let (dir, keys) = directory();
        keys.create(KeyPurpose::Signing).unwrap();
        let rotate = || keys.rotate(KeyPurpose::Signing, SecretKey::generate(), 1_000);
        rotate().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let (file, folder) = (keys.key_path(KeyPurpose::Signing), dir.path().join("keys"));
        assert_eq!((mode(&file), mode(&folder)), (0o600, 0o700));
        for open in [0o640, 0o604, 0o620, 0o601] {
            set(&file, open);
            let error = keys.load(KeyPurpose::Signing).unwrap_err();
            assert!(
                matches!(error, KeyFileError::Exposed { mode, .. } if mode == open),
                "{open:o}: {error:?}"
            );
            assert!(rotate().is_err());
        }
        set(&file, 0o600);
        // Users who can write to the directory can replace the key.
        set(&folder, 0o770);
        assert!(matches!(keys.load(KeyPurpose::Signing), Err(KeyFileError::Exposed { mode: 0o770, .. })));
        assert!(matches!(keys.create(KeyPurpose::Ledger), Err(KeyFileError::Exposed { .. })));
        set(&folder, 0o700);
        keys.load(KeyPurpose::Signing).unwrap().expect("closed again");
    }

    fn files_below(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path());
        entries
            .flat_map(|path| match path.is_dir() {
                true => files_below(&path),
                false => vec![path.display().to_string()],
            })
            .collect()
    }
}
