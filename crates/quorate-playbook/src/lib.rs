//! Prompts of agents: a persona's own text, and the overlays that are woven into it.
//!
//! Everything here is a function of its inputs: it reads no file, asks no model, and knows nothing of deliberations.
//! Callers supply the parts of a prompt, and an agent learns only what the prompt says.

pub mod bind;
pub mod contradiction;
pub mod curate;
pub mod delta;
pub mod gate;
pub mod history;
pub mod lock;
pub mod log;
pub mod persona;
pub mod weave;
