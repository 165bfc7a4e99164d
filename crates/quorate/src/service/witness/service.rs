//! A witness over HTTP, and the context of a submission.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quorate_ledger::Store;
use quorate_ledger::local_checkpoints::CheckpointFiles;
use quorate_ledger::note::Cosigner;

use crate::service::environment::Environment;

/// A witness over HTTP.
#[derive(Debug, Clone)]
pub struct Service {
    /// Its URL, to which the client appends `/add-checkpoint`.
    pub url: String,
    pub key: Cosigner,
    unresponsive: Arc<AtomicBool>,
}

impl Service {
    pub fn new(url: String, key: Cosigner) -> Self {
        Service { url, key, unresponsive: Arc::default() }
    }

    /// Whether it left a request of this process unanswered, so that it is not asked again.
    pub(super) fn is_unresponsive(&self) -> bool {
        self.unresponsive.load(Ordering::Relaxed)
    }

    #[cfg(feature = "http-witness")]
    pub(super) fn mark_unresponsive(&self) {
        self.unresponsive.store(true, Ordering::Relaxed);
    }
}

pub struct SubmitContext<'a> {
    pub environment: &'a Environment,
    pub store: &'a Store,
    /// The store of cosigned checkpoints.
    pub copies: &'a CheckpointFiles,
}
