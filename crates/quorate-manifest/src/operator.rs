//! `operators/<slug>/OPERATOR.md` (Q2): an agent that playbooks and overlays are for. The body is the base prompt of an
//! operator without a persona.

use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::document::Document;
use crate::loader::{Loader, Refs};
use crate::{Loaded, pattern};

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

/// Loads an operator from its document.
pub fn load_operator(loader: &Loader<'_>, document: &Arc<Document>) -> Loaded<Operator> {
    let mut report = document.report.clone();
    if document.refused() {
        return Loaded { value: None, report };
    }
    if loader.options.refs == Refs::Followed
        && let Some(node) = document.root.key("persona")
        && let Some(written) = node.as_str()
    {
        let reference =
            if written.contains("://") { written.to_owned() } else { format!("ws://personas/{written}") };
        if let Err(error) = &*loader.find_persona(&document.path, &reference) {
            let body = Body::new(format!("cannot use the persona `{written}`: {}", error.reason));
            let body = error.explain(body, "create the persona, or correct the ref");
            let place = document.place(node.span.clone(), "persona");
            report.refuse(codes::OPERATOR_PERSONA_UNRESOLVABLE, body.at(place));
        }
    }
    let operator: Option<Operator> = document.deserialize(&document.root, &mut report);
    Loaded { value: operator.filter(|_| !report.has_refusals()), report }
}

/// The ref of an operator, by its id.
pub(crate) fn operator_ref(document: &Document) -> Option<String> {
    Some(format!("ws://operators/{}", document.root.text_of("id")?))
}
