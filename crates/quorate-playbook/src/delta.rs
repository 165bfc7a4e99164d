//! Deltas: typed JSON proposals, from reflection or written by hand. One kind adds a whole playbook; the other gives a
//! shadow playbook a new text.

use quorate_manifest::tree::reader::nearest;
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// One proposal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Delta {
    /// A new playbook.
    Add(Box<Add>),
    /// Another text for a playbook in shadow.
    Revise(Revise),
}

/// A new playbook: the keys of its manifest, and its body. It starts in shadow, whatever its status.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Add {
    /// The playbook's id, in kebab case.
    pub slug: String,
    /// One sentence: what the fragment does.
    pub title: String,
    /// The fragment itself, in Markdown.
    pub body: String,
    /// The targets, by kind and name; without any, the operator that was reflected on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<Value>,
    /// The targets, by axis.
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
    /// Its sources: a list of kind, ref and note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Value>,
    /// The playbooks that it takes the place of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Vec<String>>,
    /// Words that it is found by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Data of other programs, under a key of their own.
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
    /// The sources of the new text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Value>,
}

/// The reason why a value is not a delta.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeltaError {
    /// What is wrong.
    pub reason: String,
    /// What to do, where that is known.
    pub help: Option<String>,
}

impl Delta {
    /// Parses a delta. Unknown keys are refused, so that a misspelled key is not dropped silently.
    ///
    /// # Errors
    /// If it is not a delta, and why.
    pub fn parse(value: Value) -> Result<Self, DeltaError> {
        let misread = |why: String| DeltaError { reason: why, help: None };
        let Value::Object(mut object) = value else { return Err(misread("expected an object".to_owned())) };
        // A key without a value is absent (M3).
        object.retain(|_, value| !value.is_null());
        let schema = match object.get("op").and_then(Value::as_str) {
            Some("add") => schema_for!(Add),
            Some("revise") => schema_for!(Revise),
            _ => return Err(misread("its `op` is neither `add` nor `revise`".to_owned())),
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let known: Vec<&str> = properties.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        if let Some(key) = object.keys().find(|key| *key != "op" && !known.contains(&key.as_str())) {
            let help = match nearest(key, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its keys are op, {}", known.join(", ")),
            };
            return Err(DeltaError { reason: format!("unknown key `{key}`"), help: Some(help) });
        }
        serde_json::from_value(Value::Object(object)).map_err(|error| misread(error.to_string()))
    }
}

/// The keys of the manifest that are a text of their own or decided by the host.
const HOST_KEYS: [&str; 3] = ["body", "block", "status"];

impl Add {
    /// The frontmatter of its manifest, in shadow.
    pub fn manifest(&self, at: &str) -> Map<String, Value> {
        let Value::Object(mut fields) = json!(self) else { return Map::new() };
        for key in HOST_KEYS {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_a_delta_does_not_have_is_refused() {
        // B5
        let add =
            json!({"op": "add", "slug": "a-b", "title": "A.", "body": "B.", "ttl": null, "lock_check": null});
        let with = |key: &str, mut of: Value| {
            of[key] = json!("x");
            Delta::parse(of)
        };
        assert!(matches!(Delta::parse(add.clone()), Ok(Delta::Add(_))));
        let said = |key: &str, of: &Value| with(key, of.clone()).expect_err("refused");
        for (key, near) in
            [("titel", "title"), ("lock-check", "lock_check"), ("target", "targets"), ("TTL", "ttl")]
        {
            let misread = said(key, &add);
            assert_eq!(misread.reason, format!("unknown key `{key}`"));
            assert_eq!(misread.help, Some(format!("did you mean `{near}`?")));
        }
        assert!(said("status", &add).help.is_some());
        let revise = json!({"op": "revise", "slug": "a-b", "body": "B.", "summary": "S."});
        assert!(Delta::parse(revise.clone()).is_ok());
        assert_eq!(said("title", &revise).reason, "unknown key `title`");
        assert!(Delta::parse(json!({"op": "ad"})).is_err() && Delta::parse(json!([])).is_err());
    }
}
