//! Ports: what the kernel requires of the world. Each is a trait whose documentation is the adapter author's manual.

pub mod dispatcher;
pub mod effectors;
pub mod executor;
pub mod extension;
pub mod ledger;
pub mod provisioning;
pub mod state;
pub mod substrate;
pub mod telemetry;
