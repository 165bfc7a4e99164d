//! Where something is in a workspace: a scope and a path in it, in normal form.

use std::fmt;
use std::sync::Arc;

/// The folder whose children are tenants.
const TENANTS: &str = "tenants";

/// What a ref resolves in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// The workspace.
    Workspace,
    /// `tenants/<slug>/` in it.
    Tenant(Arc<str>),
}

/// A place in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spot {
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
            Scope::Tenant(slug) => format!("{TENANTS}/{slug}"),
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

impl Spot {
    /// The spot of a path that is relative to the workspace, `/`-separated: in the tenant that it lies in, if any. A
    /// tenant's folder itself lies in the workspace.
    ///
    /// # Errors
    /// When the path leads out of the workspace.
    pub fn new(path: &str) -> Result<Spot, Escape> {
        let path = normal("", path)?;
        let mut parts = path.splitn(3, '/');
        Ok(match (parts.next(), parts.next(), parts.next()) {
            // What lies in `tenants/` itself is in no tenant.
            (Some(TENANTS), Some(slug), Some(rest)) => {
                Spot { scope: Scope::Tenant(slug.into()), path: rest.into() }
            }
            _ => Spot { scope: Scope::Workspace, path: path.into() },
        })
    }

    /// A path in a scope.
    ///
    /// # Errors
    /// When the path leads out of the scope.
    pub fn within(scope: &Scope, path: &str) -> Result<Spot, Escape> {
        Ok(Spot { scope: scope.clone(), path: normal("", path)?.into() })
    }

    /// What a path relative to this file's directory leads to, in the same scope.
    ///
    /// # Errors
    /// When it leads out of the scope.
    pub fn beside(&self, path: &str) -> Result<Spot, Escape> {
        Ok(Spot { scope: self.scope.clone(), path: normal(self.directory(), path)?.into() })
    }

    /// What a path relative to this file's directory leads to, in the scope that it then lies in: from a tenant up
    /// to the workspace that holds it, never into another tenant and never out.
    ///
    /// # Errors
    /// When it leads sideways, down into a tenant, or out.
    pub fn above(&self, path: &str) -> Result<Spot, Escape> {
        let folder = self.scope.folder();
        let from = join(&folder, self.directory());
        let found = Spot::new(&normal(&from, path)?)?;
        let sideways = found.scope != self.scope && found.scope != Scope::Workspace;
        if sideways { Err(Escape) } else { Ok(found) }
    }

    /// A child of this directory.
    #[must_use]
    pub fn child(&self, name: &str) -> Spot {
        Spot { scope: self.scope.clone(), path: join(&self.path, name).into() }
    }

    /// The folder of its scope.
    #[must_use]
    pub fn root(&self) -> Spot {
        Spot { scope: self.scope.clone(), path: "".into() }
    }

    /// The scope.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The path in the scope, `/`-separated; empty for the scope's own folder.
    pub fn path(&self) -> &str {
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
    pub fn in_workspace(&self) -> String {
        join(&self.scope.folder(), &self.path)
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_workspace())
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
fn normal(from: &str, path: &str) -> Result<String, Escape> {
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

    fn at(path: &str) -> Spot {
        Spot::new(path).expect("a path in the workspace")
    }

    #[test]
    fn a_path_lies_in_its_tenant() {
        assert_eq!(at("a/./b/../c").in_workspace(), "a/c");
        let spot = at("tenants/acme/personas/x/PERSONA.md");
        assert_eq!((spot.scope(), spot.path()), (&Scope::Tenant("acme".into()), "personas/x/PERSONA.md"));
        assert_eq!(spot.in_workspace(), "tenants/acme/personas/x/PERSONA.md");
        assert_eq!(*at("tenants").scope(), Scope::Workspace);
        assert_eq!(*at("tenants/README.md").scope(), Scope::Workspace);
        for out in ["..", "a/../..", "/etc", "C:/x", "a\\b"] {
            assert_eq!(Spot::new(out), Err(Escape), "{out}");
        }
    }

    #[test]
    fn a_chain_climbs_and_never_goes_sideways() {
        // M10.
        let spot = at("tenants/acme/ASSEMBLY.md");
        assert_eq!(spot.above("../../ASSEMBLY.md"), Ok(at("ASSEMBLY.md")));
        assert_eq!(spot.above("./x/ASSEMBLY.md"), Ok(at("tenants/acme/x/ASSEMBLY.md")));
        assert_eq!(spot.above("../other/ASSEMBLY.md"), Err(Escape));
        assert_eq!(spot.above("../../../ASSEMBLY.md"), Err(Escape));
        assert_eq!(at("ASSEMBLY.md").above("./tenants/acme/ASSEMBLY.md"), Err(Escape));
        assert_eq!(spot.beside("../../ASSEMBLY.md"), Err(Escape));
        assert_eq!(at("a/b/ASSEMBLY.md").beside("../x"), Ok(at("a/x")));
    }
}
