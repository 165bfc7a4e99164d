//! Verifying a ledger on disk: everything that somebody may do to its file is found, named by kind and place, and what
//! nobody touched holds.

mod erased;
mod flips;
mod holds;
mod ledger_signatures;
mod signed;
mod tamper;
mod world;
