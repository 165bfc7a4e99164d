//! One manifest as it stands in a file: its text, its tree, its body, and what its schema says of it.

pub mod open_keys;
pub(crate) mod schema_error;

use std::ops::Range;
use std::sync::Arc;

use quorate_diagnostics::codes;
use quorate_diagnostics::{Body, Place, Report};
use serde::de::DeserializeOwned;

use crate::decode::{self, decode};
use crate::doctype::{self, Doctype};
use crate::frontmatter;
use crate::tree::open::sha256_hex;
use crate::tree::reader::SourceFile;
use crate::tree::{Kind, Node, Problem, from_node, yaml};
use crate::workspace::WorkspacePath;

/// One manifest as it stands in a file.
#[derive(Debug)]
pub struct Document {
    /// Where it is in its workspace.
    pub path: WorkspacePath,
    /// What the user calls it.
    pub shown: Arc<str>,
    pub doctype: Doctype,
    pub text: Arc<str>,
    /// SHA-256 of the bytes, in hexadecimal.
    pub sha256: String,
    /// The frontmatter; whole, if the report does not refuse.
    pub root: Node,
    /// The Markdown below the frontmatter.
    pub body: Range<usize>,
    /// What is wrong with this file by itself.
    pub report: Report,
}

/// A text that was read as far as it could be.
pub(crate) struct Parsed {
    pub(crate) document: SourceFile,
    pub(crate) sha256: String,
    pub(crate) root: Option<Node>,
    pub(crate) body: Range<usize>,
}

/// How a text holds its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// Between `---` lines, with Markdown below.
    Frontmatter,
    /// The whole text is YAML.
    Yaml,
}

impl Syntax {
    /// By a file's name: `.yaml` and `.yml` are YAML.
    pub fn from_name(name: &str) -> Syntax {
        let end = name.rsplit_once('.').map_or("", |(_, end)| end);
        if end.eq_ignore_ascii_case("yaml") || end.eq_ignore_ascii_case("yml") {
            Syntax::Yaml
        } else {
            Syntax::Frontmatter
        }
    }
}

/// What keeps bytes from being read as a manifest, with the doctype that they were meant to have. `None` where they can be
/// read, or nothing says what they are.
pub fn unreadable(name: &str, shown: &str, bytes: Vec<u8>) -> Option<(Doctype, Report)> {
    let parsed = parse(shown, bytes, Syntax::from_name(name));
    let doctype = detect(name, &parsed)?;
    let report = parsed.document.into_report();
    report.has_refusals().then_some((doctype, report))
}

/// What a text is, by its `schema`, else its name; of what cannot be read by its name, else by what stands in it.
pub(crate) fn detect(name: &str, parsed: &Parsed) -> Option<Doctype> {
    match &parsed.root {
        Some(root) => doctype::detect(name, root),
        None => doctype::from_name(name).or_else(|| doctype::from_text(parsed.document.text())),
    }
}

/// Reads bytes as far as they can be: every problem on the way is in the document.
pub(crate) fn parse(shown: &str, bytes: Vec<u8>, holding: Syntax) -> Parsed {
    let sha256 = sha256_hex(&bytes);
    let (text, mut problems) = match decode(bytes) {
        Ok(text) => (text, Vec::new()),
        Err(error) => {
            let message = format!("the file cannot be read: {error}");
            let (at, text) = match error {
                decode::Error::NotUtf8 { at, text } => (at, text),
                decode::Error::TooLarge(_) => (0, String::new()),
            };
            (text, vec![Problem { span: at..at, message, help: None, related: None }])
        }
    };
    let text: Arc<str> = text.into();
    let mut root = None;
    let mut body = text.len()..text.len();
    if problems.is_empty() {
        if let Some(at) = text.find('\0') {
            problems.push(Problem {
                span: at..at + 1,
                message: "there is a NUL character here".to_owned(),
                help: Some("remove it".to_owned()),
                related: None,
            });
        } else {
            let parts = match holding {
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
    for problem in problems {
        let mut said = Body::new(problem.message).at(source_file.place(problem.span, String::new()));
        said.help = problem.help;
        if let Some((span, label)) = problem.related {
            said = said.related(source_file.place(span, String::new()), label);
        }
        source_file.refuse(codes::SYNTAX, said);
    }
    if let Some(other) = root.as_ref().filter(|root| !matches!(root.kind, Kind::Map(_) | Kind::Null)) {
        let message = format!("there is {} here, not a mapping of keys", other.kind.name());
        source_file.refuse(codes::SYNTAX, Body::new(message).at(source_file.place(other.span.clone(), "")));
    }
    Parsed { document: source_file, sha256, root, body }
}

/// The tree of a part of a text, with places in the whole.
fn parse_yaml(text: &str, part: Range<usize>) -> (Option<Node>, Vec<Problem>) {
    let (mut root, mut problems) = yaml::parse(&text[part.clone()]);
    let moved = |span: &Range<usize>| span.start + part.start..span.end + part.start;
    for problem in &mut problems {
        problem.span = moved(&problem.span);
        if let Some((span, _)) = &mut problem.related {
            *span = moved(span);
        }
    }
    if let Some(root) = &mut root {
        root.shift(part.start);
    }
    (root, problems)
}

impl Document {
    /// Makes a document of a parsed text, held against the schema of its doctype.
    pub(crate) fn new(location: WorkspacePath, doctype: Doctype, parsed: Parsed) -> Document {
        let Parsed { document, sha256, root, body } = parsed;
        let text = Arc::clone(document.text());
        let display_name: Arc<str> = Arc::clone(&document.place(0..0, "").file);
        // A key that is there twice leaves no doubt about the others, and all of a file is said at once (M2).
        if let (Some(root), Some(form)) = (&root, doctype::compiled_schema(doctype))
            && (!document.refused() || matches!(root.kind, Kind::Map(_)))
        {
            let mut errors = form.errors(root);
            errors.extend(open_keys::misspelt(doctype, root));
            schema_error::report(&document, doctype, root, &errors);
            open_keys::warn(&document, doctype, root);
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

    /// A tree that this document ends, as a type. A number that the schema lets through and the type cannot hold is refused.
    pub(crate) fn deserialize<T: DeserializeOwned>(&self, root: &Node, report: &mut Report) -> Option<T> {
        match from_node(root) {
            Ok(value) => Some(value),
            Err(error) => {
                report.add_source(Arc::clone(&self.shown), Arc::clone(&self.text));
                let body = Body::new(format!("a value cannot be used: {error}"));
                report.refuse(codes::NUMBER_UNUSABLE, body.at(self.place(self.root.span.clone(), "")));
                None
            }
        }
    }

    /// Whether anything in it is refused.
    pub fn refused(&self) -> bool {
        self.report.has_refusals()
    }

    /// The Markdown below the frontmatter.
    pub fn body(&self) -> &str {
        &self.text[self.body.clone()]
    }

    /// A place in it.
    pub fn place(&self, span: Range<usize>, path: impl Into<String>) -> Place {
        Place { file: Arc::clone(&self.shown), span, path: path.into() }
    }

    /// Where a top-level key stands, or the beginning of the frontmatter.
    pub fn key_place(&self, key: &str) -> Place {
        let span = self
            .root
            .entry(key)
            .map_or(self.root.span.start..self.root.span.start, |entry| entry.key_span.clone());
        self.place(span, key)
    }

    /// Where the value of a top-level key stands.
    pub fn value_place(&self, key: &str) -> Place {
        match self.root.key(key) {
            Some(node) => self.place(node.span.clone(), key),
            None => self.key_place(key),
        }
    }
}
