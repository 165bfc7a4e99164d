//! `playbooks/v1` (AIP-12): the manifest as written. The body is the prompt fragment.

pub mod edit;
pub mod load;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::pattern;

pub use load::{Catalog, FOLDER, HISTORY_SUFFIX, PlaybookFile, exists, load_all, load_playbook, paths};

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
    pub targets: Option<Vec<Target>>,
    /// The operators that the playbook is for.
    pub selector: Option<Selector>,
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
    pub evidence: Vec<Evidence>,
    /// Whether the playbook is woven: active is, shadow and archived are not.
    pub status: Status,
    /// The playbooks that this one replaces.
    #[schemars(inner(
        length(min = 2, max = 80),
        regex(pattern = pattern::KEBAB)
    ))]
    pub supersedes: Option<Vec<String>>,
    /// The changes, the oldest first. Append-only.
    pub history: Option<Vec<Entry>>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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

/// A source of a playbook.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The kind of source.
    pub kind: EvidenceKind,
    /// The id or path of the source.
    #[serde(rename = "ref")]
    #[schemars(length(min = 1, max = 500))]
    pub reference: String,
    /// One line about what the source shows.
    #[schemars(length(max = 1000))]
    pub note: Option<String>,
}

/// The kind of source of a playbook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum EvidenceKind {
    /// A run.
    Run,
    /// A conversation.
    Conversation,
    /// A work item.
    WorkItem,
    /// A reflection on several sources.
    Reflection,
    /// A person's statement.
    Human,
}

/// One change of a playbook.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "HistoryEntry")]
pub struct Entry {
    /// The time, in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The kind of change.
    pub kind: EntryKind,
    /// One line.
    #[schemars(length(min = 1, max = 1000))]
    pub summary: String,
    /// The run, reflection or ticket that led to the change.
    pub source: Option<String>,
    /// The author of the change.
    pub by: Option<String>,
    /// The gate that a promotion passed.
    pub gate: Option<Gate>,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum EntryKind {
    /// The playbook was created.
    Created,
    /// The playbook was edited.
    Delta,
    /// The playbook became active.
    Promoted,
    /// The playbook was archived.
    Archived,
    /// Another playbook replaced this one.
    Superseded,
    /// The playbook violated a locked trait.
    LockViolation,
}

/// The test of a promotion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Gate {
    /// Outcomes with the playbook are better than without.
    AB,
    /// A scorer prefers the prompt with the playbook.
    Scorer,
    /// A person approves.
    Human,
    /// An assembly votes for the promotion.
    Governance,
}

/// The operators that a playbook is for: keys are axes (identity, role, position, capability or a custom one), all of which
/// have to match; `allOf` and `anyOf` are the long form.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline, extend("minProperties" = 1))]
pub struct Selector {
    /// All of these have to match.
    #[serde(rename = "allOf")]
    pub all_of: Option<Vec<Term>>,
    /// One of these has to match.
    #[serde(rename = "anyOf")]
    pub any_of: Option<Vec<Term>>,
    /// By axis: the accepted values.
    #[serde(flatten)]
    pub axes: BTreeMap<String, Values>,
}

/// One axis of the long form.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SelectorTerm")]
pub struct Term {
    /// The axis.
    #[schemars(length(min = 1, max = 64))]
    pub axis: String,
    /// The accepted values.
    #[serde(rename = "anyOf")]
    #[schemars(inner(length(min = 1, max = 200)), extend("minItems" = 1))]
    pub any_of: Vec<String>,
}

/// The accepted values of an axis: one or several; "*" is any value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Values {
    /// One value.
    One(String),
    /// One of several.
    Some(Vec<String>),
}

impl JsonSchema for Values {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SelectorValues".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "oneOf": [
                { "type": "string", "minLength": 1, "maxLength": 200 },
                {
                    "type": "array",
                    "minItems": 1,
                    "items": { "type": "string", "minLength": 1, "maxLength": 200 }
                }
            ]
        })
    }
}

/// A target of a playbook.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The kind of `ref`; for an operator, `ref` is its slug or its role.
    pub kind: TargetKind,
    /// A slug, `kind/slug`, or a glob.
    #[serde(rename = "ref")]
    #[schemars(length(min = 1, max = 200), extend("examples" = ["alice", "role/companion", "operator/*"]))]
    pub reference: String,
}

/// The kind of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum TargetKind {
    /// An operator.
    Operator,
    /// A role.
    Role,
    /// A skill.
    Skill,
    /// A runtime.
    Runtime,
}

crate::words!(Status { Shadow = "shadow", Active = "active", Archived = "archived" });

crate::words!(EntryKind {
    Created = "created",
    Delta = "delta",
    Promoted = "promoted",
    Archived = "archived",
    Superseded = "superseded",
    LockViolation = "lock-violation",
});

crate::words!(Gate { AB = "a-b", Scorer = "scorer", Human = "human", Governance = "governance" });

crate::words!(TargetKind {
    Operator = "operator",
    Role = "role",
    Skill = "skill",
    Runtime = "runtime"
});

impl Playbook {
    /// The gate that the promotion at this time passed.
    pub fn gate_of_promotion(&self, at: &str) -> Option<Gate> {
        let is_it = |entry: &&Entry| entry.at == at && entry.kind == EntryKind::Promoted;
        self.history.iter().flatten().find(is_it)?.gate
    }
}

impl Values {
    /// The values.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Values::One(value) => std::slice::from_ref(value),
            Values::Some(values) => values,
        }
    }
}
