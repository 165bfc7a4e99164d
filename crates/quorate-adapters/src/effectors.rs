//! Effectors: which tools participants have.

pub mod manifest;
