//! The conformance suites: requirements on every adapter of a port.

pub mod dispatcher;
pub mod executor;
pub mod lifecycle;
pub mod provisioning;
pub mod state;
pub mod substrate;

use std::path::Path;
use std::sync::Arc;

use quorate_kernel::ports::executor::{ConfigError, Servers};
use quorate_kernel::registry::{BuildContext, Builder};
use quorate_protocol::Json;

/// Builds an adapter from its block, in a folder, without participants or executors.
///
/// # Errors
/// The adapter's refusal.
pub fn build_adapter<Port: ?Sized>(
    builder: &Builder<Port>,
    dir: &Path,
    block: &Json,
) -> Result<Arc<Port>, ConfigError> {
    builder(&BuildContext {
        block: &block.as_object().cloned().unwrap_or_default(),
        dir,
        runtime: "conformance",
        conversation: "",
        participants: &[],
        servers: &Servers::default(),
        executors: &dispatcher::FixedExecutor(None),
    })
}
