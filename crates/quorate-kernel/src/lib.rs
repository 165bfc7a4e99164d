//! The kernel: ports to the world, and the work between a protocol's command and the event that answers it.
//!
//! [`driver`] runs a protocol, [`attempts`] takes one invocation from prompt to answer, [`history`] turns records back
//! into events. The kernel names no adapter kind.

pub mod answer;
mod answer_schema;
pub mod attempts;
pub mod budget;
mod call;
pub mod canonical;
pub mod clock;
pub mod conversation;
pub mod driver;
pub mod entropy;
pub mod extensions;
pub mod files;
pub mod history;
pub mod meaning;
pub mod observer;
pub mod ports;
pub mod prompt;
pub mod record;
pub mod redact;
pub mod registry;
mod samples;
pub mod single_call;
pub mod turn;

/// An async function that other crates call is boxed: otherwise each crate that awaits it compiles it again, with every
/// async function that it calls.
pub(crate) use async_recursion::async_recursion as boxed;
