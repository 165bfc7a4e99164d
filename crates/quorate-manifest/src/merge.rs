//! Merges a document into the tree of its ancestors by a table with a strategy for each key. Each node of the result has
//! the index of its document.

use std::collections::HashSet;

use crate::tree::{Entry, Kind, Node};

/// How one key is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// The child's value, if it has one.
    Override,
    /// Only the child's value; nothing is inherited.
    Local,
    /// A list of mappings: the child's item replaces the parent's item with the same id (the value of the given key) in its
    /// place, new ones are appended.
    ById(&'static str),
    /// A list: the child's new items are appended.
    Union,
    /// Mappings are merged key by key, at any depth.
    Deep,
    /// A mapping with its own table.
    Fields(Table),
}

/// The strategies of keys; other keys have [`Strategy::Override`].
pub(crate) type Table = &'static [(&'static str, Strategy)];

/// Merges a child into its ancestors' tree.
pub(crate) fn merge(parent: &Node, child: &Node, table: Table) -> Node {
    let strategy = |key: &str| {
        table.iter().find(|(known, _)| *known == key).map_or(Strategy::Override, |(_, strategy)| *strategy)
    };
    merge_by(parent, child, strategy)
}

fn merge_by(parent: &Node, child: &Node, strategy: impl Fn(&str) -> Strategy) -> Node {
    let mut entries: Vec<Entry> = Vec::new();
    for entry in present(parent) {
        let strategy = strategy(&entry.key);
        match child.entry(&entry.key) {
            None if strategy == Strategy::Local => {}
            None => entries.push(entry.clone()),
            Some(over) => entries.push(merge_entry(entry, over, strategy)),
        }
    }
    entries.extend(present(child).filter(|entry| parent.entry(&entry.key).is_none()).cloned());
    Node { kind: Kind::Map(entries), span: parent.span.clone(), document: parent.document }
}

fn present(node: &Node) -> impl Iterator<Item = &Entry> {
    node.entries().iter().filter(|entry| entry.value.kind != Kind::Null)
}

/// Merges an entry that both have. If both contribute, the entry keeps the parent's key and span.
fn merge_entry(parent: &Entry, child: &Entry, strategy: Strategy) -> Entry {
    let in_parent = |value: Node| Entry { value, ..parent.clone() };
    match strategy {
        Strategy::Override | Strategy::Local => child.clone(),
        Strategy::ById(key) => in_parent(by_id(&parent.value, &child.value, key)),
        Strategy::Union => in_parent(union(&parent.value, &child.value)),
        Strategy::Fields(table) => in_parent(merge(&parent.value, &child.value, table)),
        Strategy::Deep => match (&parent.value.kind, &child.value.kind) {
            (Kind::Map(_), Kind::Map(_)) => {
                in_parent(merge_by(&parent.value, &child.value, |_| Strategy::Deep))
            }
            _ => child.clone(),
        },
    }
}

fn by_id(parent: &Node, child: &Node, key: &str) -> Node {
    let same =
        |first: &Node, second: &Node| first.key(key).map(|id| &id.kind) == second.key(key).map(|id| &id.kind);
    let replacing = |item: &Node| child.items().iter().find(|replacing| same(item, replacing)).cloned();
    let mut merged: Vec<Node> =
        parent.items().iter().map(|item| replacing(item).unwrap_or_else(|| item.clone())).collect();
    let new = child.items().iter().filter(|item| !parent.items().iter().any(|known| same(known, item)));
    merged.extend(new.cloned());
    Node { kind: Kind::Seq(merged), span: parent.span.clone(), document: parent.document }
}

fn union(parent: &Node, child: &Node) -> Node {
    let mut merged = parent.items().to_vec();
    let mut known: HashSet<&str> = parent.items().iter().filter_map(Node::as_str).collect();
    for item in child.items() {
        let new = match item.as_str() {
            Some(text) => known.insert(text),
            None => !merged.iter().any(|known| known.kind == item.kind),
        };
        if new {
            merged.push(item.clone());
        }
    }
    Node { kind: Kind::Seq(merged), span: parent.span.clone(), document: parent.document }
}
