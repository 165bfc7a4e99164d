//! The strategy `merge-json-deep`: merges JSON into JSON, and removes it again. Both edit the text: unchanged parts keep
//! their order and spacing, and new parts follow the style of their surroundings.
//!
//! Objects are merged key by key, and arrays get each missing item once. Other values that differ are replaced by the
//! profile's.

use std::collections::{HashMap, HashSet};

use quorate_manifest::tree::{Entry, Kind, Node, Problem, json};

use super::options::Force;

mod edit;
mod style;

use edit::Edits;
use style::{SourceValue, Style};

/// Merges a profile's JSON into a target. A target that already has all of it stays unchanged.
///
/// # Errors
/// If one of the two is not JSON.
pub fn merge(target: &str, profile: &str) -> Result<String, InvalidJson> {
    let into = json::parse(target).map_err(InvalidJson::Target)?;
    let from = json::parse(profile).map_err(InvalidJson::Profile)?;
    let style = Style::of(target, &into);
    let mut merging = Merger { profile, style, edits: Edits::new(target) };
    merging.node(&into, &from);
    Ok(merging.edits.apply())
}

/// Which of two texts is not JSON.
#[derive(Debug)]
pub enum InvalidJson {
    Target(Problem),
    Profile(Problem),
}

struct Merger<'t> {
    profile: &'t str,
    style: Style,
    edits: Edits<'t>,
}

impl Merger<'_> {
    fn node(&mut self, into: &Node, from: &Node) {
        match (&into.kind, &from.kind) {
            (Kind::Map(have), Kind::Map(brought)) => {
                let by_key = by_key(have);
                let mut new = Vec::new();
                for entry in brought {
                    match by_key.get(entry.key.as_str()) {
                        Some(there) => self.node(&there.value, &entry.value),
                        None => new.push(SourceValue::member(self.profile, entry)),
                    }
                }
                self.edits.add(into, &new, &self.style);
            }
            (Kind::Seq(have), Kind::Seq(brought)) => {
                let mut seen: HashSet<String> = have.iter().map(canonical_text).collect();
                let lacking = brought.iter().filter(|item| seen.insert(canonical_text(item)));
                let new: Vec<SourceValue<'_>> =
                    lacking.map(|item| SourceValue::item(self.profile, item)).collect();
                self.edits.add(into, &new, &self.style);
            }
            _ if canonical_text(into) == canonical_text(from) => {}
            _ => self.edits.replace(into, &SourceValue::item(self.profile, from), &self.style),
        }
    }
}

/// The rest of a text after removing a profile's JSON.
#[derive(Debug, PartialEq, Eq)]
pub struct Removal {
    /// The text; `None` if the file did not exist before and nothing is left of it.
    pub text: Option<String>,
    /// A sentence for each value that was kept because the user has changed it.
    pub left: Vec<String>,
    /// A sentence for each value that was removed although the user has changed it.
    pub lost: Vec<String>,
}

/// Removes from `current` the values by which `installed` differs from `base`. Values that were changed since stay, unless
/// `force` overrides that. All other values stay.
///
/// # Errors
/// If the current text is not JSON. The other two were JSON when they were installed.
pub fn take_out(
    current: &str,
    base: Option<&str>,
    installed: &str,
    force: Force,
) -> Result<Removal, InvalidJson> {
    let now = json::parse(current).map_err(InvalidJson::Target)?;
    let after = json::parse(installed).map_err(InvalidJson::Profile)?;
    let nothing = match after.kind {
        Kind::Seq(_) => "[]",
        _ => "{}",
    };
    let base_text = base.unwrap_or(nothing);
    let before = json::parse(base_text).map_err(InvalidJson::Profile)?;
    let mut taking =
        Remover { base: base_text, force, edits: Edits::new(current), left: Vec::new(), lost: Vec::new() };
    let emptied = taking.node(&now, Some(&before), &after, "");
    let Remover { edits, left, lost, .. } = taking;
    let text = (!emptied || base.is_some()).then(|| edits.apply());
    Ok(Removal { text, left, lost })
}

struct Remover<'t> {
    base: &'t str,
    force: Force,
    edits: Edits<'t>,
    left: Vec<String>,
    lost: Vec<String>,
}

impl Remover<'_> {
    /// Removes the installed parts of a value. Returns whether nothing else is left of it.
    fn node(&mut self, now: &Node, before: Option<&Node>, after: &Node, path: &str) -> bool {
        let canonical = canonical_text(now);
        match before {
            // The installation did not change it, or it was restored since.
            Some(before)
                if canonical_text(before) == canonical_text(after) || canonical == canonical_text(before) =>
            {
                return false;
            }
            None if canonical == canonical_text(after) => return true,
            _ => {}
        }
        match (&now.kind, before.map(|node| &node.kind), &after.kind) {
            (Kind::Map(entries), None | Some(Kind::Map(_)), Kind::Map(_)) => {
                return self.object(now, entries, before, after, path);
            }
            (Kind::Seq(items), None | Some(Kind::Seq(_)), Kind::Seq(_)) => {
                return self.array(now, items, before, after, path);
            }
            _ => {}
        }
        let changed = canonical != canonical_text(after);
        // If the kind of the whole document has changed, all of it belongs to the user.
        if changed && (self.force == Force::No || path.is_empty()) {
            self.left.push(format!("`{}` was changed since and stays", display_path(path)));
            return false;
        }
        if changed {
            self.lost.push(format!("`{path}` was changed since and is removed"));
        }
        if let Some(before) = before {
            self.edits.put(now.span.clone(), self.base[before.span.clone()].to_owned());
        }
        before.is_none()
    }

    fn object(
        &mut self,
        now: &Node,
        entries: &[Entry],
        before: Option<&Node>,
        after: &Node,
        path: &str,
    ) -> bool {
        let (had, put) = (by_key(before.map_or(&[], Node::entries)), by_key(after.entries()));
        let mut out = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            let Some(put) = put.get(entry.key.as_str()) else { continue };
            let had = had.get(entry.key.as_str()).map(|entry| &entry.value);
            let path = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
            if self.node(&entry.value, had, &put.value, &path) && had.is_none() {
                out.push(at);
            }
        }
        self.remove_items(now, before, &out)
    }

    fn array(&mut self, now: &Node, items: &[Node], before: Option<&Node>, after: &Node, path: &str) -> bool {
        let had_items: HashSet<String> =
            before.map_or(&[][..], Node::items).iter().map(canonical_text).collect();
        let put: HashSet<String> = after.items().iter().map(canonical_text).collect();
        let mut sought: HashSet<&String> = put.iter().filter(|item| !had_items.contains(*item)).collect();
        let mut out = Vec::new();
        let mut others = 0;
        // Additions are at the end, so the last of equal items is ours.
        for (at, item) in items.iter().enumerate().rev() {
            let item = canonical_text(item);
            if sought.remove(&item) {
                out.push(at);
            } else if !had_items.contains(&item) && !put.contains(&item) {
                others += 1;
            }
        }
        out.reverse();
        if !sought.is_empty() && others > 0 {
            let text =
                format!("`{}` lacks an item that was added; if it was edited, it stays", display_path(path));
            self.left.push(text);
        }
        self.remove_items(now, before, &out)
    }

    /// Removes items from an object or array, and returns whether it is empty now.
    fn remove_items(&mut self, now: &Node, before: Option<&Node>, out: &[usize]) -> bool {
        if out.is_empty() {
            return false;
        }
        let all = now.entries().len().max(now.items().len());
        if out.len() < all {
            self.edits.remove(now, out);
            return false;
        }
        let bare = match (before, &now.kind) {
            (Some(before), _) if before.entries().is_empty() && before.items().is_empty() => {
                &self.base[before.span.clone()]
            }
            (_, Kind::Seq(_)) => "[]",
            _ => "{}",
        };
        self.edits.put(now.span.clone(), bare.to_owned());
        true
    }
}

fn display_path(path: &str) -> &str {
    if path.is_empty() { "the whole" } else { path }
}

fn by_key(entries: &[Entry]) -> HashMap<&str, &Entry> {
    entries.iter().map(|entry| (entry.key.as_str(), entry)).collect()
}

/// A canonical text: equal for two values if and only if they differ at most in spacing and in the order of keys.
fn canonical_text(node: &Node) -> String {
    let mut text = String::new();
    write_canonical(node, &mut text);
    text
}

fn write_canonical(node: &Node, text: &mut String) {
    match &node.kind {
        Kind::Null => text.push_str("null"),
        Kind::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Kind::Int(value) => text.push_str(&value.to_string()),
        Kind::Float(value) => text.push_str(&value.text),
        Kind::Str(value) => text.push_str(&format!("{value:?}")),
        Kind::Seq(items) => {
            text.push('[');
            for item in items {
                write_canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Kind::Map(entries) => {
            let mut sorted: Vec<&Entry> = entries.iter().collect();
            sorted.sort_by(|a, b| a.key.cmp(&b.key));
            text.push('{');
            for entry in sorted {
                text.push_str(&format!("{:?}:", entry.key));
                write_canonical(&entry.value, text);
                text.push(',');
            }
            text.push('}');
        }
    }
}

#[cfg(test)]
mod tests;
