//! Loads a runtime manifest and checks it beyond its schema. Adapters check their own blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use quorate_diagnostics::{Body, Place, Report, codes};

use super::Runtime;
use crate::Loaded;
use crate::document::Document;
use crate::loader::{Loader, Presence, Refs};
use crate::tree::Node;
use crate::tree::reader::meant_or;

/// The authors of messages without a name, and of a server's messages without an author. No participant has their names.
pub const RESERVED_AUTHORS: [&str; 2] = ["user", "system"];

/// The extensions of a `role` that is a path (K9).
pub const ROLE_FILES: [&str; 3] = [".md", ".markdown", ".txt"];

/// Loads a runtime from its document.
pub fn load_runtime(loader: &Loader<'_>, document: &Arc<Document>) -> Loaded<Runtime> {
    let mut report = document.report.clone();
    if document.refused() {
        return Loaded { value: None, report };
    }
    let ids = check_participants(loader, document, &mut report);
    check_effectors(document, &ids, &mut report);
    let runtime: Option<Runtime> = document.deserialize(&document.root, &mut report);
    Loaded { value: runtime.filter(|_| !report.has_refusals()), report }
}

fn check_participants<'l>(loader: &Loader<'_>, document: &'l Document, report: &mut Report) -> Vec<&'l str> {
    let mut seen: BTreeMap<&str, Place> = BTreeMap::new();
    let mut ids = Vec::new();
    for (at, participant) in document.root.items_at(&["participants"]).iter().enumerate() {
        if let Some((node, id)) = participant.key("id").and_then(|node| Some((node, node.as_str()?))) {
            let place = document.place(node.span.clone(), format!("participants[{at}].id"));
            if RESERVED_AUTHORS.contains(&id) {
                let message =
                    format!("no participant can have the id `{id}`: people's turns have this author");
                let body = Body::new(message).at(place.clone()).help("give it another id");
                report.refuse(codes::PARTICIPANT_RESERVED, body);
            }
            if let Some(first) = seen.get(id) {
                let body = Body::new(format!("two participants have the id `{id}`")).at(place);
                let body = body.related(first.clone(), "first here").help("give one of them another id");
                report.refuse(codes::PARTICIPANT_DUPLICATE, body);
            } else {
                seen.insert(id, place);
                ids.push(id);
            }
        }
        if loader.options.refs == Refs::Followed {
            check_role(loader, document, participant, at, report);
        }
    }
    ids
}

/// Whether a role is the path of a file, relative to the manifest; otherwise it is the role's text (K9).
pub fn is_role_file(role: &str) -> bool {
    let has_extension = |extension: &&str| {
        let at = role.len().checked_sub(extension.len());
        at.and_then(|at| role.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(extension))
    };
    !role.contains('\n') && ROLE_FILES.iter().any(has_extension)
}

/// Refuses a role file that does not exist.
fn check_role(loader: &Loader<'_>, document: &Document, participant: &Node, at: usize, report: &mut Report) {
    let Some(node) = participant.key("role") else { return };
    let Some(path) = node.as_str().map(str::trim) else { return };
    if !is_role_file(path) {
        return;
    }
    let why = match document.path.resolve_relative(path) {
        Err(escape) => escape.to_string(),
        Ok(location) => match loader.presence(&location) {
            Presence::File => return,
            Presence::Folder => "it is a folder".to_owned(),
            Presence::Absent(why) => why,
        },
    };
    let body = Body::new(format!("the role file `{path}` cannot be read: {why}"));
    let place = document.place(node.span.clone(), format!("participants[{at}].role"));
    report.refuse(codes::ROLE_UNRESOLVABLE, body.at(place).help("the path is relative to this manifest"));
}

fn check_effectors(document: &Document, ids: &[&str], report: &mut Report) {
    for (at, effector) in document.root.items_at(&["effectors"]).iter().enumerate() {
        let Some(node) = effector.key("participantId") else { continue };
        let Some(id) = node.as_str().filter(|id| !ids.contains(id)) else { continue };
        let help = meant_or(id, ids, || format!("the participants are: {}", ids.join(", ")));
        let body = Body::new(format!("cannot give tools to the unknown participant `{id}`"));
        let place = document.place(node.span.clone(), format!("effectors[{at}].participantId"));
        report.refuse(codes::EFFECTOR_UNKNOWN_PARTICIPANT, body.at(place).help(help));
    }
}
