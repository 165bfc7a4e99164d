//! Executors: who can be asked.

pub mod agent_cli;
pub mod public_runtimes;
pub mod rubric;
pub mod script;
