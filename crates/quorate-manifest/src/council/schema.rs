//! The JSON Schema of `council.yaml`. The loader gives better messages; a test checks that the two agree.

#![expect(dead_code, reason = "only the schemas of these types are used")]

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use super::policy::Row;

/// The members and protocol of a council.
#[derive(JsonSchema)]
#[schemars(title = "council.yaml", deny_unknown_fields)]
pub(crate) struct Council {
    /// The version of the format; there is one.
    #[schemars(schema_with = "version", default)]
    pub version: Option<Value>,
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
    pub tier_rules: Option<RulesOrFile>,
    /// The log of verdicts, and the patterns to redact.
    pub logging: Option<Logging>,
    /// The paths that a sweep walks.
    pub watch: Option<Watch>,
}

/// The name of a policy, or a table.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
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
#[derive(JsonSchema)]
#[schemars(inline)]
pub(crate) struct Runtime {
    /// The kind, for example `claude_cli` or `llm`.
    #[schemars(rename = "type", regex(pattern = crate::pattern::SOMETHING))]
    pub kind: String,
    /// The deadline of a member in seconds.
    #[schemars(extend("examples" = [180]))]
    pub timeout_seconds: Option<f64>,
    /// The deadline of a member, for example `3m`.
    #[schemars(schema_with = "anything", default)]
    pub timeout: Option<Value>,
    /// The number of retries after a failure.
    #[schemars(range(min = 0, max = 100))]
    pub retries: Option<u32>,
    /// Executors that stand in when its service fails, in the order in which they are asked.
    #[schemars(extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = crate::pattern::SOMETHING)))]
    pub fallback: Option<Vec<String>>,
    #[schemars(flatten)]
    pub block: Map<String, Value>,
}

/// No constraint: the loader refuses an invalid value with its own code.
fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "examples": ["3m"] })
}

/// A deliberator.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Deliberator {
    /// The id, unique in the council.
    #[schemars(length(min = 1, max = 64), regex(pattern = crate::pattern::DELIBERATOR))]
    pub id: String,
    /// The path of the prompt, or a built-in prompt such as `builtin:skeptic`.
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = ["prompts/skeptic.md", "builtin:skeptic"]))]
    pub prompt: String,
    /// The weight of its block, for policies with `block_weight`.
    #[schemars(range(min = 0.0))]
    pub weight: Option<f64>,
    /// Documents with criteria for the deliberator.
    #[schemars(inner(regex(pattern = crate::pattern::SOMETHING)))]
    pub context_refs: Option<Vec<String>>,
    /// The executor of this deliberator, with its settings; it excludes `executor` and `model`.
    pub runtime: Option<Runtime>,
    /// The executor of this deliberator by its name: a table of quorate.toml, a preset, a preset with a model, or an address
    /// with a model. `--executor` and the member's table in quorate.toml come before it, the council's `runtime` after it.
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = ["claude", "openai:gpt-5.5", "http://localhost:8080/v1#qwen3"]))]
    pub executor: Option<String>,
    /// The model, in place of the executor's own.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub model: Option<String>,
    /// Executors that stand in when its service fails, in place of the executor's own list.
    #[schemars(extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = crate::pattern::SOMETHING)))]
    pub fallback: Option<Vec<String>>,
    /// How many times it is asked for each answer; the answer that most samples agree with counts.
    #[schemars(range(min = 1, max = 9))]
    pub samples: Option<u8>,
}

/// The member that closes the deliberation.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Adjudicator {
    /// The path of the prompt, or `builtin:adjudicator`.
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = ["builtin:adjudicator"]))]
    pub prompt: String,
    /// The name of the policy, in place of the top-level key; a mapping, as in the public tool, means `strict`.
    #[schemars(schema_with = "verdict_policy", default)]
    pub verdict_policy: Option<Value>,
    /// The executor of the adjudicator, with its settings; it excludes `executor` and `model`.
    pub runtime: Option<Runtime>,
    /// The executor of the adjudicator by its name: a table of quorate.toml, a preset, a preset with a model, or an address
    /// with a model. `--executor` and the member's table in quorate.toml come before it, the council's `runtime` after it.
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = ["claude", "openai:gpt-5.5", "http://localhost:8080/v1#qwen3"]))]
    pub executor: Option<String>,
    /// The model, in place of the executor's own.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub model: Option<String>,
    /// Executors that stand in when its service fails, in place of the executor's own list.
    #[schemars(extend("maxItems" = 8, "uniqueItems" = true), inner(regex(pattern = crate::pattern::SOMETHING)))]
    pub fallback: Option<Vec<String>>,
    /// How many times it is asked for each answer; the answer that most samples agree with counts.
    #[schemars(range(min = 1, max = 9))]
    pub samples: Option<u8>,
}

fn verdict_policy(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "enum": ["lenient", "seed", "strict", null] }, { "type": "object" }] })
}

/// The number of rounds, and the input of round 2.
#[derive(JsonSchema)]
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
    #[schemars(range(min = 1))]
    pub min_deliberators_for_verdict: Option<u32>,
}

fn cross_read(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["verdicts", "findings", "none", true, false, null] })
}

/// What decides on tiers.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct TierClassifier {
    /// What decides: the rules, the council's executor (`model`), or the executor where no rule matches (`hybrid`).
    #[schemars(rename = "type", extend("enum" = ["rules", "model", "hybrid", null]), with = "Option<String>", default)]
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
    File(#[schemars(regex(pattern = crate::pattern::SOMETHING))] String),
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
pub(crate) struct Glob(#[schemars(regex(pattern = crate::pattern::SOMETHING))] pub String);

/// The log of verdicts, and the patterns to redact.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Logging {
    /// The log, relative to this file.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub log_path: Option<String>,
    /// Accepted for other tools; Quorate writes nothing there.
    #[schemars(schema_with = "anything_at_all", default)]
    pub archive_dir: Option<Value>,
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
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Watch {
    /// Files and directories, relative to this file.
    #[schemars(inner(regex(pattern = crate::pattern::SOMETHING)))]
    pub paths: Option<Vec<String>>,
    /// Tiers by glob, which override the rules.
    #[schemars(schema_with = "overrides", default)]
    pub tier_overrides: Option<BTreeMap<String, u8>>,
}

fn overrides(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["object", "null"],
        "additionalProperties": { "type": "integer", "minimum": 1, "maximum": 3 }
    })
}

#[cfg(test)]
mod tests;
