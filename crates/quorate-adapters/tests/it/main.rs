//! The tests of this crate from outside, in one binary: a module for what is tested.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start processes, make files, and fail where they cannot go on"
)]

mod cli_scripts;
mod conformance;
mod dispatchers;
mod journal;
mod lifecycles;
mod llm;
mod mcp;
mod states;
mod substrates;
mod turns;
