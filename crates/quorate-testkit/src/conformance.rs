//! The conformance suites: what every adapter of a port must do.

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

/// An adapter from its block, in a folder, for nobody: it has no participants and no executor to ask.
///
/// # Errors
/// What it refuses.
pub fn build_adapter<Port: ?Sized>(
    builder: &Builder<Port>,
    dir: &Path,
    block: &Json,
) -> Result<Arc<Port>, ConfigError> {
    builder(&BuildContext {
        block: &block.as_object().cloned().unwrap_or_default(),
        dir,
        runtime: "conformance",
        participants: &[],
        servers: &Servers::default(),
        executors: &dispatcher::FixedExecutor(None),
    })
}
