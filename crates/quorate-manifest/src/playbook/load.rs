//! What is checked of a playbook by itself and beside the others of its round. What it does to a persona is the weave's.

use std::collections::BTreeSet;
use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes, invisible};

use super::targets::TargetKind;
use super::{Playbook, history};
use crate::Loaded;
use crate::doctype::Doctype;
use crate::document::Document;
use crate::duration::IsoDuration;
use crate::loader::{Loader, Presence, ReadResult, Reference, Refs};
use crate::timestamp;
use crate::tree::Node;
use crate::workspace::{WorkspacePath, is_device_name};

/// How Git marks a conflict: the lines of its beginning and of its end begin with these.
const CONFLICT_MARKERS: [&str; 2] = ["<<<<<<< ", ">>>>>>> "];

/// Loads a playbook whose manifest was read.
pub fn load(loader: &Loader<'_>, document: &Arc<Document>) -> Loaded<Playbook> {
    let mut report = document.report.clone();
    if document.refused() {
        return Loaded { value: None, report };
    }
    let Some(playbook) = document.deserialize::<Playbook>(&document.root, &mut report) else {
        return Loaded { value: None, report };
    };
    if playbook.entry.is_some() {
        let body = Body::new("no code is loaded; only the body below the frontmatter counts");
        let help = "take `entry` out, or keep it for hosts that load code and keep both the same";
        report.warn(codes::ENTRY_DRIFT, body.at(document.key_place("entry")).help(help));
    }
    check_times(document, &playbook, &mut report);
    check_invisible(document, &mut report);
    check_conflict_markers(document, &mut report);
    check_device_name(document, &playbook.slug, &mut report);
    check_duplicate_slug(loader, document, &playbook.slug, &mut report);
    if loader.options.refs == Refs::Followed && playbook.selector.is_none() {
        check_targets(loader, document, &playbook, &mut report);
    }
    Loaded { value: Some(playbook).filter(|_| !report.has_refusals()), report }
}

fn check_times(document: &Document, playbook: &Playbook, report: &mut Report) {
    let mut look = |text: Option<&str>, node: Option<&Node>, path: String| {
        let (Some(text), Some(node)) = (text, node) else { return };
        if timestamp::parse(text).is_none() {
            let body = Body::new(format!("`{path}` is `{text}`, which is no time that can be used"));
            let place = document.place(node.span.clone(), path);
            report.refuse(codes::TIMESTAMP, body.at(place).help("write it like \"2026-04-21T09:00:00Z\""));
        }
    };
    look(playbook.created_at.as_deref(), document.root.key("created_at"), "created_at".to_owned());
    look(playbook.updated_at.as_deref(), document.root.key("updated_at"), "updated_at".to_owned());
    let entries = document.root.key("history").map_or(&[][..], Node::items);
    for (at, (entry, node)) in playbook.history.iter().flatten().zip(entries).enumerate() {
        look(Some(&entry.at), node.key("at"), format!("history[{at}].at"));
    }
    let Some(ttl) = &playbook.ttl else { return };
    let place = document.value_place("ttl");
    if let Err(error) = ttl.parse::<IsoDuration>() {
        let body = Body::new(format!("`ttl` is no duration that can be used: {error}"));
        report.refuse(codes::DURATION, body.at(place).help("write it like P30D"));
    } else if written_at(playbook).is_none() {
        let body =
            Body::new("`ttl` counts from when the playbook was written, and nothing says when that was");
        report.refuse(codes::PLAYBOOK_INVALID, body.at(place).help("add `updated_at` or `created_at`"));
    }
}

/// What a reader of the file does not see, an agent would be told. Each such character is refused once, where it first
/// stands; in the frontmatter also where it is written as an escape.
fn check_invisible(document: &Document, report: &mut Report) {
    let mark = if document.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut refuse = |c: char, place| {
        let name = invisible::code_point(c);
        let body = Body::new(format!("{name} is a character that is not seen"));
        report.refuse(codes::PLAYBOOK_INVALID, body.at(place).help("take it out: agents would be told it"));
    };
    let mut told = BTreeSet::new();
    for (at, c) in invisible::find_invisible(&document.text[mark..]) {
        if told.insert(c) {
            let start = mark + at;
            refuse(c, document.place(start..start + c.len_utf8(), ""));
        }
    }
    let mut nodes = vec![&document.root];
    while let Some(node) = nodes.pop() {
        nodes.extend(node.items().iter());
        nodes.extend(node.entries().iter().map(|entry| &entry.value));
        for (_, c) in node.as_str().into_iter().flat_map(invisible::find_invisible) {
            if told.insert(c) {
                refuse(c, document.place(node.span.clone(), ""));
            }
        }
    }
}

/// A merge that nobody has resolved holds two texts, and agents are to be told neither.
fn check_conflict_markers(document: &Document, report: &mut Report) {
    let mut start = document.body.start;
    for line in document.body().split_inclusive('\n') {
        let end = start + line.trim_end().len();
        if line.starts_with(CONFLICT_MARKERS[0]) || line.starts_with(CONFLICT_MARKERS[1]) {
            let body = Body::new("a merge was left unresolved in the body");
            let help = "keep one side, or join them, and take the marks out";
            report.refuse(codes::PLAYBOOK_INVALID, body.at(document.place(start..end, "")).help(help));
            return;
        }
        start += line.len();
    }
}

/// When a playbook was written: `updated_at`, else `created_at`, else its last history entry (B11).
pub fn written_at(playbook: &Playbook) -> Option<&str> {
    let last = || {
        playbook.history.as_ref().and_then(|entries| entries.last()).map(|entry: &history::Entry| &entry.at)
    };
    playbook.updated_at.as_ref().or(playbook.created_at.as_ref()).or_else(last).map(String::as_str)
}

/// Files and folders are called by slugs, and Windows cannot make one that is called like a device.
fn check_device_name(document: &Document, slug: &str, report: &mut Report) {
    if is_device_name(slug) {
        let body =
            Body::new(format!("`{slug}` is the name of a device on Windows, where no file can have it"));
        report.refuse(
            codes::PLAYBOOK_INVALID,
            body.at(document.value_place("slug")).help("give it another slug"),
        );
    }
}

fn check_duplicate_slug(loader: &Loader<'_>, document: &Document, slug: &str, report: &mut Report) {
    let place = document.value_place("slug");
    if let Some(first) = loader.claim_slug(slug, document, &place) {
        let body = Body::new(format!("`{slug}` is the slug of `{}`, too", loader.display_name(&first.path)));
        report.add_source(Arc::clone(&first.place.file), first.text);
        let body = body.at(place).related(first.place, "first here");
        report.refuse(codes::SLUG_DUPLICATE, body.help("give one of them another slug"));
    }
}

fn check_targets(loader: &Loader<'_>, document: &Document, playbook: &Playbook, report: &mut Report) {
    let nodes = document.root.key("targets").map_or(&[][..], Node::items);
    for (at, (target, node)) in playbook.targets.iter().flatten().zip(nodes).enumerate() {
        let Some(written) = node.key("ref") else { continue };
        let Some(what) = unresolved_target(loader, &document.path, target.kind, &target.reference) else {
            continue;
        };
        let body = Body::new(format!("`{}` leads to nothing: {what}", target.reference));
        let place = document.place(written.span.clone(), format!("targets[{at}].ref"));
        report.refuse(
            codes::TARGET_UNRESOLVED,
            body.at(place).help("correct it; `--no-refs` checks the shape alone"),
        );
    }
}

/// Why a target leads to nothing. A glob leads to whatever it matches, now or later; runtimes have no place of their
/// own.
fn unresolved_target(
    loader: &Loader<'_>,
    from: &WorkspacePath,
    kind: TargetKind,
    written: &str,
) -> Option<String> {
    let named = written.strip_prefix("ws://").unwrap_or(written);
    let bare = named.split_once('/').map_or(named, |(_, bare)| bare);
    if written.contains(['*', '?', '[', '{']) || bare.is_empty() {
        return None;
    }
    let has_role = || {
        let roles = roles(loader, from);
        roles.contains(bare) || roles.contains(written)
    };
    match kind {
        TargetKind::Operator if is_operator(loader, from, bare) || has_role() => None,
        TargetKind::Operator => Some(format!("no operator is called `{bare}` or has that role")),
        TargetKind::Role if has_role() => None,
        TargetKind::Role => Some(format!("no operator has the role `{bare}`")),
        // A skill may lie in a folder of skills, so what stands before the slash may be a part of its name.
        TargetKind::Skill if [bare, named].iter().any(|one| is_skill(loader, from, one)) => None,
        TargetKind::Skill => Some(format!("there is no skill `{bare}`")),
        TargetKind::Runtime => None,
    }
}

fn is_skill(loader: &Loader<'_>, from: &WorkspacePath, slug: &str) -> bool {
    loader.resolve(from, &format!("ws://skills/{slug}")).is_ok()
}

/// Whether an operator of a file's scope has a slug. Other than a ref that leads nowhere, a role is expected here: what
/// comes near to it is nothing to look for.
fn is_operator(loader: &Loader<'_>, from: &WorkspacePath, slug: &str) -> bool {
    let location = Reference { collection: "operators", rest: slug }.path(from.scope());
    location.is_ok_and(|location| loader.presence(&location) == Presence::File)
}

/// The roles of all operators of a file's scope, as written and without their collection; read once for all playbooks.
fn roles(loader: &Loader<'_>, from: &WorkspacePath) -> Arc<BTreeSet<String>> {
    if let Some(roles) = loader.roles.borrow().get(from.scope()) {
        return Arc::clone(roles);
    }
    let folder = from.root().child("operators");
    let mut roles = BTreeSet::new();
    for name in loader.folder_names(&folder) {
        let ReadResult::Document(document) =
            loader.read(&folder.child(&name).child("OPERATOR.md"), Doctype::Operator)
        else {
            continue;
        };
        if let Some(role) = document.root.key("role").and_then(Node::as_str) {
            let named = role.strip_prefix("ws://").unwrap_or(role);
            roles.extend(named.split_once('/').map(|(_, bare)| bare.to_owned()));
            roles.insert(role.to_owned());
        }
    }
    let roles = Arc::new(roles);
    loader.roles.borrow_mut().insert(from.scope().clone(), Arc::clone(&roles));
    roles
}
