//! Executors answer invocations.

pub mod agent_cli;
pub mod cassette;
#[cfg(feature = "mcp")]
pub mod db_operator;
pub mod inline;
pub mod llm;
pub mod public_runtimes;
#[cfg(feature = "nats")]
pub mod remote;
pub mod rubric;
pub mod script;
