//! The path of a file in its git repository, by which code hosts identify files.

use std::path::Path;

use super::disk;
use super::paths::{absolute, entry_exists};

/// The path of an existing file from the root of the repository, with `/`. As in git, a link to a folder counts as that
/// folder, and a link to a file is a file of its own. Uses the repository of `directory`, else that of the file, so that a
/// file in a submodule has its path in the outer repository. `None` without a repository or a file.
pub fn repository_path(directory: &Path, named: &Path) -> Option<String> {
    let path = absolute(directory, named);
    let (folder, name) = (disk::canonical(path.parent()?)?, path.file_name()?);
    if !entry_exists(&folder.join(name)) {
        return None;
    }
    let root_of =
        |start: &Path| start.ancestors().find(|dir| entry_exists(&dir.join(".git"))).map(Path::to_owned);
    let below = |root: &Path| folder.strip_prefix(root).ok().map(|below| below.join(name));
    let outer = disk::canonical(directory).as_deref().and_then(root_of);
    let found = outer.as_deref().and_then(below).or_else(|| below(&root_of(&folder)?))?;
    let parts: Option<Vec<&str>> = found.iter().map(|part| part.to_str()).collect();
    Some(parts?.join("/"))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test needs files")]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_from_the_root_of_the_repository() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("repository");
        let write = |path: &str| {
            let path = place.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        };
        for path in
            ["repository/docs/blog/x y.md", "repository/sub/in/a.md", "repository/sub/.git", "outside/b.md"]
        {
            write(path);
        }
        std::fs::create_dir(root.join(".git")).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("docs/blog", root.join("link")).unwrap();
            std::os::unix::fs::symlink("x y.md", root.join("docs/blog/other.md")).unwrap();
        }
        let from =
            |directory: &str, named: &str| repository_path(&place.path().join(directory), Path::new(named));
        let blog = Some("docs/blog/x y.md".to_owned());
        assert_eq!(from("repository/docs/blog", "x y.md"), blog);
        assert_eq!(from("repository/docs/blog", "./x y.md"), blog);
        assert_eq!(from("repository/docs", "blog/x y.md"), blog);
        assert_eq!(from("repository/sub/in", "../../docs/blog/x y.md"), blog);
        assert_eq!(from("repository", "docs/blog/x y.md"), blog);
        let absolute = root.join("docs/blog/x y.md");
        assert_eq!(from("repository/docs", absolute.to_str().unwrap()), blog);
        assert_eq!(from("outside", absolute.to_str().unwrap()), blog);
        #[cfg(unix)]
        {
            assert_eq!(from("repository", "link/x y.md"), blog);
            assert_eq!(from("repository/link", "x y.md"), blog);
            assert_eq!(from("repository/docs", "blog/other.md").as_deref(), Some("docs/blog/other.md"));
        }
        // A worktree and a submodule have a file `.git`.
        assert_eq!(from("repository/sub/in", "a.md").as_deref(), Some("in/a.md"));
        assert_eq!(from("repository", "sub/in/a.md").as_deref(), Some("sub/in/a.md"));
        for (directory, named) in [
            ("outside", "b.md"),
            ("repository", "../outside/b.md"),
            ("repository", "no.md"),
            ("repository", "-"),
        ] {
            assert_eq!(from(directory, named), None, "{directory} {named}");
        }
    }
}
