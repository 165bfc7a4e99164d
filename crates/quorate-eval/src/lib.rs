//! What an evaluation of a council computes, as pure functions: variants of a text whose relation to it is known
//! ([`variants`]), and intervals, differences and effective votes ([`stats`]).
//!
//! Nothing here asks a member, reads a file or draws a random number: the same inputs give the same variants and the same
//! figures on every machine.

pub mod stats;
pub mod variants;
