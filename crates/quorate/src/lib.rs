//! Quorate: councils of agents whose decisions you can audit.
//!
//! The library door. [`service`] holds one module for each use case; the command line, and whatever front end comes
//! to stand beside it, calls the same functions.
//! [`define_assembly_workspace`] and [`validate`] load an assembly from its manifest; [`convene`] convenes it.

mod api;
pub mod cli;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod service;

pub use api::{Refused, convene, define_assembly_workspace, validate};
