//! The side effects of workspace files, the trust of this process, and the person whom it asks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use quorate_kernel::ports::executor::SideEffect;

/// A user's answer to the shown plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsentAnswer {
    /// Trust the files until one of them changes.
    Always,
    /// Trust the files for this process.
    Once,
    /// Do not trust them.
    No,
}

/// Asks a person at a terminal.
pub trait Consent: Send + Sync {
    /// Shows the planned side effects, one per line with secrets redacted, and asks.
    ///
    /// # Errors
    /// If no answer can be obtained.
    fn ask(&self, lines: &[String]) -> std::io::Result<ConsentAnswer>;
}

/// The trust of this process.
#[derive(Clone, Default)]
pub struct Trust {
    /// `--trust`.
    pub(super) all: bool,
    /// The person to ask.
    pub(super) consent: Option<Arc<dyn Consent>>,
    /// Files that only this process trusts.
    trusted_once: Arc<Mutex<BTreeSet<(PathBuf, String)>>>,
}

impl Trust {
    /// Trusts everything for this process: `--trust`, or a program that embeds the library and vouches for its files.
    pub fn trusting_all(self) -> Self {
        Trust { all: true, ..self }
    }

    /// Asks a person about untrusted files.
    pub fn with_consent(self, consent: Arc<dyn Consent>) -> Self {
        Trust { consent: Some(consent), ..self }
    }

    /// The same trust, without asking a person.
    pub fn without_asking(&self) -> Self {
        Trust { consent: None, ..self.clone() }
    }

    /// The files that a person trusted for this process alone, with the hashes of their bytes.
    pub(super) fn trusted_once(&self) -> BTreeSet<(PathBuf, String)> {
        self.trusted_once.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn trust_once(&self, files: &BTreeMap<PathBuf, String>) {
        let mut trusted_once = self.trusted_once.lock().unwrap_or_else(PoisonError::into_inner);
        trusted_once.extend(files.iter().map(|(file, hash)| (file.clone(), hash.clone())));
    }
}

/// The side effects of a workspace file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustRequest {
    pub file: PathBuf,
    /// Its side effects.
    pub acts: Vec<SideEffect>,
}

/// The side effects of a workspace.
#[derive(Debug)]
pub struct Inventory {
    pub root: PathBuf,
    /// The side effects of each file; files without any are left out.
    pub requests: Vec<TrustRequest>,
    /// The files that this covers, by canonical path, each with the hash of its bytes.
    pub files: BTreeMap<PathBuf, String>,
}
