//! What a process trusts besides what was recorded: everything, what a person allowed for once, or who is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A user's answer to the shown plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsentAnswer {
    /// It is trusted until one of the files changes.
    Always,
    /// It is trusted by this process.
    Once,
    No,
}

/// Asks a person at a terminal.
pub trait Consent: Send + Sync {
    /// Shows what would be done, one line each, and asks.
    ///
    /// # Errors
    /// If no answer can be obtained.
    fn ask(&self, lines: &[String]) -> std::io::Result<ConsentAnswer>;
}

/// What this process trusts.
#[derive(Clone, Default)]
pub struct Trust {
    /// `--trust`.
    pub(super) all: bool,
    /// The person who is asked, where there is one.
    pub(super) consent: Option<Arc<dyn Consent>>,
    /// What was trusted by this process alone.
    trusted_once: Arc<Mutex<BTreeSet<(PathBuf, String)>>>,
}

impl Trust {
    /// Trusts everything for this process: `--trust`, or a program that embeds the library and vouches for its files.
    #[must_use]
    pub fn trusting_all(self) -> Self {
        Trust { all: true, ..self }
    }

    /// Has a person asked where something is not trusted.
    #[must_use]
    pub fn with_consent(self, consent: Arc<dyn Consent>) -> Self {
        Trust { consent: Some(consent), ..self }
    }

    /// The same, and no person is asked.
    #[must_use]
    pub fn without_asking(&self) -> Self {
        Trust { consent: None, ..self.clone() }
    }

    /// What a person trusted for this process alone: files with the hashes of their bytes.
    pub(super) fn trusted_once(&self) -> BTreeSet<(PathBuf, String)> {
        self.trusted_once.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn trust_once(&self, files: &BTreeMap<PathBuf, String>) {
        let mut trusted_once = self.trusted_once.lock().unwrap_or_else(PoisonError::into_inner);
        trusted_once.extend(files.iter().map(|(file, hash)| (file.clone(), hash.clone())));
    }
}
