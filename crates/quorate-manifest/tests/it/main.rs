//! Integration tests of this crate in one binary, with a module for each subject.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start processes, make files, and fail where they cannot go on"
)]

mod chains;
mod playbook_edit;
mod public_schemas;
