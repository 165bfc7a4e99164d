//! The tests of this crate from outside, in one binary: a module for what is tested.

mod history;
mod persona;
mod weave;
