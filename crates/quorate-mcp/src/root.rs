//! The workspace's root: no path that a client names leads out of it, whatever `..`, absolute paths and symlinks say.

use std::path::{Component, Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use quorate_manifest::doctype::Doctype;
use quorate_manifest::workspace::Error;

use quorate::service::artifact::{self, Artifact};
use quorate::service::confined::Confined;
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::manifests::{find_root, search_start};

/// The root of all that clients can name.
#[derive(Debug, Clone)]
pub(super) struct Root {
    dir: PathBuf,
}

impl Root {
    /// The root whose folder is `dir`, an absolute path.
    ///
    /// # Errors
    /// When there is no such directory, or it cannot be opened.
    pub(super) fn open(dir: PathBuf) -> Result<Root, ServiceError> {
        // It is opened again for each call: a folder that is put in its place later is the root then.
        Confined::open(&dir).map_err(|error| {
            let body = Body::new(format!("cannot open the workspace {}: {error}", dir.display()));
            ServiceError::not_found(codes::FILE_UNREADABLE, body.help("name a directory with `--root`"))
        })?;
        Ok(Root { dir })
    }

    /// Its folder.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Reads a text below the root, as what a review is about.
    pub(super) fn artifact(&self, named: &Path) -> Result<Artifact, ServiceError> {
        let below = self.relative(named)?;
        let bytes = match self.read(&below) {
            Err(Error::Outside) => return Err(self.outside_error(named)),
            Err(Error::Missing) => Err(std::io::ErrorKind::NotFound.into()),
            Err(error) => Err(std::io::Error::other(error)),
            Ok(bytes) => Ok(bytes),
        };
        artifact::from_bytes(below.clone(), Some(self.dir.join(below)), bytes)
    }

    /// A manifest below the root, or the directory that holds one, and the workspace that its refs resolve in.
    pub(super) fn manifest(
        &self,
        environment: &Environment,
        named: &Path,
    ) -> Result<(PathBuf, PathBuf), ServiceError> {
        let below = self.relative(named)?;
        // Whatever it is, it must not lead out: a directory is no file, which is another failure.
        if matches!(self.read(&below), Err(Error::Outside)) {
            return Err(self.outside_error(named));
        }
        let path = self.dir.join(&below);
        let file = match path.is_dir() {
            true => path.join(Doctype::Assembly.file_name().unwrap_or_default()),
            false => path.clone(),
        };
        let found = find_root(environment, None, &search_start(environment, &file));
        let root = if found.starts_with(&self.dir) { found } else { self.dir.clone() };
        Ok((path, root))
    }

    fn read(&self, below: &str) -> Result<Vec<u8>, Error> {
        let below = if below.is_empty() { "." } else { below };
        Confined::open(&self.dir)
            .map_err(Error::Unreadable)?
            .read_up_to(Path::new(below), artifact::MAX_BYTES)
    }

    /// A path from the root, with `/`; where the file system is not asked, `..` is taken out by its words.
    fn relative(&self, named: &Path) -> Result<String, ServiceError> {
        let path = named.strip_prefix(&self.dir).unwrap_or(named);
        let mut names: Vec<&str> = Vec::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::Normal(name) => {
                    names.push(name.to_str().ok_or_else(|| self.outside_error(named))?)
                }
                Component::ParentDir => drop(names.pop().ok_or_else(|| self.outside_error(named))?),
                Component::RootDir | Component::Prefix(_) => return Err(self.outside_error(named)),
            }
        }
        Ok(names.join("/"))
    }

    fn outside_error(&self, named: &Path) -> ServiceError {
        let body = Body::new(format!("{} leads out of the workspace that is served", named.display()));
        ServiceError::configuration(
            codes::PATH_OUTSIDE,
            body.help("name a file below the root, from the root"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a test's own files")]
    fn place() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for below in ["root/in", "out"] {
            std::fs::create_dir_all(dir.path().join(below)).unwrap();
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
        for named in ["in/draft.md", "./in/draft.md", "in/../in/draft.md"] {
            let artifact = root.artifact(Path::new(named)).unwrap();
            assert_eq!((&*artifact.display_name, &*artifact.text), ("in/draft.md", "text"), "{named}");
        }
        assert!(root.artifact(&dir.path().join("root/in/draft.md")).is_ok());
        let missing = root.artifact(Path::new("in/none.md")).unwrap_err();
        assert!(missing.first_message().contains("there is no file"), "{}", missing.first_message());
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
        for named in
            ["../out/secret.md", "in/../../out/secret.md", "file.md", "folder/secret.md", "/etc/hosts"]
        {
            let error = root.artifact(Path::new(named)).unwrap_err();
            assert_eq!(error.report.refusals[0].code, codes::PATH_OUTSIDE, "{named}");
        }
        assert!(root.artifact(&absolute).is_err());
        let environment = Environment::new(root.dir());
        for named in ["../out", "folder", "folder/ASSEMBLY.md"] {
            let error = root.manifest(&environment, Path::new(named)).unwrap_err();
            assert_eq!(error.report.refusals[0].code, codes::PATH_OUTSIDE, "{named}");
        }
    }
}
