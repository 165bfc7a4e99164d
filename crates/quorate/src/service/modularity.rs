//! The modularity scan (C7): nothing that produces artifacts knows of the council that reviews them, so that either
//! can be taken away.

use std::path::Path;

use quorate_diagnostics::{Body, Place, Report, codes};
use regex::Regex;

use super::disk;
use super::stop::Stop;

/// What was scanned and what was found.
#[derive(Debug)]
pub struct Scanned {
    /// How many files tell an agent what to do.
    pub files: usize,
    /// The places that name the council; refuses if there are any.
    pub report: Report,
}

/// Scans a host's prompts, operators, personas and playbooks.
///
/// # Errors
/// When the directory cannot be read.
pub fn scan(dir: &Path, shown: &Path) -> Result<Scanned, Stop> {
    let found = disk::walk(dir).map_err(|error| {
        let body = Body::new(format!("cannot read {}: {error}", shown.display()));
        match error.kind() {
            std::io::ErrorKind::NotFound => Stop::not_found(codes::ARTIFACT_MISSING, body),
            _ => Stop::configuration(codes::ARTIFACT_UNREADABLE, body),
        }
    })?;
    let names =
        Regex::new(r"(?i)\b(agent[ _-]council|council(_log|\.yaml|_review|_sweep)?|quorate|adjudicator)\b")
            .map_err(|error| Stop::configuration(codes::PATTERN_INVALID, Body::new(error.to_string())))?;
    let mut scanned = Scanned { files: 0, report: Report::new() };
    for one in found {
        let relative = one.path.strip_prefix(dir).unwrap_or(&one.path);
        if !tells_an_agent(relative) {
            continue;
        }
        scanned.files += 1;
        let bytes = disk::read_up_to(&one.path, super::artifact::LIMIT).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let file = shown.join(relative).display().to_string();
        for hit in names.find_iter(&text) {
            let place = Place { file: file.as_str().into(), span: hit.range(), path: String::new() };
            let body =
                Body::new(format!("what produces artifacts names what reviews them: `{}`", hit.as_str()));
            scanned.report.refuse(
                codes::MODULARITY,
                body.at(place).help("move it to whoever routes artifacts to the review"),
            );
        }
        scanned.report.source(file, text);
    }
    Ok(scanned)
}

/// `agents/*/prompt.md`, OPERATOR.md, PERSONA.md, and playbooks.
fn tells_an_agent(relative: &Path) -> bool {
    let parts: Vec<_> = relative.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    let Some(name) = parts.last() else { return false };
    match &**name {
        "OPERATOR.md" | "PERSONA.md" => true,
        "prompt.md" => parts.len() >= 3 && parts[parts.len() - 3] == "agents",
        name => name.ends_with(".md") && parts.iter().rev().skip(1).any(|part| part == "playbooks"),
    }
}
