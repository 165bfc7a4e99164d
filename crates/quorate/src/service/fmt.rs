//! Fmt: manifests in canonical key order and spacing, with every comment kept.

use std::path::Path;

use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_manifest::check::Discovery;
use quorate_manifest::doctype::{self, Doctype};
use quorate_manifest::document::Syntax;
use quorate_manifest::format::{Order, format, frontmatter, orders};
use quorate_manifest::tree::{Problem, yaml};
use quorate_manifest::{decode, frontmatter as parts};

use super::check::{Request, collect_files};
use super::disk;
use super::environment::Environment;
use super::error::{ExitClass, ServiceError};
use super::workspace::{boundary, display_path};

/// Whether files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They are.
    Write,
    /// `--check`: only said which would be.
    Check,
}

/// What became of the files.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many manifests were looked at.
    pub files: usize,
    /// Those that were, or would be, changed.
    pub changed: Vec<String>,
    /// Files that cannot be read as manifests.
    pub report: Report,
}

/// Formats files.
///
/// # Errors
/// When a path is not there, or a file cannot be written.
pub fn fmt(environment: &Environment, request: &Request, mode: Mode) -> Result<Outcome, ServiceError> {
    let mut outcome = Outcome::default();
    for work in collect_files(environment, request)? {
        for (spot, named) in &work.files {
            let path = work.root.join(spot.workspace_relative());
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
    let bytes = disk::read_up_to(path, limit).map_err(|error| {
        ServiceError::configuration(codes::FILE_UNREADABLE, Body::new(format!("cannot read {file}: {error}")))
    })?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    match format_bytes(&name, bytes.clone()) {
        FormatResult::Text(text) => {
            outcome.files += 1;
            if text.as_bytes() == bytes {
                return Ok(());
            }
            if mode == Mode::Write {
                if !boundary::is_inside(root, path) {
                    let body =
                        Body::new(format!("{file} leads out of the workspace by a link; it was not written"));
                    outcome
                        .report
                        .refuse(codes::PATH_OUTSIDE, body.help("format the file itself, where it lies"));
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
            let body = Body::new(format!("{file} is of no doctype that is formatted"));
            outcome
                .report
                .refuse(codes::DOCTYPE_UNKNOWN, body.help("quorate.toml, for one, is left as it is"));
        }
        FormatResult::Broken(text, problems) => {
            outcome.report.add_source(file.as_str(), text);
            for problem in problems {
                let place = Place { file: file.as_str().into(), span: problem.span, path: String::new() };
                let mut body = Body::new(problem.message).at(place);
                body.help = problem.help;
                outcome.report.refuse(codes::SYNTAX, body);
            }
        }
    }
    Ok(())
}

/// Formats one text that came from elsewhere.
///
/// # Errors
/// When it is no manifest, or cannot be read as one.
pub fn fmt_text(bytes: Vec<u8>) -> Result<String, ServiceError> {
    match format_bytes("-", bytes) {
        FormatResult::Text(text) => Ok(text),
        FormatResult::NotFormattable => Err(ServiceError::new(
            ExitClass::Refused,
            codes::DOCTYPE_UNKNOWN,
            Body::new("nothing says what this text is"),
        )),
        FormatResult::Broken(text, problems) => {
            let mut report = Report::new();
            report.add_source("-", text);
            for problem in problems {
                let place = Place { file: "-".into(), span: problem.span, path: String::new() };
                report.refuse(codes::SYNTAX, Body::new(problem.message).at(place));
            }
            Err(ServiceError::from_report(ExitClass::Refused, report))
        }
    }
}

enum FormatResult {
    Text(String),
    /// It is no manifest, or of a doctype that is not formatted.
    NotFormattable,
    Broken(String, Vec<Problem>),
}

fn format_bytes(name: &str, bytes: Vec<u8>) -> FormatResult {
    let Ok(text) = decode::decode(bytes) else { return FormatResult::NotFormattable };
    let mut holding = Syntax::from_name(name);
    if name == "-" && parts::split(&text).is_err() {
        holding = Syntax::Yaml;
    }
    let (yaml_text, from) = match holding {
        Syntax::Yaml => (text.as_str(), 0),
        Syntax::Frontmatter => match parts::split(&text) {
            Ok(parts) => (&text[parts.yaml.clone()], parts.yaml.start),
            Err(_) => return FormatResult::NotFormattable,
        },
    };
    let (root, problems) = yaml::parse(yaml_text);
    let Some(doctype) = root.as_ref().and_then(|root| doctype::detect(name, root)) else {
        return FormatResult::NotFormattable;
    };
    if !problems.is_empty() {
        let moved = |mut problem: Problem| {
            problem.span = problem.span.start + from..problem.span.end + from;
            problem
        };
        return FormatResult::Broken(text.clone(), problems.into_iter().map(moved).collect());
    }
    let Some(order) = key_order(doctype) else { return FormatResult::NotFormattable };
    let done = match holding {
        Syntax::Yaml => format(&text, order),
        Syntax::Frontmatter => frontmatter(&text, order),
    };
    match done {
        Ok(text) => FormatResult::Text(text),
        Err(problems) => FormatResult::Broken(text, problems),
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
