//! Governance files (D9): accepted keys, minimum retention of answers, and limits for the lifetime of overlays. An
//! assembly binds one by `governance`; each document of a chain may bind its own, and all of them apply.
//!
//! The file is Markdown with frontmatter, or YAML. A file of any format without the keys below may be bound, but has no
//! effect.

mod read;

use std::sync::Arc;

use quorate_diagnostics::{Place, Report};

use crate::document::Document;
use crate::duration::IsoDuration;
use crate::keyring::Key;
use crate::loader::{Chain, Loader, Reference, Refs};
use crate::tree::Node;
use crate::workspace::{Error, WorkspacePath};

/// The governance file in the folder that a ref names.
const FILE_NAME: &str = "GOVERNANCE.md";

/// The content of one governance file, with places.
#[derive(Debug, Clone, Default)]
pub struct Governance {
    /// `keys` and `keyring`: the keys whose signatures are accepted; `None` if the file has neither.
    pub keys: Option<Vec<Key>>,
    /// Keys of other formats, which Quorate cannot verify.
    pub foreign_keys: Vec<Place>,
    /// `retention.floor`: the minimum retention of answers.
    pub minimum_retention: Option<(MinimumRetention, Place)>,
    /// `overlays.ttl.min`: the shortest lifetime of overlays.
    pub ttl_min: Option<(IsoDuration, Place)>,
    /// `overlays.ttl.max`: the longest lifetime of overlays.
    pub ttl_max: Option<(IsoDuration, Place)>,
    /// `approvals`; Quorate does not read its content.
    pub approvals: Option<Place>,
}

/// The minimum retention of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinimumRetention {
    Days(u32),
    Forever,
}

impl MinimumRetention {
    /// Whether a retention of `days` is long enough; `None` is forever.
    pub fn allows(self, days: Option<u32>) -> bool {
        match self {
            MinimumRetention::Forever => days.is_none(),
            MinimumRetention::Days(minimum) => days.is_none_or(|days| days >= minimum),
        }
    }
}

/// A governance file that a document or the workspace binds.
#[derive(Debug, Clone)]
pub struct BoundFile {
    /// The value of `governance`; for the workspace's default, the start of the file itself.
    pub bound_at: Place,
    /// The path as messages show it.
    pub file: Arc<str>,
    pub governance: Governance,
}

/// The governance files of a chain.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    /// Root first; without files that have no effect.
    pub files: Vec<BoundFile>,
    /// Diagnostics of the files, and their sources.
    pub report: Report,
}

impl Policies {
    /// Reads the files that the documents of a chain bind. If no document binds one, reads the workspace's default.
    pub(crate) fn load(loader: &Loader<'_>, chain: &Chain) -> Policies {
        let mut policies = Policies::default();
        if loader.options.refs == Refs::ShapeOnly {
            return policies;
        }
        let mut bound_by_document = false;
        for document in &chain.documents {
            let Some(text) = document.root.key("governance").and_then(Node::as_str) else { continue };
            bound_by_document = true;
            policies.bind(loader, document, text);
        }
        match &loader.options.governance {
            Some(location) if !bound_by_document => policies.bind_workspace_default(loader, location),
            _ => {}
        }
        policies
    }

    /// The accepted keys: those of the last file with keys, each limited to the validity that all files before it give
    /// it. `None` if no file has keys.
    pub fn effective_keys(&self) -> Option<Vec<Key>> {
        let mut lists = self.files.iter().filter_map(|file| file.governance.keys.as_ref());
        let first = lists.next()?.clone();
        Some(lists.fold(first, |above, keys| keys.iter().map(|key| restricted_key(key, &above)).collect()))
    }

    fn bind(&mut self, loader: &Loader<'_>, document: &Document, text: &str) {
        // The check `xref_unresolvable` refuses it.
        let Ok(location) = loader.resolve(&document.path, text) else { return };
        let is_ref = Reference::parse(text).is_some();
        let (location, bytes) = match loader.workspace.read(&location) {
            Ok(bytes) => (location, bytes),
            Err(_) if is_ref => match loader.workspace.read(&location.child(FILE_NAME)) {
                Ok(bytes) => (location.child(FILE_NAME), bytes),
                Err(Error::Missing) => return,
                Err(error) => return self.report_unreadable(loader, &location.child(FILE_NAME), &error),
            },
            // The check `xref_unresolvable` refuses an unreadable file, too.
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
        let (governance, report) = read::read(loader, location, bytes);
        self.report.absorb(report);
        self.files.extend(governance.map(|governance| BoundFile {
            bound_at: at,
            file: loader.display_name(location).into(),
            governance,
        }));
    }

    fn report_unreadable(&mut self, loader: &Loader<'_>, location: &WorkspacePath, error: &Error) {
        self.report.absorb(read::unreadable(&loader.display_name(location), error));
    }
}

/// The key with the validity that both `key` and the same key in `above` allow.
fn restricted_key(key: &Key, above: &[Key]) -> Key {
    let mut key = key.clone();
    if let Some(same) = above.iter().find(|other| other.public == key.public) {
        let earliest = |a: Option<i64>, b: Option<i64>| a.into_iter().chain(b).min();
        key.not_before_ms = key.not_before_ms.max(same.not_before_ms);
        key.not_after_ms = earliest(key.not_after_ms, same.not_after_ms);
        key.revoked_at_ms = earliest(key.revoked_at_ms, same.revoked_at_ms);
    }
    key
}
