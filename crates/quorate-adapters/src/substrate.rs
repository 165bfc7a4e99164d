//! Substrates: where a conversation lives.
