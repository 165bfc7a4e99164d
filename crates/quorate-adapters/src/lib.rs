//! Adapters: one file (or folder) per kind, used through [`default_registry()`] alone.

pub(crate) mod block;
pub mod default_registry;
pub mod dispatcher;
pub mod effectors;
pub mod executor;
pub mod lifecycle;
pub mod process;
pub mod state;
pub mod substrate;

pub use default_registry::default_registry;
