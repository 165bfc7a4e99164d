//! Test tools: scripted members, a test clock, a ledger that crashes, and the ports' conformance suites.

pub mod conformance;
pub mod faults;
pub mod scripted;
