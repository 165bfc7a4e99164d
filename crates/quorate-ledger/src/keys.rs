//! Key files: the secret keys below a ledger's directory, their permissions, and their rotation.
//!
//! `keys/ledger.ed25519` signs the ledger's checkpoints, `keys/signing.ed25519` the records of runs (D3). Each holds only a
//! key's text, in a directory that only its owner can enter. A file is written atomically, and only [`Directory::rotate`]
//! replaces a key; it keeps the public half of the old one, so that its signatures stay verifiable.

mod begun;
mod file;

use std::path::{Path, PathBuf};

use crate::files::{ensure_private_dir, ensure_quorate_dir};
use crate::signing::{Context, InvalidKey, PublicKey, SecretKey, Voucher};
pub use file::read;
pub(crate) use file::replace_locked;

/// What a key of a ledger's directory is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// It signs the ledger's checkpoints.
    Ledger,
    /// It signs the records of runs.
    Signing,
}

impl Purpose {
    /// Its word, which names the key's file.
    pub fn as_str(self) -> &'static str {
        match self {
            Purpose::Ledger => "ledger",
            Purpose::Signing => "signing",
        }
    }
}

/// The directory of a ledger's keys. It need not be there.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
}

/// One key that follows another.
#[derive(Debug)]
pub struct Rotation {
    /// The public half of the key that went.
    pub old: PublicKey,
    /// The key that signs from now on.
    pub new: SecretKey,
}

/// Why a key cannot be read or written. It never repeats what a file holds.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system says no.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Others than its owner can reach the key.
    #[error("{} has the permissions {mode:04o}, so others can get at the secret key", path.display())]
    Exposed {
        /// The file or directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file holds no key.
    #[error("{} is no key", path.display())]
    NotAKey { path: PathBuf, source: InvalidKey },
    /// There is a key already; it is never overwritten.
    #[error("{} already exists, and a key is never overwritten", path.display())]
    AlreadyExists { path: PathBuf },
    /// There is no key that another could follow.
    #[error("{} does not exist", path.display())]
    Missing { path: PathBuf },
}

impl Directory {
    /// The key directory of the ledger in `ledger_dir`.
    pub fn new(ledger_dir: &Path) -> Self {
        Directory { path: ledger_dir.join("keys") }
    }

    /// The file of a key.
    pub fn key_path(&self, purpose: Purpose) -> PathBuf {
        self.path.join(format!("{}.ed25519", purpose.as_str()))
    }

    /// Reads a key; `None` if the file does not exist.
    ///
    /// # Errors
    /// [`Error`] where the file cannot be read, is no key, or is open to others.
    pub fn load(&self, purpose: Purpose) -> Result<Option<SecretKey>, Error> {
        file::check_directory(&self.path)?;
        read(&self.key_path(purpose))
    }

    /// Makes a key; it is on the disk to stay when this returns.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] where there is one, and [`Error::Io`].
    pub fn create(&self, purpose: Purpose) -> Result<SecretKey, Error> {
        self.insert(purpose, SecretKey::generate())
    }

    /// Stores an existing key unless one is stored.
    ///
    /// # Errors
    /// As [`Directory::create`].
    pub fn insert(&self, purpose: Purpose, key: SecretKey) -> Result<SecretKey, Error> {
        self.ensure_exists()?;
        file::sync_dir(self.path.parent().unwrap_or(&self.path))?;
        let path = self.key_path(purpose);
        let _turn = file::lock_dir(&self.path)?;
        file::create_key_file(&self.path, &path, &key.to_text())?;
        Ok(key)
    }

    /// Reads a key, or creates it. Concurrent callers get the same key.
    ///
    /// # Errors
    /// [`Error`].
    pub fn load_or_create(&self, purpose: Purpose) -> Result<SecretKey, Error> {
        if let Some(key) = self.load(purpose)? {
            return Ok(key);
        }
        match self.create(purpose) {
            Err(Error::AlreadyExists { path }) => self.load(purpose)?.ok_or(Error::Missing { path }),
            made => made,
        }
    }

    /// Puts a new key in the old one's place. The old one's public half is on the disk before that, and there is never a
    /// moment without a key: an interrupted process leaves the old one or the new one.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no key to replace, and [`Error`].
    pub fn rotate(&self, purpose: Purpose, at_ms: i64) -> Result<Rotation, Error> {
        self.rotate_to(purpose, SecretKey::generate(), at_ms)
    }

    /// As [`Directory::rotate`], with a key that was made before, such as one that the old one has vouched for. An old key of
    /// the ledger also leaves its word for the new one, by which the other ledgers that it signed can go on: those of the same
    /// directory share the key, and the secret is gone afterwards.
    ///
    /// # Errors
    /// As [`Directory::rotate`].
    pub fn rotate_to(&self, purpose: Purpose, new: SecretKey, at_ms: i64) -> Result<Rotation, Error> {
        let path = self.key_path(purpose);
        let _turn = file::lock_dir(&self.path)?.ok_or_else(|| Error::Missing { path: path.clone() })?;
        let secret = self.load(purpose)?.ok_or_else(|| Error::Missing { path: path.clone() })?;
        let old = secret.public();
        let retired = self.retired_dir(purpose);
        for dir in [&self.path.join("retired"), &retired] {
            ensure_private_dir(dir).map_err(|source| file::io("make", dir, source))?;
            file::sync_dir(dir.parent().unwrap_or(dir))?;
        }
        match file::create_key_file(&self.path, &retired.join(format!("{}.pub", old.id())), &old.to_string())
        {
            // Left by an interrupted call.
            Ok(()) | Err(Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(error),
        }
        if purpose == Purpose::Ledger {
            let voucher = Voucher::sign(Context::LEDGER_VOUCHER, &secret, &new.public(), at_ms);
            let text = format!("{}\n{}", voucher.key, voucher.to_text());
            file::replace_key_file(&self.path, &retired.join(format!("{}.voucher", old.id())), &text)?;
            file::sync_dir(&retired)?;
        }
        file::replace_key_file(&self.path, &path, &new.to_text())?;
        Ok(Rotation { old, new })
    }

    /// The public halves of the keys that have gone, in the order of their names.
    ///
    /// # Errors
    /// [`Error`] where one cannot be read.
    pub fn retired(&self, purpose: Purpose) -> Result<Vec<PublicKey>, Error> {
        file::read_public_keys(&self.retired_dir(purpose))
    }

    /// The words of the ledger's old keys for those that replaced them. What cannot be read counts for nothing.
    pub fn vouchers(&self) -> Vec<Voucher> {
        file::read_vouchers(&self.retired_dir(Purpose::Ledger))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where versions before this one kept the last checkpoint that the ledger's key signed, for all ledgers of the
    /// directory together (see [`crate::local_checkpoints`]).
    pub fn legacy_checkpoint_path(&self) -> PathBuf {
        self.path.join("ledger.last")
    }

    /// Removes what a process that was killed has left of a key that it was writing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove_leftovers(&self) -> Result<(), Error> {
        file::remove_leftovers_if_free(&self.path)
    }

    fn retired_dir(&self, purpose: Purpose) -> PathBuf {
        self.path.join("retired").join(purpose.as_str())
    }

    /// Makes the directory: closed to others, and ignored by version control wherever the ledger lies.
    pub(crate) fn ensure_exists(&self) -> Result<(), Error> {
        let above = self.path.parent().unwrap_or(&self.path);
        let made = match above.file_name() {
            Some(name) if name == ".quorate" => ensure_quorate_dir(above),
            _ => ensure_private_dir(above),
        };
        made.and_then(|()| ensure_quorate_dir(&self.path))
            .map_err(|source| file::io("make", &self.path, source))?;
        file::check_directory(&self.path)
    }
}

#[cfg(test)]
mod tests;
