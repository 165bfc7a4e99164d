//! Edits of a playbook's file that keep all other bytes (B8): comments, the order of keys, quotes, line ends, unknown
//! metadata.
//!
//! Each edit is verified: the new text has to parse as the old tree with only that value changed, and with the same body.
//! There are several candidate patches for an edit; the first that passes is applied. If none does, the edit fails. A value of
//! several lines is replaced with the comments inside and beside it. A file with its keys in braces is not edited.

mod write;

use std::ops::Range;

use serde_json::{Map, Value};

use crate::format::orders::PLAYBOOK;
use crate::frontmatter;
use crate::tree::{Entry, Kind, Node, Problem, decode, yaml};
use write::STYLE;

/// Why an edit is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct EditError {
    /// From 1.
    pub line: Option<usize>,
    /// One sentence.
    pub reason: String,
}

impl EditError {
    fn new(reason: impl Into<String>) -> EditError {
        EditError { line: None, reason: reason.into() }
    }
}

/// A text under edit. [`Edit::finish`] returns the first error; edits after an error are ignored.
#[derive(Debug)]
pub struct Edit {
    file: FileText,
    error: Option<EditError>,
}

/// Replacements of parts of the text, in order and without overlap.
type Patch = Vec<(Range<usize>, String)>;

impl Edit {
    /// Parses a text with frontmatter; keeps a byte order mark.
    ///
    /// # Errors
    /// The text has no frontmatter, invalid YAML, or no mapping.
    pub fn new(text: &str) -> Result<Edit, EditError> {
        Ok(Edit { file: FileText::new(text)?, error: None })
    }

    /// Sets a top-level key to a text: with the quotes of the old value, else plain if YAML 1.1 and 1.2 both read it as this
    /// text, else in double quotes. A new key is inserted in schema order.
    pub fn set_string(&mut self, key: &str, value: &str) {
        self.set(key, Node::new(Kind::Str(value.to_owned()), 0..0));
    }

    /// Sets a top-level key to any value. Null keys inside the value are omitted; a null value removes the key.
    pub fn set_json(&mut self, key: &str, value: &Value) {
        match write::node(value) {
            Err(error) => self.fail(error),
            Ok(Node { kind: Kind::Null, .. }) => self.remove(key),
            Ok(mut node) => {
                PLAYBOOK.arrange(&mut node, key);
                self.set(key, node);
            }
        }
    }

    /// Removes a top-level key and its value, with the comments inside the value and on its lines, but not those above the
    /// key.
    pub fn remove(&mut self, key: &str) {
        let root = &self.file.root;
        let Some(at) = root.entries().iter().position(|entry| entry.key == key) else { return };
        let candidates = write::remove(&self.file, at);
        let mut entries = root.entries().to_vec();
        entries.remove(at);
        self.apply_first(candidates, entries, &format!("`{key}` cannot be removed"));
    }

    /// Appends an item to a top-level list; creates the list if the key is missing.
    pub fn push_item(&mut self, key: &str, item: &Map<String, Value>) {
        let mut item = match write::node(&Value::Object(item.clone())) {
            Ok(item) => item,
            Err(error) => return self.fail(error),
        };
        PLAYBOOK.arrange(&mut item, &format!("{key}[]"));
        let root = &self.file.root;
        let at = root.entries().iter().position(|entry| entry.key == key);
        let (mut items, candidates) = match at.map(|at| (at, &root.entries()[at].value)) {
            Some((at, Node { kind: Kind::Seq(items), .. })) if !items.is_empty() => {
                (items.clone(), write::push(&self.file, at, &item))
            }
            None | Some((_, Node { kind: Kind::Null | Kind::Seq(_), .. })) => (Vec::new(), Vec::new()),
            Some(_) => return self.fail(EditError::new(format!("`{key}` is not a list"))),
        };
        items.push(item);
        self.set_with(candidates, key, Node::new(Kind::Seq(items), 0..0));
    }

    /// Replaces the body. Line ends are converted to those of the file.
    pub fn set_body(&mut self, body: &str) {
        let file = &self.file;
        if self.error.is_some() || body == &file.text[file.body.clone()] {
            return;
        }
        let sample =
            if file.text[file.body.clone()].contains('\n') { file.body.clone() } else { file.yaml_line() };
        let end = line_end(&file.text[sample]);
        let body = body.replace("\r\n", "\n").replace('\n', end);
        let mut text = file.text[..file.body.start].to_owned();
        if !text.ends_with('\n') && !body.is_empty() {
            text.push_str(end);
        }
        text.push_str(&body);
        match FileText::parse(file.bom, text) {
            Ok(new) if same(&new.root, &file.root) && new.text[new.body.clone()] == body => {
                self.file = new;
            }
            Ok(_) => self.fail(EditError::new("the body would read differently")),
            Err(error) => self.fail(error),
        }
    }

    /// The text with all edits.
    ///
    /// # Errors
    /// The first edit that failed.
    pub fn finish(self) -> Result<String, EditError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.file.into_text()),
        }
    }

    fn set(&mut self, key: &str, value: Node) {
        self.set_with(Vec::new(), key, value);
    }

    /// Sets a key; tries the given patches before the general ones.
    fn set_with(&mut self, mut candidates: Vec<Patch>, key: &str, value: Node) {
        let root = &self.file.root;
        let mut entries = root.entries().to_vec();
        let at = entries.iter().position(|entry| entry.key == key);
        if at.is_some_and(|at| entries[at].value.is_same(&value)) {
            return;
        }
        candidates.extend(match at {
            Some(at) => write::set(&self.file, at, &value),
            None => write::insert(&self.file, key, &value),
        });
        match at {
            Some(at) => entries[at].value = value,
            None => entries.push(Entry { key: key.to_owned(), key_span: 0..0, value }),
        }
        self.apply_first(candidates, entries, &format!("`{key}` cannot be set to this value"));
    }

    /// Applies the first patch whose result has the expected entries and the same body.
    fn apply_first(&mut self, candidates: Vec<Patch>, entries: Vec<Entry>, failure: &str) {
        if self.error.is_some() {
            return;
        }
        let expected = Node::new(Kind::Map(entries), 0..0);
        let mut error = EditError::new(failure);
        for patch in candidates {
            match self.file.apply(patch) {
                Ok(new) if same(&new.root, &expected) && new.body_text() == self.file.body_text() => {
                    self.file = new;
                    return;
                }
                Ok(_) => {}
                Err(cause) => error.reason = format!("{failure}: {}", cause.reason),
            }
        }
        self.error = Some(error);
    }

    fn fail(&mut self, error: EditError) {
        self.error.get_or_insert(error);
    }
}

/// A new file: the manifest in schema order and block style, and the body unchanged.
///
/// # Errors
/// No YAML parses as this manifest: a number exceeds 64 bits, a key is empty, or the file is too large.
pub fn render(manifest: &Map<String, Value>, body: &str) -> Result<String, EditError> {
    let mut root = write::node(&Value::Object(manifest.clone()))?;
    PLAYBOOK.arrange(&mut root, "");
    let mut yaml = String::new();
    STYLE.block(&root, 0, &mut yaml);
    let file = FileText::new(&format!("---\n{yaml}---\n{body}"))?;
    if same(&file.root, &root) && file.body_text() == body {
        return Ok(file.into_text());
    }
    Err(EditError::new("the manifest would read differently"))
}

const BOM: &str = "\u{feff}";

#[derive(Debug)]
struct FileText {
    /// The byte order mark, or nothing.
    bom: &'static str,
    /// The text without the byte order mark; all spans refer to it.
    text: String,
    /// The YAML, without the `---` lines.
    yaml: Range<usize>,
    body: Range<usize>,
    /// A mapping, or null without keys.
    root: Node,
}

impl FileText {
    fn new(text: &str) -> Result<FileText, EditError> {
        match text.strip_prefix(BOM) {
            Some(rest) => FileText::parse(BOM, rest.to_owned()),
            None => FileText::parse("", text.to_owned()),
        }
    }

    /// Parses a text without its byte order mark.
    fn parse(mark: &'static str, text: String) -> Result<FileText, EditError> {
        // As in the loader, the mark counts for the size limit, and only one is removed.
        let text = decode([mark, &text].concat().into_bytes())
            .map_err(|error| EditError::new(format!("the file cannot be read: {error}")))?;
        let at = |at: usize| Some(1 + text.get(..at).unwrap_or(&text).matches('\n').count());
        let problem = |problem: Problem, from: usize| EditError {
            line: at(problem.span.start + from),
            reason: problem.message,
        };
        if let Some(nul) = text.find('\0') {
            return Err(EditError { line: at(nul), reason: "there is a NUL character here".to_owned() });
        }
        let parts = frontmatter::split(&text).map_err(|found| problem(found, 0))?;
        let (root, problems) = yaml::parse(&text[parts.yaml.clone()]);
        if let Some(first) = problems.into_iter().next() {
            return Err(problem(first, parts.yaml.start));
        }
        let mut root = root.unwrap_or(Node::new(Kind::Null, 0..0));
        root.shift(parts.yaml.start);
        let why = match root.kind {
            Kind::Map(_) if text[root.span.start..].starts_with('{') => {
                Some("the keys are in braces, where they cannot be edited; write one on each line".to_owned())
            }
            Kind::Map(_) | Kind::Null => None,
            _ => Some(format!("there is {} here, not a mapping of keys", root.kind.name())),
        };
        if let Some(reason) = why {
            return Err(EditError { line: at(root.span.start), reason });
        }
        Ok(FileText { bom: mark, yaml: parts.yaml, body: parts.body, root, text })
    }

    fn into_text(self) -> String {
        [self.bom, &self.text].concat()
    }

    fn body_text(&self) -> &str {
        &self.text[self.body.clone()]
    }

    /// The line above the YAML.
    fn yaml_line(&self) -> Range<usize> {
        0..self.yaml.start
    }

    /// The text with a patch applied, with the file's line ends in new text.
    fn apply(&self, patch: Patch) -> Result<FileText, EditError> {
        let end = line_end(&self.text[self.yaml_line()]);
        let mut out = String::with_capacity(self.text.len() + 256);
        let mut at = 0;
        for (part, new) in patch {
            out.push_str(
                self.text.get(at..part.start).ok_or_else(|| EditError::new("a change overlaps another"))?,
            );
            out.push_str(&new.replace('\n', end));
            at = part.end;
        }
        out.push_str(&self.text[at..]);
        FileText::parse(self.bom, out)
    }
}

/// The line end of a text's last line.
fn line_end(text: &str) -> &'static str {
    if text.trim_end_matches(|c| c != '\n').ends_with("\r\n") { "\r\n" } else { "\n" }
}

/// Whether two values are the same, where an empty mapping is also null, as in the loader.
fn same(node: &Node, other: &Node) -> bool {
    match (&node.kind, &other.kind) {
        (Kind::Map(entries), Kind::Null) | (Kind::Null, Kind::Map(entries)) => entries.is_empty(),
        _ => node.is_same(other),
    }
}
