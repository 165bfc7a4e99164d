//! The tests of this crate from outside, in one binary: a module for what is tested.

mod advisory;
mod budget;
mod council;
mod council_review;
mod hierarchy;
mod outcomes;
mod own_policy;
mod peer;
mod policy;
mod records;
mod test_run;
mod voting;
