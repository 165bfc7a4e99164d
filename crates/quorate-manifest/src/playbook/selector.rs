//! `selector`: the operators that a playbook is for, by axes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

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
