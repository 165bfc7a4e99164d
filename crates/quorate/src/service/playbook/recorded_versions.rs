//! The ledger's records of playbooks: the hash of each version, the last version, and the attempts to pass a gate. They
//! reveal files that were removed with their histories, restored from an old copy, or copied from another workspace.

use std::collections::{BTreeMap, BTreeSet};

use quorate_kernel::ports::ledger::{Ledger as _, PlaybookEvent, Record};
use quorate_kernel::record::PlaybookEventData;
use quorate_ledger::Store;
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::workspace::Scope;

use super::event::{event, stream};
use super::trials::Trials;
use crate::service::error::ServiceError;

/// The recorded versions of a playbook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedPlaybook {
    /// The last recorded version; 0 without one. Numbers may restart, so the last record counts and not the highest number.
    pub last: u32,
    /// SHA-256 of that version's file, if recorded.
    pub sha256: Option<String>,
    /// Whether the last record archived the playbook.
    is_archived: bool,
    /// SHA-256 of the files recorded under each version number.
    hashes: BTreeMap<u32, BTreeSet<String>>,
}

impl RecordedPlaybook {
    /// Whether the ledger rules out this version. It does not know versions from before its first record.
    pub fn contradicts(&self, n: u32, sha256: &str) -> bool {
        let is_known = self.hashes.first_key_value().is_some_and(|(first, _)| *first <= n);
        is_known && !self.hashes.get(&n).is_some_and(|hashes| hashes.contains(sha256))
    }

    /// Whether the hash is that of the last recorded version. Without a record every file is.
    pub fn is_last(&self, n: u32, sha256: &str) -> bool {
        self.last == 0 || (self.last == n && self.sha256.as_deref().is_none_or(|recorded| recorded == sha256))
    }
}

/// The playbooks that were recorded, by slug.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedVersions {
    playbooks: BTreeMap<String, RecordedPlaybook>,
    pub trials: Trials,
}

impl RecordedVersions {
    /// The recorded versions of a playbook.
    pub fn playbook(&self, slug: &str) -> RecordedPlaybook {
        self.playbooks.get(slug).cloned().unwrap_or_default()
    }

    /// The playbooks that are not archived, each with its last recorded version.
    pub fn unarchived(&self) -> impl Iterator<Item = (&str, u32)> {
        self.playbooks
            .iter()
            .filter(|(_, recorded)| !recorded.is_archived)
            .map(|(slug, recorded)| (&**slug, recorded.last))
    }

    /// The recorded versions of a scope's ledger.
    ///
    /// # Errors
    /// When the ledger does not answer.
    #[crate::boxed]
    pub async fn load(store: &Store, scope: &Scope) -> Result<Self, ServiceError> {
        let mut recalled = RecordedVersions::default();
        store.records(&stream(scope)).await?.iter().for_each(|record| recalled.add(record));
        Ok(recalled)
    }

    /// As [`RecordedVersions::load`], for synchronous code: opens the ledger on its own thread.
    pub fn load_blocking(ledger: &StoreAddress, scope: &Scope) -> Self {
        let mut recalled = RecordedVersions::default();
        RecordedVersions::records_blocking(ledger, scope).iter().for_each(|record| recalled.add(record));
        recalled
    }

    /// The records of a scope's playbooks; empty if the ledger is missing or does not answer. A command that needs the ledger
    /// reports that itself.
    pub fn records_blocking(ledger: &StoreAddress, scope: &Scope) -> Vec<Record> {
        if !ledger.may_exist() {
            return Vec::new();
        }
        let read = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
            runtime.block_on(async {
                let store = Box::pin(Store::open_at(ledger)).await.ok()?.store;
                let records = store.records(&stream(scope)).await;
                store.close().await;
                records.ok()
            })
        };
        std::thread::scope(|threads| threads.spawn(read).join().ok().flatten()).unwrap_or_default()
    }

    fn add(&mut self, record: &Record) {
        let Some(event) = event(record) else { return };
        self.trials.add(record, &event);
        let PlaybookEventData { slug: Some(slug), version: Some(last), sha256, .. } = event else { return };
        let known = self.playbooks.entry(slug).or_default();
        known.hashes.entry(last).or_default().extend(sha256.clone());
        known.last = last;
        known.sha256 = sha256;
        known.is_archived = record.kind == PlaybookEvent::Archived.as_str();
    }
}
