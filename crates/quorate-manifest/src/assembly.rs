//! `assembly.workspace/v1`, ASSEMBLY.md (AIP-24): the manifest as written. [`load`](load()) merges its chain into a [`ResolvedAssembly`].

pub(crate) mod inherited_minimums;
pub mod load;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::decimal::Decimal;
use crate::duration::IsoDuration;
use crate::pattern;

pub use load::{ResolvedAssembly, load};

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
    #[schemars(length(min = 2, max = 96), regex(pattern = pattern::KEBAB), extend("examples" = ["release-board"]))]
    pub name: String,
    /// The display name.
    #[schemars(length(min = 1, max = 200), extend("examples" = ["Release Board"]))]
    pub title: String,
    /// One paragraph: the purpose, the audience, the reason for the mode.
    #[schemars(length(min = 1, max = 2000))]
    pub description: String,
    /// The version of this manifest, as in semantic versioning.
    #[schemars(regex(pattern = pattern::VERSION), extend("examples" = ["1.0.0"]))]
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
    pub members: Option<Vec<Member>>,
    /// How the members' outputs are combined.
    pub synthesis: Option<Synthesis>,
    /// Words or patterns that no outcome may contain. A view may add some, but not remove any.
    #[schemars(inner(length(min = 1, max = 200)), extend("uniqueItems" = true, "examples" = [["warmth", "honesty"]]))]
    pub locked_traits: Option<Vec<String>>,
    /// How outcomes are matched against the locked traits; the default is substring. A view may only tighten it.
    pub match_mode: Option<MatchMode>,
    /// Which records are kept, and whether they are signed.
    pub audit: Option<Audit>,
    /// The identity that the assembly adapts, or that its outcomes are attributed to.
    #[schemars(regex(pattern = pattern::IDENTITY))]
    pub identity: Option<String>,
    /// The governance file, with approvals, keys and retention: a path or a ws:// ref.
    #[schemars(length(min = 1, max = 512))]
    pub governance: Option<String>,
    /// The work workspace that the outcomes attach to.
    #[schemars(regex(pattern = pattern::WORK))]
    pub work: Option<String>,
    /// The operator that runs the assembly.
    #[schemars(regex(pattern = pattern::OPERATOR))]
    pub executor: Option<String>,
    /// When the assembly is convened automatically.
    pub defaults: Option<Defaults>,
    /// How the assembly is shown.
    pub display: Option<Display>,
    /// Data of other tools, each below its own key. It never changes the meaning of other fields.
    pub metadata: Option<Map<String, Value>>,
}

/// The heuristics that Quorate knows.
pub const HEURISTICS: [&str; 4] = ["every-n-messages", "on-mode-change", "manual", "periodic"];

/// When the assembly is convened automatically.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Defaults {
    /// The heuristic that convenes the assembly.
    #[schemars(
        regex(pattern = pattern::HEURISTIC),
        extend("examples" = ["every-n-messages", "on-mode-change", "manual", "periodic"])
    )]
    pub trigger_heuristic: Option<String>,
    /// The interval of the heuristic periodic, in milliseconds.
    #[serde(rename = "triggerInterval_ms")]
    #[schemars(range(min = 1000, max = 86_400_000))]
    pub trigger_interval_ms: Option<u32>,
}

/// How the assembly is shown.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Display {
    /// How members are grouped.
    pub default_grouping: Option<Grouping>,
}

/// How members are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Grouping {
    /// By phase.
    Phase,
    /// By role.
    Role,
    /// By severity.
    Severity,
}

/// The timeout of a member without `timeout_ms`.
pub(crate) const DEFAULT_TIMEOUT_MS: u32 = 30_000;
/// The gather strategy of a member without `gatherInput`.
pub(crate) const DEFAULT_STRATEGY: &str = "working-memory";

/// One member: a persona in a role.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Member {
    /// The member's id in the assembly, which views merge by.
    #[schemars(length(min = 2, max = 64), regex(pattern = pattern::KEBAB), extend("examples" = ["ciso"]))]
    pub id: String,
    /// The member's persona, which has to exist in the same scope.
    #[schemars(regex(pattern = pattern::PERSONA), extend("examples" = ["ws://personas/exec-ciso"]))]
    pub persona: String,
    /// The display name of the role.
    #[schemars(length(min = 1, max = 200), extend("examples" = ["Chief Information Security Officer"]))]
    pub role: String,
    /// Advisory: the phase in which the member is asked; session, standing, sentinel or a custom one.
    #[schemars(length(min = 1, max = 64), extend("examples" = ["session", "standing", "sentinel"]))]
    pub phase: Option<String>,
    /// Advisory: the triggers that the member answers to; the default is all.
    #[schemars(extend("uniqueItems" = true))]
    pub triggers: Option<Vec<Trigger>>,
    /// Voting: the weight of the member's vote; the default is 1.0.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 100))]
    pub weight: Option<Decimal>,
    /// Voting: the classes of proposals that the member votes on; the default is all.
    #[schemars(inner(
        length(min = 1, max = 64),
        regex(pattern = pattern::WORD)
    ), extend("uniqueItems" = true, "examples" = [["budget", "security"]]))]
    pub vote_class: Option<Vec<String>>,
    /// Hierarchy: the id of the member that this one reports to; the root has no parent.
    #[schemars(length(min = 2, max = 64), regex(pattern = pattern::KEBAB))]
    pub parent: Option<String>,
    /// The deadline of an answer in milliseconds; the default is 30000.
    #[serde(rename = "timeout_ms")]
    #[schemars(range(min = 100, max = 600_000))]
    pub timeout_ms: Option<u32>,
    /// The input that the member gets.
    pub gather_input: Option<GatherInput>,
}

/// An event that convenes an assembly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Trigger {
    /// A number of messages.
    Sample,
    /// A match of the sentinel.
    SentinelMatch,
    /// A time of day.
    Scheduled,
    /// A person.
    Manual,
    /// An interval.
    Periodic,
}

words!(Trigger {
    Sample = "sample",
    SentinelMatch = "sentinel-match",
    Scheduled = "scheduled",
    Manual = "manual",
    Periodic = "periodic",
});

/// The input that a member gets.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct GatherInput {
    /// How the input is gathered.
    #[schemars(
        regex(pattern = pattern::STRATEGY),
        extend("examples" = ["working-memory", "recent-messages", "digest", "last-message-only"])
    )]
    pub strategy: String,
    /// Parameters of the strategy, for example `limit: 20` or `window_days: 7`.
    #[serde(default)]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub params: Map<String, Value>,
}

impl Default for GatherInput {
    fn default() -> Self {
        GatherInput { strategy: DEFAULT_STRATEGY.to_owned(), params: Map::new() }
    }
}

/// How the members decide together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline, description = "How the members decide together.")]
pub enum Mode {
    /// Members advise; accepted advice is woven into an operator's prompt.
    Advisory,
    /// Members vote on a proposal.
    Voting,
    /// Members exchange messages as equals.
    Peer,
    /// Members report up a tree.
    Hierarchy,
}

words!(Mode { Advisory = "advisory", Voting = "voting", Peer = "peer", Hierarchy = "hierarchy" });

/// How an outcome is matched against the locked traits, the least strict first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline, description = "How an outcome is matched against the locked traits.")]
pub enum MatchMode {
    /// The trait's text, ignoring case.
    #[default]
    Substring,
    /// The trait is a regular expression.
    Regex,
    /// Text similar in meaning to the trait, by the registered embedder.
    Semantic,
}

words!(MatchMode { Substring = "substring", Regex = "regex", Semantic = "semantic" });

/// A locked trait of an assembly, also in the form in which a run's setup records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedTrait {
    /// The trait as its author wrote it.
    pub text: String,
    /// The match mode of the document that declares it.
    pub declared: MatchMode,
}

impl LockedTrait {
    /// A trait that is plain text.
    pub fn plain(text: impl Into<String>) -> LockedTrait {
        LockedTrait { text: text.into(), declared: MatchMode::Substring }
    }
}

/// How the members' outputs are combined.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Synthesis {
    /// The rules, applied in this order. Merged by id along the chain, each as a whole.
    pub rules: Option<Vec<Rule>>,
    /// The levels of risk, each with its severities. A view's list replaces its parent's.
    pub risk_levels: Option<Vec<RiskLevel>>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Rule {
    /// The rule's id, which views merge by.
    #[schemars(length(min = 2, max = 96), regex(pattern = pattern::KEBAB), extend("examples" = ["sentinel-wins"]))]
    pub id: String,
    /// The algorithm: a built-in kind, or one that the embedding program registers.
    #[schemars(length(min = 1, max = 96), extend("examples" = ["terminal", "priority", "aggregate", "quorum", "majority", "unanimity", "escalate-on-severity"]))]
    pub kind: String,
    /// The members whose outputs the rule reads: member ids, or "*".
    pub applies_to: Option<AppliesTo>,
    /// Parameters of the rule, for example `threshold: 0.66` for a quorum.
    pub params: Option<Map<String, Value>>,
}

/// The members whose outputs a rule reads.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum AppliesTo {
    /// Member ids.
    These(Vec<String>),
    /// `*`.
    All(String),
}

impl JsonSchema for AppliesTo {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Whom".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "oneOf": [
                { "type": "string", "const": "*" },
                {
                    "type": "array",
                    "items": {
                        "type": "string",
                        "minLength": 2,
                        "maxLength": 64,
                        "pattern": "^[a-z][a-z0-9-]*[a-z0-9]$",
                        "patternErrorMessage": "the id of a member"
                    },
                    "uniqueItems": true,
                    "minItems": 1
                }
            ]
        })
    }
}

/// One level of risk.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RiskLevel {
    /// The lowest and the highest severity of this level, both included.
    #[schemars(inner(range(min = 0, max = 10)), length(min = 2, max = 2), extend("examples" = [[0, 2]]))]
    pub range: Vec<u8>,
    /// The name of the level.
    pub label: RiskLabel,
}

/// The name of a level of risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum RiskLabel {
    /// No action.
    Ok,
    /// Observe.
    Watch,
    /// Act.
    Intervene,
    /// Involve a person.
    Escalate,
}

words!(RiskLabel { Ok = "ok", Watch = "watch", Intervene = "intervene", Escalate = "escalate" });

/// The lifetime of an overlay.
const DEFAULT_TTL_DAYS: u32 = 14;
/// The limits of an overlay's lifetime, in days; a run clamps other values (A5).
pub const OVERLAY_TTL_DAYS: std::ops::RangeInclusive<i64> = 1..=30;

/// Which records of a run are kept.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Audit {
    /// Retention of the members' answers.
    pub consultations: Option<Consultations>,
    /// Retention of outcomes.
    pub overlays: Option<Overlays>,
    /// Whether records are signed; the default is optional. A view cannot lower required.
    pub signing: Option<Signing>,
}

/// Retention of the members' answers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Consultations {
    /// Whether answers are kept; the default is true. A view cannot switch it off.
    pub enabled: Option<bool>,
    /// How long answers are kept: forever (the default) or `days:<n>`.
    #[schemars(regex(pattern = pattern::RETENTION), extend("examples" = ["forever", "days:90"]))]
    pub retention: Option<String>,
}

/// Retention of outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Overlays {
    /// Whether outcomes are kept; the default is true. A view cannot switch it off.
    pub enabled: Option<bool>,
    /// The maximum number of active overlays; the default is 10.
    #[schemars(range(min = 1, max = 100))]
    pub max_active: Option<u8>,
    /// The lifetime of overlays without their own; the default is P14D.
    #[schemars(length(min = 2), regex(pattern = pattern::OVERLAY_TTL), extend("examples" = ["P14D", "PT12H"]))]
    pub default_ttl: Option<String>,
}

/// Whether records are signed, the strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Signing {
    /// Every record is signed.
    Required,
    /// Records may be signed.
    Optional,
    /// No record is signed.
    #[default]
    None,
}

words!(Signing { Required = "required", Optional = "optional", None = "none" });

/// The retention of answers in days; `None` is forever.
pub(crate) fn retention_days(audit: Option<&Audit>) -> Option<u32> {
    let retention = audit?.consultations.as_ref()?.retention.as_deref()?;
    Some(retention.strip_prefix("days:")?.parse().unwrap_or(u32::MAX))
}

/// The lifetime of overlays without their own.
pub(crate) fn default_ttl(audit: Option<&Audit>) -> IsoDuration {
    let written = audit.and_then(|audit| audit.overlays.as_ref()?.default_ttl.as_deref()?.parse().ok());
    written.unwrap_or(IsoDuration { days: DEFAULT_TTL_DAYS, ..IsoDuration::default() })
}
