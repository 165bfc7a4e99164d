//! Inner parts that the benchmarks and tests of this workspace use by themselves.

#[cfg(feature = "nats")]
pub use super::service::commit_events::CommitEvents;
pub use super::service::compose::Sources;
pub use super::service::environment::Environment;
pub use super::service::live::Watcher;
pub use super::service::manifests::Manifests;
pub use super::service::runs::open as open_ledger;
pub use super::service::runtime::conversation::say;
pub use super::service::runtime::{OpenRuntime, RuntimeRequest, open as open_runtime};
pub use super::service::workspace::PathOverrides;
pub use crate::playbook::library::{Catalogue, Library};
