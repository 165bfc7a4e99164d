//! Forms of `quorate.toml` that the JSON Schema tells apart, and that one type reads.

#![expect(dead_code, reason = "only the schemas of these types are used")]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::Ledger;
use crate::pattern::SOMETHING;

/// A path relative to this file, or a table.
#[derive(JsonSchema)]
#[schemars(inline, untagged)]
pub(crate) enum LedgerOrPath {
    /// The ledger, relative to this file.
    Path(#[schemars(regex(pattern = SOMETHING), extend("examples" = [".quorate/ledger.db"]))] String),
    /// Location, witness and retention.
    Table(Ledger),
}

/// The source of a secret key: exactly one of the three keys.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct KeySource {
    /// A file, relative to this one.
    #[schemars(regex(pattern = SOMETHING))]
    pub file: Option<String>,
    /// A variable of the environment.
    #[schemars(regex(pattern = SOMETHING))]
    pub env: Option<String>,
    /// A program and its arguments, run without a shell, which prints the key.
    #[schemars(extend("minItems" = 1, "examples" = [["pass", "show", "quorate"]]))]
    pub command: Option<Vec<String>>,
}

/// An MCP server: `url` with `token` (the name of the variable with the token), or `command` with `args`.
#[derive(JsonSchema)]
pub(crate) struct Server {
    #[schemars(flatten)]
    pub block: Map<String, Value>,
}

/// The executors of a runtime's participants.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Runtime {
    /// The executor of all participants.
    #[schemars(regex(pattern = SOMETHING))]
    pub executor: Option<String>,
    /// Executors that stand in for it when its service fails.
    #[schemars(extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = SOMETHING)))]
    pub fallback: Option<Vec<String>>,
    /// The executors of single participants, by id.
    pub participants: Option<BTreeMap<String, MemberExecutor>>,
}

/// What one member of a council is asked through.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct CouncilMember {
    /// The name of the executor; the default is the council's.
    #[schemars(regex(pattern = SOMETHING))]
    pub executor: Option<String>,
    /// The model, in place of the executor's own.
    #[schemars(regex(pattern = SOMETHING))]
    pub model: Option<String>,
    /// Executors that stand in when its service fails, in place of the executor's own list.
    #[schemars(extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = SOMETHING)))]
    pub fallback: Option<Vec<String>>,
    /// How many times it is asked for each answer; the answer that most samples agree with counts.
    #[schemars(range(min = 1, max = 9))]
    pub samples: Option<u8>,
}

/// The executors of an assembly's members.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Assembly {
    /// The executor of all members.
    #[schemars(regex(pattern = SOMETHING))]
    pub executor: Option<String>,
    /// Executors that stand in for it when its service fails.
    #[schemars(extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = SOMETHING)))]
    pub fallback: Option<Vec<String>>,
    /// How many times each member is asked for each answer.
    #[schemars(range(min = 1, max = 9))]
    pub samples: Option<u8>,
    /// The executors of single members, by id.
    pub members: Option<BTreeMap<String, AssemblyMember>>,
}

/// The executor of one member of an assembly.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct AssemblyMember {
    /// The name of the executor.
    #[schemars(regex(pattern = SOMETHING))]
    pub executor: Option<String>,
    /// Executors that stand in when its service fails, in place of the executor's own list.
    #[schemars(extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = SOMETHING)))]
    pub fallback: Option<Vec<String>>,
    /// How many times it is asked for each answer; the answer that most samples agree with counts.
    #[schemars(range(min = 1, max = 9))]
    pub samples: Option<u8>,
}

/// The executor of one participant.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct MemberExecutor {
    /// The name of the executor.
    #[schemars(regex(pattern = SOMETHING))]
    pub executor: Option<String>,
    /// Executors that stand in when its service fails, in place of the executor's own list.
    #[schemars(extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = SOMETHING)))]
    pub fallback: Option<Vec<String>>,
}
