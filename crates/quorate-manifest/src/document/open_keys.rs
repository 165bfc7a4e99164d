//! Unknown keys in mappings that allow them (M3). A misspelling of a known key is refused, since its value would be
//! ignored. In mappings that only Quorate reads, every other unknown key gets a warning.

use quorate_diagnostics::{Body, codes};

use super::schema_error::describe;
use crate::doctype::{Doctype, compiled_schema};
use crate::json_schema::{ErrorKind, PathStep, SchemaError};
use crate::misspelling::meant_key;
use crate::tree::reader::{SourceFile, nearest};
use crate::tree::{Entry, Kind, Node};

/// The axes of a selector that Quorate knows; embedding programs may add others.
const AXES: [&str; 8] = ["allOf", "anyOf", "identity", "role", "position", "capability", "skill", "runtime"];
/// The keys of a participant's `meta` that Quorate reads; adapters may read others.
const META: [&str; 4] = ["operator", "persona", "operatorId", "capabilities"];

/// Who reads a mapping; this decides what happens to its unknown keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readers {
    /// Only Quorate: a misspelling is refused, another key gets a warning.
    Quorate,
    /// Quorate and other tools: a misspelling is refused, another key is kept.
    Several,
    /// Mainly other tools: a misspelling gets a warning, another key is kept.
    Others,
}

/// A mapping that allows unknown keys.
struct OpenMapping<'n> {
    path: Vec<PathStep>,
    node: &'n Node,
    known: Vec<&'static str>,
    readers: Readers,
}

impl<'n> OpenMapping<'n> {
    /// The unknown keys, without `metadata` and `x-…`, which are free for other tools.
    fn unknown(&self) -> impl Iterator<Item = &'n Entry> {
        let is_reserved = |key: &str| {
            key != "metadata" && !key.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("x-"))
        };
        // A key without a value is absent.
        let is_set = |entry: &Entry| entry.value.kind != Kind::Null;
        self.node.entries().iter().filter(move |entry| {
            is_set(entry) && is_reserved(&entry.key) && !self.known.contains(&&*entry.key)
        })
    }

    /// An error for an unknown key, to share its wording with the schema's errors.
    fn error(&self, key: &str, known: &[&str]) -> SchemaError {
        let known = known.iter().map(|known| (*known).to_owned()).collect();
        let kind = ErrorKind::UnknownKey { key: key.to_owned(), known };
        SchemaError { path: self.path.clone(), kind, schema_description: None }
    }
}

/// An error for each misspelling of a known key that is refused.
pub fn misspelt(doctype: Doctype, root: &Node) -> Vec<SchemaError> {
    let mappings = open_mappings(doctype, root);
    let refusing = mappings.iter().filter(|mapping| mapping.readers != Readers::Others);
    let slips = refusing.flat_map(|mapping| {
        let slips =
            mapping.unknown().filter_map(|entry| Some((entry, meant_key(&entry.key, &mapping.known)?)));
        slips.map(|(entry, meant)| mapping.error(&entry.key, &[meant]))
    });
    slips.collect()
}

/// Warns of unknown keys.
pub(super) fn warn(document: &SourceFile, doctype: Doctype, root: &Node) {
    for mapping in open_mappings(doctype, root) {
        for entry in mapping.unknown() {
            let misspelt = meant_key(&entry.key, &mapping.known);
            let help = match (mapping.readers, misspelt) {
                (Readers::Quorate, None) => match nearest(&entry.key, &mapping.known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!(
                        "the keys are: {}; start the keys of other tools with `x-`",
                        mapping.known.join(", ")
                    ),
                },
                (Readers::Others, Some(meant)) => format!("did you mean `{meant}`?"),
                _ => continue,
            };
            let (_, span, path) = describe(document.text(), root, &mapping.error(&entry.key, &[]), "");
            let body = Body::new(format!("Quorate reads no `{}` here", entry.key)).help(help);
            document.warn(codes::FIELD_WITHOUT_EFFECT, body.at(document.place(span, path)));
        }
    }
}

/// The open mappings of a manifest, without the blocks of adapters, which the adapters validate.
fn open_mappings<'n>(doctype: Doctype, root: &'n Node) -> Vec<OpenMapping<'n>> {
    let mut found = Vec::new();
    let mut add = |node: Option<&'n Node>, path: Vec<PathStep>, known: Vec<&'static str>, readers| {
        found.extend(node.map(|node| OpenMapping { path, node, known, readers }));
    };
    let key = |key: &str| PathStep::Key(key.to_owned());
    let schema = compiled_schema(doctype);
    let known = || schema.map(|schema| schema.keys()).unwrap_or_default();
    match doctype {
        Doctype::Runtime => {
            add(Some(root), Vec::new(), known(), Readers::Quorate);
            let participant = schema.and_then(|schema| schema.property("participants")?.item());
            for (at, node) in root.key("participants").map_or(&[][..], Node::items).iter().enumerate() {
                let path = vec![key("participants"), PathStep::Item(at)];
                let known = participant.map(|schema| schema.keys()).unwrap_or_default();
                add(node.key("meta"), [&path[..], &[key("meta")]].concat(), META.to_vec(), Readers::Others);
                add(Some(node), path, known, Readers::Quorate);
            }
        }
        Doctype::Operator => add(Some(root), Vec::new(), known(), Readers::Several),
        Doctype::Playbook => add(root.key("selector"), vec![key("selector")], AXES.to_vec(), Readers::Others),
        _ => {}
    }
    let ours = root.at_path(&["metadata", "quorate"]);
    let path = vec![key("metadata"), key("quorate")];
    match doctype {
        Doctype::Assembly => {
            add(ours, path.clone(), vec!["executor", "members", "everyMessages"], Readers::Quorate);
            for member in ours.and_then(|ours| ours.key("members")).map_or(&[][..], Node::entries) {
                let path = [&path[..], &[key("members"), key(&member.key)]].concat();
                add(Some(&member.value), path, vec!["executor"], Readers::Quorate);
            }
        }
        Doctype::Persona | Doctype::Operator => add(ours, path, vec!["locks"], Readers::Quorate),
        _ => {}
    }
    found
}
