//! Deltas: what reflection proposes and people write by hand, as typed JSON. One that adds is a whole playbook; one that
//! revises gives a playbook in shadow another text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A list of deltas, as an executor gives it.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[schemars(title = "Deltas")]
pub struct Deltas {
    /// What is proposed; it may be empty.
    pub deltas: Vec<Delta>,
}

/// One proposal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Delta {
    /// A new playbook.
    Add(Box<Add>),
    /// Another text for a playbook in shadow.
    Revise(Revise),
}

/// A new playbook: the keys of its manifest, and its body. It begins in shadow whatever it says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Add {
    /// The playbook's id, in kebab case.
    pub slug: String,
    /// One sentence: what the fragment does.
    pub title: String,
    /// The fragment itself, in Markdown.
    pub body: String,
    /// Whom it is for, by kind and name; left out, it is for the operator that was reflected on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<Value>,
    /// Whom it is for, by axis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<Value>,
    /// The block that it takes the place of; left out, it is added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    /// What is woven first, from 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Value>,
    /// The locked traits that it leaves alone.
    #[serde(default)]
    pub lock_check: Vec<String>,
    /// How long it holds, as an ISO 8601 duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
    /// What it was learned from: a list of kind, ref and note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Value>,
    /// The playbooks that it takes the place of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Vec<String>>,
    /// Words that it is found by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// What others need, below a name of theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// Another text for a playbook in shadow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Revise {
    /// Which playbook.
    pub slug: String,
    /// Its new text.
    pub body: String,
    /// What is different, in one line.
    pub summary: String,
    /// What that was learned from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Value>,
}

/// The keys of the manifest that are a text of their own or decided by the host.
const OURS: [&str; 3] = ["body", "block", "status"];

impl Add {
    /// The frontmatter of its manifest, in shadow.
    pub fn manifest(&self, at: &str) -> Map<String, Value> {
        let Value::Object(mut fields) = json!(self) else { return Map::new() };
        for key in OURS {
            fields.remove(key);
        }
        let kind = if self.block.is_some() { "block-replacement" } else { "overlay" };
        fields.insert("schema".to_owned(), json!("playbooks/v1"));
        fields.insert("kind".to_owned(), json!(kind));
        fields.extend(self.block.iter().map(|block| ("block".to_owned(), json!(block))));
        fields.insert("status".to_owned(), json!("shadow"));
        fields.insert("created_at".to_owned(), json!(at));
        fields.insert("updated_at".to_owned(), json!(at));
        fields
    }
}
