//! Workspaces with playbooks, and an oracle of the rules.

pub mod oracle;
pub mod workspace;
pub mod world;
