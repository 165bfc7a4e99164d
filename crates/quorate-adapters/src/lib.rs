//! The adapters that ship with Quorate, one file (or folder) for each kind. Programs use them through
//! [`default_registry()`].

#[cfg_attr(
    not(any(feature = "agent-cli", feature = "llm")),
    expect(dead_code, reason = "the executors that are left out use the rest")
)]
pub(crate) mod block;
pub(crate) mod database;
pub mod default_registry;
pub mod dispatcher;
pub mod effectors;
pub mod executor;
#[cfg_attr(
    not(any(feature = "llm", feature = "mcp")),
    expect(dead_code, reason = "the executors that are left out use the rest")
)]
pub mod http;
pub mod lifecycle;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
#[cfg(feature = "nats")]
pub mod nats;
pub(crate) mod optional_kinds;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod process;
pub mod provisioning {
    //! Provisioning: sources of packages.

    pub mod profile;
}
pub mod state;
pub mod substrate;

pub use default_registry::default_registry;
pub use http::install_tls_provider;
