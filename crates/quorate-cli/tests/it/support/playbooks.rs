//! Workspaces with playbooks, and what the rules say of them.

pub mod oracle;
pub mod workspace;
pub mod world;
