//! Checks of the members: ids, phases, gather strategies and their parameters (X13), fields that a view's entry drops (M6),
//! and the tree of a hierarchy (M11).
//!
//! A peer or hierarchy assembly without members gets a warning, since a parent may leave its members to the views that extend
//! it; `convene` refuses such an assembly. An advisory assembly without members gives no advice, and a voting assembly is
//! refused when a vote is requested. For two rules of one document with the same id the code is
//! `assembly_synthesis_rule_invalid`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quorate_diagnostics::codes::RefusalCode;
use quorate_diagnostics::{Body, Report, codes};

use super::CheckContext;
use super::fields::MODE_FIELDS;
use crate::assembly::{DEFAULT_STRATEGY, DEFAULT_TIMEOUT_MS, Mode};
use crate::document::{Document, schema_error};
use crate::json_schema::CompiledSchema;
use crate::tree::reader::meant_or;
use crate::tree::{Entry, Kind, Node};

const MEMBERS: &[&str] = &["members"];
const RULES: &[&str] = &["synthesis", "rules"];

/// The longest shown value, in characters.
const MAX_VALUE_CHARS: usize = 120;

pub(super) fn check_dropped_fields(view: &CheckContext<'_, '_>) {
    for (index, document) in view.chain.documents.iter().enumerate().skip(1) {
        for list in [MEMBERS, RULES] {
            let entries = document.root.items_at(list);
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
            MODE_FIELDS
                .iter()
                .find(|(name, _)| *name == field)
                .is_none_or(|(_, mode)| *mode == self.view.mode)
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
        let kind = self.entry.text_of("kind");
        let (Some(kind), Some(params)) = (kind, self.replaced.key("params")) else { return };
        // Parameters of another kind have another meaning.
        if self.replaced.text_of("kind") != Some(kind) {
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
        let id = self.entry.text_of("id").unwrap_or_default();
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

/// Checks each document by itself: across documents, the same id means the same member.
pub(crate) fn check_id_collisions(documents: &[Arc<Document>]) -> Report {
    let mut report = Report::new();
    for document in documents {
        report.add_source(Arc::clone(&document.shown), Arc::clone(&document.text));
        let members = document.root.items_at(&["members"]);
        refuse_duplicates(document, members, "members", codes::ASSEMBLY_MEMBER_ID_COLLISION, &mut report);
        let rules = document.root.items_at(&["synthesis", "rules"]);
        refuse_duplicates(
            document,
            rules,
            "synthesis.rules",
            codes::ASSEMBLY_SYNTHESIS_RULE_INVALID,
            &mut report,
        );
    }
    report
}

fn refuse_duplicates(
    document: &Document,
    items: &[Node],
    path: &str,
    code: RefusalCode,
    report: &mut Report,
) {
    let mut seen = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        let Some(id) = item.key("id") else { continue };
        let Some(text) = id.as_str() else { continue };
        let place = document.place(id.span.clone(), format!("{path}[{at}].id"));
        if let Some(first) = seen.get(text) {
            let what = if path == "members" { "members" } else { "rules" };
            let body = Body::new(format!("two {what} have the id `{text}`")).at(place);
            let body = body.related(Clone::clone(first), "first here");
            report.refuse(
                code,
                body.help(
                    "give one of them another id; only a view may repeat an id, to adapt its parent's entry",
                ),
            );
        } else {
            seen.insert(text, place);
        }
    }
}

pub(super) fn check_phases(view: &CheckContext<'_, '_>) {
    if view.mode != Mode::Advisory {
        return;
    }
    for (at, member) in view.members().iter().enumerate().filter(|(_, member)| member.key("phase").is_none())
    {
        let id = member.text_of("id").unwrap_or_default();
        let place = view.value_place(member, "id", format!("members[{at}]"));
        let body = Body::new(format!("`{id}` has no phase and is never asked")).at(place);
        view.warn(
            codes::MEMBER_WITHOUT_PHASE,
            body.help("add `phase: session`, standing, sentinel or one of your own"),
        );
    }
}

pub(super) fn check_any_members(view: &CheckContext<'_, '_>) {
    if !matches!(view.mode, Mode::Peer | Mode::Hierarchy) || !view.members().is_empty() {
        return;
    }
    let message = format!("an assembly in {} mode without members cannot be convened", view.mode.as_str());
    let place = match view.root().entry("members") {
        Some(_) => view.key_place(view.root(), "members", "members"),
        None => view.value_place(view.root(), "mode", "mode"),
    };
    let help =
        "add members: [{id: …, persona: ws://personas/…, role: …}]; or convene a view that has members";
    view.warn(codes::MEMBERS_MISSING, Body::new(message).at(place).help(help));
}

pub(super) fn check_gather_strategies(view: &CheckContext<'_, '_>) {
    let capabilities = view.loader.capabilities;
    for (at, member) in view.members().iter().enumerate() {
        let Some(node) = member.at_path(&["gatherInput", "strategy"]) else { continue };
        let Some(strategy) = node.as_str().filter(|strategy| !capabilities.has_gather_strategy(strategy))
        else {
            continue;
        };
        let known = capabilities.gather_strategies();
        let help = meant_or(strategy, &known, || format!("the strategies are: {}", known.join(", ")));
        let place = view.place(node, format!("members[{at}].gatherInput.strategy"));
        let body = Body::new(format!("unknown gather strategy `{strategy}`")).at(place);
        view.refuse(codes::GATHER_UNKNOWN, body.help(help));
    }
}

pub(super) fn check_gather_params(view: &CheckContext<'_, '_>) {
    for (at, member) in view.members().iter().enumerate() {
        let Some(params) = member.at_path(&["gatherInput", "params"]) else { continue };
        let strategy = member.at_path(&["gatherInput", "strategy"]).and_then(Node::as_str);
        let schema = strategy.and_then(|strategy| view.loader.capabilities.gather_params_schema(strategy));
        let Some(schema) = schema.as_ref().and_then(CompiledSchema::parse) else { continue };
        let document = view.chain.document_of(params);
        for error in schema.errors(params) {
            let (body, span, below) = schema_error::describe(&document.text, params, &error, "params");
            let place = document.place(span, format!("members[{at}].gatherInput.{below}"));
            view.refuse(codes::GATHER_PARAMS_INVALID, body.at(place));
        }
    }
}

pub(super) fn check_hierarchy(view: &CheckContext<'_, '_>) {
    if view.mode != Mode::Hierarchy {
        return;
    }
    let mut parents: BTreeMap<&str, (usize, &Node)> = BTreeMap::new();
    let mut roots = Vec::new();
    for (at, member) in view.members().iter().enumerate() {
        let Some(id) = member.text_of("id") else { continue };
        match member.key("parent") {
            Some(parent) => {
                parents.insert(id, (at, parent));
            }
            None => roots.push((at, id, member)),
        }
    }
    for (at, parent) in parents.values() {
        invalid_parent(view, *at, parent);
    }
    cycles(view, &parents);
    if let [(_, first, first_node), others @ ..] = roots.as_slice() {
        for (at, id, node) in others {
            let place = view.value_place(node, "id", format!("members[{at}]"));
            let body = Body::new(format!("`{id}` has no `parent`, and neither has `{first}`")).at(place);
            let body = body.related(view.value_place(first_node, "id", ""), "the first root");
            view.refuse(
                codes::HIERARCHY_MULTIPLE_ROOTS,
                body.help(format!("add `parent: {first}`, or another member above both")),
            );
        }
    }
}

fn invalid_parent(view: &CheckContext<'_, '_>, at: usize, parent: &Node) {
    let Some(id) = parent.as_str().filter(|id| !view.is_member(id)) else { return };
    let body = Body::new(format!("cannot report to the unknown member `{id}`"));
    let place = view.place(parent, format!("members[{at}].parent"));
    view.refuse(codes::ASSEMBLY_HIERARCHY_INVALID_PARENT, body.at(place).help(view.member_help(id)));
}

/// Refuses each cycle once, at its first member in roster order.
fn cycles(view: &CheckContext<'_, '_>, parents: &BTreeMap<&str, (usize, &Node)>) {
    let mut reported: BTreeSet<&str> = BTreeSet::new();
    for start in view.member_ids() {
        let mut path = vec![start];
        let mut at = start;
        while let Some(next) = parents.get(at).and_then(|(_, parent)| parent.as_str()) {
            if next == start {
                if path.iter().any(|id| reported.contains(id)) {
                    break;
                }
                reported.extend(&path);
                path.push(start);
                let (index, node) = parents[start];
                let body =
                    Body::new(format!("the members' `parent` keys form a cycle: {}", path.join(" -> ")));
                let place = view.place(node, format!("members[{index}].parent"));
                view.refuse(
                    codes::ASSEMBLY_HIERARCHY_CYCLE,
                    body.at(place).help("remove `parent` from the member that is the root"),
                );
                break;
            }
            if path.contains(&next) {
                break;
            }
            path.push(next);
            at = next;
        }
    }
}
