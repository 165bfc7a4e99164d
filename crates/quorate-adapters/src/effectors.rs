//! Effectors grant tools to participants.

pub mod manifest;
