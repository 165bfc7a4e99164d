//! Several artifacts by name: files, and patterns that the shell did not expand.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use quorate_diagnostics::{Body, Report, codes};

use super::artifact::Subject;
use super::disk;
use super::environment::Environment;
use super::error::{ExitClass, ServiceError};
use super::paths::entry_exists;
use super::workspace::boundary;

/// The named artifacts.
#[derive(Debug)]
pub struct SubjectList {
    /// Without duplicates, in the order given; matches of a pattern by path.
    pub subjects: Vec<Subject>,
    /// Whether the caller gave a single name that is not a pattern.
    pub is_single: bool,
    /// Warnings about skipped matches.
    pub report: Report,
}

/// Expands names: `-` is standard input; a name with `*`, `?`, `[` or `{` is a pattern unless a file has that name. As in a
/// shell, `*` stays in its directory and hidden files need a pattern with a dot; `**` descends into all directories.
///
/// # Errors
/// If a pattern is invalid or matches nothing, or standard input is named twice.
pub fn expand(environment: &Environment, names: &[PathBuf]) -> Result<SubjectList, ServiceError> {
    let mut named = SubjectList { subjects: Vec::new(), is_single: true, report: Report::new() };
    let mut seen = BTreeSet::new();
    for name in names {
        if name.as_os_str() == "-" {
            if named.subjects.contains(&Subject::Stdin) {
                return Err(usage("standard input is named twice", "pass `-` once"));
            }
            named.subjects.push(Subject::Stdin);
            continue;
        }
        let files = match pattern(name, &environment.directory) {
            Some(written) => {
                named.is_single = false;
                matching_files(environment, written, &mut named.report)?
            }
            None => vec![name.clone()],
        };
        let new = files.into_iter().filter(|file| seen.insert(environment.directory.join(file)));
        named.subjects.extend(new.map(Subject::File));
    }
    named.is_single &= names.len() == 1;
    Ok(named)
}

/// A name as a pattern, if it is one.
fn pattern<'n>(name: &'n Path, directory: &Path) -> Option<&'n str> {
    let written = name.to_str()?;
    (is_pattern(written) && !entry_exists(&directory.join(name))).then_some(written)
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// The files that a pattern matches, by the names that the user would give them.
fn matching_files(
    environment: &Environment,
    written: &str,
    report: &mut Report,
) -> Result<Vec<PathBuf>, ServiceError> {
    let parts: Vec<Component<'_>> = Path::new(written).components().collect();
    let fixed = parts.iter().take_while(|part| !is_pattern(&part.as_os_str().to_string_lossy())).count();
    let base: PathBuf = parts[..fixed].iter().collect();
    let rest: PathBuf = parts[fixed..].iter().collect();
    let rest = rest.to_string_lossy();
    let matcher = matcher(&rest, written)?;
    let depth = if rest.contains("**") { usize::MAX } else { parts.len() - fixed };
    let root = environment.directory.join(&base);
    let wants_hidden = rest.split('/').any(|part| part.starts_with('.'));
    let mut files = Vec::new();
    for found in disk::walk_to_depth(&root, depth).unwrap_or_default() {
        let below = found.path.strip_prefix(&root).unwrap_or(&found.path).to_owned();
        let hidden = below.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.'));
        if !matcher.is_match(&below) || (hidden && !wants_hidden) {
            continue;
        }
        if boundary::is_inside(&root, &found.path) {
            files.push(base.join(below));
            continue;
        }
        let shown = base.join(below);
        let message =
            format!("skipped {}: it is a link that leads out of the folder of `{written}`", shown.display());
        let help = "to review it, pass its path without a pattern";
        report.warn(codes::WATCH_UNREADABLE, Body::new(message).help(help));
    }
    match files.is_empty() {
        true => {
            Err(usage(&format!("no file matches `{written}`"), "pass files that exist, or another pattern"))
        }
        false => Ok(files),
    }
}

/// A pattern for paths that need not exist here, such as those of a commit.
///
/// # Errors
/// If the pattern is invalid.
pub fn path_matcher(pattern: &str) -> Result<GlobMatcher, ServiceError> {
    matcher(pattern, pattern)
}

/// Compiles a pattern, which is part of `written`.
fn matcher(pattern: &str, written: &str) -> Result<GlobMatcher, ServiceError> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| {
        let message = format!("`{written}` is not a valid pattern: {}", error.kind());
        usage(&message, "escape a literal `[` or `{`")
    })
}

fn usage(message: &str, help: &str) -> ServiceError {
    ServiceError::new(ExitClass::Usage, codes::USAGE, Body::new(message).help(help))
}
