//! The kinds that need a feature, and their refusal by a program that was built without it.

use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::registry::{Duplicate, Registry, add};

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

/// An executor: a model behind an HTTP API.
pub(crate) const LLM: &str = "llm";
/// The default executor: rules that check a text.
pub(crate) const RUBRIC: &str = "rubric";

/// An executor: a command that reads a prompt and prints its answer.
pub(crate) const AGENT_CLI: &str = "agent-cli";

/// A kind that needs a feature.
#[derive(Clone, Copy)]
pub(crate) struct OptionalKind {
    kind: &'static str,
    what: &'static str,
    feature: &'static str,
    is_built: bool,
}

macro_rules! optional {
    ($feature:literal, $what:literal, $kind:expr) => {
        OptionalKind { kind: $kind, what: $what, feature: $feature, is_built: cfg!(feature = $feature) }
    };
}

const EXECUTORS: [OptionalKind; 5] = [
    optional!("agent-cli", "runs command-line tools", AGENT_CLI),
    optional!("llm", "asks models over HTTP", LLM),
    optional!("rubric", "checks texts by rule where no executor is configured", RUBRIC),
    optional!("mcp", "speaks to an MCP server", MCP_EXECUTOR),
    optional!("nats", "is on NATS servers", REMOTE),
];
const SUBSTRATES: [OptionalKind; 3] = [
    optional!("mcp", "speaks to an MCP server", MCP_SUBSTRATE),
    optional!("postgres", "is in a Postgres database", POSTGRES),
    optional!("nats", "is on NATS servers", NATS_SUBSTRATE),
];
const STATES: [OptionalKind; 3] = [
    optional!("mcp", "speaks to an MCP server", MCP_STATE),
    optional!("postgres", "is in a Postgres database", POSTGRES),
    optional!("nats", "is on NATS servers", NATS_STATE),
];

/// Registers the kinds that this program was built without, with a refusal that names the feature.
pub(crate) fn register_unavailable(registry: &mut Registry) -> Result<(), Duplicate> {
    let missing = |kinds: &'static [OptionalKind]| kinds.iter().filter(|optional| !optional.is_built);
    for optional in missing(&EXECUTORS) {
        registry.unavailable_executor(optional.kind, move |_| Err(optional.refuse_executor()))?;
    }
    for optional in missing(&SUBSTRATES) {
        add(&mut registry.substrates, optional.kind, move |_| Err(optional.refuse()))?;
    }
    for optional in missing(&STATES) {
        add(&mut registry.states, optional.kind, move |_| Err(optional.refuse()))?;
    }
    Ok(())
}

/// The refusal of an executor that this program was built without.
#[cfg(not(all(feature = "agent-cli", feature = "llm", feature = "rubric")))]
pub(crate) fn missing_executor(kind: &str) -> ConfigError {
    let optional = EXECUTORS.into_iter().find(|optional| optional.kind == kind);
    optional.expect("each executor with a feature is listed").refuse_executor()
}

impl OptionalKind {
    fn refuse(self) -> ConfigError {
        let OptionalKind { kind, what, feature, .. } = self;
        let message = format!("`{kind}` {what}, and this program was built without that");
        let help = format!("build it with `cargo install --path crates/quorate-cli --features {feature}`");
        ConfigError::for_key("kind", message).with_help(help)
    }

    /// The kind of an executor may be named by other keys than `kind`.
    fn refuse_executor(self) -> ConfigError {
        ConfigError { key: None, ..self.refuse() }
    }
}
