//! Quorate.
pub mod service;
