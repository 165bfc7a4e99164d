//! `members`: who decides, each a persona in a role.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::pattern;

use crate::decimal::Decimal;

/// One member: a persona, and what it does here.
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
    /// The persona that it is, which has to exist in the same scope.
    #[schemars(
        regex(pattern = pattern::PERSONA),
        extend("examples" = ["ws://personas/exec-ciso"])
    )]
    pub persona: String,
    /// What people call the role.
    #[schemars(length(min = 1, max = 200), extend("examples" = ["Chief Information Security Officer"]))]
    pub role: String,
    /// Advisory: in which phase it is asked; session, standing, sentinel or one of your own.
    #[schemars(length(min = 1, max = 64), extend("examples" = ["session", "standing", "sentinel"]))]
    pub phase: Option<String>,
    /// Advisory: which triggers it answers to; all of them unless said.
    #[schemars(extend("uniqueItems" = true))]
    pub triggers: Option<Vec<Trigger>>,
    /// Voting: what its vote counts; 1.0 unless said.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 100))]
    pub weight: Option<Decimal>,
    /// Voting: which classes of proposals it votes on; all of them unless said.
    #[schemars(inner(
        length(min = 1, max = 64),
        regex(pattern = pattern::WORD)
    ), extend("uniqueItems" = true, "examples" = [["budget", "security"]]))]
    pub vote_class: Option<Vec<String>>,
    /// Hierarchy: the id of the member that it reports to; the root has none.
    #[schemars(
        length(min = 2, max = 64),
        regex(pattern = pattern::KEBAB)
    )]
    pub parent: Option<String>,
    /// How long it may take to answer, in milliseconds; 30000 unless said.
    #[serde(rename = "timeout_ms")]
    #[schemars(range(min = 100, max = 600_000))]
    pub timeout_ms: Option<u32>,
    /// What it is given to read.
    pub gather_input: Option<GatherInput>,
}

/// What convenes an assembly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Trigger {
    /// Every so many messages.
    Sample,
    /// The sentinel has found something.
    SentinelMatch,
    /// A time of day.
    Scheduled,
    /// A person.
    Manual,
    /// An interval.
    Periodic,
}

impl Trigger {
    /// All of them.
    pub const ALL: [Trigger; 5] =
        [Trigger::Sample, Trigger::SentinelMatch, Trigger::Scheduled, Trigger::Manual, Trigger::Periodic];

    /// The trigger as a manifest writes it.
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

/// What a member is given to read.
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
    /// What the strategy is set up with, as `limit: 20` or `window_days: 7`.
    pub params: Option<Map<String, Value>>,
}
