//! Tidy: rules for the sources that the compiler does not check. It shows all complaints at once.

mod arrows;
mod circles;
mod voice;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

/// Checks the workspace against every rule.
pub(crate) fn run() -> anyhow::Result<()> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("xtask lies in crates/")?.to_owned();
    let sources = sources(&root)?;
    let mut complaints = arrows::check(&root)?;
    complaints.extend(circles::check(&sources));
    complaints.extend(check_citations(&root, &sources)?);
    complaints.extend(check_files(&root, &sources)?);
    complaints.extend(check_kinds(&sources));
    complaints.extend(voice::check_voice(&root)?);
    if complaints.is_empty() {
        println!("tidy: {} source files, no complaints", sources.len());
        return Ok(());
    }
    for complaint in &complaints {
        eprintln!("tidy: {complaint}");
    }
    bail!("{} complaints", complaints.len())
}

/// A source file: its path from the root, with `/`, and its text.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// The text without its unit tests, which are at the end.
    pub(crate) fn without_tests(&self) -> &str {
        self.text.split("#[cfg(test)]").next().unwrap_or_default()
    }
}

fn sources(root: &Path) -> anyhow::Result<Vec<Source>> {
    let mut paths = Vec::new();
    for folder in ["crates", "benches"] {
        below(&root.join(folder), &["rs"], &mut paths)?;
    }
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let path = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
        Ok(Source { path, text })
    };
    paths.into_iter().map(read).collect()
}

const SKIPPED_FOLDERS: [&str; 3] = ["target", "node_modules", ".git"];

/// The files below a folder with one of these suffixes.
fn below(dir: &Path, suffixes: &[&str], found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let path = entry?.path();
        let is_skipped = || SKIPPED_FOLDERS.iter().any(|folder| path.ends_with(folder));
        if path.is_dir() {
            if !is_skipped() {
                below(&path, suffixes, found)?;
            }
        } else if path.extension().is_some_and(|suffix| suffixes.iter().any(|known| suffix == *known)) {
            found.push(path);
        }
    }
    Ok(())
}

const RULES_PAGE: &str = "docs/semantics.md";
/// The letters under which rules are numbered.
const RULE_AREAS: &str = "MXAVPHLDCKBQ";

/// A comment that cites a rule (`X7`) must cite a rule of `docs/semantics.md`, and the links of that page to code must exist.
fn check_citations(root: &Path, sources: &[Source]) -> anyhow::Result<Vec<String>> {
    let page =
        std::fs::read_to_string(root.join(RULES_PAGE)).with_context(|| format!("reading {RULES_PAGE}"))?;
    let rules: BTreeSet<String> = page
        .split("<a id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .map(str::to_uppercase)
        .collect();
    let mut complaints = Vec::new();
    for source in sources {
        for (number, line) in source.text.lines().enumerate() {
            let Some(comment) = comment(line) else { continue };
            for cited in citations(comment).filter(|cited| !rules.contains(*cited)) {
                complaints.push(format!("{}:{}: {RULES_PAGE} has no rule {cited}", source.path, number + 1));
            }
        }
    }
    for target in page.split("](../").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
        if !root.join(target).exists() {
            complaints.push(format!("{RULES_PAGE} links to {target}, which does not exist"));
        }
    }
    Ok(complaints)
}

/// What follows a line's `//`, where that is not part of an address.
fn comment(line: &str) -> Option<&str> {
    let start = line.match_indices("//").find(|(at, _)| !line[..*at].ends_with(':'))?.0;
    Some(&line[start..])
}

/// The words of a comment that look like a rule: a letter of an area and one or two digits.
fn citations(comment: &str) -> impl Iterator<Item = &str> {
    comment.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-' && c != '+').filter(|word| {
        let mut letters = word.chars();
        letters.next().is_some_and(|area| RULE_AREAS.contains(area))
            && (1..=2).contains(&letters.as_str().len())
            && letters.all(|c| c.is_ascii_digit())
    })
}

const EMPTY_NAMES: &[&str] =
    &["utils", "util", "helpers", "helper", "common", "types", "manager", "imp", "misc"];

/// Each file opens with `//!`, has a telling name, and ignores no test.
fn check_files(root: &Path, sources: &[Source]) -> anyhow::Result<Vec<String>> {
    let mut complaints = Vec::new();
    for source in sources {
        let Source { path, text } = source;
        if !text.starts_with("//!") {
            complaints.push(format!("{path} does not begin with `//!`"));
        }
        let stem = path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).unwrap_or_default();
        if EMPTY_NAMES.contains(&stem) {
            complaints.push(format!("{path}: the name `{stem}` does not describe its content"));
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

/// Kinds that are also other words: a key of JSON outputs, and the ledger's own engine.
const COMMON_WORDS: [&str; 2] = ["file", "sqlite"];

/// A kind string appears once, as `const KIND` in its adapter; no crate below the adapters names it.
fn check_kinds(sources: &[Source]) -> Vec<String> {
    let kinds: Vec<&str> = sources
        .iter()
        .filter(|source| source.path.starts_with("crates/quorate-adapters/src"))
        .flat_map(declared)
        .filter(|kind| !COMMON_WORDS.contains(kind))
        .collect();
    let inward = |source: &&Source| {
        source.path.contains("/src/")
            && !["crates/quorate-adapters/", "crates/quorate-testkit/", "crates/xtask/"]
                .iter()
                .any(|dir| source.path.starts_with(dir))
            && !source.path.ends_with("tests.rs")
            && !source.path.ends_with("fixture.rs")
    };
    let mut complaints = Vec::new();
    for source in sources.iter().filter(inward) {
        for kind in &kinds {
            if source.without_tests().contains(&format!("\"{kind}\"")) {
                complaints.push(format!("{} names the kind \"{kind}\"", source.path));
            }
        }
    }
    if kinds.is_empty() {
        complaints.push("found no `const KIND` in the adapters; correct this rule".to_owned());
    }
    complaints
}

fn declared(source: &Source) -> Vec<&str> {
    let after = source.text.split("pub const KIND: &str = \"").skip(1);
    after.filter_map(|rest| rest.split('"').next()).collect()
}
