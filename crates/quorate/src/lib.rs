//! Quorate: councils of agents whose decisions you can audit.
//!
//! The library door. [`service`] holds one module for each use case; the command line, and whatever front end comes
//! to stand beside it, calls the same functions.

pub mod cli;
pub mod service;
