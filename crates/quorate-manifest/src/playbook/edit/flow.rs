//! Edits of flow mappings and flow lists.

use super::{Patch, write};
use crate::tree::{Entry, Kind, Node};

/// Candidate patches to set a present key of a flow mapping.
pub(super) fn set(text: &str, root: &Node, at: usize, value: &Node) -> Vec<Patch> {
    let entry = &root.entries()[at];
    let end = end(text, entry);
    let new = if entry.value.span.is_empty() {
        vec![(entry.key_span.end..end, format!(": {}", write::flow(value)))]
    } else {
        vec![(entry.value.span.clone(), write::flow(value))]
    };
    vec![new]
}

/// Candidate patches to add a key to a flow mapping.
pub(super) fn insert(text: &str, root: &Node, key: &str, value: &Node) -> Vec<Patch> {
    let new = format!("{}: {}", write::key(key), write::flow(value));
    vec![match root.entries().last() {
        Some(last) => {
            let end = end(text, last);
            vec![(end..end, format!(", {new}"))]
        }
        None => vec![(root.span.start + 1..root.span.start + 1, new)],
    }]
}

/// Candidate patches to remove a key of a flow mapping, with one adjacent comma.
pub(super) fn remove(text: &str, root: &Node, at: usize) -> Vec<Patch> {
    let entries = root.entries();
    let (from, to) = (entries[at].key_span.start, end(text, &entries[at]));
    let before = at.checked_sub(1).map(|at| end(text, &entries[at]));
    let after = entries.get(at + 1).map_or(root.span.end, |next| next.key_span.start);
    let comma = |from: usize, to: usize| comma(text, from, to);
    if let Some(comma) = comma(to, after) {
        return vec![vec![(from..to, String::new()), (comma..comma + 1, String::new())]];
    }
    let before = before.and_then(|end| comma(end, from)).map(|comma| (comma..comma + 1, String::new()));
    vec![before.into_iter().chain([(from..to, String::new())]).collect()]
}

/// Candidate patches to append an item to a flow list.
pub(super) fn push(list: &Node, item: &Node) -> Vec<Patch> {
    let new = write::flow(item);
    match list.items().last() {
        Some(last) => vec![vec![(last.span.end..last.span.end, format!(", {new}"))]],
        None => vec![vec![(list.span.start + 1..list.span.start + 1, new)]],
    }
}

/// The end of an entry of a flow mapping. The span of a missing value is not usable for this.
fn end(text: &str, entry: &Entry) -> usize {
    if entry.value.kind != Kind::Null || !entry.value.span.is_empty() {
        return entry.value.span.end;
    }
    let rest = &text[entry.key_span.end..];
    let colon = rest.len() - rest.trim_start().len();
    if rest[colon..].starts_with(':') { entry.key_span.end + colon + 1 } else { entry.key_span.end }
}

/// The comma between two offsets that have only blanks and comments between them.
fn comma(text: &str, from: usize, to: usize) -> Option<usize> {
    let mut at = from;
    for line in text.get(from..to)?.split_inclusive('\n') {
        let bare = line.split('#').next().unwrap_or_default();
        if let Some(comma) = bare.find(',') {
            return Some(at + comma);
        }
        at += line.len();
    }
    None
}
