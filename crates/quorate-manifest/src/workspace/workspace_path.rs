//! Normalized paths in a workspace: a scope, and a path relative to it.

use std::fmt;
use std::sync::Arc;

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
