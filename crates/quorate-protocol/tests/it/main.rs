//! The tests of this crate from outside, in one binary: a module for what is tested.

#![expect(
    clippy::unwrap_used,
    reason = "tests start processes, make files, and fail where they cannot go on"
)]

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
