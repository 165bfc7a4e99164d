//! Stores of state: what participants remember. One file for each kind.

pub mod fs;
pub mod memory;
