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

/// A prompt fragment that rides on top of an operator's persona.
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
    /// The path of a file with code that defines the playbook. No code is loaded; the body is what counts.
    pub entry: Option<String>,
    /// Whom it is for, by kind and name. A selector wins over it.
    #[schemars(extend("minItems" = 1, "deprecated" = true))]
    pub targets: Option<Vec<targets::Target>>,
    /// Whom it is for.
    pub selector: Option<selector::Selector>,
    /// Whether the fragment is added to the persona or replaces a block of it.
    pub kind: Weaving,
    /// The block that is replaced.
    #[schemars(
        regex(pattern = pattern::BLOCK),
        extend("examples" = ["voice", "boundaries", "backstory", "sign-off"])
    )]
    pub block: Option<String>,
    /// What is woven first, from 0 to 100; 50 unless said.
    #[schemars(range(min = 0, max = 100))]
    pub priority: Option<u8>,
    /// The locked traits that the fragment leaves alone; the list may be empty.
    #[schemars(inner(
        length(min = 2, max = 64),
        regex(pattern = pattern::WORD)
    ), extend("examples" = [["warmth", "honesty"]]))]
    pub lock_check: Vec<String>,
    /// How long it holds after it was last changed, as an ISO 8601 duration.
    #[schemars(
        regex(pattern = pattern::TTL),
        extend("examples" = ["P30D"])
    )]
    pub ttl: Option<String>,
    /// What it was learned from.
    #[schemars(extend("minItems" = 1))]
    pub evidence: Vec<evidence::Evidence>,
    /// Whether it is woven: shadow and archived are not, active is.
    pub status: Status,
    /// The playbooks that it takes the place of.
    #[schemars(inner(
        length(min = 2, max = 80),
        regex(pattern = pattern::KEBAB)
    ))]
    pub supersedes: Option<Vec<String>>,
    /// What was done to it, the oldest first. Entries are only ever added.
    pub history: Option<Vec<history::Entry>>,
    /// The operator that it is for; only a note where there is a selector.
    #[schemars(
        regex(pattern = pattern::KEBAB),
        extend("deprecated" = true)
    )]
    pub binds_operator: Option<String>,
    /// When it was made, in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: Option<String>,
    /// When it was last changed, in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub updated_at: Option<String>,
    /// Words that it is found by.
    #[schemars(inner(
        regex(pattern = pattern::WORD)
    ))]
    pub tags: Option<Vec<String>>,
    /// What others need, below a name of theirs.
    pub metadata: Option<Map<String, Value>>,
}

/// How a fragment is woven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Weaving {
    /// It is added.
    Overlay,
    /// It takes the place of a block.
    BlockReplacement,
}

/// Whether a playbook is woven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Status {
    /// It is computed and not woven.
    Shadow,
    /// It is woven.
    Active,
    /// It is kept for the record.
    Archived,
}
