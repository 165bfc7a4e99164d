//! Ports: what the kernel requires of the world. Each is a trait whose documentation is the adapter author's manual.

pub mod dispatcher;
pub mod effectors;
pub mod embedder;
pub mod executor;
pub mod fence;
pub mod gather;
pub mod ledger;
pub mod lifecycle;
pub mod provisioning;
pub mod rule;
pub mod state;
pub mod substrate;
pub mod telemetry;
