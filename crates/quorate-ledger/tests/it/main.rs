//! The integration tests of this crate in one binary, with a module for each subject.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start processes, make files, and fail where they cannot go on"
)]

mod audit_counts;
mod erase;
mod export;
mod export_flips;
mod group_commit;
mod in_turn;
mod merkle;
mod merkle_tree;
mod note;
mod postgres;
mod postgres_gaps;
mod postgres_lost_rows;
mod postgres_tls;
mod postgres_waits;
mod processes;
mod prove;
mod seal;
mod signing;
mod statements;
mod verify;
