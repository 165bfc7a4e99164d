//! Registers every adapter of this crate.

use quorate_kernel::registry::{Duplicate, Registry, add};

use crate::dispatcher::{capability_match, fixed, llm_router, mention, round_robin};
use crate::executor::{agent_cli, cassette, inline, llm, public_runtimes, rubric, script};
use crate::{optional_kinds, provisioning, state, substrate};

/// All adapters of this crate.
///
/// # Errors
/// When two adapters claim one kind, which a test rules out.
pub fn default_registry() -> Result<Registry, Duplicate> {
    let mut registry = Registry::new();
    #[cfg(feature = "rubric")]
    registry.executor(rubric::KIND, rubric::new)?;
    #[cfg(feature = "agent-cli")]
    {
        registry.executor(agent_cli::KIND, agent_cli::new)?;
        for preset in agent_cli::PRESETS {
            registry.preset(preset.executor, agent_cli::KIND);
        }
        registry.bare_presets.insert(agent_cli::KIND, agent_cli::BARE_PRESET);
    }
    #[cfg(feature = "llm")]
    {
        registry.executor(llm::KIND, llm::new)?;
        for preset in llm::presets() {
            registry.preset(&preset.name, llm::KIND);
        }
        registry.embedder = Some(std::sync::Arc::new(llm::embed::new));
    }
    registry.executor(script::KIND, script::new)?;
    registry.wrapping_executor(cassette::KIND, cassette::new)?;
    registry.unavailable_executor(inline::KIND, inline::new)?;
    add(&mut registry.dispatchers, mention::KIND, mention::new)?;
    add(&mut registry.dispatchers, round_robin::KIND, round_robin::new)?;
    add(&mut registry.dispatchers, capability_match::KIND, capability_match::new)?;
    add(&mut registry.dispatchers, llm_router::KIND, llm_router::new)?;
    add(&mut registry.dispatchers, fixed::KIND, fixed::new)?;
    add(&mut registry.substrates, substrate::file::KIND, substrate::file::new)?;
    add(&mut registry.substrates, substrate::memory::KIND, substrate::memory::new)?;
    add(&mut registry.substrates, substrate::sqlite::KIND, substrate::sqlite::new)?;
    add(&mut registry.states, state::fs::KIND, state::fs::new)?;
    add(&mut registry.states, state::memory::KIND, state::memory::new)?;
    #[cfg(feature = "mcp")]
    {
        registry.executor(crate::executor::db_operator::KIND, crate::executor::db_operator::new)?;
        add(&mut registry.substrates, substrate::guilde_mcp::KIND, substrate::guilde_mcp::new)?;
        add(&mut registry.states, state::mcp_kv::KIND, state::mcp_kv::new)?;
    }
    #[cfg(feature = "nats")]
    {
        registry.executor(crate::executor::remote::KIND, crate::executor::remote::new)?;
        add(&mut registry.substrates, substrate::nats::KIND, substrate::nats::new)?;
        add(&mut registry.states, state::nats_kv::KIND, state::nats_kv::new)?;
    }
    #[cfg(feature = "postgres")]
    {
        add(&mut registry.substrates, substrate::postgres::KIND, substrate::postgres::new)?;
        add(&mut registry.states, state::postgres::KIND, state::postgres::new)?;
    }
    optional_kinds::register_unavailable(&mut registry)?;
    add(&mut registry.states, state::sqlite::KIND, state::sqlite::new)?;
    add(&mut registry.provisionings, provisioning::profile::KIND, provisioning::profile::new)?;
    registry.default_state_kind = Some(state::fs::KIND);
    registry.url_kind = Some(llm::KIND);
    registry.default_kind = Some(rubric::KIND);
    registry.command_kind = Some(agent_cli::KIND);
    public_runtimes::register(&mut registry);
    Ok(registry)
}
