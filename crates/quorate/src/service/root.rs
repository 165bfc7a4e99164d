//! The workspace's root: a client's path cannot lead out of it by `..`, an absolute path or a symlink.

use std::path::{Component, Path, PathBuf};

use quorate_diagnostics::invisible::is_invisible;
use quorate_diagnostics::{Body, codes};
use quorate_manifest::doctype::Doctype;
use quorate_manifest::workspace::Error;

use super::artifact::{self, Artifact};
use super::confined::Confined;
use super::disk;
use super::environment::Environment;
use super::error::ServiceError;
use super::manifests::{find_root, search_start};

/// Directories without drafts: the ledger's with its keys, and the repository's, also by its short name on Windows.
const STATE: [&str; 3] = [".quorate", ".git", "git~1"];

/// The directory that confines all paths of clients.
#[derive(Debug, Clone)]
pub struct Root {
    dir: PathBuf,
}

impl Root {
    /// The root at `dir`, an absolute path.
    ///
    /// # Errors
    /// If the directory does not exist or cannot be opened.
    pub fn open(dir: PathBuf) -> Result<Root, ServiceError> {
        // It is opened again for each call, so a directory that replaces it later becomes the root.
        Confined::open(&dir).map_err(|error| {
            let body = Body::new(format!("cannot open the workspace {}: {error}", dir.display()));
            ServiceError::not_found(codes::FILE_UNREADABLE, body.help("pass a directory with `--root`"))
        })?;
        Ok(Root { dir })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Reads a text below the root, for a review.
    pub fn artifact(&self, path: &Path) -> Result<Artifact, ServiceError> {
        let relative = self.relative(path)?;
        let bytes = match self.read(&relative) {
            Err(Error::Outside) => return Err(self.outside_error(path)),
            Err(Error::Missing) => Err(std::io::ErrorKind::NotFound.into()),
            Err(error) => Err(std::io::Error::other(error)),
            Ok(bytes) => Ok(bytes),
        };
        artifact::from_bytes(relative.clone(), Some(self.dir.join(relative)), bytes)
    }

    /// A manifest below the root, or the directory that holds one, and the workspace in which its refs resolve.
    pub fn manifest(
        &self,
        environment: &Environment,
        requested: &Path,
    ) -> Result<(PathBuf, PathBuf), ServiceError> {
        let relative = self.relative(requested)?;
        // Only a path that leads out is refused here, not other failures of reading, such as a directory.
        if matches!(self.read(&relative), Err(Error::Outside)) {
            return Err(self.outside_error(requested));
        }
        let path = self.dir.join(&relative);
        let file = match path.is_dir() {
            true => path.join(Doctype::Assembly.file_name().unwrap_or_default()),
            false => path.clone(),
        };
        let found = find_root(environment, None, &search_start(environment, &file));
        let root = if found.starts_with(&self.dir) { found } else { self.dir.clone() };
        Ok((path, root))
    }

    /// Refuses files in a directory of state, whether by name or by a link.
    fn ensure_no_state(&self, relative: &str, requested: &Path) -> Result<(), ServiceError> {
        let target = disk::canonical_or_new(&self.dir.join(relative));
        let root = disk::canonical_or_new(&self.dir);
        let below = target.strip_prefix(&root).unwrap_or(Path::new(""));
        let names = Path::new(relative).components().chain(below.components());
        match names.into_iter().any(|part| is_state(&part.as_os_str().to_string_lossy())) {
            false => Ok(()),
            true => {
                let body = Body::new(format!(
                    "{} is in a directory that holds the state of a program",
                    requested.display()
                ));
                let help = "pass a file outside of `.quorate` and `.git`";
                Err(ServiceError::configuration(codes::PATH_RESERVED, body.help(help)))
            }
        }
    }

    fn read(&self, relative: &str) -> Result<Vec<u8>, Error> {
        let relative = if relative.is_empty() { "." } else { relative };
        Confined::open(&self.dir)
            .map_err(Error::Unreadable)?
            .read_up_to(Path::new(relative), artifact::MAX_BYTES)
    }

    /// The path relative to the root, with `/`; `..` is resolved by name, without the file system.
    fn relative(&self, requested: &Path) -> Result<String, ServiceError> {
        let path = requested.strip_prefix(&self.dir).unwrap_or(requested);
        let mut names: Vec<&str> = Vec::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::Normal(name) => {
                    names.push(name.to_str().ok_or_else(|| self.outside_error(requested))?)
                }
                Component::ParentDir => drop(names.pop().ok_or_else(|| self.outside_error(requested))?),
                Component::RootDir | Component::Prefix(_) => return Err(self.outside_error(requested)),
            }
        }
        let relative = names.join("/");
        self.ensure_no_state(&relative, requested)?;
        Ok(relative)
    }

    fn outside_error(&self, path: &Path) -> ServiceError {
        let body = Body::new(format!("{} leads out of the served workspace", path.display()));
        ServiceError::configuration(
            codes::PATH_OUTSIDE,
            body.help("pass a path below the root, relative to it"),
        )
    }
}

/// Whether a name is `.quorate` or `.git` to any file system: ignores case, the trailing dots and blanks that Windows drops, and
/// the invisible characters that macOS drops.
fn is_state(name: &str) -> bool {
    let visible: String = name.chars().filter(|c| !is_invisible(*c)).collect();
    let name = visible.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    STATE.iter().any(|state| name.eq_ignore_ascii_case(state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a test's own files")]
    fn place() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["root/in", "out"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        for file in ["root/in/draft.md", "out/secret.md", "out/ASSEMBLY.md"] {
            std::fs::write(dir.path().join(file), "text").unwrap();
        }
        let root = Root::open(dir.path().join("root")).unwrap();
        (dir, root)
    }

    #[test]
    fn what_lies_below_is_read_however_it_is_written() {
        let (dir, root) = place();
        for path in ["in/draft.md", "./in/draft.md", "in/../in/draft.md"] {
            let artifact = root.artifact(Path::new(path)).unwrap();
            assert_eq!((&*artifact.display_name, &*artifact.text), ("in/draft.md", "text"), "{path}");
        }
        assert!(root.artifact(&dir.path().join("root/in/draft.md")).is_ok());
        let missing = root.artifact(Path::new("in/none.md")).unwrap_err();
        assert!(missing.first_message().contains("does not exist"), "{}", missing.first_message());
    }

    #[cfg(unix)]
    #[test]
    fn nothing_else_is() {
        let (dir, root) = place();
        let link = |at: &str, to: &str| {
            std::os::unix::fs::symlink(dir.path().join(to), dir.path().join("root").join(at)).unwrap();
        };
        link("file.md", "out/secret.md");
        link("folder", "out");
        let absolute = dir.path().join("out/secret.md");
        for path in
            ["../out/secret.md", "in/../../out/secret.md", "file.md", "folder/secret.md", "/etc/hosts"]
        {
            let error = root.artifact(Path::new(path)).unwrap_err();
            assert_eq!(error.report.refusals[0].code, codes::PATH_OUTSIDE, "{path}");
        }
        assert!(root.artifact(&absolute).is_err());
        let environment = Environment::new(root.dir());
        for path in ["../out", "folder", "folder/ASSEMBLY.md"] {
            let error = root.manifest(&environment, Path::new(path)).unwrap_err();
            assert_eq!(error.report.refusals[0].code, codes::PATH_OUTSIDE, "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test's own files")]
    fn no_draft_is_read_from_a_directory_of_state() {
        let (dir, root) = place();
        for folder in [".quorate", ".git", ".Quorate/keys", "in/.git"] {
            std::fs::create_dir_all(dir.path().join("root").join(folder)).unwrap();
        }
        for file in
            [".quorate/note.md", ".git/config", ".Quorate/keys/note.md", "in/.git/config", ".github.md"]
        {
            std::fs::write(dir.path().join("root").join(file), "text").unwrap();
        }
        let link = |at: &str, to: &str| std::os::unix::fs::symlink(to, root.dir().join(at)).unwrap();
        link("innocent.md", ".git/config");
        link("folder", ".quorate");
        for path in [
            ".git/config",
            "./.git/config",
            "in/../.git/config",
            "in/.git/config",
            ".GIT/config",
            ".git./config",
            ".g\u{200c}it/config",
            "GIT~1/config",
            ".quorate/note.md",
            ".Quorate/keys/note.md",
            ".quorate/none.md",
            "innocent.md",
            "folder/note.md",
        ] {
            let error = root.artifact(Path::new(path)).unwrap_err();
            assert_eq!(error.report.refusals[0].code, codes::PATH_RESERVED, "{path}");
        }
        let environment = Environment::new(root.dir());
        assert!(root.manifest(&environment, Path::new("folder")).is_err());
        assert!(root.artifact(Path::new(".github.md")).is_ok());
    }
}
