//! The expected values of a manifest with its chain merged, and the files that they come from.

use std::sync::Arc;

use quorate_manifest::doctype::Doctype;
use quorate_manifest::loader::{Chain, Loader, OpenResult};
use quorate_manifest::tree::{Kind, Node};
use quorate_manifest::workspace::WorkspacePath;
use quorate_manifest::{assembly, persona};
use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub struct ResolvedExpectation {
    pub path: String,
    pub fields: Vec<ExpectedField>,
}

/// A line of a `resolved` block.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedField {
    pub field: String,
    /// `None` for `absent`.
    pub value: Option<Value>,
    /// The files that it comes from; empty if not checked.
    pub from: Vec<String>,
}

impl ExpectedField {
    /// Parses `FIELD = VALUE from FILE`, `FIELD = VALUE` or `FIELD absent`.
    pub fn parse(line: &str) -> Option<ExpectedField> {
        if let Some(field) = line.strip_suffix(" absent") {
            return Some(ExpectedField { field: field.trim().to_owned(), value: None, from: Vec::new() });
        }
        let (field, rest) = line.split_once(" = ")?;
        // A string may contain ` from `.
        let parsed = rest.rsplit_once(" from ").and_then(|(value, from)| {
            let value: Value = serde_json::from_str(value).ok()?;
            Some((value, from.split(", ").map(|file| file.trim().to_owned()).collect()))
        });
        let (value, from) = match parsed {
            Some(parsed) => parsed,
            None => (serde_json::from_str(rest).ok()?, Vec::new()),
        };
        Some(ExpectedField { field: field.trim().to_owned(), value: Some(value), from })
    }
}

impl ResolvedExpectation {
    pub(super) fn compare(&self, loader: &Loader<'_>) -> Vec<String> {
        let path = &self.path;
        let Ok(manifest_path) = WorkspacePath::new(path) else {
            return vec![format!("{path} is not in the workspace")];
        };
        let OpenResult::Document(layer) = loader.open(&manifest_path) else {
            return vec![format!("{path} is not a manifest")];
        };
        let resolved = match layer.doctype {
            Doctype::Assembly => assembly::load(loader, &layer).value.map(|loaded| (loaded.chain, None)),
            Doctype::Persona => {
                persona::load::load(loader, &layer).value.map(|loaded| (loaded.chain, Some(loaded.body)))
            }
            doctype => return vec![format!("{path} is a manifest without a chain: {}", doctype.as_str())],
        };
        let Some((chain, body)) = resolved else { return vec![format!("{path} is not resolved")] };
        self.fields.iter().filter_map(|field| difference(field, &chain, body.as_deref(), path)).collect()
    }
}

fn difference(
    expected: &ExpectedField,
    chain: &Arc<Chain>,
    body: Option<&str>,
    path: &str,
) -> Option<String> {
    let field = &expected.field;
    let (value, from) = match (field.as_str(), body) {
        // Not keys of a format: the merged files, root first, and the text below the frontmatter.
        ("chain", _) => {
            (Some(json!(chain.documents.iter().map(|document| &*document.shown).collect::<Vec<_>>())), None)
        }
        ("body", Some(body)) => (Some(json!(body)), None),
        _ => match find(&chain.merged, field) {
            Err(error) => return Some(format!("{path}: {field}: {error}")),
            Ok(Selection::One(node)) => (node.map(Node::to_json), node.map(|node| vec![files(chain, node)])),
            Ok(Selection::Each(nodes)) => {
                let values = nodes.iter().map(|node| node.to_json()).collect();
                (Some(Value::Array(values)), Some(nodes.iter().map(|node| files(chain, node)).collect()))
            }
        },
    };
    if value != expected.value {
        let value = value.map_or_else(|| "absent".to_owned(), |value| value.to_string());
        return Some(format!("{path}: {field} is {value}"));
    }
    let from = from?;
    // One file stands for all items of a list.
    let expected_file =
        |at: usize| expected.from.get(at).or(expected.from.first().filter(|_| expected.from.len() == 1));
    let differs = !expected.from.is_empty()
        && from
            .iter()
            .enumerate()
            .any(|(at, files)| files.iter().any(|file| Some(file) != expected_file(at)));
    differs.then(|| format!("{path}: {field} comes from {}", from.concat().join(", ")))
}

/// The files of a value and everything in it. A merged mapping or list covers only its parts, so only those count.
fn files(chain: &Chain, node: &Node) -> Vec<String> {
    let mut found = match &node.kind {
        Kind::Map(entries) if !entries.is_empty() => {
            entries.iter().flat_map(|entry| files(chain, &entry.value)).collect()
        }
        Kind::Seq(items) if !items.is_empty() => items.iter().flat_map(|item| files(chain, item)).collect(),
        _ => vec![chain.document_of(node).shown.to_string()],
    };
    found.dedup();
    found
}

enum Selection<'n> {
    One(Option<&'n Node>),
    /// The nodes that `[]` selects: one of each item.
    Each(Vec<&'n Node>),
}

/// Follows a path such as `members[id=ciso].weight`, `lockedTraits[0]` or `members[].id`.
fn find<'n>(root: &'n Node, path: &str) -> Result<Selection<'n>, String> {
    let mut at = vec![root];
    let mut each = false;
    for step in path.split('.') {
        let (key, picks) = step.split_once('[').map_or((step, None), |(key, rest)| (key, Some(rest)));
        at = at.into_iter().filter_map(|node| node.key(key)).collect();
        for pick in picks.into_iter().flat_map(|picks| picks.split('[')) {
            let pick = pick.strip_suffix(']').ok_or_else(|| format!("`{step}` does not end in `]`"))?;
            at = at.into_iter().flat_map(|node| select(node, pick)).collect();
            each |= pick.is_empty();
        }
    }
    Ok(if each { Selection::Each(at) } else { Selection::One(at.first().copied()) })
}

fn select<'n>(list: &'n Node, pick: &str) -> Vec<&'n Node> {
    let items = list.items();
    if pick.is_empty() {
        return items.iter().collect();
    }
    match pick.split_once('=') {
        Some((key, value)) => {
            let has = |item: &&Node| item.key(key).and_then(Node::as_str) == Some(value);
            items.iter().filter(has).take(1).collect()
        }
        None => pick.parse().ok().and_then(|at: usize| items.get(at)).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_field_a_value_and_where_it_comes_from() {
        let parse = |line| ExpectedField::parse(line).map(|field| (field.field, field.value, field.from));
        let expected = |field: &str, value: Option<Value>, from: &[&str]| {
            Some((field.to_owned(), value, from.iter().map(|file| (*file).to_owned()).collect()))
        };
        assert_eq!(parse("a.b = 1 from A.md"), expected("a.b", Some(json!(1)), &["A.md"]));
        assert_eq!(parse("a = \"x from y\""), expected("a", Some(json!("x from y")), &[]));
        assert_eq!(
            parse("a[] = [1, 2] from A.md, B.md"),
            expected("a[]", Some(json!([1, 2])), &["A.md", "B.md"])
        );
        assert_eq!(parse("a absent"), expected("a", None, &[]));
        assert_eq!(parse("a = b from A.md"), None);
        assert_eq!(parse("a 1"), None);
    }
}
