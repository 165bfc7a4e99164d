//! Verifying a ledger on disk: every change of its file is found, named by kind and place, and an untouched
//! ledger verifies.

mod erased;
mod flips;
mod holds;
mod ledger_signatures;
mod signed;
mod tamper;
mod world;
