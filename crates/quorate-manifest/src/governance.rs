//! Governance files (D9): whose signatures count, how long answers are kept at least, and how long advice may hold. An
//! assembly binds one by `governance`; each document of a chain may bind its own, and together they only tighten.
//!
//! The file is Markdown with frontmatter, or YAML. A text with none of the keys below, of whatever format, is somebody
//! else's policy: it may be bound, and binds nothing here.

mod read;

use std::sync::Arc;

use quorate_diagnostics::{Place, Report};

use crate::document::Document;
use crate::duration::IsoDuration;
use crate::keyring::Key;
use crate::loader::{Chain, Loader, Reference, Refs};
use crate::tree::Node;
use crate::workspace::{Error, WorkspacePath};

/// The file that stands for a folder that a ref leads to.
const FILE_NAME: &str = "GOVERNANCE.md";

/// What one governance file says.
#[derive(Debug, Clone, Default)]
pub struct Governance {
    /// `keys` and `keyring`: whose signatures count; `None` where it does not say.
    pub keys: Option<Vec<Key>>,
    /// Keys that are none of ours, where they stand: nothing that we can verify is signed with them.
    pub foreign_keys: Vec<Place>,
    /// `retention.floor`: how long answers are kept at least, and where it stands.
    pub minimum_retention: Option<(MinimumRetention, Place)>,
    /// `overlays.ttl.min`: the shortest time that advice may hold, and where it stands.
    pub ttl_min: Option<(IsoDuration, Place)>,
    /// `overlays.ttl.max`: the longest.
    pub ttl_max: Option<(IsoDuration, Place)>,
    /// `approvals`: where it stands. What it asks for is not looked at.
    pub approvals: Option<Place>,
}

/// How long answers are kept at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinimumRetention {
    Days(u32),
    Forever,
}

impl MinimumRetention {
    /// Whether answers that are kept for so many days, or for ever, are kept long enough.
    pub fn allows(self, days: Option<u32>) -> bool {
        match self {
            MinimumRetention::Forever => days.is_none(),
            MinimumRetention::Days(least) => days.is_none_or(|days| days >= least),
        }
    }
}

/// A governance file, and what binds it.
#[derive(Debug, Clone)]
pub struct BoundFile {
    /// Where it is bound: the value of `governance`, or the file's beginning where the workspace binds it.
    pub bound_at: Place,
    /// What the user calls the file.
    pub file: Arc<str>,
    pub governance: Governance,
}

/// All that binds a chain, root first, and the texts to quote from.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    /// The files that say something, root first.
    pub files: Vec<BoundFile>,
    /// What is refused of them; and their texts.
    pub report: Report,
}

impl Policies {
    /// Reads what each document of a chain binds, or what the workspace does where none binds anything.
    pub(crate) fn load(loader: &Loader<'_>, chain: &Chain) -> Policies {
        let mut policies = Policies::default();
        if loader.options.refs == Refs::ShapeOnly {
            return policies;
        }
        let mut bound_by_a_layer = false;
        for document in &chain.documents {
            let Some(text) = document.root.key("governance").and_then(Node::as_str) else { continue };
            bound_by_a_layer = true;
            policies.bind(loader, document, text);
        }
        match &loader.options.governance {
            Some(location) if !bound_by_a_layer => policies.bind_workspace_default(loader, location),
            _ => {}
        }
        policies
    }

    /// Whose signatures count: of the last that says so, and each key no longer than all before it let it. `None` where
    /// nobody says so.
    pub fn effective_keys(&self) -> Option<Vec<Key>> {
        let mut lists = self.files.iter().filter_map(|one| one.governance.keys.as_ref());
        let first = lists.next()?.clone();
        Some(lists.fold(first, |above, own| own.iter().map(|key| restricted_key(key, &above)).collect()))
    }

    fn bind(&mut self, loader: &Loader<'_>, document: &Document, text: &str) {
        // A ref that leads nowhere is refused as one.
        let Ok(location) = loader.resolve(&document.path, text) else { return };
        let folder = Reference::parse(text).is_some();
        let (location, bytes) = match loader.workspace.read(&location) {
            Ok(bytes) => (location, bytes),
            Err(_) if folder => match loader.workspace.read(&location.child(FILE_NAME)) {
                Ok(bytes) => (location.child(FILE_NAME), bytes),
                Err(Error::Missing) => return,
                Err(error) => return self.report_unreadable(loader, &location.child(FILE_NAME), &error),
            },
            // A path that leads to what cannot be read is refused as a ref, too.
            Err(_) => return,
        };
        self.add(loader, &location, bytes, document.value_place("governance"));
    }

    fn bind_workspace_default(&mut self, loader: &Loader<'_>, location: &WorkspacePath) {
        let bound_at = Place { file: loader.display_name(location).into(), span: 0..0, path: String::new() };
        match loader.workspace.read(location) {
            Ok(bytes) => self.add(loader, location, bytes, bound_at),
            Err(error) => self.report_unreadable(loader, location, &error),
        }
    }

    fn add(&mut self, loader: &Loader<'_>, location: &WorkspacePath, bytes: Vec<u8>, at: Place) {
        let (says, report) = read::read(loader, location, bytes);
        self.report.absorb(report);
        self.files.extend(says.map(|says| BoundFile {
            bound_at: at,
            file: loader.display_name(location).into(),
            governance: says,
        }));
    }

    fn report_unreadable(&mut self, loader: &Loader<'_>, location: &WorkspacePath, error: &Error) {
        self.report.absorb(read::unreadable(&loader.display_name(location), error));
    }
}

/// A key that may sign when both lists let it.
fn restricted_key(key: &Key, above: &[Key]) -> Key {
    let mut key = key.clone();
    if let Some(one) = above.iter().find(|one| one.public == key.public) {
        let least = |a: Option<i64>, b: Option<i64>| a.into_iter().chain(b).min();
        key.not_before_ms = key.not_before_ms.max(one.not_before_ms);
        key.not_after_ms = least(key.not_after_ms, one.not_after_ms);
        key.revoked_at_ms = least(key.revoked_at_ms, one.revoked_at_ms);
    }
    key
}
