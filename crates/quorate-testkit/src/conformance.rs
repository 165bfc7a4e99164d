//! The conformance suites: what every adapter of a port must do.

pub mod executor;
