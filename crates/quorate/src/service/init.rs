//! Write a council to start from: a commented `council.yaml`, its prompts, an example draft.

use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use quorate_manifest::council::prompts;

use super::disk;
use super::stop::Stop;

const COUNCIL: &str = include_str!("init/council.yaml");
const DRAFT: &str = include_str!("init/draft.md");

/// Writes the files and says which. Nothing that is there is touched: if one of them is, none is written.
///
/// # Errors
/// When a file is there already or cannot be written.
pub fn council(dir: &Path) -> Result<Vec<PathBuf>, Stop> {
    let mut files =
        vec![(dir.join("council.yaml"), COUNCIL), (dir.join("drafts/example_blog_post.md"), DRAFT)];
    files.extend(prompts::all().map(|(name, text)| (dir.join(format!("prompts/{name}.md")), text)));
    if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
        let body = Body::new(format!("{} is there already; nothing was written", path.display()));
        return Err(Stop::configuration(
            codes::FILE_EXISTS,
            body.help("name an empty directory: `quorate init council DIR`"),
        ));
    }
    for (path, text) in &files {
        disk::write_new(path, text).map_err(|error| {
            Stop::configuration(
                codes::FILE_EXISTS,
                Body::new(format!("cannot write {}: {error}", path.display())),
            )
        })?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}
