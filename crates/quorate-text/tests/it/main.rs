//! Corpora of texts, and what the operations of this crate make of them.

#![expect(clippy::unwrap_used, reason = "tests")]

mod evasion;
mod lexicon;
