//! `assembly_workspace_invalid` for what this host reads below `metadata.quorate` (M13): a value of another kind would be
//! passed over, and the default would apply.

use quorate_diagnostics::codes;
use serde_json::{Value, json};

use crate::assembly::check_context::CheckContext;
use crate::document::schema_error;
use crate::json_schema::CompiledSchema;
use crate::tree::Node;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    let Some(ours) = view.root().at_path(&["metadata", "quorate"]) else { return };
    let (table, text) = (json!({"type": "object"}), json!({"type": "string", "minLength": 1}));
    let path = "metadata.quorate";
    validate(view, ours, path, &table);
    for (key, schema) in [("executor", &text), ("everyMessages", &json!({"type": "integer", "minimum": 1}))] {
        if let Some(node) = ours.key(key) {
            validate(view, node, &format!("{path}.{key}"), schema);
        }
    }
    let Some(members) = ours.key("members") else { return };
    validate(view, members, &format!("{path}.members"), &table);
    for member in members.entries() {
        let path = format!("{path}.members.{}", member.key);
        validate(view, &member.value, &path, &table);
        if let Some(node) = member.value.key("executor") {
            validate(view, node, &format!("{path}.executor"), &text);
        }
    }
}

/// Holds one value, which stands in a document of its own: `metadata` is merged key by key.
fn validate(view: &CheckContext<'_, '_>, node: &Node, path: &str, schema: &Value) {
    let Some(form) = CompiledSchema::parse(schema) else { return };
    let document = view.chain.document_of(node);
    for found in form.errors(node) {
        let (body, span, path) = schema_error::describe(&document.text, node, &found, path);
        view.refuse(codes::ASSEMBLY_WORKSPACE_INVALID, body.at(document.place(span, path)));
    }
}
