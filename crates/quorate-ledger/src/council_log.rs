//! `council_log.jsonl`: a view of ended reviews that is also a contract (D6, C10), and what is learnt from
//! it. Lines of other writers are read like ours.

pub mod append;
pub mod drift;
mod index;
pub mod line;
pub mod priors;
pub mod stats;
pub mod view;

pub(crate) use index::find_index_diff;
pub use index::{IndexedLog, forget_index, sync};
