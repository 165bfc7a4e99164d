//! The JSON Schemas that Quorate publishes: of the reports that it prints, and of members' answers.

use serde_json::Value;

use super::service::schemas::{ANSWERS, Output, answer};

/// A published JSON Schema (2020-12).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedSchema {
    /// The name, as `quorate schema NAME` takes it.
    pub name: &'static str,
    /// The documents that the schema describes, in one sentence.
    pub about: String,
}

/// All published schemas: of reports first, then of answers.
///
/// ```
/// let all = quorate::schemas::list();
/// assert!(all.iter().all(|schema| quorate::schemas::find(schema.name).is_some()));
/// ```
pub fn list() -> Vec<PublishedSchema> {
    let outputs = Output::ALL.map(|output| PublishedSchema {
        name: output.word(),
        about: format!("The JSON Schema of what has `schema: {}`", output.id()),
    });
    let answers = ANSWERS.map(|(name, _, about)| PublishedSchema {
        name,
        about: format!("The JSON Schema of an answer: {about}"),
    });
    outputs.into_iter().chain(answers).collect()
}

/// A published schema by its name; `None` if the name is unknown.
pub fn find(name: &str) -> Option<Value> {
    let output = Output::ALL.into_iter().find(|output| output.word() == name).map(Output::json);
    output.or_else(|| answer(name))
}
