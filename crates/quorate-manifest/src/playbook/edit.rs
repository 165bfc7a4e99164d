//! Changes of a playbook's file that leave everything else in it as it stands, to the byte (B8): comments, the order of
//! keys, quotes, line ends, unknown metadata.
//!
//! Every change is held against what it should have made: the text after it has to read as the tree before it with that
//! one value changed, and with the same body. Of several ways to write a change the first that does is taken; where none
//! does, there is no text.

mod block;
mod file;
mod flow;
mod write;

use std::ops::Range;

use serde_json::{Map, Value};

use self::file::FileText;
use crate::format::{self, orders};
use crate::tree::{Entry, Kind, Node};

/// Why a text cannot be edited, or not in the way that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct Error {
    /// The line, from 1, where there is one to point at.
    pub line: Option<usize>,
    /// What is wrong, in one sentence.
    pub reason: String,
}

impl Error {
    fn new(why: impl Into<String>) -> Error {
        Error { line: None, reason: why.into() }
    }
}

/// A text that is being edited. What a change cannot do is said by [`Edit::finish`]; changes after it are not made.
#[derive(Debug)]
pub struct Edit {
    file: FileText,
    error: Option<Error>,
}

/// One way to make a change: what stands in place of which parts of the text, in order and apart from each other.
type Patch = Vec<(Range<usize>, String)>;

impl Edit {
    /// Takes a text with frontmatter; a byte order mark is kept.
    ///
    /// # Errors
    /// When the text would not load: no frontmatter, no YAML, no mapping.
    pub fn new(text: &str) -> Result<Edit, Error> {
        Ok(Edit { file: FileText::new(text)?, error: None })
    }

    /// Sets a top-level key to a text: in the quotes that the value has, else plain where every YAML reads that as this
    /// text, else in double quotes. A new key stands where the schema's order has it.
    pub fn set_string(&mut self, key: &str, value: &str) {
        self.set(key, Node::new(Kind::Str(value.to_owned()), 0..0));
    }

    /// Sets a top-level key to a whole number.
    pub fn set_integer(&mut self, key: &str, value: i64) {
        self.set(key, Node::new(Kind::Int(value), 0..0));
    }

    /// Sets a top-level key to any value. Keys in it that have no value are left out; without a value at all the key goes.
    pub fn set_json(&mut self, key: &str, value: &Value) {
        match write::node(value) {
            Err(error) => self.fail(error),
            Ok(Node { kind: Kind::Null, .. }) => self.remove(key),
            Ok(node) => self.set(key, in_schema_order(key, node)),
        }
    }

    /// Takes a top-level key and its value out, with the comments inside the value and on its lines; those above the key
    /// stay.
    pub fn remove(&mut self, key: &str) {
        let root = &self.file.root;
        let Some(at) = root.entries().iter().position(|entry| entry.key == key) else { return };
        let ways = if self.file.is_flow() {
            flow::remove(&self.file.text, root, at)
        } else {
            block::remove(&self.file, at)
        };
        let mut entries = root.entries().to_vec();
        entries.remove(at);
        self.apply_first(ways, entries, &format!("`{key}` cannot be taken out"));
    }

    /// Adds an item to the end of a top-level list. Without the key there is a new list.
    pub fn push_item(&mut self, key: &str, item: &Map<String, Value>) {
        let item = match write::node(&Value::Object(item.clone())) {
            Ok(item) => item,
            Err(error) => return self.fail(error),
        };
        let list = Node::new(Kind::Seq(vec![item]), 0..0);
        let Kind::Seq(mut new) = in_schema_order(key, list).kind else { return };
        let root = &self.file.root;
        let at = root.entries().iter().position(|entry| entry.key == key);
        let (mut items, ways) = match at.map(|at| (at, &root.entries()[at].value)) {
            Some((at, Node { kind: Kind::Seq(items), .. })) if !items.is_empty() => {
                (items.clone(), block::push(&self.file, at, &new[0]))
            }
            None | Some((_, Node { kind: Kind::Null | Kind::Seq(_), .. })) => (Vec::new(), Vec::new()),
            Some(_) => return self.fail(Error::new(format!("`{key}` is not a list"))),
        };
        items.append(&mut new);
        self.set_with(ways, key, Node::new(Kind::Seq(items), 0..0));
    }

    /// Replaces what stands below the frontmatter. The line ends become those that the file has.
    pub fn set_body(&mut self, body: &str) {
        let file = &self.file;
        if self.error.is_some() || body == &file.text[file.body.clone()] {
            return;
        }
        let own =
            if file.text[file.body.clone()].contains('\n') { file.body.clone() } else { file.yaml_line() };
        let end = file::line_end(&file.text[own]);
        let body = body.replace("\r\n", "\n").replace('\n', end);
        let mut text = file.text[..file.body.start].to_owned();
        if !text.ends_with('\n') && !body.is_empty() {
            text.push_str(end);
        }
        text.push_str(&body);
        match FileText::parse(file.bom, text) {
            Ok(new) if file::same(&new.root, &file.root) && new.text[new.body.clone()] == body => {
                self.file = new;
            }
            Ok(_) => self.fail(Error::new("the body would read differently")),
            Err(error) => self.fail(error),
        }
    }

    /// The text with all changes.
    ///
    /// # Errors
    /// When one of them could not be made: the first, and why.
    pub fn finish(self) -> Result<String, Error> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.file.into_text()),
        }
    }

    fn set(&mut self, key: &str, value: Node) {
        self.set_with(Vec::new(), key, value);
    }

    /// Sets a key, by some ways before those that fit any value.
    fn set_with(&mut self, mut ways: Vec<Patch>, key: &str, value: Node) {
        let root = &self.file.root;
        let mut entries = root.entries().to_vec();
        let at = entries.iter().position(|entry| entry.key == key);
        if at.is_some_and(|at| file::equal(&entries[at].value, &value)) {
            return;
        }
        ways.extend(match (at, self.file.is_flow()) {
            (Some(at), false) => block::set(&self.file, at, &value),
            (Some(at), true) => flow::set(&self.file.text, root, at, &value),
            (None, false) => block::insert(&self.file, key, &value),
            (None, true) => flow::insert(&self.file.text, root, key, &value),
        });
        match at {
            Some(at) => entries[at].value = value,
            None => entries.push(Entry { key: key.to_owned(), key_span: 0..0, value }),
        }
        self.apply_first(ways, entries, &format!("`{key}` cannot be set to this value"));
    }

    /// Makes a change in the first way that reads as it should.
    fn apply_first(&mut self, ways: Vec<Patch>, entries: Vec<Entry>, otherwise: &str) {
        if self.error.is_some() {
            return;
        }
        let wanted = Node::new(Kind::Map(entries), 0..0);
        let mut error = Error::new(otherwise);
        for way in ways {
            match self.file.apply(way) {
                Ok(new) if file::same(&new.root, &wanted) && new.body_text() == self.file.body_text() => {
                    self.file = new;
                    return;
                }
                Ok(_) => {}
                Err(why) => error.reason = format!("{otherwise}: {}", why.reason),
            }
        }
        self.error = Some(error);
    }

    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
}

/// A new file: the manifest in the order of the schema, in block style, and the body below it as it is given.
///
/// # Errors
/// When there is no YAML that reads as this manifest: a number past 64 bits, an empty key, more than a file may hold.
pub fn render(manifest: &Map<String, Value>, body: &str) -> Result<String, Error> {
    let root = write::node(&Value::Object(manifest.clone()))?;
    let mut yaml = String::new();
    write::block(&root, 0, &mut yaml);
    let yaml = format::format(&yaml, &orders::PLAYBOOK).unwrap_or(yaml);
    let file = FileText::new(&format!("---\n{yaml}---\n{body}"))?;
    if file::same(&file.root, &root) && file.body_text() == body {
        return Ok(file.into_text());
    }
    Err(Error::new("the manifest would read differently"))
}

/// A value whose keys stand in the order that the schema has below a key.
fn in_schema_order(key: &str, value: Node) -> Node {
    let entry = Entry { key: key.to_owned(), key_span: 0..0, value };
    let root = Node::new(Kind::Map(vec![entry]), 0..0);
    let mut yaml = String::new();
    write::block(&root, 0, &mut yaml);
    let read =
        format::format(&yaml, &orders::PLAYBOOK).ok().and_then(|yaml| crate::tree::yaml::parse(&yaml).0);
    let entry = |root: Node| match root.kind {
        Kind::Map(entries) => entries.into_iter().next().map(|entry| entry.value),
        _ => None,
    };
    let new = read.filter(|read| file::same(read, &root)).and_then(entry);
    new.or_else(|| entry(root)).unwrap_or(Node::new(Kind::Null, 0..0))
}

/// Whether the schema has one key before the other; every key that it has is before those that it has not.
fn precedes(one: &str, other: &str) -> bool {
    let line = |key: &str| format!("{}: 0\n", write::quoted(key));
    let (one, other) = (line(one), line(other));
    // The formatter alone knows the order; an unknown key stays where it is.
    format::format(&format!("{other}{one}"), &orders::PLAYBOOK).is_ok_and(|text| text.starts_with(&one))
}
