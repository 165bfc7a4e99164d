//! `assembly.workspace/v1`, ASSEMBLY.md (AIP-24): the manifest as written. [`load`](load()) merges its chain into a [`Resolved`].

pub mod audit;
pub(crate) mod check_context;
pub mod defaults;
pub mod display;
mod inherited_minimums;
pub mod load;
pub(crate) mod match_modes;
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
            "description": "A manifest without a parent needs a mode: advisory, voting, peer or hierarchy.",
            "if": {"not": {"required": ["extends"]}},
            "then": {"required": ["mode"]}
        },
        {
            "description": "The heuristic periodic needs an interval.",
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
    /// The display name.
    #[schemars(length(min = 1, max = 200), extend("examples" = ["Release Board"]))]
    pub title: String,
    /// One paragraph: the purpose, the audience, the reason for the mode.
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
    /// The consumers that the view adapts the assembly for. Not inherited; each has to exist.
    #[serde(default)]
    #[schemars(inner(
        regex(pattern = pattern::CONSUMER)
    ), extend("uniqueItems" = true, "examples" = [["ws://operators/lead-researcher"]]))]
    pub applies_to: Option<Vec<String>>,
    /// How the members decide together. Once an ancestor has set it, no view may change it.
    pub mode: Option<Mode>,
    /// The members. Merged by id along the chain, field by field.
    #[serde(default)]
    pub members: Option<Vec<members::Member>>,
    /// How the members' outputs are combined.
    pub synthesis: Option<synthesis::Synthesis>,
    /// Words or patterns that no outcome may contain. A view may add some, but not remove any.
    #[schemars(inner(length(min = 1, max = 200)), extend("uniqueItems" = true, "examples" = [["warmth", "honesty"]]))]
    pub locked_traits: Option<Vec<String>>,
    /// How outcomes are matched against the locked traits; the default is substring. A view may only tighten it.
    pub match_mode: Option<MatchMode>,
    /// Which records are kept, and whether they are signed.
    pub audit: Option<audit::Audit>,
    /// The identity that the assembly adapts, or that its outcomes are attributed to.
    #[schemars(
        regex(pattern = pattern::IDENTITY)
    )]
    pub identity: Option<String>,
    /// The governance file, with approvals, keys and retention: a path or a ws:// ref.
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
    /// When the assembly is convened automatically.
    pub defaults: Option<defaults::Defaults>,
    /// How the assembly is shown.
    pub display: Option<display::Display>,
    /// Data of other tools, each below its own key. It never changes the meaning of other fields.
    pub metadata: Option<Map<String, Value>>,
}
