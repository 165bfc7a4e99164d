//! Verifying a ledger on disk: everything that somebody may do to its file is found, named by kind and place, and what
//! nobody touched holds.

#![expect(clippy::disallowed_methods, reason = "tests make files")]

#[path = "verify/erased.rs"]
mod erased;
#[path = "verify/flips.rs"]
mod flips;
#[path = "verify/holds.rs"]
mod holds;
#[path = "verify/own.rs"]
mod own;
#[path = "verify/signed.rs"]
mod signed;
#[path = "verify/tamper.rs"]
mod tamper;
#[path = "verify/world.rs"]
mod world;
