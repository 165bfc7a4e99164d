//! Test tools: scripted members, a test clock, ledgers in memory and that crash, a fake of decision models, and the ports'
//! conformance suites.

pub mod conformance;
pub mod decisions;
pub mod faults;
pub mod memory;
pub mod scripted;
