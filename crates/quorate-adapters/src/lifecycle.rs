//! Lifecycles: who wants to know what happens.

pub mod command;
pub mod recorder;
