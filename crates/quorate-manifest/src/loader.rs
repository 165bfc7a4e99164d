//! The loader: reads the manifests of one workspace for one command (M15). It reads and parses each file once, merges each
//! `extends` chain once, and lists each folder once.
//!
//! It resolves refs (`ws://<collection>/<slug>`, or a path relative to a manifest) in the scope of the manifest that contains
//! them. A path exists only under its exact name (M10, M14): a name that another operating system would confuse with a sibling,
//! or could not have, counts as absent on all.

mod chain;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use quorate_diagnostics::{Body, Place, Report, codes};

use crate::capabilities::Capabilities;
use crate::doctype::{self, Doctype};
use crate::document::{self, Document, Syntax};
use crate::tree::reader::nearest;
use crate::workspace::{EntryKind, Scope, Workspace, WorkspaceError, WorkspacePath, is_device_name};

pub(crate) use chain::ChainRules;
pub use chain::{BreakReason, Chain, ChainOutcome};

/// Options of a [`Loader`].
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Prefix of paths in messages: the workspace's folder as the user names it. Empty, or ends in `/`.
    pub prefix: String,
    /// Refuse a broken `extends` chain instead of warning (M5).
    pub strict_chain: bool,
    /// M14.
    pub refs: Refs,
    /// The governance file of assemblies that name none (D9).
    pub governance: Option<WorkspacePath>,
    /// Whether the workspace configures an embedder, or an executor in its place (L4).
    pub has_embedder: bool,
}

/// How refs are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Refs {
    /// The target of a ref must exist.
    #[default]
    Followed,
    /// Only the syntax is checked.
    ShapeOnly,
}

/// Reads and caches the manifests of one workspace for one command.
pub struct Loader<'w> {
    pub(crate) workspace: &'w dyn Workspace,
    pub capabilities: &'w dyn Capabilities,
    pub options: Options,
    documents: RefCell<HashMap<WorkspacePath, ReadResult>>,
    chains: RefCell<HashMap<WorkspacePath, ChainOutcome>>,
    folders: RefCell<HashMap<WorkspacePath, Arc<FolderListing>>>,
    pub(crate) personas: RefCell<HashMap<WorkspacePath, Arc<PersonaLookup>>>,
    /// The operators' roles and skills of each scope requested so far.
    pub(crate) operator_names: RefCell<HashMap<Scope, Arc<OperatorNames>>>,
    planned: RefCell<BTreeSet<(Scope, String)>>,
    slugs: RefCell<HashMap<(Scope, String), SlugClaim>>,
}

/// The roles and skills of a scope's operators, which playbooks can target.
#[derive(Debug, Default)]
pub(crate) struct OperatorNames {
    pub(crate) roles: BTreeSet<String>,
    pub(crate) skills: BTreeSet<String>,
}

/// Result of opening a file of any doctype.
#[derive(Debug)]
pub enum OpenResult {
    /// A document, with or without refusals.
    Document(Arc<Document>),
    /// The doctype cannot be determined; the report has the reason.
    UnknownDoctype(Report),
    Missing,
    /// The reason.
    Unreadable(String),
}

/// The file that claims a slug, and the place of its declaration.
#[derive(Debug, Clone)]
pub(crate) struct SlugClaim {
    pub(crate) path: WorkspacePath,
    pub(crate) place: Place,
    pub(crate) text: Arc<str>,
}

/// Result of reading a manifest of a known doctype.
#[derive(Debug, Clone)]
pub enum ReadResult {
    /// A document, with or without refusals.
    Document(Arc<Document>),
    Missing,
    /// The path leads out of its scope.
    Outside,
    /// The file exists but cannot be read; the reason.
    Unreadable(String),
}

impl<'w> Loader<'w> {
    pub fn new(workspace: &'w dyn Workspace, capabilities: &'w dyn Capabilities, options: Options) -> Self {
        Loader {
            workspace,
            capabilities,
            options,
            documents: RefCell::default(),
            chains: RefCell::default(),
            folders: RefCell::default(),
            personas: RefCell::default(),
            operator_names: RefCell::default(),
            planned: RefCell::default(),
            slugs: RefCell::default(),
        }
    }

    /// A path as messages show it: with [`Options::prefix`].
    pub fn display_name(&self, location: &WorkspacePath) -> String {
        format!("{}{}", self.options.prefix, location.workspace_relative())
    }

    /// Reads a file that is not a manifest; does not cache it.
    ///
    /// # Errors
    /// As [`Workspace::read`].
    pub fn bytes(&self, location: &WorkspacePath) -> Result<Vec<u8>, WorkspaceError> {
        self.workspace.read(location)
    }

    /// Declares that the command will create the target of a ref.
    pub fn add_planned(&self, scope: &Scope, reference: String) {
        self.planned.borrow_mut().insert((scope.clone(), reference));
    }

    /// Whether [`Loader::add_planned`] declared a ref in a scope.
    pub fn is_planned(&self, scope: &Scope, reference: &str) -> bool {
        self.planned.borrow().contains(&(scope.clone(), reference.to_owned()))
    }

    /// Reads a file as a manifest of `doctype`, whatever its `schema` says; caches the result.
    pub fn read(&self, location: &WorkspacePath, doctype: Doctype) -> ReadResult {
        match self.documents.borrow().get(location) {
            // Cached as another doctype: parse again as the requested one.
            Some(ReadResult::Document(document)) if document.doctype != doctype => {}
            Some(read) => return read.clone(),
            None => {}
        }
        let read = match self.workspace.read(location) {
            Ok(bytes) => ReadResult::Document(Arc::new(self.parse_document(location, doctype, bytes))),
            Err(WorkspaceError::Missing) => ReadResult::Missing,
            Err(WorkspaceError::Outside) => ReadResult::Outside,
            Err(error) => ReadResult::Unreadable(error.to_string()),
        };
        self.documents.borrow_mut().insert(location.clone(), read.clone());
        read
    }

    /// Reads a file and detects its doctype.
    pub fn open(&self, location: &WorkspacePath) -> OpenResult {
        if let Some(ReadResult::Document(document)) = self.documents.borrow().get(location)
            && doctype::detect(location.name(), &document.root) == Some(document.doctype)
        {
            return OpenResult::Document(Arc::clone(document));
        }
        match self.workspace.read(location) {
            Ok(bytes) => self.open_bytes(location, bytes),
            Err(WorkspaceError::Missing) => OpenResult::Missing,
            Err(error @ WorkspaceError::TooLarge) => {
                let shown = self.display_name(location);
                let mut report = Report::new();
                report.add_source(shown.as_str(), "");
                let place = Place { file: shown.into(), span: 0..0, path: String::new() };
                report
                    .refuse(codes::SYNTAX, Body::new(format!("the file cannot be read: {error}")).at(place));
                OpenResult::UnknownDoctype(report)
            }
            Err(error) => OpenResult::Unreadable(error.to_string()),
        }
    }

    /// Like [`Loader::open`], but with the file's bytes from the caller.
    pub fn open_bytes(&self, location: &WorkspacePath, bytes: Vec<u8>) -> OpenResult {
        let parsed = document::parse(&self.display_name(location), bytes, Syntax::from_name(location.name()));
        let Some(doctype) = document::detect(location.name(), &parsed) else {
            return OpenResult::UnknownDoctype(document::unknown_doctype_report(parsed));
        };
        let document = Arc::new(Document::new(location.clone(), doctype, parsed));
        self.documents.borrow_mut().insert(location.clone(), ReadResult::Document(Arc::clone(&document)));
        OpenResult::Document(document)
    }

    /// Claims a playbook's slug in the scope of its file. Returns the earlier claim if another file has the slug.
    pub(crate) fn claim_slug(&self, slug: &str, document: &Document, place: &Place) -> Option<SlugClaim> {
        let mut slugs = self.slugs.borrow_mut();
        let claim = || SlugClaim {
            path: document.path.clone(),
            place: place.clone(),
            text: Arc::clone(&document.text),
        };
        let first = slugs.entry((document.path.scope().clone(), slug.to_owned())).or_insert_with(claim);
        (first.path != document.path).then(|| first.clone())
    }

    fn parse_document(&self, location: &WorkspacePath, doctype: Doctype, bytes: Vec<u8>) -> Document {
        let parsed = document::parse(&self.display_name(location), bytes, Syntax::from_name(location.name()));
        Document::new(location.clone(), doctype, parsed)
    }

    /// Drops a manifest from the caches.
    pub fn forget(&self, location: &WorkspacePath) {
        self.documents.borrow_mut().remove(location);
        self.chains.borrow_mut().remove(location);
    }
}

/// How deep a folder is searched for a file.
const MAX_SEARCH_DEPTH: usize = 6;

/// Whether a path exists, and as what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    File,
    Folder,
    /// The path does not exist or cannot be used; the reason.
    Absent(String),
}

/// The entries of a folder.
#[derive(Debug, Default)]
struct FolderListing {
    entries: HashMap<String, EntryKind>,
    /// How often a name occurs when case is ignored.
    case_folded: HashMap<String, u32>,
}

/// Result of looking up a persona by its ref.
pub type PersonaLookup = Result<FoundPersona, Box<PersonaLookupError>>;

/// The target of a persona ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPersona {
    pub path: WorkspacePath,
    pub title: String,
}

/// Why a persona ref cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonaLookupError {
    /// A clause for the end of a sentence.
    pub reason: String,
    pub help: Option<String>,
    /// The first refusal in the persona's own file.
    pub related: Option<(Place, String)>,
}

impl PersonaLookupError {
    /// Adds the help, else `otherwise`, and the related place to the body of a diagnostic.
    pub(crate) fn explain(&self, body: Body, otherwise: &str) -> Body {
        let body = body.help(self.help.as_deref().unwrap_or(otherwise));
        match &self.related {
            Some((place, label)) => body.related(place.clone(), label),
            None => body,
        }
    }
}

impl Loader<'_> {
    /// Whether a path exists; each component has to match exactly.
    pub fn presence(&self, location: &WorkspacePath) -> Presence {
        let mut at = location.root();
        let mut found = Presence::Folder;
        for part in location.as_str().split('/').filter(|part| !part.is_empty()) {
            if found != Presence::Folder {
                return Presence::Absent(format!("`{}` is not a folder", self.display_name(&at)));
            }
            if let Some(why) = portability_problem(part) {
                return Presence::Absent(why);
            }
            let folder = self.folder(&at);
            let path = at.child(part);
            found = match folder.entries.get(part) {
                _ if folder.case_folded.get(&part.to_lowercase()).is_some_and(|count| *count > 1) => {
                    return Presence::Absent(format!(
                        "another name in `{}` differs from `{part}` in case alone, which other systems do not tell apart",
                        self.display_name(&at)
                    ));
                }
                Some(EntryKind::File) => Presence::File,
                Some(EntryKind::Directory) => Presence::Folder,
                Some(EntryKind::Other) => {
                    return Presence::Absent(format!(
                        "`{}` leads out of its workspace or tenant, or nowhere",
                        self.display_name(&path)
                    ));
                }
                None => return Presence::Absent(format!("there is no `{}`", self.display_name(location))),
            };
            at = path;
        }
        found
    }

    /// Whether a folder contains a file, at most [`MAX_SEARCH_DEPTH`] levels down.
    fn contains_file(&self, location: &WorkspacePath) -> bool {
        fn search(loader: &Loader<'_>, location: &WorkspacePath, depth: usize) -> bool {
            let folder = loader.folder(location);
            let mut folders: Vec<&String> = Vec::new();
            for (name, kind) in &folder.entries {
                match kind {
                    EntryKind::File => return true,
                    EntryKind::Directory => folders.push(name),
                    EntryKind::Other => {}
                }
            }
            depth > 0 && folders.iter().any(|name| search(loader, &location.child(name), depth - 1))
        }
        search(self, location, MAX_SEARCH_DEPTH)
    }

    /// The names of the folders in a folder, sorted.
    pub fn folder_names(&self, location: &WorkspacePath) -> Vec<String> {
        self.entries(location, EntryKind::Directory)
    }

    /// The names of the files in a folder, sorted.
    pub fn file_names(&self, location: &WorkspacePath) -> Vec<String> {
        self.entries(location, EntryKind::File)
    }

    fn entries(&self, location: &WorkspacePath, wanted: EntryKind) -> Vec<String> {
        let folder = self.folder(location);
        let entries = folder.entries.iter().filter(|(_, kind)| **kind == wanted);
        let mut names: Vec<String> = entries.map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names
    }

    fn folder(&self, location: &WorkspacePath) -> Arc<FolderListing> {
        if let Some(folder) = self.folders.borrow().get(location) {
            return Arc::clone(folder);
        }
        let mut folder = FolderListing::default();
        for listed in self.workspace.list(location).unwrap_or_default() {
            *folder.case_folded.entry(listed.name.to_lowercase()).or_default() += 1;
            folder.entries.insert(listed.name, listed.kind);
        }
        let folder = Arc::new(folder);
        self.folders.borrow_mut().insert(location.clone(), Arc::clone(&folder));
        folder
    }
}

/// Why a name cannot be used on every operating system.
fn portability_problem(name: &str) -> Option<String> {
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    if is_device_name(name) || matches!(&*stem, "conin$" | "conout$") {
        return Some(format!("`{name}` is the name of a device on some systems"));
    }
    let odd = name.ends_with(['.', ' ']) || name.contains(['%', '\\', ':', '*', '?', '"', '<', '>', '|']);
    (odd || name.chars().any(char::is_control))
        .then(|| format!("`{name}` is not a valid name on every system"))
}

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
                Err(Unresolved::absent(format!("`{}` contains no file", self.display_name(&location))))
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
