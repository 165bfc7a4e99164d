//! Refs: `ws://<collection>/<slug>`, and paths beside a manifest, resolved in the scope of the document that wrote them
//! (M10, M14).

use super::{Loader, Presence};
use crate::tree::reader::nearest;
use crate::workspace::{Scope, WorkspacePath};

/// What a text refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference<'t> {
    /// The collection, for example `personas`.
    pub collection: &'t str,
    /// What follows it: a slug, and maybe more.
    pub rest: &'t str,
}

/// A ref that leads to nothing that can be used; why, and whether it leads out of its scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved {
    pub reason: String,
    /// Whether it leads out of its scope.
    pub outside_scope: bool,
    /// A ref that comes near and leads somewhere.
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
    /// Reads `ws://<collection>/<rest>`.
    pub fn parse(text: &'t str) -> Option<Reference<'t>> {
        let (collection, rest) = text.strip_prefix("ws://")?.split_once('/')?;
        Some(Reference { collection, rest })
    }

    /// The file that stands for it; `None` where a folder with any file in it will do.
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

    /// Where it leads in a scope: the file that stands for it, or its folder.
    ///
    /// # Errors
    /// When it leads out of the scope.
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
    /// What to do: the near ref, or something else.
    pub fn help(&self, otherwise: &str) -> String {
        self.suggestion
            .as_ref()
            .map_or_else(|| otherwise.to_owned(), |near| format!("did you mean `{near}`?"))
    }
}

impl Loader<'_> {
    /// A ref of the same collection that comes near to one that leads to nothing.
    fn nearest_reference(&self, reference: Reference<'_>, from: &WorkspacePath) -> Option<String> {
        let names = self.folder_names(&from.root().child(reference.collection));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let nearest_name = nearest(reference.rest, &names)?;
        (nearest_name != reference.rest).then(|| format!("ws://{}/{nearest_name}", reference.collection))
    }

    /// Whether a ref leads to something that is there: `from` is the file that wrote it. A path is relative to that
    /// file.
    ///
    /// # Errors
    /// Why it leads to nothing.
    pub fn resolve(&self, from: &WorkspacePath, text: &str) -> Result<WorkspacePath, Unresolved> {
        let Some(reference) = Reference::parse(text) else {
            let location = from.resolve_relative(text).map_err(|_| Unresolved::escapes_scope())?;
            return match self.presence(&location) {
                Presence::Absent(why) => Err(Unresolved::absent(why)),
                _ => Ok(location),
            };
        };
        // A seat of an assembly: the assembly has to be there.
        let seat = reference.rest.split_once('/').filter(|_| reference.collection == "assemblies");
        let reference = seat.map_or(reference, |(rest, _)| Reference { rest, ..reference });
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
                "`{}` is not what the ref asks for",
                self.display_name(&location)
            ))),
        }
    }
}
