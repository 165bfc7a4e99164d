//! Verifying a ledger on disk: every change of its file is found, named by kind and place, and an untouched
//! ledger verifies.

mod chain;
mod erased;
mod flips;
mod holds;
mod kept_checkpoints;
mod large;
mod ledger_signatures;
mod log;
mod shown;
mod signed;
mod tamper;
mod texts;
mod world;
