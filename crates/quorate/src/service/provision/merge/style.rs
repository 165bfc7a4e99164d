//! The formatting of a JSON text, its indentation and line breaks, and new values in the same formatting.

use quorate_manifest::tree::{Entry, Node};

/// The formatting of a text.
pub(super) struct Style {
    /// The indentation of a level.
    pub(super) unit: String,
    pub(super) newline: &'static str,
    /// Whether the root has its values on separate lines.
    pub(super) multiline: bool,
}

impl Style {
    /// Detects the formatting of a text. An empty text gets two spaces and a line for each value.
    pub(super) fn of(text: &str, root: &Node) -> Style {
        let first = root.entries().first().map(|entry| entry.key_span.start);
        let first = first.or_else(|| root.items().first().map(|item| item.span.start));
        let lead = first.map(|first| &text[root.span.start..first]);
        let unit = lead.and_then(|lead| lead.rsplit_once('\n')).map(|(_, indent)| indent);
        Style {
            unit: unit.filter(|unit| !unit.is_empty()).unwrap_or("  ").to_owned(),
            newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
            multiline: lead.is_none_or(|lead| lead.contains('\n')),
        }
    }
}

/// A value of the profile's text.
pub(super) struct SourceValue<'t> {
    text: &'t str,
    key: Option<&'t str>,
    node: &'t Node,
}

impl<'t> SourceValue<'t> {
    pub(super) fn member(text: &'t str, entry: &'t Entry) -> Self {
        SourceValue { text, key: Some(&text[entry.key_span.clone()]), node: &entry.value }
    }

    pub(super) fn item(text: &'t str, node: &'t Node) -> Self {
        SourceValue { text, key: None, node }
    }

    /// The value in a style. `indent` is the indentation of its first line. A value on a single line stays on one.
    pub(super) fn render(&self, style: &Style, indent: &str, broken: bool) -> String {
        let mut out = self.key.map(|key| format!("{key}: ")).unwrap_or_default();
        let written = &self.text[self.node.span.clone()];
        let held: Vec<SourceValue<'_>> = self
            .node
            .entries()
            .iter()
            .map(|entry| SourceValue::member(self.text, entry))
            .chain(self.node.items().iter().map(|item| SourceValue::item(self.text, item)))
            .collect();
        if held.is_empty() || !written.contains('\n') {
            out.push_str(written);
            return out;
        }
        let (open, close) = (&written[..1], &written[written.len() - 1..]);
        let inner = format!("{indent}{}", style.unit);
        let items: Vec<String> = held.iter().map(|one| one.render(style, &inner, broken)).collect();
        let newline = style.newline;
        out.push_str(&match broken {
            true => {
                let items: Vec<String> = items.into_iter().map(|item| format!("{inner}{item}")).collect();
                format!("{open}{newline}{}{newline}{indent}{close}", items.join(&format!(",{newline}")))
            }
            false => format!("{open}{}{close}", items.join(", ")),
        });
        out
    }
}
