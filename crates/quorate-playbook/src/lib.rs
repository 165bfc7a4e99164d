//! Prompts of agents: a persona's own text, and the overlays that are woven into it.
//!
//! Everything here is a function of what it is given. No file is read, no model is asked, and nothing is known of who
//! deliberated: what a prompt is made of comes from callers, and what is said in it is all that an agent learns.

pub mod base;
pub mod bind;
pub mod compose;
pub mod curate;
pub mod delta;
pub mod gate;
pub mod history;
pub mod index;
pub mod lock;
pub mod log;
pub mod persona;
pub mod supersede;
pub mod weave;
