//! What an evaluation of a council computes, as pure functions: variants of a text whose relation to it is known
//! ([`variants`]), what the judgements on them say ([`coherence`]), and the intervals of every figure ([`stats`]).
//!
//! Nothing here asks a member, reads a file or draws a random number: the same inputs give the same variants and the same
//! figures on every machine.

pub mod coherence;
pub mod stats;
pub mod variants;
