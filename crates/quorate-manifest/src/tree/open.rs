//! Opens a file as a tree, with a diagnostic for each possible failure.

use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::codes::{self, RefusalCode};
use quorate_diagnostics::{Body, Place, Report};
use sha2::{Digest, Sha256};

use super::reader::{Fields, SourceFile};
use super::{Kind, Node, Problem, toml, yaml};
use crate::decode::{self, decode};
use crate::source::{Error, Source};

/// The syntax of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Yaml,
    Toml,
}

/// A parsed file and its diagnostics.
#[derive(Debug)]
pub struct ParsedFile {
    /// The text with its diagnostics.
    pub source_file: SourceFile,
    /// `None` if the text cannot be parsed; then there is a refusal.
    pub root: Option<Node>,
    /// SHA-256 of the bytes, in hexadecimal.
    pub sha256: String,
}

impl ParsedFile {
    /// The root's fields. An empty file is an empty mapping.
    pub fn fields(&self) -> Option<Fields<'_>> {
        let root = self.root.as_ref()?;
        match &root.kind {
            Kind::Map(entries) => Some(self.source_file.root(entries)),
            Kind::Null => Some(self.source_file.root(&[])),
            other => {
                let message = format!("the file holds {}, not a mapping of keys", other.name());
                self.source_file.invalid(root.span.clone(), String::new(), message);
                None
            }
        }
    }
}

/// Reads and parses a file. `invalid` is the code of its schema errors.
///
/// # Errors
/// A report with the reason why the file cannot be read.
pub fn open(
    source: &dyn Source,
    path: &Path,
    shown: &str,
    format: Format,
    invalid: RefusalCode,
) -> Result<ParsedFile, Report> {
    let bytes = source.read(path).map_err(|error| report_unreadable(shown, &error))?;
    let sha256 = sha256_hex(&bytes);
    let (text, decode_error) = match decode(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let at = if let decode::Error::NotUtf8 { at, .. } = error { at } else { 0 };
            let message = format!("the file cannot be read: {error}");
            let text = if let decode::Error::NotUtf8 { text, .. } = error { text } else { String::new() };
            let problem = Problem { span: at..at, message, help: None, related: None };
            (text, Some(problem))
        }
    };
    let text: Arc<str> = text.into();
    let document = SourceFile::new(shown, Arc::clone(&text), invalid);
    let (root, problems) = match (decode_error, format) {
        (Some(problem), _) => (None, vec![problem]),
        (None, Format::Yaml) => yaml::parse(&text),
        (None, Format::Toml) => toml::parse(&text),
    };
    for problem in problems {
        add_syntax_problem(&document, problem);
    }
    Ok(ParsedFile { source_file: document, root, sha256 })
}

/// SHA-256 in hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    const FIGURES: &[u8; 16] = b"0123456789abcdef";
    let figure = |half: u8| char::from(FIGURES[usize::from(half)]);
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        text.extend([figure(byte >> 4), figure(byte & 15)]);
    }
    text
}

fn report_unreadable(shown: &str, error: &Error) -> Report {
    let mut report = Report::new();
    let place = Place { file: shown.into(), span: 0..0, path: String::new() };
    match error {
        Error::Missing => {
            let body = Body::new(format!("there is no file `{shown}`")).at(place);
            report.refuse(
                codes::CONFIG_MISSING,
                body.help("check the path, or leave it out to use the defaults"),
            );
        }
        Error::Unreadable(_) => {
            let body = Body::new(format!("`{shown}` cannot be read: {error}")).at(place);
            report.refuse(codes::CONFIG_UNREADABLE, body);
        }
    }
    report
}

fn add_syntax_problem(document: &SourceFile, problem: Problem) {
    let mut body = Body::new(problem.message).at(document.place(problem.span, String::new()));
    body.help = problem.help;
    if let Some((span, label)) = problem.related {
        body = body.related(document.place(span, String::new()), label);
    }
    document.refuse(codes::SYNTAX, body);
}
