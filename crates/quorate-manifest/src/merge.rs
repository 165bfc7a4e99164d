//! Merging a document over what its ancestors made, by a table of strategies: one row for each key, in the order of the
//! format's own table. What comes out knows of every value which document it comes from.

use std::collections::HashSet;

use crate::tree::{Entry, Kind, Node};

/// How one key is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// The child's value, if it has one.
    Override,
    /// Only the child's value; nothing is inherited.
    Local,
    /// Items with the same key are merged or replaced in place, new ones are appended.
    ById(&'static str, Items),
    /// The child's new items are appended.
    Union,
    /// Mappings key by key, all the way down.
    Deep,
    /// Mappings key by key, by a table of their own.
    Fields(&'static [Row]),
}

/// What happens to items with the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Items {
    /// The child's fields override one by one.
    Fieldwise,
    /// The child's item takes the place of the parent's.
    Whole,
}

/// How one key is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub key: &'static str,
    pub strategy: Strategy,
}

/// A row of a table.
pub const fn row(key: &'static str, strategy: Strategy) -> Row {
    Row { key, strategy }
}

/// Merges a child over what its ancestors made. Keys that the table does not name are the child's alone or the
/// parent's alone, or overridden.
pub fn merge(parent: &Node, child: &Node, table: &[Row]) -> Node {
    let mut entries: Vec<Entry> = Vec::new();
    for entry in present(parent) {
        let strategy = strategy(table, &entry.key);
        match child.entry(&entry.key) {
            None if strategy == Strategy::Local => {}
            None => entries.push(entry.clone()),
            Some(over) => entries.push(merge_entry(entry, over, strategy)),
        }
    }
    entries.extend(present(child).filter(|entry| parent.entry(&entry.key).is_none()).cloned());
    Node { kind: Kind::Map(entries), span: parent.span.clone(), document: parent.document }
}

fn strategy(table: &[Row], key: &str) -> Strategy {
    table.iter().find(|row| row.key == key).map_or(Strategy::Override, |row| row.strategy)
}

fn present(node: &Node) -> impl Iterator<Item = &Entry> {
    let entries = match &node.kind {
        Kind::Map(entries) => entries.as_slice(),
        _ => &[],
    };
    entries.iter().filter(|entry| entry.value.kind != Kind::Null)
}

/// The entry of a key that both have. The key stands where the value does: with the parent's where both contribute.
fn merge_entry(parent: &Entry, child: &Entry, strategy: Strategy) -> Entry {
    let within = |value: Node| Entry { value, ..parent.clone() };
    match strategy {
        Strategy::Override | Strategy::Local => child.clone(),
        Strategy::ById(key, items) => within(by_id(&parent.value, &child.value, key, items)),
        Strategy::Union => within(union(&parent.value, &child.value)),
        Strategy::Fields(table) => within(merge(&parent.value, &child.value, table)),
        Strategy::Deep => match (&parent.value.kind, &child.value.kind) {
            (Kind::Map(_), Kind::Map(_)) => within(deep(&parent.value, &child.value)),
            _ => child.clone(),
        },
    }
}

fn deep(parent: &Node, child: &Node) -> Node {
    let mut entries: Vec<Entry> = present(parent)
        .map(|entry| match child.entry(&entry.key) {
            None => entry.clone(),
            Some(over) => merge_entry(entry, over, Strategy::Deep),
        })
        .collect();
    entries.extend(present(child).filter(|entry| parent.entry(&entry.key).is_none()).cloned());
    Node { kind: Kind::Map(entries), span: parent.span.clone(), document: parent.document }
}

fn by_id(parent: &Node, child: &Node, key: &str, items: Items) -> Node {
    let same =
        |one: &Node, other: &Node| one.key(key).map(|id| &id.kind) == other.key(key).map(|id| &id.kind);
    let over = |item: &Node| child.items().iter().find(|over| same(item, over));
    let mut merged: Vec<Node> = parent
        .items()
        .iter()
        .map(|item| match (over(item), items) {
            (None, _) => item.clone(),
            (Some(over), Items::Whole) => over.clone(),
            (Some(over), Items::Fieldwise) => merge(item, over, &[]),
        })
        .collect();
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
