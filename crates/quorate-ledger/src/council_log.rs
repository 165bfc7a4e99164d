//! `council_log.jsonl`: a view of finished reviews with a stable format (D6, C10), and statistics of it. Lines of other
//! writers are read like ours.

pub mod agreement;
pub mod append;
mod compared;
mod counts;
pub mod drift;
mod index;
pub mod line;
pub mod priors;
pub mod producers;
pub mod stats;
pub mod view;

pub use compared::{CountedLog, compare, without_ledger};
pub(crate) use index::find_index_diff;
pub use index::{IndexedLog, MAX_COMPARED_BYTES, forget_index, rebuild_if_altered, sync};
