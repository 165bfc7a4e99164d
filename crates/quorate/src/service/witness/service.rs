//! A witness that is asked over HTTP, and what a checkpoint is submitted with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quorate_ledger::Store;
use quorate_ledger::local_checkpoints::CheckpointFiles;
use quorate_ledger::note::Cosigner;

use crate::service::environment::Environment;

/// A witness that is asked over HTTP.
#[derive(Debug, Clone)]
pub struct Service {
    /// Its URL, to which `/add-checkpoint` is added.
    pub url: String,
    pub key: Cosigner,
    unresponsive: Arc<AtomicBool>,
}

impl Service {
    pub fn new(url: String, key: Cosigner) -> Self {
        Service { url, key, unresponsive: Arc::default() }
    }

    /// Whether it left this process without an answer; it is not asked again then.
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
    /// Where cosigned checkpoints are kept.
    pub copies: &'a CheckpointFiles,
}
