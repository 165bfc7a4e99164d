//! Provisioning: sources of packages.

pub mod memory;
pub mod profile;
