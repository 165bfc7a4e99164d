//! Keys in mappings that may hold others than those that are known (M3). What is a slip of a known key is refused: it would
//! be passed over, and with it what it says. Where nobody but Quorate reads, any other key is warned about.

use quorate_diagnostics::{Body, codes};

use super::schema_error::describe;
use crate::doctype::{Doctype, compiled_schema};
use crate::json_schema::{ErrorKind, PathStep, SchemaError};
use crate::misspelling::meant_key;
use crate::tree::reader::{SourceFile, nearest};
use crate::tree::{Entry, Kind, Node};

/// The axes of a selector that operators have values on by themselves; hosts may have others.
const AXES: [&str; 8] = ["allOf", "anyOf", "identity", "role", "position", "capability", "skill", "runtime"];
/// What is read of a participant's `meta`; adapters may read more.
const META: [&str; 4] = ["operator", "persona", "operatorId", "capabilities"];

/// Who reads a mapping, which is what its other keys depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readers {
    /// Quorate: a slip is refused, another key warned about.
    Quorate,
    /// Others, too: a slip is refused, another key kept.
    Several,
    /// Whoever it is for, and Quorate what it knows: a slip is warned about.
    Others,
}

/// A mapping that may hold other keys.
struct OpenMapping<'n> {
    path: Vec<PathStep>,
    node: &'n Node,
    known: Vec<&'static str>,
    readers: Readers,
}

impl<'n> OpenMapping<'n> {
    /// The keys that are not known, and may not be anybody's: `metadata` and `x-…` are.
    fn unknown(&self) -> impl Iterator<Item = &'n Entry> {
        let ours = |key: &str| {
            key != "metadata" && !key.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("x-"))
        };
        // A key without a value is absent.
        let is_set = |entry: &Entry| entry.value.kind != Kind::Null;
        self.node
            .entries()
            .iter()
            .filter(move |entry| is_set(entry) && ours(&entry.key) && !self.known.contains(&&*entry.key))
    }

    /// A key as an error, so that it is told in the words of all unknown keys.
    fn error(&self, key: &str, known: &[&str]) -> SchemaError {
        let known = known.iter().map(|known| (*known).to_owned()).collect();
        let kind = ErrorKind::UnknownKey { key: key.to_owned(), known };
        SchemaError { path: self.path.clone(), kind, schema_description: None }
    }
}

/// The keys that are refused as slips of known ones.
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

/// Warns of what nobody reads.
pub(super) fn warn(document: &SourceFile, doctype: Doctype, root: &Node) {
    for mapping in open_mappings(doctype, root) {
        for entry in mapping.unknown() {
            let slip = meant_key(&entry.key, &mapping.known);
            let help = match (mapping.readers, slip) {
                (Readers::Quorate, None) => match nearest(&entry.key, &mapping.known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!(
                        "the keys are: {}; name what is for other tools `x-…`",
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

/// The open mappings of a manifest whose known keys are known here. Blocks of adapters are the adapters' own.
fn open_mappings<'n>(doctype: Doctype, root: &'n Node) -> Vec<OpenMapping<'n>> {
    let mut found = Vec::new();
    let mut add = |node: Option<&'n Node>, path: Vec<PathStep>, known: Vec<&'static str>, readers| {
        found.extend(node.map(|node| OpenMapping { path, node, known, readers }));
    };
    let key = |key: &str| PathStep::Key(key.to_owned());
    let form = compiled_schema(doctype);
    let known = || form.map(|form| form.keys()).unwrap_or_default();
    match doctype {
        Doctype::Runtime => {
            add(Some(root), Vec::new(), known(), Readers::Quorate);
            let participant = form.and_then(|form| form.property("participants")?.item());
            for (at, node) in root.key("participants").map_or(&[][..], Node::items).iter().enumerate() {
                let path = vec![key("participants"), PathStep::Item(at)];
                let known = participant.map(|form| form.keys()).unwrap_or_default();
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
