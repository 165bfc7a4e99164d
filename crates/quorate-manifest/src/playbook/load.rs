//! Loads a playbook and checks it, alone and against the other playbooks of its scope. The weave checks it against the
//! persona.
//!
//! The playbooks of a scope (B1) are all Markdown files below its `playbooks/`, except histories and files that begin with
//! `_` (the index, the log).

use std::collections::BTreeSet;
use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes, invisible};

use super::{Playbook, TargetKind};
use crate::doctype::Doctype;
use crate::document::Document;
use crate::duration::IsoDuration;
use crate::loader::{Loader, OperatorNames, Presence, ReadResult, Reference, Refs};
use crate::tree::Node;
use crate::workspace::{Scope, WorkspacePath, is_device_name};
use crate::{Loaded, timestamp};

/// The folder of playbooks in a scope.
pub const FOLDER: &str = "playbooks";
/// The suffix of a history's file name.
pub const HISTORY_SUFFIX: &str = ".history.md";

/// The maximum depth of folders, since links can form cycles.
const MAX_DEPTH: usize = 8;

/// The prefixes of the first and last line of a Git conflict.
const CONFLICT_MARKERS: [&str; 2] = ["<<<<<<< ", ">>>>>>> "];

/// A playbook and its file.
#[derive(Debug, Clone)]
pub struct PlaybookFile {
    pub path: WorkspacePath,
    pub playbook: Playbook,
    pub document: Arc<Document>,
}

impl PlaybookFile {
    pub fn text(&self) -> &str {
        self.document.body().trim()
    }
}

/// All playbooks of a scope.
#[derive(Debug, Default)]
pub struct Catalog {
    /// The valid playbooks, sorted by path.
    pub playbooks: Vec<PlaybookFile>,
    /// The refusals of the others, and all warnings.
    pub report: Report,
}

/// Loads all playbooks of a scope.
pub fn load_all(loader: &Loader<'_>, scope: &Scope) -> Catalog {
    let mut catalog = Catalog::default();
    for location in paths(loader, scope) {
        match loader.read(&location, Doctype::Playbook) {
            ReadResult::Document(document) => {
                let loaded = load_playbook(loader, &document);
                catalog.report.absorb(loaded.report);
                catalog.playbooks.extend(loaded.value.map(|playbook| PlaybookFile {
                    path: location,
                    playbook,
                    document,
                }));
            }
            ReadResult::Unreadable(why) => {
                let body = Body::new(format!("`{}` cannot be read: {why}", loader.display_name(&location)));
                catalog.report.refuse(codes::FILE_UNREADABLE, body);
            }
            // Removed since the folder was listed, or not in the scope.
            ReadResult::Missing | ReadResult::Outside => {}
        }
    }
    catalog
}

/// The paths of a scope's playbooks, sorted.
pub fn paths(loader: &Loader<'_>, scope: &Scope) -> Vec<WorkspacePath> {
    let mut found = Vec::new();
    if let Some(folder) = folder(scope) {
        walk(loader, &folder, MAX_DEPTH, &mut found);
    }
    found.sort();
    found
}

/// Whether a scope has a non-empty folder of playbooks.
pub fn exists(loader: &Loader<'_>, scope: &Scope) -> bool {
    folder(scope).is_some_and(|folder| {
        !loader.file_names(&folder).is_empty() || !loader.folder_names(&folder).is_empty()
    })
}

/// Loads a playbook from its document.
pub fn load_playbook(loader: &Loader<'_>, document: &Arc<Document>) -> Loaded<Playbook> {
    let mut report = document.report.clone();
    if document.refused() {
        return Loaded { value: None, report };
    }
    let Some(playbook) = document.deserialize::<Playbook>(&document.root, &mut report) else {
        return Loaded { value: None, report };
    };
    if playbook.entry.is_some() {
        let body = Body::new("Quorate loads no code; it uses only the body below the frontmatter");
        let help = "remove `entry`, or keep the code and the body identical for programs that load code";
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
    let mut check = |text: Option<&str>, node: Option<&Node>, path: String| {
        let (Some(text), Some(node)) = (text, node) else { return };
        if timestamp::parse(text).is_none() {
            let body = Body::new(format!("`{path}` is `{text}`, which is not a valid time"));
            let place = document.place(node.span.clone(), path);
            report.refuse(codes::TIMESTAMP, body.at(place).help("write it like \"2026-04-21T09:00:00Z\""));
        }
    };
    check(playbook.created_at.as_deref(), document.root.key("created_at"), "created_at".to_owned());
    check(playbook.updated_at.as_deref(), document.root.key("updated_at"), "updated_at".to_owned());
    let entries = document.root.key("history").map_or(&[][..], Node::items);
    for (at, (entry, node)) in playbook.history.iter().flatten().zip(entries).enumerate() {
        check(Some(&entry.at), node.key("at"), format!("history[{at}].at"));
    }
    let Some(ttl) = &playbook.ttl else { return };
    let place = document.value_place("ttl");
    if let Err(error) = ttl.parse::<IsoDuration>() {
        let body = Body::new(format!("`ttl` is not a usable duration: {error}"));
        report.refuse(codes::DURATION, body.at(place).help("write it like P30D"));
    } else if written_at(playbook).is_none() {
        let body = Body::new("`ttl` counts from the time of writing, which the playbook does not have");
        report.refuse(codes::PLAYBOOK_INVALID, body.at(place).help("add `updated_at` or `created_at`"));
    }
}

/// Refuses invisible characters, which people miss but models read: each once, at its first place; in the frontmatter also
/// as an escape sequence.
fn check_invisible(document: &Document, report: &mut Report) {
    let mark = if document.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut refuse = |c: char, place| {
        let name = invisible::code_point(c);
        let body = Body::new(format!("{name} is an invisible character"));
        report.refuse(codes::PLAYBOOK_INVALID, body.at(place).help("remove it: models would read it"));
    };
    let mut reported = BTreeSet::new();
    for (at, c) in invisible::find_invisible(&document.text[mark..]) {
        if reported.insert(c) {
            let start = mark + at;
            refuse(c, document.place(start..start + c.len_utf8(), ""));
        }
    }
    let mut nodes = vec![&document.root];
    while let Some(node) = nodes.pop() {
        nodes.extend(node.items().iter());
        nodes.extend(node.entries().iter().map(|entry| &entry.value));
        for (_, c) in node.as_str().into_iter().flat_map(invisible::find_invisible) {
            if reported.insert(c) {
                refuse(c, document.place(node.span.clone(), ""));
            }
        }
    }
}

/// Refuses unresolved merge conflicts, since the body has two competing texts.
fn check_conflict_markers(document: &Document, report: &mut Report) {
    let mut start = document.body.start;
    for line in document.body().split_inclusive('\n') {
        let end = start + line.trim_end().len();
        if line.starts_with(CONFLICT_MARKERS[0]) || line.starts_with(CONFLICT_MARKERS[1]) {
            let body = Body::new("the body has an unresolved merge conflict");
            let help = "resolve the conflict and remove its markers";
            report.refuse(codes::PLAYBOOK_INVALID, body.at(document.place(start..end, "")).help(help));
            return;
        }
        start += line.len();
    }
}

/// Whether a playbook's time is over (B11).
pub fn is_over(playbook: &Playbook, now_ms: i64) -> bool {
    let written = written_at(playbook).and_then(timestamp::parse);
    let ttl = playbook.ttl.as_ref().and_then(|ttl| ttl.parse::<IsoDuration>().ok());
    written.zip(ttl).is_some_and(|(at, ttl)| timestamp::add_duration(at, ttl) <= now_ms)
}

/// The time of writing: `updated_at`, else `created_at`, else the last history entry's (B11).
pub fn written_at(playbook: &Playbook) -> Option<&str> {
    let last =
        || playbook.history.as_ref().and_then(|entries| entries.last()).map(|entry: &super::Entry| &entry.at);
    playbook.updated_at.as_ref().or(playbook.created_at.as_ref()).or_else(last).map(String::as_str)
}

/// Refuses device names of Windows, since slugs become file names.
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
        let body = Body::new(format!("`{slug}` is also the slug of `{}`", loader.display_name(&first.path)));
        report.add_source(Arc::clone(&first.place.file), first.text);
        let body = body.at(place).related(first.place, "first here");
        report.refuse(codes::SLUG_DUPLICATE, body.help("give one of them another slug"));
    }
}

fn check_targets(loader: &Loader<'_>, document: &Document, playbook: &Playbook, report: &mut Report) {
    let nodes = document.root.key("targets").map_or(&[][..], Node::items);
    for (at, (target, node)) in playbook.targets.iter().flatten().zip(nodes).enumerate() {
        let Some(written) = node.key("ref") else { continue };
        let Some(reason) = unresolved_target(loader, &document.path, target.kind, &target.reference) else {
            continue;
        };
        let body = Body::new(format!("`{}` cannot be resolved: {reason}", target.reference));
        let place = document.place(written.span.clone(), format!("targets[{at}].ref"));
        report.refuse(
            codes::TARGET_UNRESOLVED,
            body.at(place).help("correct it; `--no-refs` checks only the syntax of refs"),
        );
    }
}

/// Why a target cannot be resolved. Globs may match nothing yet, and runtimes are not looked up.
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
    let names = || operator_names(loader, from);
    let has_role = || [bare, written].iter().any(|name| names().roles.contains(*name));
    let has_skill = || names().skills.contains(bare_skill(written));
    match kind {
        TargetKind::Operator if is_operator(loader, from, bare) || has_role() => None,
        TargetKind::Operator => Some(format!("no operator is called `{bare}` or has that role")),
        TargetKind::Role if has_role() => None,
        TargetKind::Role => Some(format!("no operator has the role `{bare}`")),
        // Skills can be in subfolders, so the part before the slash may belong to the name.
        TargetKind::Skill if [bare, named].iter().any(|slug| is_skill(loader, from, slug)) => None,
        TargetKind::Skill if has_skill() => None,
        TargetKind::Skill => {
            Some(format!("no operator lists the skill `{bare}`, and skills/ does not have it"))
        }
        TargetKind::Runtime => None,
    }
}

fn is_skill(loader: &Loader<'_>, from: &WorkspacePath, slug: &str) -> bool {
    loader.resolve(from, &format!("ws://skills/{slug}")).is_ok()
}

/// Whether the scope of `from` has an operator with this slug. Does not use [`Loader::resolve`], whose search for similar
/// names is wasted here: the target may be a role.
fn is_operator(loader: &Loader<'_>, from: &WorkspacePath, slug: &str) -> bool {
    let location = Reference { collection: "operators", rest: slug }.path(from.scope());
    location.is_ok_and(|location| loader.presence(&location) == Presence::File)
}

/// A skill without `ws://` and its collection, as a playbook's target is bound to it.
fn bare_skill(written: &str) -> &str {
    let named = written.strip_prefix("ws://").unwrap_or(written);
    ["skills/", "skill/"].iter().find_map(|prefix| named.strip_prefix(prefix)).unwrap_or(named)
}

/// The roles of all operators in the scope of `from`, as written and without their collection, and their skills; cached.
fn operator_names(loader: &Loader<'_>, from: &WorkspacePath) -> Arc<OperatorNames> {
    if let Some(names) = loader.operator_names.borrow().get(from.scope()) {
        return Arc::clone(names);
    }
    let folder = from.root().child("operators");
    let mut names = OperatorNames::default();
    for name in loader.folder_names(&folder) {
        let ReadResult::Document(document) =
            loader.read(&folder.child(&name).child("OPERATOR.md"), Doctype::Operator)
        else {
            continue;
        };
        if let Some(role) = document.root.key("role").and_then(Node::as_str) {
            let named = role.strip_prefix("ws://").unwrap_or(role);
            names.roles.extend(named.split_once('/').map(|(_, bare)| bare.to_owned()));
            names.roles.insert(role.to_owned());
        }
        let skills = document.root.key("skills").map_or(&[][..], Node::items);
        names.skills.extend(skills.iter().filter_map(Node::as_str).map(|skill| bare_skill(skill).to_owned()));
    }
    let names = Arc::new(names);
    loader.operator_names.borrow_mut().insert(from.scope().clone(), Arc::clone(&names));
    names
}

fn folder(scope: &Scope) -> Option<WorkspacePath> {
    WorkspacePath::new(&scope.path(FOLDER)).ok()
}

fn walk(loader: &Loader<'_>, folder: &WorkspacePath, depth: usize, found: &mut Vec<WorkspacePath>) {
    let is_playbook =
        |name: &str| name.ends_with(".md") && !name.starts_with('_') && !name.ends_with(HISTORY_SUFFIX);
    for name in loader.file_names(folder) {
        if is_playbook(&name) {
            found.push(folder.child(&name));
        }
    }
    for name in loader.folder_names(folder) {
        if depth > 0 && !name.starts_with(['.', '_']) {
            walk(loader, &folder.child(&name), depth - 1, found);
        }
    }
}
