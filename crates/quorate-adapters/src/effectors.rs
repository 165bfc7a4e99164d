//! Effectors: which tools participants have.
