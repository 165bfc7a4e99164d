//! Fmt: manifests in canonical key order and spacing, with every comment kept.

use std::path::Path;

use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_manifest::check::Discovery;
use quorate_manifest::doctype::{self, Doctype};
use quorate_manifest::document::{self, Syntax};
use quorate_manifest::format::{Order, format, frontmatter, orders};
use quorate_manifest::tree::{Problem, yaml};
use quorate_manifest::{decode, frontmatter as parts};

use super::check::{Request, collect_files};
use super::disk;
use super::environment::Environment;
use super::error::{ExitClass, ServiceError};
use super::paths::display_path;
use super::workspace::boundary;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Write,
    /// `--check`: only lists the files that would change.
    Check,
}

#[derive(Debug, Default)]
pub struct Outcome {
    /// Manifests read.
    pub files: usize,
    /// Manifests that were, or would be, changed.
    pub changed: Vec<String>,
    /// Files that cannot be parsed as manifests.
    pub report: Report,
}

/// Formats files.
///
/// # Errors
/// If a path does not exist, or a file cannot be written.
pub fn fmt(environment: &Environment, request: &Request, mode: Mode) -> Result<Outcome, ServiceError> {
    let mut outcome = Outcome::default();
    for work in collect_files(environment, request)? {
        for (location, named) in &work.files {
            let path = work.root.join(location.workspace_relative());
            format_file(environment, (&work.root, &path), *named, mode, &mut outcome)?;
        }
    }
    Ok(outcome)
}

fn format_file(
    environment: &Environment,
    (root, path): (&Path, &Path),
    named: Discovery,
    mode: Mode,
    outcome: &mut Outcome,
) -> Result<(), ServiceError> {
    let file = display_path(environment, path);
    let limit = quorate_manifest::tree::MAX_BYTES as u64;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let bytes = match disk::read_up_to(path, limit) {
        Ok(bytes) => bytes,
        Err(_) if named == Discovery::Walked && doctype::from_name(&name).is_none() => return Ok(()),
        // An unreadable file does not stop the others.
        Err(error) => {
            let body = Body::new(format!("cannot read {file}: {error}"));
            outcome.report.refuse(
                codes::FILE_UNREADABLE,
                body.help("check that it is a file, and that you may read it"),
            );
            return Ok(());
        }
    };
    match format_bytes(&name, &file, bytes.clone()) {
        FormatResult::Text(text) => {
            outcome.files += 1;
            if text.as_bytes() == bytes {
                return Ok(());
            }
            if mode == Mode::Write {
                if !boundary::is_inside(root, path) {
                    let body = Body::new(format!(
                        "cannot write {file}: it is a link that leads out of the workspace"
                    ));
                    outcome
                        .report
                        .refuse(codes::PATH_OUTSIDE, body.help("format the file itself, at its own path"));
                    return Ok(());
                }
                disk::replace(path, text.as_bytes()).map_err(|error| {
                    ServiceError::configuration(
                        codes::FILE_UNREADABLE,
                        Body::new(format!("cannot write {file}: {error}")),
                    )
                })?;
            }
            outcome.changed.push(file);
        }
        FormatResult::NotFormattable if named == Discovery::Walked => {}
        FormatResult::NotFormattable => {
            let body = Body::new(format!("cannot format {file}: its doctype has no formatter"));
            outcome.report.refuse(
                codes::DOCTYPE_UNKNOWN,
                body.help("pass manifests; `fmt` does not change files such as quorate.toml"),
            );
        }
        FormatResult::Broken(report) => outcome.report.absorb(report),
    }
    Ok(())
}

/// Formats one text.
///
/// # Errors
/// If it is not a manifest, or cannot be parsed.
pub fn fmt_text(bytes: Vec<u8>) -> Result<String, ServiceError> {
    match format_bytes("-", "-", bytes) {
        FormatResult::Text(text) => Ok(text),
        FormatResult::NotFormattable => Err(ServiceError::new(
            ExitClass::Refused,
            codes::DOCTYPE_UNKNOWN,
            Body::new("the type of this text is unknown"),
        )),
        FormatResult::Broken(report) => Err(ServiceError::from_report(ExitClass::Refused, report)),
    }
}

enum FormatResult {
    Text(String),
    /// Not a manifest, or of a doctype that is not formatted.
    NotFormattable,
    /// A manifest that cannot be parsed.
    Broken(Report),
}

fn format_bytes(name: &str, shown: &str, bytes: Vec<u8>) -> FormatResult {
    // Only files that look like manifests can be refused; others are skipped.
    let unreadable = |bytes: Vec<u8>| match document::unreadable(name, shown, bytes) {
        Some((doctype, report)) if key_order(doctype).is_some() => FormatResult::Broken(report),
        _ => FormatResult::NotFormattable,
    };
    let Ok(text) = decode::decode(bytes.clone()) else { return unreadable(bytes) };
    let mut syntax = Syntax::from_name(name);
    if name == "-" && parts::split(&text).is_err() {
        syntax = Syntax::Yaml;
    }
    let (yaml_text, from) = match syntax {
        Syntax::Yaml => (text.as_str(), 0),
        Syntax::Frontmatter => match parts::split(&text) {
            Ok(parts) => (&text[parts.yaml.clone()], parts.yaml.start),
            Err(_) => return unreadable(bytes),
        },
    };
    let (root, problems) = yaml::parse(yaml_text);
    let Some(doctype) = root.as_ref().and_then(|root| doctype(name, root)) else {
        return unreadable(bytes);
    };
    if !problems.is_empty() {
        let moved = |mut problem: Problem| {
            problem.span = problem.span.start + from..problem.span.end + from;
            problem
        };
        return FormatResult::broken(shown, &text, problems.into_iter().map(moved));
    }
    let Some(order) = key_order(doctype) else { return FormatResult::NotFormattable };
    let done = match syntax {
        Syntax::Yaml => format(&text, order),
        Syntax::Frontmatter => frontmatter(&text, order),
    };
    match done {
        Ok(text) => FormatResult::Text(text),
        Err(problems) => FormatResult::broken(shown, &text, problems),
    }
}

impl FormatResult {
    fn broken(shown: &str, text: &str, problems: impl IntoIterator<Item = Problem>) -> Self {
        let mut report = Report::new();
        report.add_source(shown, text);
        for problem in problems {
            let place = Place { file: shown.into(), span: problem.span, path: String::new() };
            let mut body = Body::new(problem.message).at(place);
            body.help = problem.help;
            report.refuse(codes::SYNTAX, body);
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
