//! Modes: one state machine for each way of deciding together.

pub mod council;
