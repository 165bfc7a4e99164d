//! One parsed manifest file: its text, tree, Markdown body, and the diagnostics of its schema.
//!
//! In mappings that allow unknown keys (M3), a misspelling of a known key is refused, since its value would be ignored. In
//! mappings that only Quorate reads, every other unknown key gets a warning.

pub(crate) mod schema_error;

use std::ops::Range;
use std::sync::Arc;

use quorate_diagnostics::{Body, Place, Refusal, Report, codes};
use serde::de::DeserializeOwned;

use crate::doctype::{self, Doctype, compiled_schema};
use crate::frontmatter;
use crate::json_schema::{ErrorKind, PathStep, SchemaError};
use crate::misspelling::{meant_key, meant_or};
use crate::tree::open::{decode_as_far_as_possible, sha256_hex};
use crate::tree::reader::SourceFile;
use crate::tree::{Entry, Kind, Node, Problem, from_node, yaml};
use crate::workspace::WorkspacePath;
use schema_error::describe;

/// One parsed manifest file, before any merge.
#[derive(Debug)]
pub struct Document {
    pub path: WorkspacePath,
    /// The path as messages show it.
    pub shown: Arc<str>,
    pub doctype: Doctype,
    pub text: Arc<str>,
    /// SHA-256 of the bytes, in hexadecimal.
    pub sha256: String,
    /// The frontmatter; may be incomplete if the report has refusals.
    pub root: Node,
    /// The range of the Markdown below the frontmatter.
    pub body: Range<usize>,
    /// Diagnostics of this file alone.
    pub report: Report,
}

/// A parsed text, possibly with problems.
pub(crate) struct Parsed {
    pub(crate) document: SourceFile,
    pub(crate) sha256: String,
    pub(crate) root: Option<Node>,
    pub(crate) body: Range<usize>,
}

/// Where a file has its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// Between `---` lines, with Markdown below.
    Frontmatter,
    /// The whole text is YAML.
    Yaml,
}

impl Syntax {
    /// `.yaml` and `.yml` files are YAML; all others have frontmatter.
    pub fn from_name(name: &str) -> Syntax {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        if extension.eq_ignore_ascii_case("yaml") || extension.eq_ignore_ascii_case("yml") {
            Syntax::Yaml
        } else {
            Syntax::Frontmatter
        }
    }
}

/// The refusals of a manifest that cannot be parsed, with its probable doctype. `None` if it can be parsed or its doctype
/// is unknown.
pub fn unreadable(name: &str, shown: &str, bytes: Vec<u8>) -> Option<(Doctype, Report)> {
    let parsed = parse(shown, bytes, Syntax::from_name(name));
    let doctype = detect(name, &parsed)?;
    let report = parsed.document.into_report();
    report.has_refusals().then_some((doctype, report))
}

/// The doctype of a text: by its `schema`, else its name, else its keys. Without a tree: by its name, else by a line that
/// looks like a `schema` key.
pub(crate) fn detect(name: &str, parsed: &Parsed) -> Option<Doctype> {
    match &parsed.root {
        Some(root) => doctype::detect(name, root),
        None => doctype::from_name(name).or_else(|| doctype::from_text(parsed.document.text())),
    }
}

/// Parses bytes as far as possible; the result has all problems.
pub(crate) fn parse(shown: &str, bytes: Vec<u8>, syntax: Syntax) -> Parsed {
    let sha256 = sha256_hex(&bytes);
    let (text, decode_error) = decode_as_far_as_possible(bytes);
    let mut problems = Vec::from_iter(decode_error);
    let mut root = None;
    let mut body = text.len()..text.len();
    if problems.is_empty() {
        if let Some(at) = text.find('\0') {
            problems.push(Problem::new(at..at + 1, "there is a NUL character here").help("remove it"));
        } else {
            let parts = match syntax {
                Syntax::Yaml => Ok(frontmatter::Parts { yaml: 0..text.len(), body: body.clone() }),
                Syntax::Frontmatter => frontmatter::split(&text),
            };
            match parts {
                Err(problem) => problems.push(problem),
                Ok(parts) => {
                    (root, problems) = parse_yaml(&text, parts.yaml);
                    body = parts.body;
                }
            }
        }
    }
    let source_file = SourceFile::new(shown, text, codes::SYNTAX);
    problems.into_iter().for_each(|problem| source_file.refuse_syntax(problem));
    if let Some(other) = root.as_ref().filter(|root| !matches!(root.kind, Kind::Map(_) | Kind::Null)) {
        let message = format!("there is {} here, not a mapping of keys", other.kind.name());
        source_file.refuse(codes::SYNTAX, Body::new(message).at(source_file.place(other.span.clone(), "")));
    }
    Parsed { document: source_file, sha256, root, body }
}

/// Parses a part of a text; spans are offsets into the whole text.
fn parse_yaml(text: &str, part: Range<usize>) -> (Option<Node>, Vec<Problem>) {
    let (mut root, mut problems) = yaml::parse(&text[part.clone()]);
    problems.iter_mut().for_each(|problem| problem.shift(part.start));
    root.iter_mut().for_each(|root| root.shift(part.start));
    (root, problems)
}

impl Document {
    /// Makes a document of a parsed text and validates it against the schema of its doctype.
    pub(crate) fn new(location: WorkspacePath, doctype: Doctype, parsed: Parsed) -> Document {
        let Parsed { document, sha256, root, body } = parsed;
        let text = Arc::clone(document.text());
        let display_name: Arc<str> = Arc::clone(&document.place(0..0, "").file);
        // All problems of a file are reported at once (M2): a duplicate key does not stop the validation of the others.
        if let (Some(root), Some(schema)) = (&root, doctype::compiled_schema(doctype))
            && (!document.refused() || matches!(root.kind, Kind::Map(_)))
        {
            let mut errors = schema.errors(root);
            errors.extend(misspelt(doctype, root));
            document.refuse_errors(doctype.invalid_code(), (root, ""), &errors);
            warn(&document, doctype, root);
        }
        let root = root.unwrap_or(Node::new(Kind::Null, 0..0));
        Document {
            path: location,
            shown: display_name,
            doctype,
            text,
            sha256,
            root,
            body,
            report: document.into_report(),
        }
    }

    /// Deserializes a chain's tree whose leaf is this document. Refuses a number that the schema allows but `T` cannot
    /// represent.
    pub(crate) fn deserialize<T: DeserializeOwned>(&self, root: &Node, report: &mut Report) -> Option<T> {
        match from_node(root) {
            Ok(value) => Some(value),
            Err(error) => {
                report.add_source(Arc::clone(&self.shown), Arc::clone(&self.text));
                let body = Body::new(format!("cannot use a value: {error}"));
                report.refuse(codes::NUMBER_UNUSABLE, body.at(self.place(self.root.span.clone(), "")));
                None
            }
        }
    }

    pub fn refused(&self) -> bool {
        self.report.has_refusals()
    }

    /// Whether its tree is complete: it may violate its schema, and is refused for nothing else.
    pub(crate) fn is_readable(&self) -> bool {
        let violates = |refusal: &Refusal| refusal.code == self.doctype.invalid_code();
        self.report.refusals.iter().all(violates)
    }

    /// Whether a top-level key is refused.
    pub(crate) fn refuses(&self, key: &str) -> bool {
        let at_key = |refusal: &Refusal| refusal.body.place.as_ref().is_some_and(|place| place.path == key);
        self.report.refusals.iter().any(at_key)
    }

    /// The Markdown below the frontmatter.
    pub fn body(&self) -> &str {
        &self.text[self.body.clone()]
    }

    pub fn place(&self, span: Range<usize>, path: impl Into<String>) -> Place {
        Place { file: Arc::clone(&self.shown), span, path: path.into() }
    }

    /// The place of a top-level key; without the key, the start of the frontmatter.
    pub fn key_place(&self, key: &str) -> Place {
        let span = self
            .root
            .entry(key)
            .map_or(self.root.span.start..self.root.span.start, |entry| entry.key_span.clone());
        self.place(span, key)
    }

    /// The place of a top-level key's value; without the key, as [`Document::key_place`].
    pub fn value_place(&self, key: &str) -> Place {
        match self.root.key(key) {
            Some(node) => self.place(node.span.clone(), key),
            None => self.key_place(key),
        }
    }
}

/// The refusal of a file whose doctype is unknown, or of its syntax errors.
pub(crate) fn unknown_doctype_report(parsed: Parsed) -> Report {
    let document = parsed.document;
    if !document.refused() {
        let known: Vec<&str> = Doctype::ALL.into_iter().filter_map(Doctype::schema_id).collect();
        let root = parsed.root.as_ref();
        let schema = root.and_then(|root| root.key("schema"));
        let written = schema.and_then(Node::as_str);
        let (message, span) = match (written, schema) {
            (Some(written), Some(node)) => (format!("unknown doctype `{written}`"), node.span.clone()),
            _ => ("cannot tell the doctype of this file".to_owned(), 0..0),
        };
        let help =
            meant_or(written.unwrap_or_default(), &known, || format!("add `schema`: {}", known.join(", ")));
        document
            .refuse(codes::DOCTYPE_UNKNOWN, Body::new(message).at(document.place(span, "schema")).help(help));
    }
    document.into_report()
}

/// The axes of a selector that Quorate knows; embedding programs may add others.
const AXES: [&str; 8] = ["allOf", "anyOf", "identity", "role", "position", "capability", "skill", "runtime"];
/// The keys of a participant's `meta` that Quorate reads; adapters may read others.
const META: [&str; 4] = ["operator", "persona", "operatorId", "capabilities"];

/// Who reads a mapping; this decides what happens to its unknown keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readers {
    /// Only Quorate: a misspelling is refused, another key gets a warning.
    Quorate,
    /// Quorate and other tools: a misspelling is refused, another key is kept.
    Several,
    /// Mainly other tools: a misspelling gets a warning, another key is kept.
    Others,
}

/// A mapping that allows unknown keys.
struct OpenMapping<'n> {
    path: Vec<PathStep>,
    node: &'n Node,
    known: Vec<&'static str>,
    readers: Readers,
}

impl<'n> OpenMapping<'n> {
    /// The unknown keys, without `metadata` and `x-…`, which are free for other tools.
    fn unknown(&self) -> impl Iterator<Item = &'n Entry> {
        let is_reserved = |key: &str| {
            key != "metadata" && !key.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("x-"))
        };
        // A key without a value is absent.
        let is_set = |entry: &Entry| entry.value.kind != Kind::Null;
        self.node.entries().iter().filter(move |entry| {
            is_set(entry) && is_reserved(&entry.key) && !self.known.contains(&&*entry.key)
        })
    }

    /// An error for an unknown key, to share its wording with the schema's errors.
    fn error(&self, key: &str, known: &[&str]) -> SchemaError {
        let known = known.iter().map(|known| (*known).to_owned()).collect();
        let kind = ErrorKind::UnknownKey { key: key.to_owned(), known };
        SchemaError { path: self.path.clone(), kind, schema_description: None }
    }
}

/// An error for each misspelling of a known key that is refused.
pub fn misspelt(doctype: Doctype, root: &Node) -> Vec<SchemaError> {
    let mappings = open_mappings(doctype, root);
    let refusing = mappings.iter().filter(|mapping| mapping.readers != Readers::Others);
    let slips = refusing.flat_map(|mapping| {
        let slips =
            mapping.unknown().filter_map(|entry| Some((entry, meant_key(&entry.key, &mapping.known)?)));
        slips.map(|(entry, meant)| mapping.error(&entry.key, &[meant]))
    });
    slips.collect()
}

/// Warns of unknown keys.
fn warn(document: &SourceFile, doctype: Doctype, root: &Node) {
    for mapping in open_mappings(doctype, root) {
        for entry in mapping.unknown() {
            let misspelt = meant_key(&entry.key, &mapping.known);
            let help = match (mapping.readers, misspelt) {
                (Readers::Quorate, None) => meant_or(&entry.key, &mapping.known, || {
                    format!(
                        "the keys are: {}; start the keys of other tools with `x-`",
                        mapping.known.join(", ")
                    )
                }),
                (Readers::Others, Some(meant)) => format!("did you mean `{meant}`?"),
                _ => continue,
            };
            let (_, span, path) = describe(document.text(), root, &mapping.error(&entry.key, &[]), "");
            let body = Body::new(format!("Quorate reads no `{}` here", entry.key)).help(help);
            document.warn(codes::FIELD_WITHOUT_EFFECT, body.at(document.place(span, path)));
        }
    }
}

/// The open mappings of a manifest, without the blocks of adapters, which the adapters validate.
fn open_mappings<'n>(doctype: Doctype, root: &'n Node) -> Vec<OpenMapping<'n>> {
    let mut found = Vec::new();
    let mut add = |node: Option<&'n Node>, path: Vec<PathStep>, known: Vec<&'static str>, readers| {
        found.extend(node.map(|node| OpenMapping { path, node, known, readers }));
    };
    let key = |key: &str| PathStep::Key(key.to_owned());
    let schema = compiled_schema(doctype);
    let known = || schema.map(|schema| schema.keys()).unwrap_or_default();
    match doctype {
        Doctype::Runtime => {
            add(Some(root), Vec::new(), known(), Readers::Quorate);
            let participant = schema.and_then(|schema| schema.property("participants")?.item());
            for (at, node) in root.items_at(&["participants"]).iter().enumerate() {
                let path = vec![key("participants"), PathStep::Item(at)];
                let known = participant.map(|schema| schema.keys()).unwrap_or_default();
                add(node.key("meta"), [&path[..], &[key("meta")]].concat(), META.to_vec(), Readers::Others);
                add(Some(node), path, known, Readers::Quorate);
            }
        }
        Doctype::Operator => add(Some(root), Vec::new(), known(), Readers::Several),
        Doctype::Playbook => add(root.key("selector"), vec![key("selector")], AXES.to_vec(), Readers::Others),
        _ => {}
    }
    let ours = root.at_path(&["metadata", "quorate"]);
    let path = vec![key("metadata"), key("quorate")];
    match doctype {
        Doctype::Assembly => {
            let known = vec!["executor", "fallback", "samples", "members", "everyMessages"];
            add(ours, path.clone(), known, Readers::Quorate);
            for member in ours.and_then(|ours| ours.key("members")).map_or(&[][..], Node::entries) {
                let path = [&path[..], &[key("members"), key(&member.key)]].concat();
                let known = vec!["executor", "fallback", "samples"];
                add(Some(&member.value), path, known, Readers::Quorate);
            }
        }
        Doctype::Persona | Doctype::Operator => add(ours, path, vec!["locks"], Readers::Quorate),
        _ => {}
    }
    found
}
