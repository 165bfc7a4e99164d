//! What the ledger remembers of playbooks: the version of each that was recorded last. Files can be taken away together
//! with their histories, or put back from an old copy; the ledger still knows how far they had come.

use std::collections::BTreeMap;

use quorate_kernel::ports::ledger::{Ledger as _, Record};
use quorate_ledger::Store;
use quorate_ledger::store::address::Address;
use quorate_manifest::workspace::Scope;
use quorate_protocol::Json;

use super::change::stream;
use crate::service::error::ServiceError;

/// The versions that were recorded last, by slug.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedVersions(BTreeMap<String, u32>);

impl RecordedVersions {
    /// The version of a playbook that was recorded last; 0 of one that the ledger does not know.
    pub fn version(&self, slug: &str) -> u32 {
        self.0.get(slug).copied().unwrap_or(0)
    }

    /// What the ledger of a scope remembers.
    ///
    /// # Errors
    /// When the ledger does not answer.
    pub async fn load(store: &Store, scope: &Scope) -> Result<Self, ServiceError> {
        let mut recalled = RecordedVersions::default();
        store.records(&stream(scope)).await?.iter().for_each(|record| recalled.add(record));
        Ok(recalled)
    }

    /// As [`RecordedVersions::load`], of a ledger that is opened for this alone: playbooks are read where nothing waits for a
    /// ledger. One that is not there remembers nothing. Neither does one that does not answer: a command that needs it
    /// says so itself.
    pub fn load_blocking(ledger: &Address, scope: &Scope) -> Self {
        if !ledger.may_exist() {
            return RecordedVersions::default();
        }
        let read = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
            runtime.block_on(async {
                let store = Box::pin(Store::open_at(ledger)).await.ok()?.store;
                let recalled = RecordedVersions::load(&store, scope).await;
                store.close().await;
                recalled.ok()
            })
        };
        std::thread::scope(|threads| threads.spawn(read).join().ok().flatten()).unwrap_or_default()
    }

    fn add(&mut self, record: &Record) {
        let Some(data) = &record.data else { return };
        let version = data.get("version").and_then(Json::as_u64).and_then(|n| u32::try_from(n).ok());
        if let Some((slug, version)) = data.get("slug").and_then(Json::as_str).zip(version) {
            self.0.insert(slug.to_owned(), version);
        }
    }
}
