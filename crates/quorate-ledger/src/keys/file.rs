//! Reads and writes key files: atomically, durably, and readable only by their owner.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use zeroize::Zeroizing;

use super::Error;
use crate::files::{open, remove};
use crate::signing::{InvalidKey, PublicKey, SecretKey, Voucher};

/// No key is longer. What is, is not read to its end.
const MAX_BYTES: u64 = 1024;

/// How the names of files begin that are being written, and how they did in an earlier version.
const TEMP_PREFIX: &str = ".new-";
const LEGACY_TEMP_PREFIX: &str = ".tmp";

/// Reads a file with a secret key; `None` if it does not exist.
///
/// # Errors
/// [`Error`] where it cannot be read, is no key, or is open to others than its owner.
pub fn read(path: &Path) -> Result<Option<SecretKey>, Error> {
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io("read", path, error)),
    };
    // Checks the opened file, so that it cannot be swapped in between.
    let metadata = file.metadata().map_err(|error| io("read", path, error))?;
    if !metadata.is_file() {
        return Err(io("read", path, std::io::Error::new(ErrorKind::InvalidInput, "it is no plain file")));
    }
    check_permissions(path, &metadata, 0o077)?;
    let text = text(&file, path)?;
    SecretKey::from_text(&text).map(Some).map_err(|source| Error::NotAKey { path: path.to_owned(), source })
}

/// A directory of keys in which others can change nothing; one that is not there yet is fine.
pub(super) fn check_directory(path: &Path) -> Result<(), Error> {
    match std::fs::metadata(path) {
        Ok(metadata) => check_permissions(path, &metadata, 0o022),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io("read", path, error)),
    }
}

/// Puts a key's text at a path where nothing is; `dir` is the directory whose turn the caller has.
pub(super) fn create_key_file(dir: &Path, path: &Path, text: &str) -> Result<(), Error> {
    match write_temp(dir, path, &[text.as_bytes(), b"\n"])?.persist_noclobber(path) {
        Ok(_) => sync_dir(path.parent().unwrap_or(dir)),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
            Err(Error::AlreadyExists { path: path.to_owned() })
        }
        Err(error) => Err(io("write", path, error.error)),
    }
}

/// Puts a key's text in the place of another's.
pub(super) fn replace_key_file(dir: &Path, path: &Path, text: &str) -> Result<(), Error> {
    write_temp(dir, path, &[text.as_bytes(), b"\n"])?
        .persist(path)
        .map_err(|error| io("write", path, error.error))?;
    sync_dir(dir)
}

/// Puts a text at a path in its directory, unless `wanted` says otherwise once no other process writes there. When the power
/// is lost, a new file stays, and in the place of an older one is the older or the new one, whole.
///
/// # Errors
/// What `wanted` says, and [`Error::Io`].
pub(crate) fn replace_locked<E: From<Error>>(
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

/// A temporary file beside its target: readable by its owner alone, and synced.
fn write_temp(dir: &Path, path: &Path, parts: &[&[u8]]) -> Result<NamedTempFile, Error> {
    let write = || {
        let mut file = tempfile::Builder::new().prefix(TEMP_PREFIX).tempfile_in(dir)?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
        file.as_file().sync_all()?;
        Ok(file)
    };
    write().map_err(|error| io("write", path, error))
}

/// Removes what a process that was killed has left of a key that it was writing. Only who has the directory's turn may.
#[expect(clippy::disallowed_methods, reason = "this module reads the directories of keys")]
fn remove_leftovers(dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let left = [TEMP_PREFIX, LEGACY_TEMP_PREFIX]
            .iter()
            .any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()));
        if left && entry.file_type()?.is_file() {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// As [`remove_leftovers`], unless another process is writing, which removes them itself.
pub(super) fn remove_leftovers_if_free(dir: &Path) -> Result<(), Error> {
    let tidied = open(dir).and_then(|handle| match handle.try_lock() {
        Ok(()) => remove_leftovers(dir),
        Err(TryLockError::WouldBlock) => Ok(()),
        Err(TryLockError::Error(error)) => Err(error),
    });
    match tidied {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io("tidy", dir, error)),
        _ => Ok(()),
    }
}

/// Makes the names in a directory stay.
pub(super) fn sync_dir(dir: &Path) -> Result<(), Error> {
    open(dir).and_then(|dir| dir.sync_all()).map_err(|error| io("write", dir, error))
}

/// The turn of the one who writes in a directory, until it is dropped; `None` where there is no directory. What a process
/// that was killed has left there is gone then.
pub(super) fn lock_dir(dir: &Path) -> Result<Option<File>, Error> {
    let locked =
        open(dir).and_then(|handle| handle.lock().and_then(|()| remove_leftovers(dir)).map(|()| handle));
    match locked {
        Ok(handle) => Ok(Some(handle)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io("lock", dir, error)),
    }
}

/// The public keys in the `.pub` files of a directory, in the order of their names.
#[expect(clippy::disallowed_methods, reason = "this module reads the directory of retired keys")]
pub(super) fn read_public_keys(dir: &Path) -> Result<Vec<PublicKey>, Error> {
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
            keys.push(key.map_err(|source| Error::NotAKey { path, source })?);
        }
    }
    keys.sort_by_key(PublicKey::id);
    Ok(keys)
}

/// The vouchers in the `.voucher` files of a directory: the key that is vouched for, and below it the voucher's text.
#[expect(clippy::disallowed_methods, reason = "this module reads the directory of retired keys")]
pub(super) fn read_vouchers(dir: &Path) -> Vec<Voucher> {
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

/// A file's text, whose memory is overwritten when it is dropped.
fn text(file: &File, path: &Path) -> Result<Zeroizing<String>, Error> {
    // Room from the start: a text that grew would leave a copy of its beginning behind.
    let mut text = Zeroizing::new(String::with_capacity(1024));
    match file.take(MAX_BYTES).read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            Err(Error::NotAKey { path: path.to_owned(), source: InvalidKey::Encoding })
        }
        Err(error) => Err(io("read", path, error)),
    }
}

#[cfg(unix)]
pub(super) fn check_permissions(
    path: &Path,
    metadata: &std::fs::Metadata,
    to_others: u32,
) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & to_others == 0 { Ok(()) } else { Err(Error::Exposed { path: path.to_owned(), mode }) }
}

#[cfg(not(unix))]
pub(super) fn check_permissions(_: &Path, _: &std::fs::Metadata, _: u32) -> Result<(), Error> {
    Ok(())
}

pub(super) fn io(doing: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Io { doing, path: path.to_owned(), source }
}
