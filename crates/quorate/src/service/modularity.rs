//! The modularity scan (C7): nothing that produces artifacts knows of the council that reviews them, so that either
//! can be taken away.

use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;

use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_manifest::frontmatter;
use quorate_manifest::playbook::catalog::{FOLDER, HISTORY_SUFFIX};
use regex::Regex;

use super::disk;
use super::error::ServiceError;

/// What was scanned and what was found.
#[derive(Debug)]
pub struct ScanResult {
    /// How many files tell an agent what to do.
    pub files: usize,
    /// The places that name the council; refuses if there are any.
    pub report: Report,
}

/// Scans a host's prompts, operators, personas and playbooks.
///
/// # Errors
/// When the directory cannot be read.
pub fn scan(dir: &Path, shown: &Path) -> Result<ScanResult, ServiceError> {
    let found = disk::walk(dir).map_err(|error| {
        let body = Body::new(format!("cannot read {}: {error}", shown.display()));
        match error.kind() {
            std::io::ErrorKind::NotFound => ServiceError::not_found(codes::ARTIFACT_MISSING, body),
            _ => ServiceError::configuration(codes::ARTIFACT_UNREADABLE, body),
        }
    })?;
    let mut scanned = ScanResult { files: 0, report: Report::new() };
    for entry in found {
        let relative = entry.path.strip_prefix(dir).unwrap_or(&entry.path);
        if !is_agent_prompt(relative) {
            continue;
        }
        scanned.files += 1;
        let bytes = disk::read_up_to(&entry.path, super::artifact::MAX_BYTES).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let file = shown.join(relative).display().to_string();
        // Of a playbook only the body is told to anybody; of others, everything but `metadata`.
        let untold = match frontmatter::split(&text) {
            Ok(parts) if is_playbook(relative) => 0..parts.body.start,
            Ok(parts) => metadata_span(&text[..parts.body.start]),
            Err(_) => 0..0,
        };
        for (hit, start) in council_mentions(&text).filter(|(_, start)| !untold.contains(start)) {
            let span = start..start + hit.len();
            let place = Place { file: file.as_str().into(), span, path: String::new() };
            let body = Body::new(format!("what produces artifacts names what reviews them: `{hit}`"));
            scanned.report.refuse(
                codes::MODULARITY,
                body.at(place).help("move it to whoever routes artifacts to the review"),
            );
        }
        scanned.report.add_source(file, text);
    }
    Ok(scanned)
}

/// Where the metadata of a frontmatter stands: from its key to the next one.
fn metadata_span(frontmatter: &str) -> Range<usize> {
    let mut at = 0;
    let mut found: Option<Range<usize>> = None;
    for line in frontmatter.split_inclusive('\n') {
        let begins_a_key = !line.starts_with([' ', '\t', '\r', '\n', '#']);
        match &mut found {
            None if line.starts_with("metadata:") => found = Some(at..at + line.len()),
            Some(_) if begins_a_key => break,
            Some(range) => range.end = at + line.len(),
            None => {}
        }
        at += line.len();
    }
    found.unwrap_or(0..0)
}

/// The words of a text that name the council, and where they begin.
pub fn council_mentions(text: &str) -> impl Iterator<Item = (&str, usize)> {
    static NAMES: LazyLock<Regex> = LazyLock::new(|| {
        let names = r"(?i)\b(agent[ _-]council|council(_log|\.yaml|_review|_sweep)?|quorate|adjudicator)\b";
        Regex::new(names).expect("the pattern is ours")
    });
    NAMES.find_iter(text).map(|hit| (hit.as_str(), hit.start()))
}

/// `agents/*/prompt.md`, OPERATOR.md, PERSONA.md, and playbooks.
fn is_agent_prompt(relative: &Path) -> bool {
    let parts: Vec<_> = relative.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    let Some(name) = parts.last() else { return false };
    match &**name {
        "OPERATOR.md" | "PERSONA.md" => true,
        "prompt.md" => parts.len() >= 3 && parts[parts.len() - 3] == "agents",
        _ => is_playbook(relative),
    }
}

/// A playbook; what is written about playbooks beside them is told to nobody.
fn is_playbook(relative: &Path) -> bool {
    let name = relative.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let lies_there = relative.iter().rev().skip(1).any(|part| part == FOLDER);
    lies_there && name.ends_with(".md") && !name.starts_with('_') && !name.ends_with(HISTORY_SUFFIX)
}
