//! Refs: `ws://<collection>/<slug>`, and paths beside a manifest, resolved in the scope of the layer that wrote them
//! (M10, M14).

use super::{Presence, Round};
use crate::tree::reader::nearest;
use crate::workspace::{Scope, Spot};

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
    /// Why.
    pub why: String,
    /// Whether it leads out of its scope.
    pub outside: bool,
    /// A ref that comes near and leads somewhere.
    pub near: Option<String>,
}

impl Unresolved {
    fn absent(why: String) -> Self {
        Unresolved { why, outside: false, near: None }
    }

    fn outside() -> Self {
        Unresolved {
            why: "it leads out of its workspace or tenant; `--root` names a wider workspace".to_owned(),
            outside: true,
            near: None,
        }
    }
}

impl<'t> Reference<'t> {
    /// Reads `ws://<collection>/<rest>`.
    pub fn read(text: &'t str) -> Option<Reference<'t>> {
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
    pub fn spot(self, scope: &Scope) -> Result<Spot, Unresolved> {
        let path = self.file().unwrap_or_else(|| format!("{}/{}", self.collection, self.rest));
        let leads_up = path.split('/').any(|part| part == ".." || part == ".");
        match Spot::within(scope, &path) {
            Ok(spot) if !leads_up => Ok(spot),
            _ => Err(Unresolved::outside()),
        }
    }
}

impl Unresolved {
    /// What to do: the near ref, or something else.
    pub fn help(&self, otherwise: &str) -> String {
        self.near.as_ref().map_or_else(|| otherwise.to_owned(), |near| format!("did you mean `{near}`?"))
    }
}

impl Round<'_> {
    /// A ref of the same collection that comes near to one that leads to nothing.
    fn near(&self, reference: Reference<'_>, from: &Spot) -> Option<String> {
        let names = self.names(&from.root().child(reference.collection));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let near = nearest(reference.rest, &names)?;
        (near != reference.rest).then(|| format!("ws://{}/{near}", reference.collection))
    }

    /// Whether a ref leads to something that is there: `from` is the file that wrote it. A path is relative to that
    /// file.
    ///
    /// # Errors
    /// Why it leads to nothing.
    pub fn resolves(&self, from: &Spot, text: &str) -> Result<Spot, Unresolved> {
        let Some(reference) = Reference::read(text) else {
            let spot = from.beside(text).map_err(|_| Unresolved::outside())?;
            return match self.presence(&spot) {
                Presence::Absent(why) => Err(Unresolved::absent(why)),
                _ => Ok(spot),
            };
        };
        // A seat of an assembly: the assembly has to be there.
        let seat = reference.rest.split_once('/').filter(|_| reference.collection == "assemblies");
        let reference = seat.map_or(reference, |(rest, _)| Reference { rest, ..reference });
        let spot = reference.spot(from.scope())?;
        let wants_file = reference.file().is_some();
        match self.presence(&spot) {
            Presence::File if wants_file => Ok(spot),
            Presence::Folder if !wants_file && self.holds_a_file(&spot) => Ok(spot),
            Presence::Folder if !wants_file => {
                Err(Unresolved::absent(format!("there is no file in `{}`", self.shown(&spot))))
            }
            Presence::Absent(why) => {
                Err(Unresolved { near: self.near(reference, from), ..Unresolved::absent(why) })
            }
            _ => Err(Unresolved::absent(format!("`{}` is not what the ref asks for", self.shown(&spot)))),
        }
    }
}
