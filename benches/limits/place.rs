//! Where measurements put their files: a directory that goes away with the run, and the texts that are reviewed.

use std::path::{Path, PathBuf};

use crate::Failure;

const TEXTS: [&str; 3] = [
    include_str!("../../examples/launch-post.md"),
    include_str!("../../examples/incident-report.md"),
    include_str!("../../examples/pricing-promise.md"),
];

/// A directory of this run.
pub(super) struct Place(PathBuf);

impl Place {
    /// Makes it.
    pub(super) fn new() -> Result<Place, Failure> {
        let dir = std::env::temp_dir().join(format!("quorate-bench-{}", std::process::id()));
        std::fs::create_dir(&dir)?;
        Ok(Place(dir))
    }

    /// A new directory in it.
    pub(super) fn dir(&self, name: &str) -> Result<PathBuf, Failure> {
        let dir = self.0.join(name);
        std::fs::create_dir_all(&dir)?;
        Ok(dir)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes so many drafts, no two the same.
pub(super) fn drafts(dir: &Path, count: usize) -> Result<(), Failure> {
    std::fs::create_dir_all(dir)?;
    for (number, text) in (0..count).zip(TEXTS.iter().cycle()) {
        std::fs::write(dir.join(format!("blog_post-{number:04}.md")), format!("{text}\nDraft {number}.\n"))?;
    }
    Ok(())
}

/// Writes the text that single reviews are of.
pub(super) fn launch_post(dir: &Path) -> Result<PathBuf, Failure> {
    let path = dir.join("launch-post.md");
    std::fs::write(&path, TEXTS[0])?;
    Ok(path)
}

/// A text of about so many bytes.
pub(super) fn long_text(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes);
    for (number, one) in (0..).zip(TEXTS.iter().cycle()) {
        let next = format!("{one}\nPart {number}.\n\n");
        if text.len() + next.len() > bytes {
            return text;
        }
        text.push_str(&next);
    }
    text
}
