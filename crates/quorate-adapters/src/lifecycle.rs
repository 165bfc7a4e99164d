//! Lifecycles receive the events of a runtime.

pub mod command;
pub mod recorder;
