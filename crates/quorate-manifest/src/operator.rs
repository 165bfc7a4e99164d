//! `operators/<slug>/OPERATOR.md` (Q2): an agent that playbooks and overlays are for. The body is the base prompt of an
//! operator without a persona.

pub mod load;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::pattern;

pub use load::load_operator;
pub(crate) use load::operator_ref;

/// An agent that playbooks and overlays are for. Other fields are kept, not interpreted.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[schemars(title = "OPERATOR.md")]
pub struct Operator {
    /// The operator's id, which is also the name of its folder.
    #[schemars(length(min = 1, max = 96), regex(pattern = pattern::WORD), extend("examples" = ["lead-researcher"]))]
    pub id: String,
    /// The display name.
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    /// The operator's role; playbooks can bind to it.
    #[schemars(length(min = 1, max = 200), extend("examples" = ["role/librarian"]))]
    pub role: Option<String>,
    /// The operator's persona.
    #[schemars(length(min = 1), extend("examples" = ["ws://personas/ada"]))]
    pub persona: Option<String>,
    /// The operator's skills.
    pub skills: Option<Vec<String>>,
    /// The operator's capabilities; dispatchers match on them.
    pub capabilities: Option<Vec<String>>,
    /// Locked traits, which no playbook may change.
    pub locks: Option<Vec<String>>,
    /// The executor that answers for the operator.
    pub runtime: Option<String>,
    /// Data of other tools, each below its own key.
    pub metadata: Option<Map<String, Value>>,
    /// Other fields.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}
