//! The kinds that need the feature `mcp`, and their refusal by a program that was built without it.

/// A substrate: a conversation on a server.
pub(crate) const SUBSTRATE: &str = "guilde-mcp";
/// An executor: an operator of a server.
pub(crate) const EXECUTOR: &str = "db-operator";
/// A state store on a server.
pub(crate) const STATE: &str = "mcp-kv";

/// Registers the kinds with a refusal that names the missing feature.
#[cfg(not(feature = "mcp"))]
pub(crate) fn register_unavailable(
    registry: &mut quorate_kernel::registry::Registry,
) -> Result<(), quorate_kernel::registry::Duplicate> {
    use quorate_kernel::ports::executor::ConfigError;
    fn missing(kind: &str) -> ConfigError {
        ConfigError::for_key(
            "kind",
            format!("`{kind}` speaks to an MCP server, and this program was built without that"),
        )
        .with_help("build it with `cargo install --path crates/quorate-cli --features mcp`")
    }
    registry.unavailable_executor(EXECUTOR, |_| Err(ConfigError { key: None, ..missing(EXECUTOR) }))?;
    registry.substrate(SUBSTRATE, |_| Err(missing(SUBSTRATE)))?;
    registry.state(STATE, |_| Err(missing(STATE)))
}
