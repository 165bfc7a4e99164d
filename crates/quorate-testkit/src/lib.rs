//! What tests are made of: scripted members, a test clock, a ledger that dies, a shim between a real process and its
//! files, the simulator and the checkers of what must always hold, the executor port's conformance suite, and the runner
//! of spec documents.

pub mod clock;
pub mod conformance;
pub mod faults;
pub mod mdtest;
pub mod rng;
pub mod scripted;
pub mod shim;
pub mod simulate;
