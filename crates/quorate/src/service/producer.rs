//! The producer of the judged artifact. It is recorded with a run for `quorate playbook` to learn from; no member sees it,
//! and the producer does not learn who judges (C7).

pub mod check;

use quorate_kernel::record;
use quorate_playbook::gate::similarity::Sketch;
use serde_json::json;

/// An operator that produced an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Producer {
    pub operator: String,
    /// The shadow playbooks in its prompt at the time.
    pub trying: Vec<String>,
}

impl Producer {
    /// The producer as the caller names it: a slug or a ref; `None` if it is not named.
    pub fn from_flags(made_by: Option<&str>, trying: &[String]) -> Option<Self> {
        let operator = made_by?;
        let slug = operator.rsplit('/').next().unwrap_or(operator);
        Some(Producer { operator: slug.to_owned(), trying: trying.to_vec() })
    }

    /// The record in `run.opened`, with a sketch of the artifact: a gate counts each artifact once.
    pub fn recorded(&self, made: &str) -> record::Producer {
        record::Producer {
            operator: self.operator.clone(),
            trying: self.trying.clone(),
            sketch: json!(Sketch::new(made)),
        }
    }
}
