//! The tests of this crate from outside, in one binary: a module for what is tested.

mod single_call;
mod simulation;
mod slow_ledger;
