//! Adapters: one file (or folder) per kind, used through [`default_registry()`] alone.

pub mod default_registry;
pub mod executor;
pub mod process;

pub use default_registry::default_registry;
