//! Files: each says what it owns, has a name that says something, and stays of a size that can be read.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use super::Source;

const LONGEST: usize = 900;
const EMPTY_NAMES: &[&str] =
    &["utils", "util", "helpers", "helper", "common", "types", "manager", "imp", "misc"];

pub(super) fn check(root: &Path, sources: &[Source]) -> anyhow::Result<Vec<String>> {
    let mut complaints = Vec::new();
    for source in sources {
        let Source { path, text } = source;
        if !text.starts_with("//!") {
            complaints.push(format!("{path} does not open with what it owns (//!)"));
        }
        let lines = text.lines().count();
        if lines > LONGEST {
            complaints.push(format!("{path} has {lines} lines; past {LONGEST} a new module is due"));
        }
        let stem = path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).unwrap_or_default();
        if EMPTY_NAMES.contains(&stem) {
            complaints.push(format!("{path}: the name `{stem}` says nothing"));
        }
        if text.contains(concat!("#[", "ignore")) {
            complaints.push(format!("{path} ignores a test"));
        }
    }
    complaints.extend(outside(root)?);
    Ok(complaints)
}

/// Tracked files that name places outside the project.
fn outside(root: &Path) -> anyhow::Result<Vec<String>> {
    let pattern = r"(^|[^A-Za-z0-9_./])/(home|root|work)/|\.\./shared";
    let found = Command::new("git")
        .args(["grep", "-nIE", pattern, "--", ":!.ci", ":!scripts", ":!crates/xtask"])
        .current_dir(root)
        .output()
        .context("asking git")?;
    let lines = String::from_utf8_lossy(&found.stdout).into_owned();
    Ok(lines.lines().map(|line| format!("names a place outside the project: {line}")).collect())
}
