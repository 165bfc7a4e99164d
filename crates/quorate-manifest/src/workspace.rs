//! Access to the files of one workspace by scope and path (M10). A [`WorkspacePath`] cannot name a file outside of its
//! scope, and implementations of [`Workspace`] make sure that no symlink leads there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::tree::MAX_BYTES;

/// Reads the files of a workspace.
///
/// Implementations MUST confine every call to the location's scope: a target outside of it, through `..`, an absolute path
/// or a symlink, is [`WorkspaceError::Outside`], also if another process swaps files during the call. They follow symlinks inside the
/// scope.
pub trait Workspace: Send + Sync {
    /// The bytes of a file.
    ///
    /// # Errors
    /// [`WorkspaceError::Missing`] if the file does not exist, [`WorkspaceError::Outside`] if it leads out of its scope,
    /// [`WorkspaceError::TooLarge`] if it is longer than [`crate::tree::MAX_BYTES`], [`WorkspaceError::Unreadable`] otherwise.
    fn read(&self, location: &WorkspacePath) -> Result<Vec<u8>, WorkspaceError>;

    /// The entries of a directory, in any order; a symlink has the kind of its target.
    ///
    /// # Errors
    /// As [`Workspace::read`].
    fn list(&self, location: &WorkspacePath) -> Result<Vec<DirEntry>, WorkspaceError>;
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The exact name in the file system.
    pub name: String,
    pub kind: EntryKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    File,
    Directory,
    /// Anything else: a socket, a dangling link, a link that leads out of the scope.
    Other,
}

#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// No such file or directory.
    #[error("no such file")]
    Missing,
    #[error("it leads out of its workspace or tenant; `--root` names a wider workspace")]
    Outside,
    #[error("it is longer than {} bytes", crate::tree::MAX_BYTES)]
    TooLarge,
    /// It exists but cannot be read.
    #[error("{0}")]
    Unreadable(#[source] std::io::Error),
}

/// Whether Windows reserves a name for a device, with any extension and in any case: `con`, `com1`.
pub fn is_device_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let numbered = |prefix: &str| {
        stem.strip_prefix(prefix)
            .is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    matches!(&*stem, "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}

/// Files by workspace-relative path.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    files: BTreeMap<String, Vec<u8>>,
}

impl Memory {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, or replaces it. `path` is relative to the workspace and `/`-separated.
    #[must_use]
    pub fn with(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.to_owned(), bytes.into());
        self
    }
}

impl Workspace for Memory {
    fn read(&self, location: &WorkspacePath) -> Result<Vec<u8>, WorkspaceError> {
        match self.files.get(&location.workspace_relative()) {
            Some(bytes) if bytes.len() > MAX_BYTES => Err(WorkspaceError::TooLarge),
            Some(bytes) => Ok(bytes.clone()),
            None => Err(WorkspaceError::Missing),
        }
    }

    fn list(&self, location: &WorkspacePath) -> Result<Vec<DirEntry>, WorkspaceError> {
        let folder = location.workspace_relative();
        let prefix = if folder.is_empty() { folder } else { format!("{folder}/") };
        let below = self.files.keys().filter_map(|path| path.strip_prefix(&prefix));
        let listed: BTreeSet<DirEntry> = below
            .map(|rest| match rest.split_once('/') {
                Some((name, _)) => DirEntry { name: name.to_owned(), kind: EntryKind::Directory },
                None => DirEntry { name: rest.to_owned(), kind: EntryKind::File },
            })
            .collect();
        if listed.is_empty() && !prefix.is_empty() {
            Err(WorkspaceError::Missing)
        } else {
            Ok(listed.into_iter().collect())
        }
    }
}

/// Each subfolder is a tenant.
const TENANTS_FOLDER: &str = "tenants";

/// The part of a workspace in which refs resolve.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    Workspace,
    /// `tenants/<slug>/`.
    Tenant(Arc<str>),
}

/// A normalized path in a scope of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkspacePath {
    scope: Scope,
    path: Arc<str>,
}

/// A path that leads out of its scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it leads out of its workspace or tenant; `--root` names a wider workspace")]
pub struct Escape;

impl Scope {
    /// The scope's folder, relative to the workspace; empty for the workspace itself.
    pub fn folder(&self) -> String {
        match self {
            Scope::Workspace => String::new(),
            Scope::Tenant(slug) => format!("{TENANTS_FOLDER}/{slug}"),
        }
    }

    /// The path from the workspace's root of a file in the scope.
    pub fn path(&self, path: &str) -> String {
        join(&self.folder(), path)
    }

    pub fn tenant(&self) -> Option<&str> {
        match self {
            Scope::Workspace => None,
            Scope::Tenant(slug) => Some(slug),
        }
    }
}

impl WorkspacePath {
    /// A path relative to the workspace, `/`-separated. A path below a tenant's folder is in the tenant's scope; the
    /// folder itself is in the workspace's.
    ///
    /// # Errors
    /// The path leads out of the workspace.
    pub fn new(path: &str) -> Result<WorkspacePath, Escape> {
        let path = normalize("", path)?;
        let mut parts = path.splitn(3, '/');
        Ok(match (parts.next(), parts.next(), parts.next()) {
            // Files directly in `tenants/` belong to no tenant.
            (Some(TENANTS_FOLDER), Some(slug), Some(rest)) => {
                WorkspacePath { scope: Scope::Tenant(slug.into()), path: rest.into() }
            }
            _ => WorkspacePath { scope: Scope::Workspace, path: path.into() },
        })
    }

    /// A path relative to a scope.
    ///
    /// # Errors
    /// The path leads out of the scope.
    pub fn in_scope(scope: &Scope, path: &str) -> Result<WorkspacePath, Escape> {
        Ok(WorkspacePath { scope: scope.clone(), path: normalize("", path)?.into() })
    }

    /// Resolves a path relative to this file's directory, in the same scope.
    ///
    /// # Errors
    /// The path leads out of the scope.
    pub fn resolve_relative(&self, path: &str) -> Result<WorkspacePath, Escape> {
        Ok(WorkspacePath { scope: self.scope.clone(), path: normalize(self.directory(), path)?.into() })
    }

    /// Resolves a path relative to this file's directory. From a tenant it may lead up to the workspace's scope.
    ///
    /// # Errors
    /// The path leads into another tenant, from the workspace into a tenant, or out of the workspace.
    pub fn resolve_parent(&self, path: &str) -> Result<WorkspacePath, Escape> {
        let folder = self.scope.folder();
        let from = join(&folder, self.directory());
        let parent = WorkspacePath::new(&normalize(&from, path)?)?;
        let enters_tenant = parent.scope != self.scope && parent.scope != Scope::Workspace;
        if enters_tenant { Err(Escape) } else { Ok(parent) }
    }

    /// A child of this directory.
    #[must_use]
    pub fn child(&self, name: &str) -> WorkspacePath {
        WorkspacePath { scope: self.scope.clone(), path: join(&self.path, name).into() }
    }

    /// The root folder of the scope.
    #[must_use]
    pub fn root(&self) -> WorkspacePath {
        WorkspacePath { scope: self.scope.clone(), path: "".into() }
    }

    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The path relative to the scope, `/`-separated; empty for the scope's root.
    pub fn as_str(&self) -> &str {
        &self.path
    }

    /// The last component.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// The path of the parent directory, relative to the scope.
    pub fn directory(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(directory, _)| directory)
    }

    /// The path relative to the workspace.
    pub fn workspace_relative(&self) -> String {
        join(&self.scope.folder(), &self.path)
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.workspace_relative())
    }
}

fn join(folder: &str, path: &str) -> String {
    match (folder.is_empty(), path.is_empty()) {
        (true, _) => path.to_owned(),
        (_, true) => folder.to_owned(),
        _ => format!("{folder}/{path}"),
    }
}

/// Joins `from` and `path`, and resolves `.` and `..`. Refuses backslashes and drive letters, which Windows treats as
/// separators and roots.
fn normalize(from: &str, path: &str) -> Result<String, Escape> {
    let foreign = path.starts_with('/') || path.contains(['\\', '\0']) || path.get(1..2) == Some(":");
    if foreign {
        return Err(Escape);
    }
    let mut parts: Vec<&str> = from.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop().ok_or(Escape)?;
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// Reads files for the loader.
pub trait Source {
    /// # Errors
    /// [`SourceError::Missing`] when there is no such file, [`SourceError::Unreadable`] for everything else.
    fn read(&self, path: &Path) -> Result<Vec<u8>, SourceError>;
}

#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("no such file")]
    Missing,
    /// The file exists but cannot be read.
    #[error("{0}")]
    Unreadable(#[source] std::io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> WorkspacePath {
        WorkspacePath::new(path).expect("a path in the workspace")
    }

    #[test]
    fn a_path_has_the_scope_of_its_tenant() {
        assert_eq!(at("a/./b/../c").workspace_relative(), "a/c");
        let location = at("tenants/acme/personas/x/PERSONA.md");
        assert_eq!(
            (location.scope(), location.as_str()),
            (&Scope::Tenant("acme".into()), "personas/x/PERSONA.md")
        );
        assert_eq!(location.workspace_relative(), "tenants/acme/personas/x/PERSONA.md");
        assert_eq!(*at("tenants").scope(), Scope::Workspace);
        assert_eq!(*at("tenants/README.md").scope(), Scope::Workspace);
        for out in ["..", "a/../..", "/etc", "C:/x", "a\\b"] {
            assert_eq!(WorkspacePath::new(out), Err(Escape), "{out}");
        }
    }

    #[test]
    fn a_chain_climbs_but_does_not_enter_tenants() {
        // M10.
        let location = at("tenants/acme/ASSEMBLY.md");
        assert_eq!(location.resolve_parent("../../ASSEMBLY.md"), Ok(at("ASSEMBLY.md")));
        assert_eq!(location.resolve_parent("./x/ASSEMBLY.md"), Ok(at("tenants/acme/x/ASSEMBLY.md")));
        assert_eq!(location.resolve_parent("../other/ASSEMBLY.md"), Err(Escape));
        assert_eq!(location.resolve_parent("../../../ASSEMBLY.md"), Err(Escape));
        assert_eq!(at("ASSEMBLY.md").resolve_parent("./tenants/acme/ASSEMBLY.md"), Err(Escape));
        assert_eq!(location.resolve_relative("../../ASSEMBLY.md"), Err(Escape));
        assert_eq!(at("a/b/ASSEMBLY.md").resolve_relative("../x"), Ok(at("a/x")));
    }
}
