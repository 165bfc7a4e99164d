//! Changes to the text of a keyring: one entry more, one time or one voucher in an entry. What else stands in the text, comments
//! above all, stays as it is.

use crate::tree::{Node, toml};

/// A time that an entry gets.
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

/// The text with an entry more at its end, which another key may vouch for; `None` where the text is such that none can be put there.
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

/// The text with a voucher more in a key's entry; `None` where there is no such entry, or none with a line of its own for
/// `public`.
pub fn add_voucher(text: &str, public: &str, voucher: &str) -> Option<String> {
    let root = parse_with_entry(text, public)?;
    let entry = root.key("keys")?.items().iter().find(|one| is_entry_of(one, public))?;
    let mut edited = text.to_owned();
    match entry.entry("vouched") {
        Some(there) => {
            let end =
                there.value.span.end.checked_sub(1).filter(|end| text.get(*end..*end + 1) == Some("]"))?;
            let comma = if there.value.items().is_empty() { "" } else { ", " };
            let end = text[..end].trim_end().len();
            let comma = if text[..end].ends_with(',') { " " } else { comma };
            edited.insert_str(end, &format!("{comma}\"{voucher}\""));
        }
        None => insert_line(&mut edited, entry, &format!("vouched = [\"{voucher}\"]"))?,
    }
    let now = self::parse_with_entry(&edited, public)?;
    let now = now.key("keys")?.items().iter().find(|one| is_entry_of(one, public))?.key("vouched")?;
    now.items().iter().any(|one| one.as_str() == Some(voucher)).then_some(edited)
}

/// Puts a line below an entry's public key.
fn insert_line(text: &mut String, entry: &Node, line: &str) -> Option<()> {
    let after = entry.key("public")?.span.end;
    let line_end = text[after..].find('\n').map_or(text.len(), |end| after + end);
    let newline = if text[..line_end].ends_with('\r') { "\r\n" } else { "\n" };
    text.insert_str(line_end - (newline.len() - 1), &format!("{newline}{line}"));
    Some(())
}

/// The text with a time in a key's entry, in the place of the one that stands there, if any; `None` where there is no
/// such entry, or none with a line of its own for `public`.
pub fn set_time(text: &str, public: &str, field: TimeField, at: &str) -> Option<String> {
    let root = parse_with_entry(text, public)?;
    let entry = root.key("keys")?.items().iter().find(|one| is_entry_of(one, public))?;
    let mut edited = text.to_owned();
    match entry.entry(field.key()) {
        Some(there) => edited.replace_range(there.value.span.clone(), &format!("\"{at}\"")),
        None => insert_line(&mut edited, entry, &format!("{} = \"{at}\"", field.key()))?,
    }
    // What stands in one line with other keys cannot be told apart like this; then nothing is changed.
    let now = self::parse_with_entry(&edited, public)?;
    let now =
        now.key("keys")?.items().iter().find(|one| is_entry_of(one, public))?.key(field.key())?.as_str()?
            == at;
    now.then_some(edited)
}

/// The tree of a text that has an entry of a key.
fn parse_with_entry(text: &str, public: &str) -> Option<Node> {
    let (root, problems) = toml::parse(text);
    let root = root.filter(|_| problems.is_empty())?;
    root.key("keys")?.items().iter().any(|one| is_entry_of(one, public)).then_some(root)
}

fn is_entry_of(entry: &Node, public: &str) -> bool {
    entry.key("public").and_then(Node::as_str) == Some(public)
}
