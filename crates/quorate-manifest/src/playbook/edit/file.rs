//! The text under edit, parsed like the loader does, and the comparison of trees.

use std::ops::Range;

use super::{Error, Patch};
use crate::decode::decode;
use crate::frontmatter;
use crate::tree::{Kind, Node, Problem, yaml};

const BOM: &str = "\u{feff}";

#[derive(Debug)]
pub(super) struct FileText {
    /// The byte order mark, or nothing.
    pub(super) bom: &'static str,
    /// The text without the byte order mark; all spans refer to it.
    pub(super) text: String,
    /// The YAML, without the `---` lines.
    pub(super) yaml: Range<usize>,
    pub(super) body: Range<usize>,
    /// A mapping, or null without keys.
    pub(super) root: Node,
}

impl FileText {
    pub(super) fn new(text: &str) -> Result<FileText, Error> {
        match text.strip_prefix(BOM) {
            Some(rest) => FileText::parse(BOM, rest.to_owned()),
            None => FileText::parse("", text.to_owned()),
        }
    }

    /// Parses a text without its byte order mark.
    pub(super) fn parse(mark: &'static str, text: String) -> Result<FileText, Error> {
        // As in the loader, the mark counts for the size limit, and only one is removed.
        let text = decode([mark, &text].concat().into_bytes())
            .map_err(|error| Error::new(format!("the file cannot be read: {error}")))?;
        let at = |at: usize| Some(1 + text.get(..at).unwrap_or(&text).matches('\n').count());
        let problem = |problem: Problem, from: usize| Error {
            line: at(problem.span.start + from),
            reason: problem.message,
        };
        if let Some(nul) = text.find('\0') {
            return Err(Error { line: at(nul), reason: "there is a NUL character here".to_owned() });
        }
        let parts = frontmatter::split(&text).map_err(|found| problem(found, 0))?;
        let (root, problems) = yaml::parse(&text[parts.yaml.clone()]);
        if let Some(first) = problems.into_iter().next() {
            return Err(problem(first, parts.yaml.start));
        }
        let mut root = root.unwrap_or(Node::new(Kind::Null, 0..0));
        root.shift(parts.yaml.start);
        if !matches!(root.kind, Kind::Map(_) | Kind::Null) {
            let why = format!("there is {} here, not a mapping of keys", root.kind.name());
            return Err(Error { line: at(root.span.start), reason: why });
        }
        Ok(FileText { bom: mark, yaml: parts.yaml, body: parts.body, root, text })
    }

    pub(super) fn into_text(self) -> String {
        [self.bom, &self.text].concat()
    }

    pub(super) fn body_text(&self) -> &str {
        &self.text[self.body.clone()]
    }

    /// Whether the root is a flow mapping.
    pub(super) fn is_flow(&self) -> bool {
        matches!(self.root.kind, Kind::Map(_)) && self.text[self.root.span.start..].starts_with('{')
    }

    /// The line above the YAML.
    pub(super) fn yaml_line(&self) -> Range<usize> {
        0..self.yaml.start
    }

    /// The text with a patch applied, with the file's line ends in new text.
    pub(super) fn apply(&self, patch: Patch) -> Result<FileText, Error> {
        let end = line_end(&self.text[self.yaml_line()]);
        let mut out = String::with_capacity(self.text.len() + 256);
        let mut at = 0;
        for (part, new) in patch {
            out.push_str(
                self.text.get(at..part.start).ok_or_else(|| Error::new("a change overlaps another"))?,
            );
            out.push_str(&new.replace('\n', end));
            at = part.end;
        }
        out.push_str(&self.text[at..]);
        FileText::parse(self.bom, out)
    }
}

/// The line end of a text's last line.
pub(super) fn line_end(text: &str) -> &'static str {
    if text.trim_end_matches(|c| c != '\n').ends_with("\r\n") { "\r\n" } else { "\n" }
}

/// Like [`equal`], but an empty mapping also equals null, as in the loader.
pub(super) fn same(node: &Node, other: &Node) -> bool {
    match (&node.kind, &other.kind) {
        (Kind::Map(entries), Kind::Null) | (Kind::Null, Kind::Map(entries)) => entries.is_empty(),
        _ => equal(node, other),
    }
}

/// Whether two values are the same, regardless of spans and the order of keys.
pub(super) fn equal(node: &Node, other: &Node) -> bool {
    match (&node.kind, &other.kind) {
        (Kind::Seq(node), Kind::Seq(other)) => {
            node.len() == other.len() && node.iter().zip(other).all(|(node, other)| equal(node, other))
        }
        (Kind::Map(node), Kind::Map(other)) => {
            let has = |key: &str, value: &Node| {
                other.iter().any(|entry| entry.key == key && equal(&entry.value, value))
            };
            node.len() == other.len() && node.iter().all(|entry| has(&entry.key, &entry.value))
        }
        (node, other) => node == other,
    }
}
