//! Telling what a file is (M0): by its `schema`, then its name, then its keys.

use super::Doctype;
use crate::tree::Node;

/// What a file is, from its name and its tree. `None` where nothing tells.
pub fn detect(name: &str, root: &Node) -> Option<Doctype> {
    from_schema(root).or_else(|| from_name(name)).or_else(|| from_keys(root))
}

/// By the file's name alone.
pub fn from_name(name: &str) -> Option<Doctype> {
    Doctype::ALL.into_iter().find(|doctype| doctype.is_named(name))
}

/// By a line that says the schema, in a text that cannot be read as a tree: so that it is not taken for another file.
pub(crate) fn from_text(text: &str) -> Option<Doctype> {
    let written = |line: &str| {
        let value = line.strip_prefix("schema:")?.trim().trim_matches(['"', '\'']).to_owned();
        Doctype::ALL.into_iter().find(|doctype| doctype.schema_id() == Some(&value))
    };
    text.lines().take(200).find_map(written)
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
