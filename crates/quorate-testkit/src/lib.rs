//! Test tools: scripted members, a test clock, ledgers in memory and that crash, and the ports' conformance suites.

pub mod conformance;
pub mod faults;
pub mod memory;
pub mod scripted;
