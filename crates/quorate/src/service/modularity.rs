//! The modularity scan (C7): no prompt that produces artifacts names the council that reviews them, so that either can be
//! removed.

use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;

use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_manifest::frontmatter;
use quorate_manifest::playbook::catalog::{FOLDER, HISTORY_SUFFIX};
use regex::Regex;

use super::disk;
use super::error::ServiceError;

#[derive(Debug)]
pub struct ScanResult {
    /// Scanned files with instructions for agents.
    pub files: usize,
    /// The places that name the council, as refusals.
    pub report: Report,
}

/// Scans the prompts, operators, personas and playbooks of a directory.
///
/// # Errors
/// If the directory cannot be read.
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
        // Agents see only the body of a playbook; of other files, everything but `metadata`.
        let hidden_span = match frontmatter::split(&text) {
            Ok(parts) if is_playbook(relative) => 0..parts.body.start,
            Ok(parts) => metadata_span(&text[..parts.body.start]),
            Err(_) => 0..0,
        };
        for (hit, start) in council_mentions(&text).filter(|(_, start)| !hidden_span.contains(start)) {
            let span = start..start + hit.len();
            let place = Place { file: file.as_str().into(), span, path: String::new() };
            let body = Body::new(format!("what produces artifacts names what reviews them: `{hit}`"));
            scanned.report.refuse(
                codes::MODULARITY,
                body.at(place).help("move it to the component that routes artifacts to the review"),
            );
        }
        scanned.report.add_source(file, text);
    }
    Ok(scanned)
}

/// The range of the metadata in a frontmatter: from its key to the next one.
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

/// The words that name the council, with their offsets.
pub fn council_mentions(text: &str) -> impl Iterator<Item = (&str, usize)> {
    static NAMES: LazyLock<Regex> = LazyLock::new(|| {
        let names = r"(?i)\b(agent[ _-]council|council(_log|\.yaml|_review|_sweep)?|quorate|adjudicator)\b";
        Regex::new(names).expect("the pattern is ours")
    });
    NAMES.find_iter(text).map(|hit| (hit.as_str(), hit.start()))
}

/// Whether a file instructs an agent: `agents/*/prompt.md`, OPERATOR.md, PERSONA.md, and playbooks.
fn is_agent_prompt(relative: &Path) -> bool {
    let parts: Vec<_> = relative.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    let Some(name) = parts.last() else { return false };
    match &**name {
        "OPERATOR.md" | "PERSONA.md" => true,
        "prompt.md" => parts.len() >= 3 && parts[parts.len() - 3] == "agents",
        _ => is_playbook(relative),
    }
}

/// Whether a file is a playbook; no agent sees the other files of its folder.
fn is_playbook(relative: &Path) -> bool {
    let name = relative.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let lies_there = relative.iter().rev().skip(1).any(|part| part == FOLDER);
    lies_there && name.ends_with(".md") && !name.starts_with('_') && !name.ends_with(HISTORY_SUFFIX)
}
