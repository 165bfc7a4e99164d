//! Formatting: finds the doctype of a text, and writes it in canonical key order and spacing.

use std::ops::Range;
use std::path::Path;

use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_manifest::check::Discovery;
use quorate_manifest::doctype::{self, Doctype};
use quorate_manifest::document::{self, Syntax};
use quorate_manifest::format::{self as layout, Order, orders};
use quorate_manifest::frontmatter;
use quorate_manifest::tree::{MAX_BYTES, Problem, decode, yaml};

use super::FormatOutcome;
use crate::error::Error;
use crate::service::disk::{self, display_path};
use crate::service::environment::Environment;

pub(super) fn format_file(
    environment: &Environment,
    (root, path): (&Path, &Path),
    named: Discovery,
    dry_run: bool,
    outcome: &mut FormatOutcome,
) -> Result<(), Error> {
    let file = display_path(environment, path);
    let limit = MAX_BYTES as u64;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let bytes = match disk::read_up_to(path, limit) {
        Ok(bytes) => bytes,
        Err(_) if named == Discovery::Walked && doctype::from_name(&name).is_none() => {
            return Ok(());
        }
        // An unreadable file does not stop the others.
        Err(error) => {
            let body = Body::new(format!("cannot read {file}: {error}"));
            let help = "check that it is a file, and that you may read it";
            outcome.report.refuse(codes::FILE_UNREADABLE, body.help(help));
            return Ok(());
        }
    };
    match format_bytes(&name, &file, bytes.clone()) {
        FormatResult::Text(text) => {
            outcome.files += 1;
            if text.as_bytes() == bytes {
                return Ok(());
            }
            if !dry_run {
                if !disk::is_inside(root, path) {
                    let why = "it is a link that leads out of the workspace";
                    let body = Body::new(format!("cannot write {file}: {why}"));
                    let help = "format the file itself, at its own path";
                    outcome.report.refuse(codes::PATH_OUTSIDE, body.help(help));
                    return Ok(());
                }
                disk::replace(path, text.as_bytes()).map_err(|error| {
                    let body = Body::new(format!("cannot write {file}: {error}"));
                    Error::configuration(codes::FILE_UNREADABLE, body)
                })?;
            }
            outcome.changed.push(file);
        }
        FormatResult::NotFormattable if named == Discovery::Walked => {}
        FormatResult::NotFormattable => {
            let body = Body::new(format!("cannot format {file}: its doctype has no formatter"));
            let help = "pass manifests; `fmt` does not change files such as quorate.toml";
            outcome.report.refuse(codes::DOCTYPE_UNKNOWN, body.help(help));
        }
        FormatResult::Broken(report) => outcome.report.absorb(report),
    }
    Ok(())
}

pub(super) enum FormatResult {
    Text(String),
    /// Not a manifest, or of a doctype that is not formatted.
    NotFormattable,
    /// A manifest that cannot be parsed.
    Broken(Report),
}

pub(super) fn format_bytes(name: &str, shown: &str, bytes: Vec<u8>) -> FormatResult {
    // Only files that look like manifests can be refused; others are skipped.
    let unreadable = |bytes: Vec<u8>| match document::unreadable(name, shown, bytes) {
        Some((doctype, report)) if key_order(doctype).is_some() => FormatResult::Broken(report),
        _ => FormatResult::NotFormattable,
    };
    let Ok(text) = decode(bytes.clone()) else {
        return unreadable(bytes);
    };
    let mut syntax = Syntax::from_name(name);
    if name == "-" && frontmatter::split(&text).is_err() {
        syntax = Syntax::Yaml;
    }
    let (yaml_text, from) = match syntax {
        Syntax::Yaml => (text.as_str(), 0),
        Syntax::Frontmatter => match frontmatter::split(&text) {
            Ok(parts) => (&text[parts.yaml.clone()], parts.yaml.start),
            Err(_) => return unreadable(bytes),
        },
    };
    let (root, problems) = yaml::parse(yaml_text);
    let Some(doctype) = root.as_ref().and_then(|root| doctype::detect(name, root)) else {
        return unreadable(bytes);
    };
    if !problems.is_empty() {
        return FormatResult::broken(shown, &text, from, problems);
    }
    let Some(order) = key_order(doctype) else {
        return FormatResult::NotFormattable;
    };
    let done = match syntax {
        Syntax::Yaml => layout::format(&text, order),
        Syntax::Frontmatter => layout::frontmatter(&text, order),
    };
    match done {
        Ok(text) => FormatResult::Text(text),
        Err(problems) => FormatResult::broken(shown, &text, 0, problems),
    }
}

impl FormatResult {
    /// With problems of the part of a text that begins at `from`.
    fn broken(shown: &str, text: &str, from: usize, problems: Vec<Problem>) -> Self {
        let mut report = Report::new();
        report.add_source(shown, text);
        let place = |span: Range<usize>| {
            let span = span.start + from..span.end + from;
            Place { file: shown.into(), span, path: String::new() }
        };
        for problem in problems {
            report.refuse(codes::SYNTAX, Problem { related: None, ..problem }.body(place));
        }
        FormatResult::Broken(report)
    }
}

fn key_order(doctype: Doctype) -> Option<&'static Order> {
    match doctype {
        Doctype::Assembly => Some(&orders::ASSEMBLY),
        Doctype::Persona => Some(&orders::PERSONA),
        Doctype::Playbook => Some(&orders::PLAYBOOK),
        Doctype::Runtime => Some(&orders::RUNTIME),
        Doctype::Operator => Some(&orders::OPERATOR),
        Doctype::Council => Some(&orders::COUNCIL),
        Doctype::Role | Doctype::Config => None,
    }
}
