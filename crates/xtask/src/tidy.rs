//! Tidy: what the compiler does not check of the house's order. Each rule is a file; all complaints are shown at once.

mod arrows;
mod circles;
mod citations;
mod files;
mod kinds;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// Checks the workspace against every rule.
pub(crate) fn run() -> anyhow::Result<()> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("xtask lies in crates/")?.to_owned();
    let sources = sources(&root)?;
    let mut complaints = arrows::check(&root)?;
    complaints.extend(circles::check(&sources));
    complaints.extend(citations::check(&root, &sources)?);
    complaints.extend(files::check(&root, &sources)?);
    complaints.extend(kinds::check(&sources));
    if complaints.is_empty() {
        println!("tidy: {} source files, nothing to complain of", sources.len());
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
        below(&root.join(folder), &mut paths)?;
    }
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let path = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
        Ok(Source { path, text })
    };
    paths.into_iter().map(read).collect()
}

fn below(dir: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            below(&path, found)?;
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    Ok(())
}
