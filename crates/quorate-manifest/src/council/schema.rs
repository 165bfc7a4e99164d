//! `council.yaml` as its JSON Schema has it. The reader beside this file says more, and in better words; a test holds
//! the two against each other.

#![expect(dead_code, reason = "only the schemas of these types are used")]

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

/// Who deliberates on an artifact, and how.
#[derive(JsonSchema)]
#[schemars(title = "council.yaml", deny_unknown_fields)]
pub(crate) struct Council {
    /// The version of the format; there is one.
    #[schemars(schema_with = "version", default)]
    pub version: Option<Value>,
    /// How members are asked; the rubric unless said.
    pub runtime: Option<Runtime>,
    /// Three or more who judge, each by itself and then having read the others.
    #[schemars(extend("minItems" = 3))]
    pub deliberators: Vec<Deliberator>,
    /// Who closes the deliberation.
    pub adjudicator: Adjudicator,
    /// How many rounds there are, and what round 2 sees.
    pub protocol: Option<Protocol>,
    /// What tier an artifact has that no rule names.
    pub tier_classifier: Option<TierClassifier>,
    /// Which artifacts matter how much: by tier, globs by type; or the path of a YAML file that says so.
    pub tier_rules: Option<RulesOrFile>,
    /// Where verdicts are logged, and what is scrubbed.
    pub logging: Option<Logging>,
    /// What a sweep walks.
    pub watch: Option<Watch>,
}

fn version(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["1", "1.0", 1, null] })
}

/// How members are asked. Further keys are the executor's.
#[derive(JsonSchema)]
#[schemars(inline)]
pub(crate) struct Runtime {
    /// The kind, for example `claude_cli` or `anthropic_api`.
    #[schemars(rename = "type", regex(pattern = crate::pattern::SOMETHING))]
    pub kind: String,
    /// How long one member may take, in seconds.
    #[schemars(extend("examples" = [180]))]
    pub timeout_seconds: Option<f64>,
    /// How long one member may take, for example `3m`.
    #[schemars(schema_with = "anything", default)]
    pub timeout: Option<Value>,
    /// How often a failure is tried again.
    #[schemars(range(min = 0, max = 100))]
    pub retries: Option<u32>,
    #[schemars(flatten)]
    pub block: Map<String, Value>,
}

/// What has a code of its own when it is wrong.
fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "examples": ["3m"] })
}

/// One who judges.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Deliberator {
    /// Its id, unique in the council.
    #[schemars(length(min = 1, max = 64), regex(pattern = crate::pattern::DELIBERATOR))]
    pub id: String,
    /// The path of its prompt, or `builtin:skeptic` and the like.
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = ["prompts/skeptic.md", "builtin:skeptic"]))]
    pub prompt: String,
    /// A note; verdicts count heads.
    #[schemars(range(min = 0.0))]
    pub weight: Option<f64>,
    /// Documents that it judges by.
    #[schemars(inner(regex(pattern = crate::pattern::SOMETHING)))]
    pub context_refs: Option<Vec<String>>,
}

/// Who closes the deliberation.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Adjudicator {
    /// The path of its prompt, or `builtin:adjudicator`.
    #[schemars(regex(pattern = crate::pattern::SOMETHING), extend("examples" = ["builtin:adjudicator"]))]
    pub prompt: String,
    /// How verdicts follow from answers: `seed` or `strict`; a mapping, as the public tool has it, is `strict`.
    #[schemars(schema_with = "policy", default)]
    pub verdict_policy: Option<Value>,
}

fn policy(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "enum": ["seed", "strict", null] }, { "type": "object" }] })
}

/// How many rounds there are, and what round 2 sees.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Protocol {
    /// One round of independent answers, or two.
    #[schemars(range(min = 1, max = 2))]
    pub rounds: Option<u8>,
    /// What round 2 sees of round 1: verdicts (or true), findings, none (or false).
    #[schemars(schema_with = "cross_read", default)]
    pub cross_read: Option<Value>,
    /// End as INCOMPLETE as soon as one deliberator fails.
    pub fail_fast_on_runtime_error: Option<bool>,
    /// Fewer valid answers than this give INCOMPLETE; 3 unless said.
    #[schemars(range(min = 1))]
    pub min_deliberators_for_verdict: Option<u32>,
}

fn cross_read(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["verdicts", "findings", "none", true, false, null] })
}

/// What tier an artifact has that no rule names.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct TierClassifier {
    /// How tiers are found; there is one way.
    #[schemars(rename = "type", extend("const" = "rules"), with = "Option<String>", default)]
    pub kind: Option<String>,
    /// 1 always reviewed, 2 never by a sweep, 3 one in five.
    #[schemars(range(min = 1, max = 3))]
    pub default_tier: Option<u8>,
}

/// The rules, or where they stand.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
pub(crate) enum RulesOrFile {
    /// Here.
    Here(TierRules),
    /// In a file, relative to this one.
    File(#[schemars(regex(pattern = crate::pattern::SOMETHING))] String),
}

/// Which artifacts matter how much.
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

/// Globs by the type that they make an artifact of, or a plain list.
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

/// Where verdicts are logged, and what is scrubbed.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Logging {
    /// The log, relative to this file.
    #[schemars(regex(pattern = crate::pattern::SOMETHING))]
    pub log_path: Option<String>,
    /// Read for other tools; nothing is written there.
    #[schemars(schema_with = "anything_at_all", default)]
    pub archive_dir: Option<Value>,
    /// The form of the lines; there is one.
    #[schemars(extend("const" = "rule_35_v2"), with = "Option<String>", default)]
    pub log_format: Option<String>,
    /// Regular expressions; what they match is replaced before anything is recorded.
    pub redact_patterns: Option<Vec<String>>,
}

fn anything_at_all(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

/// What a sweep walks.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct Watch {
    /// Files and directories, relative to this file.
    #[schemars(inner(regex(pattern = crate::pattern::SOMETHING)))]
    pub paths: Option<Vec<String>>,
    /// By glob, the tier, whatever the rules say.
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
