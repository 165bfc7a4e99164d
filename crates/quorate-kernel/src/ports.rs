//! The ports: what the kernel needs of the world, as traits that carry their contract.

pub mod executor;
pub mod ledger;
