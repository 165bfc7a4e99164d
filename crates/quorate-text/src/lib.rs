//! Operations on text that do not depend on its owner. They do no I/O, and know neither members nor manifests.
//!
//! The corpora on which they are measured lie in `tests/` of this crate.

pub mod lexicon;
pub mod locks;
pub mod secrets;
pub mod words;
