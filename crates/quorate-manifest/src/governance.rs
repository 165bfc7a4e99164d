//! Governance files (D9): accepted keys, minimum retention of answers, and limits for the lifetime of overlays. An
//! assembly binds one by `governance`; each document of a chain may bind its own, and all of them apply.
//!
//! The file is Markdown with frontmatter, or YAML. A file of any format without the keys below may be bound, but has no
//! effect.

use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::{Body, Place, Report, codes};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::doctype::compiled;
use crate::document::{self, Document, Syntax};
use crate::duration::IsoDuration;
use crate::keyring::{self, Key};
use crate::loader::{Chain, Loader, Reference, Refs};
use crate::pattern::SOMETHING;
use crate::tree::{Field, Kind, Node, SourceFile};
use crate::workspace::{WorkspaceError, WorkspacePath};
use crate::{Source, frontmatter, workspace};

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
            let Some(text) = document.root.text_of("governance") else { continue };
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
                Err(WorkspaceError::Missing) => return,
                Err(error) => return self.refuse_unreadable(loader, &location.child(FILE_NAME), &error),
            },
            // The check `xref_unresolvable` also refuses an unreadable file.
            Err(_) => return,
        };
        self.add(loader, &location, bytes, document.value_place("governance"));
    }

    fn bind_workspace_default(&mut self, loader: &Loader<'_>, location: &WorkspacePath) {
        let bound_at = Place { file: loader.display_name(location).into(), span: 0..0, path: String::new() };
        match loader.workspace.read(location) {
            Ok(bytes) => self.add(loader, location, bytes, bound_at),
            Err(error) => self.refuse_unreadable(loader, location, &error),
        }
    }

    fn add(&mut self, loader: &Loader<'_>, location: &WorkspacePath, bytes: Vec<u8>, at: Place) {
        let (governance, report) = read(loader, location, bytes);
        self.report.absorb(report);
        self.files.extend(governance.map(|governance| BoundFile {
            bound_at: at,
            file: loader.display_name(location).into(),
            governance,
        }));
    }

    fn refuse_unreadable(&mut self, loader: &Loader<'_>, location: &WorkspacePath, error: &WorkspaceError) {
        let shown = loader.display_name(location);
        let place = Place { file: shown.as_str().into(), span: 0..0, path: String::new() };
        let body = Body::new(format!("the governance file `{shown}` cannot be read: {error}")).at(place);
        self.report.add_source(shown, "");
        self.report.refuse(codes::GOVERNANCE_INVALID, body.help("correct the path, or create the file"));
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

/// Reads a file; `None` if it has no effect or is refused.
fn read(loader: &Loader<'_>, location: &WorkspacePath, bytes: Vec<u8>) -> (Option<Governance>, Report) {
    let Some(syntax) = detect_syntax(location.name(), &bytes) else { return (None, Report::new()) };
    let parsed = document::parse(&loader.display_name(location), bytes, syntax);
    if parsed.document.refused() {
        return (None, parsed.document.into_report());
    }
    let text = Arc::clone(parsed.document.text());
    let document = SourceFile::new(&loader.display_name(location), text, codes::GOVERNANCE_INVALID);
    let root = parsed.root.unwrap_or(Node::new(Kind::Null, 0..0));
    let (mut governance, mut keyring_report) = (Governance::default(), Report::new());
    let _: Option<IgnoredAny> = document.read(&root, &compiled::<GovernanceFile>(), |root| {
        if let Some(field) = root.get("keys") {
            governance.keys =
                Some(keyring::keys(&field, loader.capabilities, Some(&mut governance.foreign_keys)));
        }
        if let Some(field) = root.get("keyring") {
            let (listed, report) = load_keyring(loader, location, &field);
            keyring_report = report;
            governance.keys.get_or_insert_default().extend(listed);
        }
        refuse_duplicates(&document, governance.keys.as_deref().unwrap_or_default());
        let at = |path: &str| root.at(path).pop();
        governance.minimum_retention = at("retention.floor").and_then(|field| minimum_retention(&field));
        governance.ttl_min = at("overlays.ttl.min").and_then(|field| ttl_limit(&field));
        governance.ttl_max = at("overlays.ttl.max").and_then(|field| ttl_limit(&field));
        governance.approvals = at("approvals").map(|field| field.key_place());
    });
    let mut report = document.into_report();
    report.absorb(keyring_report);
    ((!report.has_refusals()).then_some(governance), report)
}

/// The keys of a governance file. Other tools may read other keys.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct GovernanceFile {
    keys: Option<Vec<Value>>,
    #[schemars(regex(pattern = SOMETHING))]
    keyring: Option<String>,
    retention: Option<RetentionTable>,
    overlays: Option<OverlaysTable>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct RetentionTable {
    floor: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct OverlaysTable {
    ttl: Option<TtlTable>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct TtlTable {
    min: Option<String>,
    max: Option<String>,
}

/// The syntax of a file; `None` for a text without frontmatter.
fn detect_syntax(name: &str, bytes: &[u8]) -> Option<Syntax> {
    let json = name.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("json"));
    if json || Syntax::from_name(name) == Syntax::Yaml {
        // JSON is YAML.
        return Some(Syntax::Yaml);
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    // Unclosed frontmatter is parsed, so that it is refused.
    let opens =
        text.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| line.trim_end() == "---");
    (opens || frontmatter::split(text).is_ok()).then_some(Syntax::Frontmatter)
}

/// The keys of the keyring file that the governance file names.
fn load_keyring(loader: &Loader<'_>, location: &WorkspacePath, field: &Field<'_>) -> (Vec<Key>, Report) {
    let refused = |why: String| {
        let help = "write a path relative to this file, of a keyring that `quorate keys init` made";
        field.invalid_with(why, help);
        (Vec::new(), Report::new())
    };
    let Some(path) = field.text() else { return (Vec::new(), Report::new()) };
    let Ok(found) = location.resolve_relative(path) else {
        return refused(format!("the keyring `{path}` lies outside of the workspace or the tenant"));
    };
    match loader.workspace.read(&found) {
        Ok(bytes) => {
            let loaded = keyring::load(
                Path::new(path),
                &loader.display_name(&found),
                &InMemorySource(bytes),
                loader.capabilities,
            );
            (loaded.value.unwrap_or_default(), loaded.report)
        }
        Err(error) => refused(format!("the keyring `{path}` cannot be read: {error}")),
    }
}

/// A source with the bytes of one file.
struct InMemorySource(Vec<u8>);

impl Source for InMemorySource {
    fn read(&self, _: &Path) -> Result<Vec<u8>, workspace::SourceError> {
        Ok(self.0.clone())
    }
}

fn refuse_duplicates(document: &SourceFile, keys: &[Key]) {
    for (at, key) in keys.iter().enumerate() {
        if let Some(first) = keys[..at].iter().find(|other| other.public == key.public)
            && first.place.file != key.place.file
        {
            let body = Body::new("this key is in the file and in its keyring").help("keep one of the two");
            let body = body.at(first.place.clone()).related(key.place.clone(), "also here");
            document.refuse(codes::GOVERNANCE_INVALID, body);
        }
    }
}

fn minimum_retention(field: &Field<'_>) -> Option<(MinimumRetention, Place)> {
    let text = field.text()?;
    let days = text.strip_prefix("days:").and_then(|days| days.parse().ok()).map(MinimumRetention::Days);
    let minimum = if text == "forever" { Some(MinimumRetention::Forever) } else { days };
    if minimum.is_none() {
        field.invalid_with("`retention.floor` is not a retention", "write it like `days:90`, or `forever`");
    }
    Some((minimum?, field.place()))
}

/// A limit of the lifetime of overlays, with its place.
fn ttl_limit(field: &Field<'_>) -> Option<(IsoDuration, Place)> {
    match field.text()?.parse() {
        Ok(iso) => Some((iso, field.place())),
        Err(error) => {
            let message = format!("`{}` is not a duration: {error}", field.path());
            field.invalid_with(message, "write it like P14D");
            None
        }
    }
}
