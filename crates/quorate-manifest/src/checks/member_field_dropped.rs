//! `quorate:member_field_dropped`: a view replaces an ancestor's entry of a member or a rule and leaves out a field that the
//! ancestor set. The entry is replaced as a whole (M6), so a default applies, which can widen a vote.

use quorate_diagnostics::{Body, codes};

use super::field_without_effect::FIELDS;
use crate::assembly::check_context::CheckContext;
use crate::assembly::members::{DEFAULT_STRATEGY, DEFAULT_TIMEOUT_MS};
use crate::document::Document;
use crate::tree::{Entry, Kind, Node};

const MEMBERS: &[&str] = &["members"];
const RULES: &[&str] = &["synthesis", "rules"];

/// The longest shown value, in characters.
const MAX_VALUE_CHARS: usize = 120;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    for (index, document) in view.chain.documents.iter().enumerate().skip(1) {
        for list in [MEMBERS, RULES] {
            let entries = document.root.at_path(list).map_or(&[][..], Node::items);
            for (at, entry) in entries.iter().enumerate() {
                let Some((ancestor, replaced)) = view.replaced(index, list, entry) else { continue };
                let replacement = Replacement { view, document, entry, ancestor, replaced };
                let path = format!("{}[{at}]", list.join("."));
                if list == MEMBERS { replacement.member(&path) } else { replacement.rule(&path) }
            }
        }
    }
}

/// An entry of a view, and the ancestor's entry that it replaces.
struct Replacement<'c, 'r, 'w> {
    view: &'c CheckContext<'r, 'w>,
    document: &'c Document,
    entry: &'c Node,
    ancestor: &'c Document,
    replaced: &'c Node,
}

impl Replacement<'_, '_, '_> {
    fn member(&self, path: &str) {
        let has_effect = |field: &str| {
            FIELDS.iter().find(|(name, _)| *name == field).is_none_or(|(_, mode)| *mode == self.view.mode)
        };
        for dropped in dropped(self.replaced, self.entry).filter(|dropped| has_effect(&dropped.key)) {
            self.warn(dropped, path, &member_default(&dropped.key));
        }
    }

    fn rule(&self, path: &str) {
        if let Some(dropped) =
            self.replaced.entry("appliesTo").filter(|_| self.entry.key("appliesTo").is_none())
        {
            self.warn(dropped, path, "all members");
        }
        let kind = self.entry.key("kind").and_then(Node::as_str);
        let (Some(kind), Some(params)) = (kind, self.replaced.key("params")) else { return };
        // Parameters of another kind have another meaning.
        if self.replaced.key("kind").and_then(Node::as_str) != Some(kind) {
            return;
        }
        let Some(kind) = self.view.loader.capabilities.rule_kind(kind) else { return };
        let none = Node::new(Kind::Map(Vec::new()), 0..0);
        for dropped in dropped(params, self.entry.key("params").unwrap_or(&none)) {
            let default = kind.params["properties"][&dropped.key].get("default");
            let default = default.map_or_else(
                || "not set".to_owned(),
                |default| match default.as_str() {
                    Some(word) => word.to_owned(),
                    None => default.to_string(),
                },
            );
            self.warn(dropped, &format!("{path}.params"), &default);
        }
    }

    fn warn(&self, dropped: &Entry, path: &str, default: &str) {
        let field = &dropped.key;
        let id = self.entry.key("id").and_then(Node::as_str).unwrap_or_default();
        let message = format!(
            "this entry replaces `{id}` and leaves out `{field}`, which is {} in {}; now it is {default}",
            value_text(&dropped.value),
            self.ancestor.shown
        );
        let span = self.entry.key("id").unwrap_or(self.entry).span.clone();
        let body = Body::new(message)
            .at(self.document.place(span, format!("{path}.{field}")))
            .related(self.ancestor.place(dropped.value.span.clone(), ""), "the ancestor's value")
            .help(format!("write `{field}` in this entry: an entry is replaced as a whole"));
        self.view.warn(codes::MEMBER_FIELD_DROPPED, body);
    }
}

/// The fields that an entry has and its replacement leaves out.
fn dropped<'n>(replaced: &'n Node, entry: &Node) -> impl Iterator<Item = &'n Entry> {
    let present = replaced.entries().iter().filter(|field| field.value.kind != Kind::Null);
    present.filter(move |field| entry.key(&field.key).is_none())
}

/// What applies to a member without a field.
fn member_default(field: &str) -> String {
    match field {
        "weight" => "1".to_owned(),
        "voteClass" => "every class".to_owned(),
        "parent" => "not set, which makes the member a root".to_owned(),
        "phase" => "not set, so no run asks the member".to_owned(),
        "triggers" => "every trigger".to_owned(),
        "timeout_ms" => DEFAULT_TIMEOUT_MS.to_string(),
        "gatherInput" => format!("the strategy {DEFAULT_STRATEGY}"),
        _ => "not set".to_owned(),
    }
}

/// A value as a message shows it.
fn value_text(value: &Node) -> String {
    let text = match &value.kind {
        Kind::Float(float) => float.text.to_string(),
        Kind::Str(text) => text.clone(),
        _ => value.to_json().to_string(),
    };
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}
