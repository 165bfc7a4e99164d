//! Commands on the ledger as a whole, one file each.

pub mod accept_key;
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
