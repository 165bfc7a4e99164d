//! Changes of a playbook's file that leave everything else in it as it stands, to the byte (B8): comments, the order of
//! keys, quotes, line ends, unknown metadata.
//!
//! Every change is held against what it should have made: the text after it has to read as the tree before it with that
//! one value changed, and with the same body. Of several ways to write a change the first that does is taken; where none
//! does, there is no text.

mod block;
mod flow;
mod read;
mod write;

use std::ops::Range;

use serde_json::{Map, Value};

use self::read::Whole;
use crate::format::{self, orders};
use crate::tree::{Entry, Kind, Node};

/// Why a text cannot be edited, or not in the way that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{why}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct Unusable {
    /// The line, from 1, where there is one to point at.
    pub line: Option<usize>,
    /// What is wrong, in one sentence.
    pub why: String,
}

impl Unusable {
    fn new(why: impl Into<String>) -> Unusable {
        Unusable { line: None, why: why.into() }
    }
}

/// A text that is being edited. What a change cannot do is said by [`Edit::finish`]; changes after it are not made.
#[derive(Debug)]
pub struct Edit {
    whole: Whole,
    failed: Option<Unusable>,
}

/// One way to make a change: what stands in place of which parts of the text, in order and apart from each other.
type Patch = Vec<(Range<usize>, String)>;

impl Edit {
    /// Takes a text with frontmatter; a byte order mark is kept.
    ///
    /// # Errors
    /// When the text would not load: no frontmatter, no YAML, no mapping.
    pub fn new(text: &str) -> Result<Edit, Unusable> {
        Ok(Edit { whole: Whole::new(text)?, failed: None })
    }

    /// Sets a top-level key to a text: in the quotes that the value has, else plain where every YAML reads that as this
    /// text, else in double quotes. A new key stands where the schema's order has it.
    pub fn scalar(&mut self, key: &str, value: &str) {
        self.set(key, Node::new(Kind::Str(value.to_owned()), 0..0));
    }

    /// Sets a top-level key to a whole number.
    pub fn number(&mut self, key: &str, value: i64) {
        self.set(key, Node::new(Kind::Int(value), 0..0));
    }

    /// Sets a top-level key to any value. Keys in it that have no value are left out; without a value at all the key goes.
    pub fn json(&mut self, key: &str, value: &Value) {
        match write::node(value) {
            Err(error) => self.fail(error),
            Ok(Node { kind: Kind::Null, .. }) => self.remove(key),
            Ok(node) => self.set(key, arranged(key, node)),
        }
    }

    /// Takes a top-level key and its value out, with the comments inside the value and on its lines; those above the key
    /// stay.
    pub fn remove(&mut self, key: &str) {
        let root = &self.whole.root;
        let Some(at) = root.entries().iter().position(|entry| entry.key == key) else { return };
        let ways = if self.whole.is_flow() {
            flow::remove(&self.whole.text, root, at)
        } else {
            block::remove(&self.whole, at)
        };
        let mut entries = root.entries().to_vec();
        entries.remove(at);
        self.make(ways, entries, &format!("`{key}` cannot be taken out"));
    }

    /// Adds an item to the end of a top-level list. Without the key there is a new list.
    pub fn push(&mut self, key: &str, item: &Map<String, Value>) {
        let item = match write::node(&Value::Object(item.clone())) {
            Ok(item) => item,
            Err(error) => return self.fail(error),
        };
        let list = Node::new(Kind::Seq(vec![item]), 0..0);
        let Kind::Seq(mut new) = arranged(key, list).kind else { return };
        let root = &self.whole.root;
        let at = root.entries().iter().position(|entry| entry.key == key);
        let (mut items, ways) = match at.map(|at| (at, &root.entries()[at].value)) {
            Some((at, Node { kind: Kind::Seq(items), .. })) if !items.is_empty() => {
                (items.clone(), block::push(&self.whole, at, &new[0]))
            }
            None | Some((_, Node { kind: Kind::Null | Kind::Seq(_), .. })) => (Vec::new(), Vec::new()),
            Some(_) => return self.fail(Unusable::new(format!("`{key}` is not a list"))),
        };
        items.append(&mut new);
        self.set_by(ways, key, Node::new(Kind::Seq(items), 0..0));
    }

    /// Replaces what stands below the frontmatter. The line ends become those that the file has.
    pub fn body(&mut self, body: &str) {
        let whole = &self.whole;
        if self.failed.is_some() || body == &whole.text[whole.body.clone()] {
            return;
        }
        let own = if whole.text[whole.body.clone()].contains('\n') {
            whole.body.clone()
        } else {
            whole.yaml_line()
        };
        let end = read::line_end(&whole.text[own]);
        let body = body.replace("\r\n", "\n").replace('\n', end);
        let mut text = whole.text[..whole.body.start].to_owned();
        if !text.ends_with('\n') && !body.is_empty() {
            text.push_str(end);
        }
        text.push_str(&body);
        match Whole::of(whole.mark, text) {
            Ok(new) if read::same(&new.root, &whole.root) && new.text[new.body.clone()] == body => {
                self.whole = new;
            }
            Ok(_) => self.fail(Unusable::new("the body would read differently")),
            Err(error) => self.fail(error),
        }
    }

    /// The text with all changes.
    ///
    /// # Errors
    /// When one of them could not be made: the first, and why.
    pub fn finish(self) -> Result<String, Unusable> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.whole.into_text()),
        }
    }

    fn set(&mut self, key: &str, value: Node) {
        self.set_by(Vec::new(), key, value);
    }

    /// Sets a key, by some ways before those that fit any value.
    fn set_by(&mut self, mut ways: Vec<Patch>, key: &str, value: Node) {
        let root = &self.whole.root;
        let mut entries = root.entries().to_vec();
        let at = entries.iter().position(|entry| entry.key == key);
        if at.is_some_and(|at| read::equal(&entries[at].value, &value)) {
            return;
        }
        ways.extend(match (at, self.whole.is_flow()) {
            (Some(at), false) => block::set(&self.whole, at, &value),
            (Some(at), true) => flow::set(&self.whole.text, root, at, &value),
            (None, false) => block::insert(&self.whole, key, &value),
            (None, true) => flow::insert(&self.whole.text, root, key, &value),
        });
        match at {
            Some(at) => entries[at].value = value,
            None => entries.push(Entry { key: key.to_owned(), key_span: 0..0, value }),
        }
        self.make(ways, entries, &format!("`{key}` cannot be set to this value"));
    }

    /// Makes a change in the first way that reads as it should.
    fn make(&mut self, ways: Vec<Patch>, entries: Vec<Entry>, otherwise: &str) {
        if self.failed.is_some() {
            return;
        }
        let wanted = Node::new(Kind::Map(entries), 0..0);
        let mut error = Unusable::new(otherwise);
        for way in ways {
            match self.whole.with(way) {
                Ok(new) if read::same(&new.root, &wanted) && new.body_text() == self.whole.body_text() => {
                    self.whole = new;
                    return;
                }
                Ok(_) => {}
                Err(why) => error.why = format!("{otherwise}: {}", why.why),
            }
        }
        self.failed = Some(error);
    }

    fn fail(&mut self, error: Unusable) {
        self.failed.get_or_insert(error);
    }
}

/// A new file: the manifest in the order of the schema, in block style, and the body below it as it is given.
///
/// # Errors
/// When there is no YAML that reads as this manifest: a number past 64 bits, an empty key, more than a file may hold.
pub fn render(manifest: &Map<String, Value>, body: &str) -> Result<String, Unusable> {
    let root = write::node(&Value::Object(manifest.clone()))?;
    let mut yaml = String::new();
    write::block(&root, 0, &mut yaml);
    let yaml = format::format(&yaml, &orders::PLAYBOOK).unwrap_or(yaml);
    let whole = Whole::new(&format!("---\n{yaml}---\n{body}"))?;
    if read::same(&whole.root, &root) && whole.body_text() == body {
        return Ok(whole.into_text());
    }
    Err(Unusable::new("the manifest would read differently"))
}

/// A value whose keys stand in the order that the schema has below a key.
fn arranged(key: &str, value: Node) -> Node {
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
    let new = read.filter(|read| read::same(read, &root)).and_then(entry);
    new.or_else(|| entry(root)).unwrap_or(Node::new(Kind::Null, 0..0))
}

/// Whether the schema has one key before the other; every key that it has is before those that it has not.
fn precedes(one: &str, other: &str) -> bool {
    let line = |key: &str| format!("{}: 0\n", write::quoted(key));
    let (one, other) = (line(one), line(other));
    // The formatter alone knows the order; an unknown key stays where it is.
    format::format(&format!("{other}{one}"), &orders::PLAYBOOK).is_ok_and(|text| text.starts_with(&one))
}
