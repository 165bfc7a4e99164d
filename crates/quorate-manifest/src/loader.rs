//! A load round: everything that one command loads from one workspace (M15). Each file is read and parsed once, each
//! chain is merged once, and each folder is listed once.

mod chain;
mod presence;
mod reference;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use quorate_diagnostics::{Body, Place, Report, codes};

use crate::capabilities::Capabilities;
use crate::check;
use crate::doctype::{self, Doctype};
use crate::document::{self, Document, Syntax};
use crate::workspace::{Error, Scope, Workspace, WorkspacePath};

pub(crate) use chain::ChainRules;
pub use chain::{BreakReason, Chain, ChainOutcome};
pub use presence::Presence;
pub use reference::{Reference, Unresolved};

/// What a round is told besides the workspace.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What the user calls the workspace's folder: what stands before a path in a message. Empty, or ends in `/`.
    pub prefix: String,
    /// Whether a broken chain is refused (M5).
    pub strict_chain: bool,
    /// Whether refs are followed (M14).
    pub refs: Refs,
    /// The governance file of assemblies that bind none (D9).
    pub governance: Option<WorkspacePath>,
}

/// Whether refs are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Refs {
    /// What a ref leads to has to be there.
    #[default]
    Followed,
    /// Only their shape is looked at.
    ShapeOnly,
}

pub struct Loader<'w> {
    pub(crate) workspace: &'w dyn Workspace,
    /// What the running program knows.
    pub capabilities: &'w dyn Capabilities,
    /// What the round was told.
    pub options: Options,
    documents: RefCell<HashMap<WorkspacePath, ReadResult>>,
    chains: RefCell<HashMap<WorkspacePath, ChainOutcome>>,
    folders: RefCell<HashMap<WorkspacePath, Arc<presence::FolderListing>>>,
    pub(crate) personas: RefCell<HashMap<WorkspacePath, Arc<crate::persona::load::Lookup>>>,
    /// The roles of the operators of each scope that was asked for them.
    pub(crate) roles: RefCell<HashMap<Scope, Arc<BTreeSet<String>>>>,
    planned: RefCell<BTreeSet<(Scope, String)>>,
    slugs: RefCell<HashMap<(Scope, String), SlugClaim>>,
}

/// What opening a file of any doctype gave.
#[derive(Debug)]
pub enum OpenResult {
    /// A document, refused or not.
    Document(Arc<Document>),
    /// It is of no doctype that is known; why.
    UnknownDoctype(Report),
    /// There is no such file.
    Missing,
    /// It cannot be read.
    Unreadable(String),
}

/// Who has a slug, and where it says so.
#[derive(Debug, Clone)]
pub(crate) struct SlugClaim {
    pub(crate) path: WorkspacePath,
    pub(crate) place: Place,
    pub(crate) text: Arc<str>,
}

/// What reading a manifest gave.
#[derive(Debug, Clone)]
pub enum ReadResult {
    /// A document, refused or not.
    Document(Arc<Document>),
    /// There is no such file.
    Missing,
    /// It leads out of its scope.
    Outside,
    /// It is there and cannot be read.
    Unreadable(String),
}

impl<'w> Loader<'w> {
    /// A round on a workspace.
    pub fn new(workspace: &'w dyn Workspace, host: &'w dyn Capabilities, options: Options) -> Self {
        Loader {
            workspace,
            capabilities: host,
            options,
            documents: RefCell::default(),
            chains: RefCell::default(),
            folders: RefCell::default(),
            personas: RefCell::default(),
            roles: RefCell::default(),
            planned: RefCell::default(),
            slugs: RefCell::default(),
        }
    }

    /// What the user calls a file.
    pub fn display_name(&self, location: &WorkspacePath) -> String {
        format!("{}{}", self.options.prefix, location.workspace_relative())
    }

    /// The bytes of a file that is no manifest.
    ///
    /// # Errors
    /// As [`Workspace::read`].
    pub fn bytes(&self, location: &WorkspacePath) -> Result<Vec<u8>, Error> {
        self.workspace.read(location)
    }

    /// Says that something will be at a ref of a scope before the round ends, though it is not there yet.
    pub fn add_planned(&self, scope: &Scope, reference: String) {
        self.planned.borrow_mut().insert((scope.clone(), reference));
    }

    /// Whether something was planned in a scope.
    pub fn is_planned(&self, scope: &Scope, reference: &str) -> bool {
        self.planned.borrow().contains(&(scope.clone(), reference.to_owned()))
    }

    /// Reads a manifest of a doctype, once.
    pub fn read(&self, location: &WorkspacePath, doctype: Doctype) -> ReadResult {
        match self.documents.borrow().get(location) {
            // What says that it is something else is held to what it is asked for.
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

    /// Opens a file and finds out what it is.
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

    /// Takes a file's bytes from elsewhere, as if they stood at the location, and finds out what they are.
    pub fn open_bytes(&self, location: &WorkspacePath, bytes: Vec<u8>) -> OpenResult {
        let parsed = document::parse(&self.display_name(location), bytes, Syntax::from_name(location.name()));
        let Some(doctype) = document::detect(location.name(), &parsed) else {
            return OpenResult::UnknownDoctype(check::unknown_doctype_report(parsed));
        };
        let document = Arc::new(Document::new(location.clone(), doctype, parsed));
        self.documents.borrow_mut().insert(location.clone(), ReadResult::Document(Arc::clone(&document)));
        OpenResult::Document(document)
    }

    /// Claims a playbook's slug for a file of its scope; gives the claim of the file that has it already.
    pub(crate) fn claim_slug(&self, slug: &str, document: &Document, place: &Place) -> Option<SlugClaim> {
        let mut slugs = self.slugs.borrow_mut();
        let own = || SlugClaim {
            path: document.path.clone(),
            place: place.clone(),
            text: Arc::clone(&document.text),
        };
        let first = slugs.entry((document.path.scope().clone(), slug.to_owned())).or_insert_with(own);
        (first.path != document.path).then(|| first.clone())
    }

    fn parse_document(&self, location: &WorkspacePath, doctype: Doctype, bytes: Vec<u8>) -> Document {
        let parsed = document::parse(&self.display_name(location), bytes, Syntax::from_name(location.name()));
        Document::new(location.clone(), doctype, parsed)
    }

    /// Lets go of a manifest that nothing else in the round will ask for.
    pub fn forget(&self, location: &WorkspacePath) {
        self.documents.borrow_mut().remove(location);
        self.chains.borrow_mut().remove(location);
    }
}
