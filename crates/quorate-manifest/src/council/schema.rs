//! The keys of `council.yaml` as written, and their JSON Schema. `load.rs` makes a council of them.

#![expect(dead_code, reason = "some keys are read in file order, or have no effect")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::policy::Row;
use crate::config::{Block, Fallback, Named};
use crate::duration;
use crate::pattern::SOMETHING;

/// The members and protocol of a council.
#[derive(Deserialize, JsonSchema)]
#[schemars(title = "council.yaml", deny_unknown_fields)]
pub(crate) struct Council {
    /// The version of the format; there is one.
    #[schemars(schema_with = "version", default)]
    pub version: Option<IgnoredAny>,
    /// The executor of the members without one of their own; the default is the rubric.
    pub runtime: Option<Runtime>,
    /// At least three. Each judges independently first, then after reading the others' answers.
    #[schemars(extend("minItems" = 3))]
    pub deliberators: Vec<Deliberator>,
    /// The policy that derives the verdict from the deliberators' positions.
    pub policy: Option<Policy>,
    /// The member that closes the deliberation.
    pub adjudicator: Adjudicator,
    /// The number of rounds, and the input of round 2.
    pub protocol: Option<Protocol>,
    /// What decides on tiers.
    pub tier_classifier: Option<TierClassifier>,
    /// The tiers of artifacts: for each tier, globs by artifact type; or the path of a YAML file with them.
    #[schemars(with = "Option<RulesOrFile>")]
    pub tier_rules: Option<IgnoredAny>,
    /// The log of verdicts, and the patterns to redact.
    pub logging: Option<Logging>,
    /// The paths that a sweep walks.
    pub watch: Option<Watch>,
}

/// The name of a policy, or a table.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum Policy {
    /// `lenient`, which is also called `seed`, or `strict`.
    Named(#[schemars(extend("enum" = ["lenient", "seed", "strict"]))] String),
    /// A table. The first row whose conditions hold decides.
    Own(#[schemars(length(min = 1))] Vec<Row>),
}

fn version(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["1", "1.0", 1, null] })
}

/// The executor of the members. Other keys are passed to it.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Runtime {
    /// The kind, for example `claude_cli` or `llm`.
    #[serde(rename = "type")]
    #[schemars(with = "String", regex(pattern = SOMETHING))]
    pub kind: Named,
    /// The deadline of a member in seconds.
    #[schemars(extend("examples" = [180]))]
    pub timeout_seconds: Option<f64>,
    /// The deadline of a member, for example `3m`.
    #[serde(default, deserialize_with = "duration::optional")]
    #[schemars(schema_with = "anything")]
    pub timeout: Option<Duration>,
    /// The number of retries after a failure.
    #[schemars(range(min = 0, max = 100))]
    pub retries: Option<u32>,
    /// Executors that stand in when its service fails, in the order in which they are asked.
    #[schemars(with = "Option<Vec<String>>", extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = SOMETHING)))]
    pub fallback: Option<Fallback>,
    #[serde(rename = "$block")]
    #[schemars(flatten, with = "Map<String, Value>")]
    pub block: Block,
}

/// No constraint: the loader refuses an invalid value with its own code.
fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "examples": ["3m"] })
}

/// A deliberator.
#[derive(Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Deliberator {
    /// The id, unique in the council.
    #[schemars(with = "String", length(min = 1, max = 64), regex(pattern = crate::pattern::DELIBERATOR))]
    pub id: Arc<str>,
    /// The path of the prompt, or a built-in prompt such as `builtin:skeptic`.
    #[schemars(regex(pattern = SOMETHING), extend("examples" = ["prompts/skeptic.md", "builtin:skeptic"]))]
    pub prompt: String,
    /// The weight of its block, for policies with `block_weight`.
    #[schemars(range(min = 0.0))]
    pub weight: Option<f64>,
    /// Documents with criteria for the deliberator.
    #[schemars(inner(regex(pattern = SOMETHING)))]
    pub context_refs: Option<Vec<String>>,
    /// The executor of this deliberator, with its settings; it excludes `executor` and `model`.
    pub runtime: Option<Runtime>,
    /// The executor of this deliberator by its name: a table of quorate.toml, a preset, a preset with a model, or an address
    /// with a model. `--executor` and the member's table in quorate.toml come before it, the council's `runtime` after it.
    #[schemars(with = "Option<String>", regex(pattern = SOMETHING), extend("examples" = ["claude", "openai:gpt-5.5", "http://localhost:8080/v1#qwen3"]))]
    pub executor: Option<Named>,
    /// The model, in place of the executor's own.
    #[schemars(with = "Option<String>", regex(pattern = SOMETHING))]
    pub model: Option<Named>,
    /// Executors that stand in when its service fails, in place of the executor's own list.
    #[schemars(with = "Option<Vec<String>>", extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = SOMETHING)))]
    pub fallback: Option<Fallback>,
    /// How many times it is asked for each answer; the answer that most samples agree with counts.
    #[schemars(with = "Option<u8>", range(min = 1, max = 9))]
    pub samples: Option<u32>,
}

/// The member that closes the deliberation.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Adjudicator {
    /// The path of the prompt, or `builtin:adjudicator`.
    #[schemars(regex(pattern = SOMETHING), extend("examples" = ["builtin:adjudicator"]))]
    pub prompt: String,
    /// The name of the policy, in place of the top-level key; a mapping, as in the public tool, means `strict`.
    #[schemars(schema_with = "verdict_policy", default)]
    pub verdict_policy: Option<Value>,
    /// The executor of the adjudicator, with its settings; it excludes `executor` and `model`.
    pub runtime: Option<Runtime>,
    /// The executor of the adjudicator by its name: a table of quorate.toml, a preset, a preset with a model, or an address
    /// with a model. `--executor` and the member's table in quorate.toml come before it, the council's `runtime` after it.
    #[schemars(with = "Option<String>", regex(pattern = SOMETHING), extend("examples" = ["claude", "openai:gpt-5.5", "http://localhost:8080/v1#qwen3"]))]
    pub executor: Option<Named>,
    /// The model, in place of the executor's own.
    #[schemars(with = "Option<String>", regex(pattern = SOMETHING))]
    pub model: Option<Named>,
    /// Executors that stand in when its service fails, in place of the executor's own list.
    #[schemars(with = "Option<Vec<String>>", extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = SOMETHING)))]
    pub fallback: Option<Fallback>,
    /// How many times it is asked for each answer; the answer that most samples agree with counts.
    #[schemars(with = "Option<u8>", range(min = 1, max = 9))]
    pub samples: Option<u32>,
}

fn verdict_policy(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "enum": ["lenient", "seed", "strict", null] }, { "type": "object" }] })
}

/// The number of rounds, and the input of round 2.
#[derive(Default, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Protocol {
    /// One round of independent answers, or two.
    #[schemars(range(min = 1, max = 2))]
    pub rounds: Option<u8>,
    /// The part of round 1 that deliberators read in round 2: verdicts (or true), findings, none (or false).
    #[schemars(schema_with = "cross_read", default)]
    pub cross_read: Option<Value>,
    /// End as INCOMPLETE as soon as one deliberator fails.
    pub fail_fast_on_runtime_error: Option<bool>,
    /// With fewer valid answers the verdict is INCOMPLETE; the default is 3.
    #[schemars(with = "Option<u32>", range(min = 1))]
    pub min_deliberators_for_verdict: Option<usize>,
}

fn cross_read(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["verdicts", "findings", "none", true, false, null] })
}

/// What decides on tiers.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct TierClassifier {
    /// What decides: the rules, the council's executor (`model`), or the executor where no rule matches (`hybrid`).
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["rules", "model", "hybrid", null]), with = "Option<String>")]
    pub kind: Option<String>,
    /// The tier of artifacts that match no rule, with `type: rules`. A sweep reviews all artifacts of tier 1, none of tier 2, and one in five of tier 3.
    #[schemars(range(min = 1, max = 3))]
    pub default_tier: Option<u8>,
}

/// The rules, or the path of their file.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
pub(crate) enum RulesOrFile {
    /// The rules.
    Here(TierRules),
    /// A path relative to this file.
    File(#[schemars(regex(pattern = SOMETHING))] String),
}

/// The tiers of artifacts.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct TierRules {
    /// Always reviewed.
    pub tier_1: Option<Globs>,
    /// Never reviewed by a sweep.
    pub tier_2: Option<Globs>,
    /// One in five is reviewed.
    pub tier_3: Option<Globs>,
}

/// A file of rules that has them below `tier_rules`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct RulesFile {
    pub tier_rules: Option<TierRules>,
}

/// Globs by artifact type, or a plain list.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Globs {
    /// By type.
    ByType(BTreeMap<String, Vec<Glob>>),
    /// A plain list.
    List(Vec<Glob>),
}

/// A glob.
#[derive(JsonSchema)]
#[schemars(inline, transparent)]
pub(crate) struct Glob(#[schemars(regex(pattern = SOMETHING))] pub String);

/// The log of verdicts, and the patterns to redact.
#[derive(Default, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Logging {
    /// The log, relative to this file.
    #[schemars(with = "Option<String>", regex(pattern = SOMETHING))]
    pub log_path: Option<PathBuf>,
    /// Accepted for other tools; Quorate writes nothing there.
    #[schemars(schema_with = "anything_at_all", default)]
    pub archive_dir: Option<IgnoredAny>,
    /// The form of the lines; the only one is rule_35_v2.
    #[schemars(extend("const" = "rule_35_v2"), with = "Option<String>", default)]
    pub log_format: Option<String>,
    /// Regular expressions; matches are replaced before anything is recorded.
    pub redact_patterns: Option<Vec<String>>,
}

fn anything_at_all(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

/// The paths that a sweep walks.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Watch {
    /// Files and directories, relative to this file.
    #[schemars(inner(regex(pattern = SOMETHING)))]
    pub paths: Option<Vec<String>>,
    /// Tiers by glob, which override the rules.
    #[schemars(schema_with = "overrides", default)]
    pub tier_overrides: Option<IgnoredAny>,
}

fn overrides(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["object", "null"],
        "additionalProperties": { "type": "integer", "minimum": 1, "maximum": 3 }
    })
}

#[cfg(test)]
mod tests;
