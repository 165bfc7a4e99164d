//! `operators/<slug>/OPERATOR.md` (Q2): who runs things. The body is the base prompt where no persona is named.

pub mod load;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::pattern;

/// Who runs things. Further fields are kept, not interpreted.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[schemars(title = "OPERATOR.md")]
pub struct Operator {
    /// The operator's id, which is also the name of its folder.
    #[schemars(
        length(min = 1, max = 96),
        regex(pattern = pattern::WORD),
        extend("examples" = ["lead-researcher"])
    )]
    pub id: String,
    /// What people call it.
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    /// What it does; playbooks bind to it.
    #[schemars(length(min = 1, max = 200), extend("examples" = ["role/librarian"]))]
    pub role: Option<String>,
    /// Who it is.
    #[schemars(length(min = 1), extend("examples" = ["ws://personas/ada"]))]
    pub persona: Option<String>,
    /// What it has learned.
    pub skills: Option<Vec<String>>,
    /// What it can do; dispatchers match on it.
    pub capabilities: Option<Vec<String>>,
    /// The traits that nothing may change in it.
    pub locks: Option<Vec<String>>,
    /// Which executor answers for it.
    pub runtime: Option<String>,
    /// What others need, below a name of theirs.
    pub metadata: Option<Map<String, Value>>,
    /// Further fields.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}
