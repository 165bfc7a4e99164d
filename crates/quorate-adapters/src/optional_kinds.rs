//! The kinds that need a feature, and their refusal by a program that was built without it.

use quorate_kernel::registry::{Duplicate, Registry};

/// A substrate: a conversation on an MCP server.
pub(crate) const MCP_SUBSTRATE: &str = "guilde-mcp";
/// An executor: an operator of an MCP server.
pub(crate) const MCP_EXECUTOR: &str = "db-operator";
/// A state store on an MCP server.
pub(crate) const MCP_STATE: &str = "mcp-kv";
/// A substrate and a state store in the database of the ledger.
pub(crate) const POSTGRES: &str = "postgres";

/// A substrate: a conversation on NATS servers.
pub(crate) const NATS_SUBSTRATE: &str = "nats";
/// A state store on NATS servers.
pub(crate) const NATS_STATE: &str = "nats-kv";
/// An executor: a participant that another machine answers for, over NATS.
pub(crate) const REMOTE: &str = "remote";

/// Registers the kinds that this program was built without, with a refusal that names the feature.
#[cfg_attr(
    all(feature = "mcp", feature = "nats", feature = "postgres"),
    expect(clippy::unnecessary_wraps, unused_variables, reason = "with every feature nothing is missing")
)]
pub(crate) fn register_unavailable(registry: &mut Registry) -> Result<(), Duplicate> {
    #[cfg(not(feature = "mcp"))]
    {
        let missing = |kind| missing(kind, "speaks to an MCP server", "mcp");
        registry.unavailable_executor(MCP_EXECUTOR, move |_| Err(without_key(missing(MCP_EXECUTOR))))?;
        registry.substrate(MCP_SUBSTRATE, move |_| Err(missing(MCP_SUBSTRATE)))?;
        registry.state(MCP_STATE, move |_| Err(missing(MCP_STATE)))?;
    }
    #[cfg(not(feature = "postgres"))]
    {
        let missing = || missing(POSTGRES, "is in a Postgres database", "postgres");
        registry.substrate(POSTGRES, move |_| Err(missing()))?;
        registry.state(POSTGRES, move |_| Err(missing()))?;
    }
    #[cfg(not(feature = "nats"))]
    {
        let missing = |kind| missing(kind, "is on NATS servers", "nats");
        registry.substrate(NATS_SUBSTRATE, move |_| Err(missing(NATS_SUBSTRATE)))?;
        registry.state(NATS_STATE, move |_| Err(missing(NATS_STATE)))?;
        registry.unavailable_executor(REMOTE, move |_| Err(without_key(missing(REMOTE))))?;
    }
    Ok(())
}

#[cfg(not(all(feature = "mcp", feature = "nats", feature = "postgres")))]
fn missing(kind: &str, what: &str, feature: &str) -> quorate_kernel::ports::executor::ConfigError {
    quorate_kernel::ports::executor::ConfigError::for_key(
        "kind",
        format!("`{kind}` {what}, and this program was built without that"),
    )
    .with_help(format!("build it with `cargo install --path crates/quorate-cli --features {feature}`"))
}

/// The refusal of an executor, whose kind may be named by other keys.
#[cfg(not(all(feature = "mcp", feature = "nats")))]
fn without_key(
    refused: quorate_kernel::ports::executor::ConfigError,
) -> quorate_kernel::ports::executor::ConfigError {
    quorate_kernel::ports::executor::ConfigError { key: None, ..refused }
}
