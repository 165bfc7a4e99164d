//! Edits of a keyring's text: adds an entry, or a time or voucher to an entry. All other text, comments included, is kept.

use crate::tree::{Node, toml};

/// A time of an entry that [`set_time`] can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeField {
    /// `not_after`.
    NotAfter,
    /// `revoked_at`.
    RevokedAt,
}

impl TimeField {
    fn key(self) -> &'static str {
        match self {
            TimeField::NotAfter => "not_after",
            TimeField::RevokedAt => "revoked_at",
        }
    }
}

/// The text with a new entry at its end, with an optional voucher; `None` if an entry cannot be appended to this text.
pub fn add_key(
    text: &str,
    public: &str,
    label: &str,
    not_before: &str,
    voucher: Option<&str>,
) -> Option<String> {
    let mut edited = text.to_owned();
    if !edited.is_empty() && !edited.ends_with('\n') {
        edited.push('\n');
    }
    if !edited.is_empty() {
        edited.push('\n');
    }
    let label = serde_json::Value::from(label);
    edited.push_str(&format!(
        "[[keys]]\npublic = \"{public}\"\nlabel = {label}\nnot_before = \"{not_before}\"\n"
    ));
    parse_with_entry(&edited, public).map(|_| ())?;
    match voucher {
        Some(voucher) => add_voucher(&edited, public, voucher),
        None => Some(edited),
    }
}

/// The text with a voucher added to a key's entry; `None` if there is no such entry, or its `public` does not have its own
/// line.
pub fn add_voucher(text: &str, public: &str, voucher: &str) -> Option<String> {
    let root = parse_with_entry(text, public)?;
    let entry = root.key("keys")?.items().iter().find(|entry| is_entry_of(entry, public))?;
    let mut edited = text.to_owned();
    match entry.entry("vouched") {
        Some(list) => {
            let end =
                list.value.span.end.checked_sub(1).filter(|end| text.get(*end..*end + 1) == Some("]"))?;
            let comma = if list.value.items().is_empty() { "" } else { ", " };
            let end = text[..end].trim_end().len();
            let comma = if text[..end].ends_with(',') { " " } else { comma };
            edited.insert_str(end, &format!("{comma}\"{voucher}\""));
        }
        None => insert_line(&mut edited, entry, &format!("vouched = [\"{voucher}\"]"))?,
    }
    let root = parse_with_entry(&edited, public)?;
    let entry = root.key("keys")?.items().iter().find(|entry| is_entry_of(entry, public))?;
    entry.key("vouched")?.items().iter().any(|item| item.as_str() == Some(voucher)).then_some(edited)
}

/// Inserts a line below an entry's public key.
fn insert_line(text: &mut String, entry: &Node, line: &str) -> Option<()> {
    let after = entry.key("public")?.span.end;
    let line_end = text[after..].find('\n').map_or(text.len(), |end| after + end);
    let newline = if text[..line_end].ends_with('\r') { "\r\n" } else { "\n" };
    text.insert_str(line_end - (newline.len() - 1), &format!("{newline}{line}"));
    Some(())
}

/// The text with a time set in a key's entry; `None` if there is no such entry, or its `public` does not have its own line.
pub fn set_time(text: &str, public: &str, field: TimeField, at: &str) -> Option<String> {
    let root = parse_with_entry(text, public)?;
    let entry = root.key("keys")?.items().iter().find(|entry| is_entry_of(entry, public))?;
    let mut edited = text.to_owned();
    match entry.entry(field.key()) {
        Some(old) => edited.replace_range(old.value.span.clone(), &format!("\"{at}\"")),
        None => insert_line(&mut edited, entry, &format!("{} = \"{at}\"", field.key()))?,
    }
    // The insertion fails if the entry is on one line; then the check gives `None`.
    let root = parse_with_entry(&edited, public)?;
    let entry = root.key("keys")?.items().iter().find(|entry| is_entry_of(entry, public))?;
    (entry.key(field.key())?.as_str()? == at).then_some(edited)
}

/// The tree of a valid keyring with an entry for the key.
fn parse_with_entry(text: &str, public: &str) -> Option<Node> {
    let (root, problems) = toml::parse(text);
    let root = root.filter(|_| problems.is_empty())?;
    root.key("keys")?.items().iter().any(|entry| is_entry_of(entry, public)).then_some(root)
}

fn is_entry_of(entry: &Node, public: &str) -> bool {
    entry.key("public").and_then(Node::as_str) == Some(public)
}
