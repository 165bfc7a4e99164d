//! A persona as agents and executors read it (Q3): for agents the body of its manifest and the sections of its frontmatter;
//! for executors JSON.

mod section;

pub use section::{Section, backstory, boundaries, sections, sign_off, voice};

use quorate_manifest::persona::load::Resolved;
use serde_json::Value;

use crate::base::BasePrompt;

/// The key of the body beside the frontmatter's keys.
const BODY: &str = "body";

/// The prompt of a persona: its body, then voice, boundaries, backstory and sign-off, each where there is something to
/// say. It neither starts nor ends with a blank line.
pub fn prompt(persona: &Resolved) -> String {
    BasePrompt::from_persona(persona).render()
}

/// A persona for executors that read it without a model: the merged frontmatter, and its body as `body`.
pub fn json(persona: &Resolved) -> Value {
    let mut json = persona.chain.merged.to_json();
    if let Some(object) = json.as_object_mut() {
        object.insert(BODY.to_owned(), Value::from(persona.body.as_str()));
    }
    json
}
