//! `playbooks/v1` (AIP-12): the manifest as written. The body is the prompt fragment.

pub mod catalog;
pub mod edit;
pub mod evidence;
pub mod history;
pub mod load;
pub mod selector;
pub mod targets;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::pattern;

/// A prompt fragment that is woven into an operator's persona.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(
    title = "PLAYBOOK.md",
    extend("allOf" = [
        {
            "description": "A block replacement names the block that it replaces.",
            "if": {"properties": {"kind": {"const": "block-replacement"}}, "required": ["kind"]},
            "then": {"required": ["block"]}
        },
        {
            "description": "A playbook says whom it is for, by selector or by targets.",
            "anyOf": [{"required": ["targets"]}, {"required": ["selector"]}]
        }
    ])
)]
pub struct Playbook {
    /// The doctype, playbooks/v1.
    #[schemars(extend("const" = "playbooks/v1"))]
    pub schema: String,
    /// The playbook's id, in kebab case; unique in the workspace.
    #[schemars(
        length(min = 2, max = 80),
        regex(pattern = pattern::KEBAB),
        extend("examples" = ["quote-evidence-inline"])
    )]
    pub slug: String,
    /// One sentence: what the fragment does.
    #[schemars(length(min = 1, max = 200))]
    pub title: String,
    /// The path of a file with code that defines the playbook. Quorate loads no code and uses only the body.
    pub entry: Option<String>,
    /// The targets, by kind and name. Ignored if there is a selector.
    #[schemars(extend("minItems" = 1, "deprecated" = true))]
    pub targets: Option<Vec<targets::Target>>,
    /// The operators that the playbook is for.
    pub selector: Option<selector::Selector>,
    /// Whether the fragment is added to the persona or replaces a block of it.
    pub kind: Weaving,
    /// The block to replace.
    #[schemars(
        regex(pattern = pattern::BLOCK),
        extend("examples" = ["voice", "boundaries", "backstory", "sign-off"])
    )]
    pub block: Option<String>,
    /// From 0 to 100; higher priorities are woven first; the default is 50.
    #[schemars(range(min = 0, max = 100))]
    pub priority: Option<u8>,
    /// The locked traits that the author does not want to change; may be empty.
    #[schemars(inner(
        length(min = 2, max = 64),
        regex(pattern = pattern::WORD)
    ), extend("examples" = [["warmth", "honesty"]]))]
    pub lock_check: Vec<String>,
    /// The lifetime after the last change, as an ISO 8601 duration.
    #[schemars(
        regex(pattern = pattern::TTL),
        extend("examples" = ["P30D"])
    )]
    pub ttl: Option<String>,
    /// The evidence for the playbook.
    #[schemars(extend("minItems" = 1))]
    pub evidence: Vec<evidence::Evidence>,
    /// Whether the playbook is woven: active is, shadow and archived are not.
    pub status: Status,
    /// The playbooks that this one replaces.
    #[schemars(inner(
        length(min = 2, max = 80),
        regex(pattern = pattern::KEBAB)
    ))]
    pub supersedes: Option<Vec<String>>,
    /// The changes, the oldest first. Append-only.
    pub history: Option<Vec<history::Entry>>,
    /// The operator that the playbook is for; ignored if there is a selector.
    #[schemars(
        regex(pattern = pattern::KEBAB),
        extend("deprecated" = true)
    )]
    pub binds_operator: Option<String>,
    /// The time of creation, in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: Option<String>,
    /// The time of the last change, in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub updated_at: Option<String>,
    /// Search words.
    #[schemars(inner(
        regex(pattern = pattern::WORD)
    ))]
    pub tags: Option<Vec<String>>,
    /// Data of other tools, each below its own key.
    pub metadata: Option<Map<String, Value>>,
}

/// How a fragment is woven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Weaving {
    /// The fragment is added.
    Overlay,
    /// The fragment replaces a block.
    BlockReplacement,
}

/// Whether a playbook is woven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Status {
    /// Computed and recorded, but not woven.
    Shadow,
    /// Woven.
    Active,
    /// Kept only as a record.
    Archived,
}
