//! `members`: the members of an assembly, each a persona in a role.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::decimal::Decimal;
use crate::pattern;

/// The timeout of a member without `timeout_ms`.
pub(crate) const DEFAULT_TIMEOUT_MS: u32 = 30_000;
/// The gather strategy of a member without `gatherInput`.
pub(crate) const DEFAULT_STRATEGY: &str = "working-memory";

/// One member: a persona in a role.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Member {
    /// The member's id in the assembly, which views merge by.
    #[schemars(
        length(min = 2, max = 64),
        regex(pattern = pattern::KEBAB),
        extend("examples" = ["ciso"])
    )]
    pub id: String,
    /// The member's persona, which has to exist in the same scope.
    #[schemars(
        regex(pattern = pattern::PERSONA),
        extend("examples" = ["ws://personas/exec-ciso"])
    )]
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
    #[schemars(
        length(min = 2, max = 64),
        regex(pattern = pattern::KEBAB)
    )]
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

impl Trigger {
    pub const ALL: [Trigger; 5] =
        [Trigger::Sample, Trigger::SentinelMatch, Trigger::Scheduled, Trigger::Manual, Trigger::Periodic];

    /// The word in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Trigger::Sample => "sample",
            Trigger::SentinelMatch => "sentinel-match",
            Trigger::Scheduled => "scheduled",
            Trigger::Manual => "manual",
            Trigger::Periodic => "periodic",
        }
    }
}

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
    pub params: Option<Map<String, Value>>,
}
