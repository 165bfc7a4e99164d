//! Registers every adapter of this crate.

use quorate_kernel::registry::{Duplicate, Registry};

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
        registry.set_bare_preset(agent_cli::KIND, agent_cli::BARE_PRESET);
    }
    #[cfg(feature = "llm")]
    {
        registry.executor(llm::KIND, llm::new)?;
        for preset in llm::presets() {
            registry.preset(&preset.name, llm::KIND);
        }
        registry.set_embedder(llm::embed::new);
    }
    registry.executor(script::KIND, script::new)?;
    registry.wrapping_executor(cassette::KIND, cassette::new)?;
    registry.unavailable_executor(inline::KIND, inline::new)?;
    registry.dispatcher(mention::KIND, mention::new)?;
    registry.dispatcher(round_robin::KIND, round_robin::new)?;
    registry.dispatcher(capability_match::KIND, capability_match::new)?;
    registry.dispatcher(llm_router::KIND, llm_router::new)?;
    registry.dispatcher(fixed::KIND, fixed::new)?;
    registry.substrate(substrate::file::KIND, substrate::file::new)?;
    registry.substrate(substrate::memory::KIND, substrate::memory::new)?;
    registry.substrate(substrate::sqlite::KIND, substrate::sqlite::new)?;
    registry.state(state::fs::KIND, state::fs::new)?;
    registry.state(state::memory::KIND, state::memory::new)?;
    #[cfg(feature = "mcp")]
    {
        registry.executor(crate::executor::db_operator::KIND, crate::executor::db_operator::new)?;
        registry.substrate(substrate::guilde_mcp::KIND, substrate::guilde_mcp::new)?;
        registry.state(state::mcp_kv::KIND, state::mcp_kv::new)?;
    }
    #[cfg(feature = "nats")]
    {
        registry.executor(crate::executor::remote::KIND, crate::executor::remote::new)?;
        registry.substrate(substrate::nats::KIND, substrate::nats::new)?;
        registry.state(state::nats_kv::KIND, state::nats_kv::new)?;
    }
    #[cfg(feature = "postgres")]
    {
        registry.substrate(substrate::postgres::KIND, substrate::postgres::new)?;
        registry.state(state::postgres::KIND, state::postgres::new)?;
    }
    optional_kinds::register_unavailable(&mut registry)?;
    registry.state(state::sqlite::KIND, state::sqlite::new)?;
    registry.provisioning(provisioning::profile::KIND, provisioning::profile::new)?;
    registry.provisioning(provisioning::memory::KIND, provisioning::memory::new)?;
    registry.default_state_kind = Some(state::fs::KIND);
    registry.url_kind = Some(llm::KIND);
    registry.default_kind = Some(rubric::KIND);
    registry.command_kind = Some(agent_cli::KIND);
    public_runtimes::register(&mut registry);
    Ok(registry)
}
