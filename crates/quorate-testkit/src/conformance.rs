//! The conformance suites: what every adapter of a port must do.

pub mod dispatcher;
pub mod executor;
pub mod lifecycle;
pub mod provisioning;
pub mod state;
pub mod substrate;
