//! The tests of this crate from outside, in one binary: a module for what is tested.

mod samples;
mod simulate;
mod simulation;
mod single_call;
mod slow_ledger;
mod stand_ins;
