//! The store of trust decisions: one JSON file in the user's state directory, which no workspace can name. A file is trusted
//! by its canonical path and the hash of its bytes, so trust ends when the file changes or moves.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use quorate_kernel::clock::rfc3339;
use serde::{Deserialize, Serialize};

use super::super::disk;
use super::super::environment::Environment;
use super::super::error::ServiceError;

const FILE_NAME: &str = "trust.json";
const VERSION: u32 = 1;

/// The recorded trust of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustRecord {
    v: u32,
    /// By canonical path.
    #[serde(default)]
    pub files: BTreeMap<PathBuf, TrustedFile>,
    /// Directories of other owners that a person has allowed.
    #[serde(default)]
    pub safe_directories: BTreeSet<PathBuf>,
}

/// A trusted file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedFile {
    /// SHA-256 of its bytes, in hex.
    pub sha256: String,
    pub at: String,
}

impl Default for TrustRecord {
    fn default() -> Self {
        TrustRecord { v: VERSION, files: BTreeMap::new(), safe_directories: BTreeSet::new() }
    }
}

impl TrustRecord {
    /// Whether a file with these bytes is trusted.
    pub fn trusts(&self, file: &Path, sha256: &str) -> bool {
        self.files.get(file).is_some_and(|known| known.sha256 == sha256)
    }

    /// Whether a person has allowed this directory, or one above it.
    pub fn is_safe(&self, directory: &Path) -> bool {
        directory.ancestors().any(|above| self.safe_directories.contains(above))
    }
}

#[derive(Debug, Clone)]
pub struct Store {
    path: PathBuf,
}

impl Store {
    /// The store of this user; `None` if the environment has no state directory.
    ///
    /// # Errors
    /// If it belongs to another user, or every user can write to it.
    pub fn of(environment: &Environment) -> Result<Option<Store>, ServiceError> {
        let Some(directory) = &environment.state_dir else { return Ok(None) };
        let path = directory.join(FILE_NAME);
        // A user who can write to one of them could record trust in another user's name.
        for there in [&path, directory.as_path()] {
            if let Some(owner) = disk::owner(there).filter(|owner| !environment.trusts_owner(*owner)) {
                return Err(unusable(there, &format!("it belongs to user {owner}")));
            }
            if disk::is_world_writable(there) {
                return Err(unusable(there, "every user can write to it"));
            }
        }
        Ok(Some(Store { path }))
    }

    /// Its content; empty if it does not exist yet.
    ///
    /// # Errors
    /// If it cannot be read or is malformed: then nothing is trusted.
    pub fn read(&self) -> Result<TrustRecord, ServiceError> {
        let bytes = match disk::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(TrustRecord::default()),
            Err(error) => return Err(unusable(&self.path, &error.to_string())),
        };
        match serde_json::from_slice::<TrustRecord>(&bytes) {
            Ok(trusted) if trusted.v == VERSION => Ok(trusted),
            Ok(other) => Err(unusable(&self.path, &format!("it has version {}, not {VERSION}", other.v))),
            Err(error) => Err(unusable(&self.path, &error.to_string())),
        }
    }

    /// Adds files by their hashes.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn add(&self, files: &BTreeMap<PathBuf, String>, now_ms: i64) -> Result<(), ServiceError> {
        self.change(|trusted| {
            let at = rfc3339(now_ms);
            let new = files
                .iter()
                .map(|(file, hash)| (file.clone(), TrustedFile { sha256: hash.clone(), at: at.clone() }));
            trusted.files.extend(new);
        })
    }

    /// Changes the record under a lock, so that processes take turns.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn change(&self, change: impl FnOnce(&mut TrustRecord)) -> Result<(), ServiceError> {
        let to_error = |error: std::io::Error| unusable(&self.path, &error.to_string());
        let _lock = disk::lock_with_sidecar(&self.path).map_err(to_error)?;
        let mut trusted = self.read()?;
        change(&mut trusted);
        let text =
            serde_json::to_vec_pretty(&trusted).map_err(|error| unusable(&self.path, &error.to_string()))?;
        disk::write_private(&self.path, &text).map_err(to_error)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn unusable(path: &Path, why: &str) -> ServiceError {
    let body = Body::new(format!("cannot use the record of trusted files {}: {why}", path.display()));
    let help = "move it away and run `quorate trust` again in each workspace that you trust";
    ServiceError::configuration(codes::TRUST_UNREADABLE, body.help(help))
}
