//! `assembly_workspace_invalid` for the keys that Quorate reads below `metadata.quorate` (M13): a value of another type
//! would be ignored, and the default would apply.

use quorate_diagnostics::codes;
use serde_json::{Value, json};

use crate::assembly::check_context::CheckContext;
use crate::document::schema_error;
use crate::json_schema::CompiledSchema;
use crate::tree::Node;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    let Some(settings) = view.root().at_path(&["metadata", "quorate"]) else { return };
    let (table, text) = (json!({"type": "object"}), json!({"type": "string", "minLength": 1}));
    let path = "metadata.quorate";
    validate(view, settings, path, &table);
    for (key, schema) in [("executor", &text), ("everyMessages", &json!({"type": "integer", "minimum": 1}))] {
        if let Some(node) = settings.key(key) {
            validate(view, node, &format!("{path}.{key}"), schema);
        }
    }
    let Some(members) = settings.key("members") else { return };
    validate(view, members, &format!("{path}.members"), &table);
    for member in members.entries() {
        let path = format!("{path}.members.{}", member.key);
        validate(view, &member.value, &path, &table);
        if let Some(node) = member.value.key("executor") {
            validate(view, node, &format!("{path}.executor"), &text);
        }
    }
}

/// Validates one value in its own document: `metadata` is merged key by key, so values may come from several documents.
fn validate(view: &CheckContext<'_, '_>, node: &Node, path: &str, schema: &Value) {
    let Some(schema) = CompiledSchema::parse(schema) else { return };
    let document = view.chain.document_of(node);
    for error in schema.errors(node) {
        let (body, span, path) = schema_error::describe(&document.text, node, &error, path);
        view.refuse(codes::ASSEMBLY_WORKSPACE_INVALID, body.at(document.place(span, path)));
    }
}
