//! Modes: one state machine for each way of deciding together. The four of an assembly share [`assembly`], which gathers,
//! asks, checks locks and ends the run; each mode says which member to ask next and what follows.

pub mod advisory;
pub mod assembly;
pub mod council;
pub mod hierarchy;
pub mod peer;
pub mod voting;
