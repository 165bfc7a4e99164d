//! Changes to the text of a keyring: one entry more, or one time in an entry. What else stands in the text, comments
//! above all, stays as it is.

use crate::tree::{Node, toml};

/// A time that an entry gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    /// `not_after`.
    NotAfter,
    /// `revoked_at`.
    RevokedAt,
}

impl Stamp {
    fn key(self) -> &'static str {
        match self {
            Stamp::NotAfter => "not_after",
            Stamp::RevokedAt => "revoked_at",
        }
    }
}

/// The text with an entry more at its end; `None` where the text is such that none can be put there.
pub fn add(text: &str, public: &str, label: &str, not_before: &str) -> Option<String> {
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
    entry(&edited, public).map(|_| ())?;
    Some(edited)
}

/// The text with a time in a key's entry, in the place of the one that stands there, if any; `None` where there is no
/// such entry, or none with a line of its own for `public`.
pub fn stamp(text: &str, public: &str, stamp: Stamp, at: &str) -> Option<String> {
    let root = entry(text, public)?;
    let entry = root.key("keys")?.items().iter().find(|one| has(one, public))?;
    let mut edited = text.to_owned();
    match entry.entry(stamp.key()) {
        Some(there) => edited.replace_range(there.value.span.clone(), &format!("\"{at}\"")),
        None => {
            let after = entry.key("public")?.span.end;
            let line_end = text[after..].find('\n').map_or(text.len(), |end| after + end);
            let newline = if text[..line_end].ends_with('\r') { "\r\n" } else { "\n" };
            let line_end = line_end - (newline.len() - 1);
            edited.insert_str(line_end, &format!("{newline}{} = \"{at}\"", stamp.key()));
        }
    }
    // What stands in one line with other keys cannot be told apart like this; then nothing is changed.
    let now = self::entry(&edited, public)?;
    let now = now.key("keys")?.items().iter().find(|one| has(one, public))?.key(stamp.key())?.as_str()? == at;
    now.then_some(edited)
}

/// The tree of a text that has an entry of a key.
fn entry(text: &str, public: &str) -> Option<Node> {
    let (root, problems) = toml::parse(text);
    let root = root.filter(|_| problems.is_empty())?;
    root.key("keys")?.items().iter().any(|one| has(one, public)).then_some(root)
}

fn has(entry: &Node, public: &str) -> bool {
    entry.key("public").and_then(Node::as_str) == Some(public)
}
