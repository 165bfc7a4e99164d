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
pub mod ports {
    //! Ports: what the kernel requires of the world. Each is a trait whose documentation is the adapter author's manual.

    pub mod dispatcher;
    pub mod effectors {
        //! The effectors port: which tools a participant has.

        use crate::conversation::Tools;

        /// The effectors port: which tools a participant has.
        ///
        /// # For adapter authors
        ///
        /// Effectors are declared by the manifest, resolved here, and used by the executor, which gets them as [`Tools`] with every
        /// turn. Only the executor enforces them. `check` reports a server that is not configured, and it is not passed on.
        pub trait Effectors: Send + Sync {
            fn kind(&self) -> &'static str;

            /// The tools of a participant.
            fn tools(&self, participant: &str) -> Tools;

            /// Named servers that are not configured, each with its participant.
            fn unknown_servers(&self) -> Vec<(String, String)>;
        }
    }
    pub mod executor;
    pub mod extension;
    pub mod ledger;
    pub mod provisioning;
    pub mod state;
    pub mod substrate;
    pub mod telemetry;
}
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
