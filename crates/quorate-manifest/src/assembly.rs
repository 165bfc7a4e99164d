//! `assembly.workspace/v1`, ASSEMBLY.md (AIP-24): the manifest as written. `assembly/chain.rs` and what stands beside
//! it make it a resolved one.

pub mod audit;
pub(crate) mod check_context;
pub mod defaults;
pub mod display;
mod inherited_minimums;
pub mod load;
pub mod members;
pub mod merge;
pub mod mode;
pub mod resolved;
pub mod synthesis;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::pattern;

pub use load::load;
pub use mode::{MatchMode, Mode};
pub use resolved::Resolved;

/// A named group of agents that decides together in one of four ways, or a view that adapts one.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(
    title = "ASSEMBLY.md",
    extend("allOf" = [
        {
            "description": "A manifest that applies to a consumer is a view, and a view extends a parent.",
            "if": {"required": ["appliesTo"], "properties": {"appliesTo": {"type": "array", "minItems": 1}}},
            "then": {"required": ["extends"]}
        },
        {
            "description": "Without a parent to inherit it from, a manifest says its mode: advisory, voting, peer or hierarchy.",
            "if": {"not": {"required": ["extends"]}},
            "then": {"required": ["mode"]}
        },
        {
            "description": "What is triggered periodically needs an interval.",
            "if": {
                "required": ["defaults"],
                "properties": {"defaults": {
                    "required": ["triggerHeuristic"],
                    "properties": {"triggerHeuristic": {"const": "periodic"}}
                }}
            },
            "then": {"properties": {"defaults": {"required": ["triggerInterval_ms"]}}}
        }
    ])
)]
pub struct Assembly {
    /// The doctype, assembly.workspace/v1.
    #[schemars(extend("const" = "assembly.workspace/v1"))]
    pub schema: String,
    /// The assembly's or view's own id, in kebab case.
    #[schemars(
        length(min = 2, max = 96),
        regex(pattern = pattern::KEBAB),
        extend("examples" = ["release-board"])
    )]
    pub name: String,
    /// What people call it.
    #[schemars(length(min = 1, max = 200), extend("examples" = ["Release Board"]))]
    pub title: String,
    /// One paragraph: what it is for, whom it serves, why this mode.
    #[schemars(length(min = 1, max = 2000))]
    pub description: String,
    /// The version of this manifest, as in semantic versioning.
    #[schemars(
        regex(pattern = pattern::VERSION),
        extend("examples" = ["1.0.0"])
    )]
    pub version: String,
    /// The path of the parent ASSEMBLY.md, relative to this file. With it the manifest is a view, without it a root.
    #[schemars(
        length(min = 1, max = 512),
        regex(pattern = pattern::ASSEMBLY_PATH),
        extend("examples" = ["../../ASSEMBLY.md"])
    )]
    pub extends: Option<String>,
    /// Which consumers a view adapts the assembly for. Not inherited; each has to exist.
    #[serde(default)]
    #[schemars(inner(
        regex(pattern = pattern::CONSUMER)
    ), extend("uniqueItems" = true, "examples" = [["ws://operators/lead-researcher"]]))]
    pub applies_to: Option<Vec<String>>,
    /// How the members decide together. Once an ancestor has set it, no view may change it.
    pub mode: Option<Mode>,
    /// Who decides. Merged by id along the chain, field by field.
    #[serde(default)]
    pub members: Option<Vec<members::Member>>,
    /// How the members' outputs are combined.
    pub synthesis: Option<synthesis::Synthesis>,
    /// What no outcome may contain. Views add to it and never take away.
    #[schemars(inner(length(min = 1, max = 200)), extend("uniqueItems" = true, "examples" = [["warmth", "honesty"]]))]
    pub locked_traits: Option<Vec<String>>,
    /// How outcomes are held against the locked traits; substring unless said. Views may only tighten it.
    pub match_mode: Option<MatchMode>,
    /// What is kept, and how it is signed.
    pub audit: Option<audit::Audit>,
    /// The identity that the assembly modulates, or that its outcomes are attributed to.
    #[schemars(
        regex(pattern = pattern::IDENTITY)
    )]
    pub identity: Option<String>,
    /// The policy that approvals, keys and retention come from: a path or a ws:// ref.
    #[schemars(length(min = 1, max = 512))]
    pub governance: Option<String>,
    /// The work workspace that the outcomes attach to.
    #[schemars(
        regex(pattern = pattern::WORK)
    )]
    pub work: Option<String>,
    /// The operator that runs the assembly.
    #[schemars(
        regex(pattern = pattern::OPERATOR)
    )]
    pub executor: Option<String>,
    /// When the assembly is convened without being asked.
    pub defaults: Option<defaults::Defaults>,
    /// How the assembly is shown.
    pub display: Option<display::Display>,
    /// What others need, below a name of theirs. It never changes what a field of the format means.
    pub metadata: Option<Map<String, Value>>,
}
