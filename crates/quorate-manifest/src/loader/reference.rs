//! Refs: `ws://<collection>/<slug>` and paths relative to a manifest, resolved in the scope of the manifest that contains
//! them (M10, M14).

use super::{Loader, Presence};
use crate::tree::reader::nearest;
use crate::workspace::{Scope, WorkspacePath};

/// A parsed `ws://` ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference<'t> {
    /// For example `personas`.
    pub collection: &'t str,
    /// A slug, maybe with more path components.
    pub rest: &'t str,
}

/// Why a ref cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved {
    pub reason: String,
    pub outside_scope: bool,
    /// An existing ref with a similar name.
    pub suggestion: Option<String>,
}

impl Unresolved {
    fn absent(why: String) -> Self {
        Unresolved { reason: why, outside_scope: false, suggestion: None }
    }

    fn escapes_scope() -> Self {
        Unresolved {
            reason: "it leads out of its workspace or tenant; `--root` names a wider workspace".to_owned(),
            outside_scope: true,
            suggestion: None,
        }
    }
}

impl<'t> Reference<'t> {
    /// Parses `ws://<collection>/<rest>`.
    pub fn parse(text: &'t str) -> Option<Reference<'t>> {
        let (collection, rest) = text.strip_prefix("ws://")?.split_once('/')?;
        Some(Reference { collection, rest })
    }

    /// The manifest that the ref names; `None` if any non-empty folder is enough.
    fn file(self) -> Option<String> {
        let name = match self.collection {
            "personas" => "PERSONA.md",
            "operators" => "OPERATOR.md",
            "workspaces" => "WORK.md",
            "assemblies" => "ASSEMBLY.md",
            _ => return None,
        };
        Some(format!("{}/{}/{name}", self.collection, self.rest))
    }

    /// The path of the ref's manifest or folder in a scope.
    ///
    /// # Errors
    /// The ref leads out of the scope.
    pub fn path(self, scope: &Scope) -> Result<WorkspacePath, Unresolved> {
        let path = self.file().unwrap_or_else(|| format!("{}/{}", self.collection, self.rest));
        let leads_up = path.split('/').any(|part| part == ".." || part == ".");
        match WorkspacePath::in_scope(scope, &path) {
            Ok(location) if !leads_up => Ok(location),
            _ => Err(Unresolved::escapes_scope()),
        }
    }
}

impl Unresolved {
    /// Help text: the suggestion if there is one, else `otherwise`.
    pub fn help(&self, otherwise: &str) -> String {
        self.suggestion
            .as_ref()
            .map_or_else(|| otherwise.to_owned(), |near| format!("did you mean `{near}`?"))
    }
}

impl Loader<'_> {
    /// An existing ref of the same collection with a similar name.
    fn nearest_reference(&self, reference: Reference<'_>, from: &WorkspacePath) -> Option<String> {
        let names = self.folder_names(&from.root().child(reference.collection));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let nearest_name = nearest(reference.rest, &names)?;
        (nearest_name != reference.rest).then(|| format!("ws://{}/{nearest_name}", reference.collection))
    }

    /// Resolves a ref, or a path relative to `from`, the file that contains it.
    ///
    /// # Errors
    /// The target does not exist or is outside the scope.
    pub fn resolve(&self, from: &WorkspacePath, text: &str) -> Result<WorkspacePath, Unresolved> {
        let Some(reference) = Reference::parse(text) else {
            let location = from.resolve_relative(text).map_err(|_| Unresolved::escapes_scope())?;
            return match self.presence(&location) {
                Presence::Absent(why) => Err(Unresolved::absent(why)),
                _ => Ok(location),
            };
        };
        // `ws://assemblies/<slug>/<member>`: only the assembly has to exist.
        let member_ref = reference.rest.split_once('/').filter(|_| reference.collection == "assemblies");
        let reference = member_ref.map_or(reference, |(rest, _)| Reference { rest, ..reference });
        let location = reference.path(from.scope())?;
        let wants_file = reference.file().is_some();
        match self.presence(&location) {
            Presence::File if wants_file => Ok(location),
            Presence::Folder if !wants_file && self.contains_file(&location) => Ok(location),
            Presence::Folder if !wants_file => {
                Err(Unresolved::absent(format!("there is no file in `{}`", self.display_name(&location))))
            }
            Presence::Absent(why) => Err(Unresolved {
                suggestion: self.nearest_reference(reference, from),
                ..Unresolved::absent(why)
            }),
            _ => Err(Unresolved::absent(format!(
                "`{}` is not of the kind that the ref names",
                self.display_name(&location)
            ))),
        }
    }
}
