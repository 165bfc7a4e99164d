//! `synthesis`: how the members' outputs are combined.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::pattern;

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
    #[schemars(
        length(min = 2, max = 96),
        regex(pattern = pattern::KEBAB),
        extend("examples" = ["sentinel-wins"])
    )]
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

impl RiskLabel {
    /// The word in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            RiskLabel::Ok => "ok",
            RiskLabel::Watch => "watch",
            RiskLabel::Intervene => "intervene",
            RiskLabel::Escalate => "escalate",
        }
    }
}
