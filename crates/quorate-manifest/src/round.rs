//! A load round: everything that one command loads from one workspace (M15). Each file is read and parsed once, each
//! chain is merged once, and each folder is listed once.

mod chain;
mod presence;
mod reference;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use quorate_diagnostics::{Body, Place, Report, codes};

use crate::check;
use crate::doctype::{self, Doctype};
use crate::known::Host;
use crate::layer::{self, Holding, Layer};
use crate::workspace::{Error, Scope, Spot, Workspace};

pub(crate) use chain::Rules;
pub use chain::{Break, Chain, Chained};
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
    pub governance: Option<Spot>,
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

/// A load round.
pub struct Round<'w> {
    pub(crate) workspace: &'w dyn Workspace,
    /// What the running program knows.
    pub host: &'w dyn Host,
    /// What the round was told.
    pub options: Options,
    layers: RefCell<HashMap<Spot, Read>>,
    chains: RefCell<HashMap<Spot, Chained>>,
    folders: RefCell<HashMap<Spot, Arc<presence::Folder>>>,
    pub(crate) personas: RefCell<HashMap<Spot, Arc<crate::persona::load::Found>>>,
    /// The roles of the operators of each scope that was asked for them.
    pub(crate) roles: RefCell<HashMap<Scope, Arc<BTreeSet<String>>>>,
    planned: RefCell<BTreeSet<(Scope, String)>>,
    slugs: RefCell<HashMap<(Scope, String), Claim>>,
}

/// What opening a file of any doctype gave.
#[derive(Debug)]
pub enum Opened {
    /// A layer, refused or not.
    Layer(Arc<Layer>),
    /// It is of no doctype that is known; why.
    Unknown(Report),
    /// There is no such file.
    Missing,
    /// It cannot be read.
    Unreadable(String),
}

/// Who has a slug, and where it says so.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) spot: Spot,
    pub(crate) place: Place,
    pub(crate) text: Arc<str>,
}

/// What reading a manifest gave.
#[derive(Debug, Clone)]
pub enum Read {
    /// A layer, refused or not.
    Layer(Arc<Layer>),
    /// There is no such file.
    Missing,
    /// It leads out of its scope.
    Outside,
    /// It is there and cannot be read.
    Unreadable(String),
}

impl<'w> Round<'w> {
    /// A round on a workspace.
    pub fn new(workspace: &'w dyn Workspace, host: &'w dyn Host, options: Options) -> Self {
        Round {
            workspace,
            host,
            options,
            layers: RefCell::default(),
            chains: RefCell::default(),
            folders: RefCell::default(),
            personas: RefCell::default(),
            roles: RefCell::default(),
            planned: RefCell::default(),
            slugs: RefCell::default(),
        }
    }

    /// What the user calls a file.
    pub fn shown(&self, spot: &Spot) -> String {
        format!("{}{}", self.options.prefix, spot.in_workspace())
    }

    /// The bytes of a file that is no manifest.
    ///
    /// # Errors
    /// As [`Workspace::read`].
    pub fn bytes(&self, spot: &Spot) -> Result<Vec<u8>, Error> {
        self.workspace.read(spot)
    }

    /// Says that something will be at a ref of a scope before the round ends, though it is not there yet.
    pub fn plan(&self, scope: &Scope, reference: String) {
        self.planned.borrow_mut().insert((scope.clone(), reference));
    }

    /// Whether something was planned in a scope.
    pub fn is_planned(&self, scope: &Scope, reference: &str) -> bool {
        self.planned.borrow().contains(&(scope.clone(), reference.to_owned()))
    }

    /// Reads a manifest of a doctype, once.
    pub fn read(&self, spot: &Spot, doctype: Doctype) -> Read {
        match self.layers.borrow().get(spot) {
            // What says that it is something else is held to what it is asked for.
            Some(Read::Layer(layer)) if layer.doctype != doctype => {}
            Some(read) => return read.clone(),
            None => {}
        }
        let read = match self.workspace.read(spot) {
            Ok(bytes) => Read::Layer(Arc::new(self.layer(spot, doctype, bytes))),
            Err(Error::Missing) => Read::Missing,
            Err(Error::Outside) => Read::Outside,
            Err(error) => Read::Unreadable(error.to_string()),
        };
        self.layers.borrow_mut().insert(spot.clone(), read.clone());
        read
    }

    /// Opens a file and finds out what it is.
    pub fn open(&self, spot: &Spot) -> Opened {
        if let Some(Read::Layer(layer)) = self.layers.borrow().get(spot)
            && doctype::detect(spot.name(), &layer.root) == Some(layer.doctype)
        {
            return Opened::Layer(Arc::clone(layer));
        }
        match self.workspace.read(spot) {
            Ok(bytes) => self.open_bytes(spot, bytes),
            Err(Error::Missing) => Opened::Missing,
            Err(error @ Error::TooLarge) => {
                let shown = self.shown(spot);
                let mut report = Report::new();
                report.source(shown.as_str(), "");
                let place = Place { file: shown.into(), span: 0..0, path: String::new() };
                report
                    .refuse(codes::SYNTAX, Body::new(format!("the file cannot be read: {error}")).at(place));
                Opened::Unknown(report)
            }
            Err(error) => Opened::Unreadable(error.to_string()),
        }
    }

    /// Takes a file's bytes from elsewhere, as if they stood at the spot, and finds out what they are.
    pub fn open_bytes(&self, spot: &Spot, bytes: Vec<u8>) -> Opened {
        let parsed = layer::parse(&self.shown(spot), bytes, Holding::of(spot.name()));
        let by_name = || doctype::by_name(spot.name());
        let found = match &parsed.root {
            Some(root) => doctype::detect(spot.name(), root),
            None => by_name().or_else(|| doctype::by_text(parsed.document.text())),
        };
        let Some(doctype) = found else { return Opened::Unknown(check::not_a_doctype(parsed)) };
        let layer = Arc::new(Layer::new(spot.clone(), doctype, parsed));
        self.layers.borrow_mut().insert(spot.clone(), Read::Layer(Arc::clone(&layer)));
        Opened::Layer(layer)
    }

    /// Claims a playbook's slug for a file of its scope; gives the claim of the file that has it already.
    pub(crate) fn claim(&self, slug: &str, layer: &Layer, place: &Place) -> Option<Claim> {
        let mut slugs = self.slugs.borrow_mut();
        let own = || Claim { spot: layer.spot.clone(), place: place.clone(), text: Arc::clone(&layer.text) };
        let first = slugs.entry((layer.spot.scope().clone(), slug.to_owned())).or_insert_with(own);
        (first.spot != layer.spot).then(|| first.clone())
    }

    fn layer(&self, spot: &Spot, doctype: Doctype, bytes: Vec<u8>) -> Layer {
        let parsed = layer::parse(&self.shown(spot), bytes, Holding::of(spot.name()));
        Layer::new(spot.clone(), doctype, parsed)
    }

    /// Lets go of a manifest that nothing else in the round will ask for.
    pub fn forget(&self, spot: &Spot) {
        self.layers.borrow_mut().remove(spot);
        self.chains.borrow_mut().remove(spot);
    }
}
