//! The tests of this crate from outside, in one binary: a module for what is tested.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start processes, make files, and fail where they cannot go on"
)]

mod chains;
mod playbook_edit;
mod public_schemas;
