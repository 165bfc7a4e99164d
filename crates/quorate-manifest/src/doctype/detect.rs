//! Detects the doctype of a file (M0): by its `schema`, then its name, then its keys.

use super::Doctype;
use crate::tree::Node;

/// The doctype of a parsed file; `None` if neither `schema`, name nor keys determine it.
pub fn detect(name: &str, root: &Node) -> Option<Doctype> {
    from_schema(root).or_else(|| from_name(name)).or_else(|| from_keys(root))
}

/// By the file's name alone.
pub fn from_name(name: &str) -> Option<Doctype> {
    Doctype::ALL.into_iter().find(|doctype| doctype.is_named(name))
}

/// The doctype by a `schema:` line among the first 200 lines, for a text that cannot be parsed.
pub(crate) fn from_text(text: &str) -> Option<Doctype> {
    let declared = |line: &str| {
        let value = line.strip_prefix("schema:")?.trim().trim_matches(['"', '\'']).to_owned();
        Doctype::ALL.into_iter().find(|doctype| doctype.schema_id() == Some(&value))
    };
    text.lines().take(200).find_map(declared)
}

fn from_schema(root: &Node) -> Option<Doctype> {
    let schema = root.key("schema")?.as_str()?;
    Doctype::ALL.into_iter().find(|doctype| doctype.schema_id() == Some(schema))
}

fn from_keys(root: &Node) -> Option<Doctype> {
    let has = |key| root.key(key).is_some();
    if has("targets") || has("selector") {
        Some(Doctype::Playbook)
    } else if has("participants") {
        Some(Doctype::Runtime)
    } else if has("deliberators") {
        Some(Doctype::Council)
    } else {
        None
    }
}
