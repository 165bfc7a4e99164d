//! The modularity scan (C7): no prompt that produces artifacts names the council that reviews them, so that either can be
//! removed. The agent that routes artifacts to the council is exempt; the caller names it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_manifest::frontmatter;
use quorate_manifest::playbook::{FOLDER, HISTORY_SUFFIX};
use regex::Regex;

use super::artifact::MAX_BYTES;
use super::disk;
use super::error::ServiceError;

#[derive(Debug)]
pub struct ScanResult {
    /// Scanned files with instructions for agents.
    pub files: usize,
    /// Files of exempt agents.
    pub exempt: usize,
    /// The places that name the council, as refusals.
    pub report: Report,
}

/// Scans the prompts, operators, personas and playbooks of a directory, except those in a folder with the name of an
/// exempt agent.
///
/// # Errors
/// If the directory or a file cannot be read, an exempt agent has no file, or no file instructs an agent: such a scan
/// would prove nothing.
pub fn scan(dir: &Path, shown: &Path, exempt: &[String]) -> Result<ScanResult, ServiceError> {
    let found = disk::walk(dir).map_err(|error| {
        let body = Body::new(format!("cannot read {}: {error}", shown.display()));
        match error.kind() {
            std::io::ErrorKind::NotFound => ServiceError::not_found(codes::ARTIFACT_MISSING, body),
            _ => ServiceError::configuration(codes::ARTIFACT_UNREADABLE, body),
        }
    })?;
    let mut scanned = ScanResult { files: 0, exempt: 0, report: Report::new() };
    let mut unseen: BTreeSet<&str> = exempt.iter().map(String::as_str).collect();
    let above = names_of(dir);
    for entry in found {
        let relative = entry.path.strip_prefix(dir).unwrap_or(&entry.path);
        // The directory may itself be `agents` or `playbooks`, or lie in one.
        let placed = above.join(relative);
        if !is_agent_prompt(&placed) {
            continue;
        }
        let folder = placed.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        if let Some(agent) = exempt.iter().find(|agent| **agent == folder) {
            unseen.remove(agent.as_str());
            scanned.exempt += 1;
            continue;
        }
        scanned.files += 1;
        let shown = if relative.as_os_str().is_empty() { shown.to_owned() } else { shown.join(relative) };
        let unreadable = |reason: String| {
            let body = Body::new(format!("cannot read {}: {reason}", shown.display()));
            ServiceError::configuration(codes::ARTIFACT_UNREADABLE, body)
        };
        let bytes =
            disk::read_up_to(&entry.path, MAX_BYTES).map_err(|error| unreadable(error.to_string()))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(unreadable(format!("it has more than {MAX_BYTES} bytes")));
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let file = shown.display().to_string();
        // Agents see only the body of a playbook; of other files, they see everything but `metadata`.
        let hidden_span = match frontmatter::split(&text) {
            Ok(parts) if is_playbook(&placed) => 0..parts.body.start,
            Ok(parts) => metadata_span(&text[..parts.body.start]),
            Err(_) => 0..0,
        };
        for (hit, start) in council_mentions(&text).filter(|(_, start)| !hidden_span.contains(start)) {
            let span = start..start + hit.len();
            let place = Place { file: file.as_str().into(), span, path: String::new() };
            let body = Body::new(format!("a producer's prompt names its reviewers: `{hit}`"));
            scanned.report.refuse(
                codes::MODULARITY,
                body.at(place).help("move the words to the component that routes artifacts to the review"),
            );
        }
        scanned.report.add_source(file, text);
    }
    if let Some(agent) = unseen.first() {
        let body = Body::new(format!("the exempt agent `{agent}` has no file below {}", shown.display()));
        let help = "pass the name of the agent's folder, as in `agents/<name>/prompt.md`";
        return Err(ServiceError::not_found(codes::ARTIFACT_MISSING, body.help(help)));
    }
    if scanned.files == 0 {
        let body = Body::new(format!("no file below {} instructs an agent", shown.display()));
        let help = "pass a directory with `agents/*/prompt.md`, OPERATOR.md, PERSONA.md or playbooks";
        return Err(ServiceError::not_found(codes::ARTIFACT_MISSING, body.help(help)));
    }
    Ok(scanned)
}

/// The last names of a directory's path, as many as the path of an agent's prompt has.
fn names_of(dir: &Path) -> PathBuf {
    let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let names: Vec<_> = whole.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    names[names.len().saturating_sub(3)..].iter().collect()
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

/// The words that name the council, with their offsets. They are those of the public tool. The word `council` alone is not
/// a reference, since there are other councils.
pub fn council_mentions(text: &str) -> impl Iterator<Item = (&str, usize)> {
    static NAMES: LazyLock<Regex> = LazyLock::new(|| {
        let names = r"(?i)\b(agent[-_]council|council[-_]review)\b";
        Regex::new(names).expect("the pattern is valid")
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
