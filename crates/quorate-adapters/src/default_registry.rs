//! The one list of everything that ships.

use quorate_kernel::registry::{Duplicate, Registry};

use crate::executor::{agent_cli, public_runtimes, rubric, script};

/// All adapters of this crate.
///
/// # Errors
/// When two of them claim one kind, which a test rules out.
pub fn default_registry() -> Result<Registry, Duplicate> {
    let mut registry = Registry::new();
    registry.executor(rubric::KIND, rubric::new)?;
    registry.executor(agent_cli::KIND, agent_cli::new)?;
    registry.executor(script::KIND, script::new)?;
    for preset in agent_cli::PRESETS {
        registry.preset(preset.name, agent_cli::KIND);
    }
    registry.fallback(rubric::KIND);
    registry.command(agent_cli::KIND);
    public_runtimes::register(&mut registry);
    Ok(registry)
}
