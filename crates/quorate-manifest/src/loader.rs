//! The loader: reads the manifests of one workspace for one command (M15). It reads and parses each file once, merges each
//! `extends` chain once, and lists each folder once.

mod chain;
mod presence;
mod reference;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use quorate_diagnostics::{Body, Place, Report, codes};

use crate::capabilities::Capabilities;
use crate::doctype::{self, Doctype};
use crate::document::{self, Document, Syntax};
use crate::workspace::{Error, Scope, Workspace, WorkspacePath};

pub(crate) use chain::ChainRules;
pub use chain::{BreakReason, Chain, ChainOutcome};
pub use presence::Presence;
pub use reference::{Reference, Unresolved};

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
    /// Whether the workspace configures an embedder (L4).
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
    folders: RefCell<HashMap<WorkspacePath, Arc<presence::FolderListing>>>,
    pub(crate) personas: RefCell<HashMap<WorkspacePath, Arc<crate::persona::lookup::Lookup>>>,
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
    pub fn bytes(&self, location: &WorkspacePath) -> Result<Vec<u8>, Error> {
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
            Err(Error::Missing) => ReadResult::Missing,
            Err(Error::Outside) => ReadResult::Outside,
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
            Err(Error::Missing) => OpenResult::Missing,
            Err(error @ Error::TooLarge) => {
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
