//! Playbooks: what agents learn from their runs. Most files below own one operation on playbooks. The others are shared:
//! `playbook/library.rs` reads playbooks and operators, `playbook/catalogue.rs` finds the playbooks of an operator,
//! `playbook/versions.rs` and `playbook/recorded_versions.rs` read earlier versions from files and from the ledger,
//! `playbook/writer.rs` changes files and ledger together, `playbook/consultant.rs` asks an executor, and
//! `playbook/traits.rs` determines the locked traits.

pub mod archive;
pub mod catalogue;
pub mod change;
pub mod consultant;
pub mod emit;
pub mod event;
pub mod exceptions;
pub mod gate;
pub mod gating;
pub mod inspect;
pub mod judge;
pub mod known_operator;
pub mod library;
pub mod logging;
pub mod overview;
pub mod promote;
pub mod propose;
pub mod recorded_versions;
pub mod reflect;
pub mod repair;
pub mod rollback;
pub mod supersedes;
pub(super) mod traits;
pub mod trials;
pub mod versions;
pub mod writer;
