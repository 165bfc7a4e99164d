//! The ledger as such: what makes it provable, and what is done to it. One file for each use case.

pub mod check_export;
pub mod check_proof;
pub mod checkpoint;
pub mod export;
pub mod gc;
pub mod hold;
pub mod import;
pub mod prove;
pub mod rollback;
pub mod stats;
pub mod trust;
pub mod verify;
