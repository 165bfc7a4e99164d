//! Provisioning: where packages of files come from.

pub mod memory;
pub mod profile;
