//! Test tools: scripted members, a test clock, a ledger that crashes, a shim between a real process and its files, the
//! simulator with its invariant checkers, the ports' conformance suites, and the runner of spec documents.

pub mod conformance;
pub mod faults;
pub mod mdtest;
pub mod scripted;
pub mod shim;
pub mod simulate;
