//! The tests of this crate from outside, in one binary: a module for what is tested.

mod bind;
mod history;
mod lock_corpus;
mod locks;
mod persona;
mod weave;
