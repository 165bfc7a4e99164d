//! Playbooks: how agents get better. Each file below is one thing that can be done to them; `playbook/library.rs` reads
//! them, `playbook/catalogue.rs` finds those that are for somebody, `playbook/versions.rs` knows what each was,
//! `playbook/recalled.rs` what the ledger remembers of it, `playbook/change.rs` writes, `playbook/asking.rs` asks somebody,
//! and `playbook/traits.rs` says what nothing may change.

pub mod archive;
pub mod catalogue;
pub mod change;
pub mod consultant;
pub mod emit;
pub mod exceptions;
pub mod gate;
pub mod inspect;
pub mod judge;
pub mod library;
pub mod logging;
pub mod promote;
pub mod propose;
pub mod recorded_versions;
pub mod reflect;
pub mod repair;
pub mod rollback;
pub mod supersedes;
pub(super) mod traits;
pub mod versions;
