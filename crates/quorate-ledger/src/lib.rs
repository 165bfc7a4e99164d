//! The ledger: the append-only record of every deliberation, and its views with a stable format.
//!
//! [`record`] owns the wire form of a record, [`store`] the SQLite file or Postgres database,
//! [`council_log`] the `council_log.jsonl` view and its index. This crate does not know how members decide.

mod checkpoint;
pub mod council_log;
pub mod export;
pub mod files;
pub mod import;
pub mod keys;
pub mod local_checkpoints;
pub mod merkle;
pub mod note;
pub mod prove;
pub mod record;
pub mod retention;
pub mod runs;
pub mod signing;
pub mod stats;
pub mod store;
pub mod verify;
pub mod witness;

/// Boxes an async function that other crates call. Otherwise each calling crate compiles it, and every async function
/// that it calls, again.
pub(crate) use async_recursion::async_recursion as boxed;

pub use store::Store;
