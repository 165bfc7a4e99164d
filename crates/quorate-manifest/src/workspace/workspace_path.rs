//! Where something is in a workspace: a scope and a path in it, in normal form.

use std::fmt;
use std::sync::Arc;

/// The folder whose children are tenants.
const TENANTS_FOLDER: &str = "tenants";

/// What a ref resolves in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    Workspace,
    /// `tenants/<slug>/` in it.
    Tenant(Arc<str>),
}

/// A place in a workspace.
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

    /// The tenant, if it is one's.
    pub fn tenant(&self) -> Option<&str> {
        match self {
            Scope::Workspace => None,
            Scope::Tenant(slug) => Some(slug),
        }
    }
}

impl WorkspacePath {
    /// The location of a path that is relative to the workspace, `/`-separated: in the tenant that it lies in, if any. A
    /// tenant's folder itself lies in the workspace.
    ///
    /// # Errors
    /// When the path leads out of the workspace.
    pub fn new(path: &str) -> Result<WorkspacePath, Escape> {
        let path = normalize("", path)?;
        let mut parts = path.splitn(3, '/');
        Ok(match (parts.next(), parts.next(), parts.next()) {
            // What lies in `tenants/` itself is in no tenant.
            (Some(TENANTS_FOLDER), Some(slug), Some(rest)) => {
                WorkspacePath { scope: Scope::Tenant(slug.into()), path: rest.into() }
            }
            _ => WorkspacePath { scope: Scope::Workspace, path: path.into() },
        })
    }

    /// A path in a scope.
    ///
    /// # Errors
    /// When the path leads out of the scope.
    pub fn in_scope(scope: &Scope, path: &str) -> Result<WorkspacePath, Escape> {
        Ok(WorkspacePath { scope: scope.clone(), path: normalize("", path)?.into() })
    }

    /// What a path relative to this file's directory leads to, in the same scope.
    ///
    /// # Errors
    /// When it leads out of the scope.
    pub fn resolve_relative(&self, path: &str) -> Result<WorkspacePath, Escape> {
        Ok(WorkspacePath { scope: self.scope.clone(), path: normalize(self.directory(), path)?.into() })
    }

    /// What a path relative to this file's directory leads to, in the scope that it then lies in: from a tenant up
    /// to the workspace that holds it, never into another tenant and never out.
    ///
    /// # Errors
    /// When it leads sideways, down into a tenant, or out.
    pub fn resolve_parent(&self, path: &str) -> Result<WorkspacePath, Escape> {
        let folder = self.scope.folder();
        let from = join(&folder, self.directory());
        let found = WorkspacePath::new(&normalize(&from, path)?)?;
        let sideways = found.scope != self.scope && found.scope != Scope::Workspace;
        if sideways { Err(Escape) } else { Ok(found) }
    }

    /// A child of this directory.
    #[must_use]
    pub fn child(&self, name: &str) -> WorkspacePath {
        WorkspacePath { scope: self.scope.clone(), path: join(&self.path, name).into() }
    }

    /// The folder of its scope.
    #[must_use]
    pub fn root(&self) -> WorkspacePath {
        WorkspacePath { scope: self.scope.clone(), path: "".into() }
    }

    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The path in the scope, `/`-separated; empty for the scope's own folder.
    pub fn as_str(&self) -> &str {
        &self.path
    }

    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// The path of the directory that holds it, in the scope.
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

/// A path below `from` without `.` and `..`. Backslashes and drive letters, which other systems take for separators
/// and roots, lead out.
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
    fn a_path_lies_in_its_tenant() {
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
    fn a_chain_climbs_and_never_goes_sideways() {
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
