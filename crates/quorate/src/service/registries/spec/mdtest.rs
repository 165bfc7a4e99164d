//! Documents as tests: a heading is a test, fenced blocks with a file name are files, an `expect` block lists every
//! diagnostic of loading them.
//!
//! ````markdown
//! # Council: rounds
//!
//! ```yaml council.yaml
//! adjudicator: {prompt: builtin:adjudicator}
//! ```
//!
//! ## Three rounds are too many
//!
//! ```yaml council.yaml above
//! protocol: {rounds: 3}
//! ```
//!
//! ```expect
//! refuses quorate:council_invalid at council.yaml:1 in protocol.rounds saying 1 or 2
//! refuses quorate:council_invalid at council.yaml:1 saying deliberators
//! ```
//! ````
//!
//! Files under the title exist in every test of the document; together with the test's own they form a workspace, and all
//! of them are checked as `quorate check` checks a directory. Words after the file name modify the block: `above` puts it
//! on top of the shared file of that name (of its keys, if it has frontmatter), `above=FILE` on top of another shared file,
//! `crlf`, `bom` and `unterminated` (no last line break) change its bytes, `escapes` reads `\xFF`, `\u{…}` and `\{TEXT*N}`,
//! `times=N` repeats it, `unreadable` makes reading fail, `outside` makes it a link that leads out of its scope, `folder`
//! makes it an empty folder, and `named` checks the file as if the user had named it instead of the directory.
//!
//! A line of an `expect` block is `refuses CODE` or `warns CODE`, optionally followed by `at FILE:LINE[:COLUMN]`,
//! `in FIELD.PATH`, and `saying` a part of its message or help; or `clean`; or `loads FILE`, for a missing file; or
//! `passes over FILE`, for a file in the directory that is not a manifest. A missing diagnostic fails the test, and so does
//! an unexpected one. `expect no-refs` checks only the form of refs.
//!
//! A block `resolved FILE` lists values of an assembly or a persona with its chain merged, and the file of the chain that
//! each comes from:
//!
//! ````markdown
//! ```resolved view/ASSEMBLY.md
//! chain = ["ASSEMBLY.md", "view/ASSEMBLY.md"]
//! members[id=ciso].weight = 2.5 from view/ASSEMBLY.md
//! members[].id = ["ceo", "ciso"] from ASSEMBLY.md
//! appliesTo absent
//! ```
//! ````
//!
//! `chain` is the files that were merged and `body` the text of a persona; neither is a key of a format.

mod document;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::codes::Severity;
use quorate_diagnostics::text::LineIndex;
use quorate_diagnostics::{Body, Report, codes, render};
use quorate_manifest::check::{self, Deduplicator, Discovery, FileOutcome};
use quorate_manifest::doctype::Doctype;
use quorate_manifest::loader::{Chain, Loader, OpenResult, Options};
use quorate_manifest::tree::{Kind, Node};
use quorate_manifest::workspace::{self, DirEntry, EntryKind, WorkspacePath};
use quorate_manifest::{Capabilities, Source, Workspace, assembly, config, council, persona};
use serde_json::{Value, json};

use crate::service::policy;

use document::{Document, Test};

/// The documents below a directory, sorted.
///
/// # Panics
/// When a directory cannot be read.
#[expect(clippy::disallowed_methods, reason = "the documents are the runner's input")]
pub(crate) fn documents(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", dir.display())).path();
        if path.is_dir() {
            found.extend(documents(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Runs one document and returns the failures. `host` supplies the running program's capabilities.
///
/// # Panics
/// When the file cannot be read.
#[expect(clippy::disallowed_methods, reason = "the documents are the runner's input")]
pub(crate) fn run_file(path: &Path, host: &dyn Capabilities) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    run(&path.display().to_string(), &text, host)
}

/// Runs a document's text and returns the failures, each with the document's name and a line.
pub(crate) fn run(name: &str, text: &str, host: &dyn Capabilities) -> Vec<String> {
    match Document::parse(text) {
        Err(problem) => vec![format!("{name}:{}: {}", problem.line, problem.message)],
        Ok(document) if document.tests.is_empty() => vec![format!("{name}:1: no test")],
        Ok(document) => document.tests.iter().flat_map(|test| run_test(name, test, host)).collect(),
    }
}

fn run_test(document: &str, test: &Test, host: &dyn Capabilities) -> Option<String> {
    let loading = load(test, host);
    let expected = &test.expected;
    if loading.loaded == 0 && expected.skipped.is_empty() {
        return Some(format!("{document}:{}: {}: no file that can be loaded", test.line, test.name));
    }
    let mut failures = compare(&expected.diagnostics, &loading.report);
    let unknown = expected.diagnostics.iter().filter(|expected| codes::explain(&expected.code).is_none());
    failures.extend(unknown.map(|expected| format!("unknown code {}", expected.code)));
    failures.extend(without_place(&loading.report));
    let loaded = expected.skipped.iter().filter(|path| !loading.skipped.contains(*path));
    failures.extend(loaded.map(|path| format!("not passed over: {path}")));
    failures.extend(test.resolved.iter().flat_map(|resolves| resolves.compare(&loading.round)));
    if failures.is_empty() {
        return None;
    }
    let diagnostics = render::concise(&loading.report);
    Some(format!(
        "{document}:{}: {}\n  {}\nall of it:\n{diagnostics}",
        test.line,
        test.name,
        failures.join("\n  ")
    ))
}

/// Diagnostics without a place in the text.
fn without_place(report: &Report) -> impl Iterator<Item = String> {
    let refusals = report.refusals.iter().map(|diagnostic| (diagnostic.code.as_str(), &diagnostic.body));
    let warnings = report.warnings.iter().map(|diagnostic| (diagnostic.code.as_str(), &diagnostic.body));
    let nowhere = refusals.chain(warnings).filter(|(_, body)| body.place.is_none());
    nowhere.map(|(code, body)| format!("no place: {code}: {}", body.message))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expectation {
    pub(crate) severity: Severity,
    pub(crate) code: String,
    /// `FILE`, `FILE:LINE` or `FILE:LINE:COLUMN`.
    pub(crate) at: Option<String>,
    pub(crate) path: Option<String>,
    /// A part of the message or of the help.
    pub(crate) saying: Option<String>,
}

impl Expectation {
    /// Parses a line such as `refuses quorate:syntax at council.yaml:3 saying twice`; `None` for any other line.
    pub(crate) fn parse(line: &str) -> Option<Expectation> {
        let (line, saying) = match line.split_once(" saying ") {
            Some((line, saying)) => (line, Some(saying.trim().to_owned())),
            None => (line, None),
        };
        let mut words = line.split_whitespace();
        let severity = match words.next()? {
            "refuses" => Severity::Refusal,
            "warns" => Severity::Warning,
            _ => return None,
        };
        let code = words.next()?.to_owned();
        let (mut at, mut path) = (None, None);
        while let Some(word) = words.next() {
            let slot = match word {
                "at" => &mut at,
                "in" => &mut path,
                _ => return None,
            };
            *slot = Some(words.next()?.to_owned());
        }
        Some(Expectation { severity, code, at, path, saying })
    }

    fn matches(&self, actual: &ActualDiagnostic<'_>) -> bool {
        let part = |part: &String| {
            actual.body.message.contains(part)
                || actual.body.help.as_ref().is_some_and(|help| help.contains(part))
        };
        self.severity == actual.severity
            && self.code == actual.code
            && self.at.as_ref().is_none_or(|at| actual.places.contains(at))
            && self
                .path
                .as_ref()
                .is_none_or(|path| actual.body.place.as_ref().is_some_and(|place| place.path == *path))
            && self.saying.as_ref().is_none_or(part)
    }
}

/// An actual diagnostic, with its places.
struct ActualDiagnostic<'r> {
    severity: Severity,
    code: &'static str,
    body: &'r Body,
    places: Vec<String>,
}

/// The missing and the unexpected diagnostics. Each expectation matches one diagnostic.
fn compare(expected: &[Expectation], report: &Report) -> Vec<String> {
    let refusals = report.refusals.iter().map(|r| (Severity::Refusal, r.code.as_str(), &r.body));
    let warnings = report.warnings.iter().map(|w| (Severity::Warning, w.code.as_str(), &w.body));
    let mut unmatched: Vec<ActualDiagnostic<'_>> = refusals
        .chain(warnings)
        .map(|(severity, code, body)| ActualDiagnostic { severity, code, body, places: places(report, body) })
        .collect();
    let mut failures = Vec::new();
    for expectation in expected {
        match unmatched.iter().position(|actual| expectation.matches(actual)) {
            Some(index) => drop(unmatched.remove(index)),
            None => failures.push(format!("missing: {expectation:?}")),
        }
    }
    let unexpected = unmatched.iter().map(|actual| {
        let place = actual.places.last().map_or("no place", String::as_str);
        format!(
            "not expected: {}[{}] at {place}: {}",
            actual.severity.as_str(),
            actual.code,
            actual.body.message
        )
    });
    failures.extend(unexpected);
    failures
}

fn places(report: &Report, body: &Body) -> Vec<String> {
    let Some(place) = &body.place else { return Vec::new() };
    let text = report.sources.get(&place.file).map_or("", |text| text);
    let position = LineIndex::new(text).position(place.span.start);
    let line = format!("{}:{}", place.file, position.line);
    let column = format!("{line}:{}", position.column);
    vec![place.file.to_string(), line, column]
}

#[derive(Debug, Clone)]
pub(crate) struct ResolvedExpectation {
    pub(crate) path: String,
    pub(crate) fields: Vec<ExpectedField>,
}

/// A line of a `resolved` block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExpectedField {
    pub(crate) field: String,
    /// `None` for `absent`.
    pub(crate) value: Option<Value>,
    /// The files that it comes from; empty if not checked.
    pub(crate) from: Vec<String>,
}

impl ExpectedField {
    /// Parses `FIELD = VALUE from FILE`, `FIELD = VALUE` or `FIELD absent`.
    pub(crate) fn parse(line: &str) -> Option<ExpectedField> {
        if let Some(field) = line.strip_suffix(" absent") {
            return Some(ExpectedField { field: field.trim().to_owned(), value: None, from: Vec::new() });
        }
        let (field, rest) = line.split_once(" = ")?;
        // A string may contain ` from `.
        let parsed = rest.rsplit_once(" from ").and_then(|(value, from)| {
            let value: Value = serde_json::from_str(value).ok()?;
            Some((value, from.split(", ").map(|file| file.trim().to_owned()).collect()))
        });
        let (value, from) = match parsed {
            Some(parsed) => parsed,
            None => (serde_json::from_str(rest).ok()?, Vec::new()),
        };
        Some(ExpectedField { field: field.trim().to_owned(), value: Some(value), from })
    }
}

impl ResolvedExpectation {
    fn compare(&self, loader: &Loader<'_>) -> Vec<String> {
        let path = &self.path;
        let Ok(manifest_path) = WorkspacePath::new(path) else {
            return vec![format!("{path} is not in the workspace")];
        };
        let OpenResult::Document(layer) = loader.open(&manifest_path) else {
            return vec![format!("{path} is not a manifest")];
        };
        let resolved = match layer.doctype {
            Doctype::Assembly => assembly::load(loader, &layer).value.map(|loaded| (loaded.chain, None)),
            Doctype::Persona => {
                persona::load_persona(loader, &layer).value.map(|loaded| (loaded.chain, Some(loaded.body)))
            }
            doctype => return vec![format!("{path} is a manifest without a chain: {}", doctype.as_str())],
        };
        let Some((chain, body)) = resolved else { return vec![format!("{path} is not resolved")] };
        self.fields.iter().filter_map(|field| difference(field, &chain, body.as_deref(), path)).collect()
    }
}

fn difference(
    expected: &ExpectedField,
    chain: &Arc<Chain>,
    body: Option<&str>,
    path: &str,
) -> Option<String> {
    let field = &expected.field;
    let (value, from) = match (field.as_str(), body) {
        // Not keys of a format: the merged files, root first, and the text below the frontmatter.
        ("chain", _) => {
            (Some(json!(chain.documents.iter().map(|document| &*document.shown).collect::<Vec<_>>())), None)
        }
        ("body", Some(body)) => (Some(json!(body)), None),
        _ => match find(&chain.merged, field) {
            Err(error) => return Some(format!("{path}: {field}: {error}")),
            Ok(Selection::One(node)) => (node.map(Node::to_json), node.map(|node| vec![files(chain, node)])),
            Ok(Selection::Each(nodes)) => {
                let values = nodes.iter().map(|node| node.to_json()).collect();
                (Some(Value::Array(values)), Some(nodes.iter().map(|node| files(chain, node)).collect()))
            }
        },
    };
    if value != expected.value {
        let value = value.map_or_else(|| "absent".to_owned(), |value| value.to_string());
        return Some(format!("{path}: {field} is {value}"));
    }
    let from = from?;
    // One file stands for all items of a list.
    let expected_file =
        |at: usize| expected.from.get(at).or(expected.from.first().filter(|_| expected.from.len() == 1));
    let differs = !expected.from.is_empty()
        && from
            .iter()
            .enumerate()
            .any(|(at, files)| files.iter().any(|file| Some(file) != expected_file(at)));
    differs.then(|| format!("{path}: {field} comes from {}", from.concat().join(", ")))
}

/// The files of a value and everything in it. A merged mapping or list covers only its parts, so only those count.
fn files(chain: &Chain, node: &Node) -> Vec<String> {
    let mut found = match &node.kind {
        Kind::Map(entries) if !entries.is_empty() => {
            entries.iter().flat_map(|entry| files(chain, &entry.value)).collect()
        }
        Kind::Seq(items) if !items.is_empty() => items.iter().flat_map(|item| files(chain, item)).collect(),
        _ => vec![chain.document_of(node).shown.to_string()],
    };
    found.dedup();
    found
}

enum Selection<'n> {
    One(Option<&'n Node>),
    /// The nodes that `[]` selects: one of each item.
    Each(Vec<&'n Node>),
}

/// Follows a path such as `members[id=ciso].weight`, `lockedTraits[0]` or `members[].id`.
fn find<'n>(root: &'n Node, path: &str) -> Result<Selection<'n>, String> {
    let mut at = vec![root];
    let mut each = false;
    for step in path.split('.') {
        let (key, picks) = step.split_once('[').map_or((step, None), |(key, rest)| (key, Some(rest)));
        at = at.into_iter().filter_map(|node| node.key(key)).collect();
        for pick in picks.into_iter().flat_map(|picks| picks.split('[')) {
            let pick = pick.strip_suffix(']').ok_or_else(|| format!("`{step}` does not end in `]`"))?;
            at = at.into_iter().flat_map(|node| select(node, pick)).collect();
            each |= pick.is_empty();
        }
    }
    Ok(if each { Selection::Each(at) } else { Selection::One(at.first().copied()) })
}

fn select<'n>(list: &'n Node, pick: &str) -> Vec<&'n Node> {
    let items = list.items();
    if pick.is_empty() {
        return items.iter().collect();
    }
    match pick.split_once('=') {
        Some((key, value)) => {
            let has = |item: &&Node| item.key(key).and_then(Node::as_str) == Some(value);
            items.iter().filter(has).take(1).collect()
        }
        None => pick.parse().ok().and_then(|at: usize| items.get(at)).into_iter().collect(),
    }
}

struct LoadResult<'t> {
    round: Loader<'t>,
    report: Report,
    /// The number of files that are manifests, or were requested.
    loaded: usize,
    skipped: BTreeSet<String>,
}

/// Loads the files of a test.
fn load<'t>(test: &'t Test, capabilities: &'t dyn Capabilities) -> LoadResult<'t> {
    let options =
        Options { strict_chain: strict_chain(&test.files), refs: test.expected.refs, ..Options::default() };
    let round = Loader::new(&test.files, capabilities, options);
    let mut files: BTreeMap<WorkspacePath, Discovery> = BTreeMap::new();
    for (name, named) in &test.names {
        let by_directory = check::is_candidate(name.rsplit('/').next().unwrap_or_default())
            && !name.split('/').rev().skip(1).any(|folder| folder.starts_with('.'));
        if let (Ok(spot), true) = (WorkspacePath::new(name), *named || by_directory) {
            files.insert(spot, if *named { Discovery::Explicit } else { Discovery::Walked });
        }
    }
    let spots: Vec<WorkspacePath> = files.keys().cloned().collect();
    check::register_planned(&round, &spots);
    let mut loading = LoadResult { round, report: Report::new(), loaded: 0, skipped: BTreeSet::new() };
    let mut once = Deduplicator::default();
    for (spot, named) in files {
        loading.load_file(&test.files, &spot, named, &mut once);
    }
    for path in &test.expected.loads {
        let name = path.rsplit('/').next().unwrap_or_default();
        if let Some(report) = by_path(quorate_manifest::doctype::from_name(name), path, &test.files) {
            loading.loaded += 1;
            once.add(report, &mut loading.report);
        }
    }
    loading
}

impl LoadResult<'_> {
    fn load_file(
        &mut self,
        source: &dyn Source,
        spot: &WorkspacePath,
        named: Discovery,
        once: &mut Deduplicator,
    ) {
        let path = spot.workspace_relative();
        let by_name = by_path(quorate_manifest::doctype::from_name(spot.name()), &path, source);
        let report = match by_name {
            Some(report) => Some(report),
            None => match check::check(&self.round, spot, named) {
                FileOutcome::Checked(_, report)
                | FileOutcome::Assembly(report, _)
                | FileOutcome::Unreadable(report) => Some(report),
                FileOutcome::Standalone(doctype) => by_path(Some(doctype), &path, source),
                FileOutcome::Skipped | FileOutcome::Missing => None,
            },
        };
        match report {
            Some(report) => {
                self.loaded += 1;
                once.add(report, &mut self.report);
            }
            None => drop(self.skipped.insert(path)),
        }
    }
}

/// The report of a doctype's loader that depends on the path alone; `None` for other doctypes.
fn by_path(doctype: Option<Doctype>, path: &str, source: &dyn Source) -> Option<Report> {
    match doctype? {
        Doctype::Council => Some(policy::checked(council::load(Path::new(path), path, source)).report),
        Doctype::Config => Some(config::load(Path::new(path), path, source).report),
        _ => None,
    }
}

/// Whether the workspace's `quorate.toml` makes broken chains refusals.
fn strict_chain(source: &dyn Source) -> bool {
    let loaded = config::load(Path::new("quorate.toml"), "quorate.toml", source);
    loaded.value.is_some_and(|configuration| configuration.strict_chain)
}

/// A source and a workspace with given files. As a source it compares paths without `.` and with `..` resolved; as a
/// workspace it contains only paths inside of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    files: BTreeMap<PathBuf, Content>,
    workspace: workspace::Memory,
}

/// The content of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Bytes(Vec<u8>),
    Unreadable,
    /// A link that leads out of its scope.
    Outside,
    Folder,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Memory::default()
    }

    /// Adds content, replacing what the path had.
    pub(crate) fn put(&mut self, path: impl AsRef<Path>, content: Content) {
        let path = normalize(path.as_ref());
        let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        if let (true, Some(name)) = (is_inside, path.to_str()) {
            let bytes = if let Content::Bytes(bytes) = &content { bytes.clone() } else { Vec::new() };
            self.workspace = std::mem::take(&mut self.workspace).with(name, bytes);
        }
        self.files.insert(path, content);
    }

    fn at(&self, path: &WorkspacePath) -> Option<&Content> {
        self.files.get(Path::new(&path.workspace_relative()))
    }
}

impl Source for Memory {
    fn read(&self, path: &Path) -> Result<Vec<u8>, workspace::SourceError> {
        match self.files.get(&normalize(path)) {
            Some(Content::Bytes(bytes)) => Ok(bytes.clone()),
            Some(_) => Err(workspace::SourceError::Unreadable(denied())),
            None => Err(workspace::SourceError::Missing),
        }
    }
}

impl Workspace for Memory {
    fn read(&self, path: &WorkspacePath) -> Result<Vec<u8>, workspace::WorkspaceError> {
        match self.at(path) {
            Some(Content::Unreadable) => Err(workspace::WorkspaceError::Unreadable(denied())),
            Some(Content::Outside) => Err(workspace::WorkspaceError::Outside),
            Some(Content::Folder) => {
                Err(workspace::WorkspaceError::Unreadable(io::ErrorKind::IsADirectory.into()))
            }
            Some(Content::Bytes(_)) | None => self.workspace.read(path),
        }
    }

    fn list(&self, path: &WorkspacePath) -> Result<Vec<DirEntry>, workspace::WorkspaceError> {
        if self.at(path) == Some(&Content::Folder) {
            return Ok(Vec::new());
        }
        let mut entries = self.workspace.list(path)?;
        for entry in &mut entries {
            match self.at(&path.child(&entry.name)) {
                Some(Content::Outside) => entry.kind = EntryKind::Other,
                Some(Content::Folder) => entry.kind = EntryKind::Directory,
                _ => {}
            }
        }
        Ok(entries)
    }
}

fn denied() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "permission denied")
}

fn normalize(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            component => plain.push(component),
        }
    }
    plain
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod resolved_tests {
    use super::*;

    #[test]
    fn a_line_has_a_field_a_value_and_where_it_comes_from() {
        let parse = |line| ExpectedField::parse(line).map(|field| (field.field, field.value, field.from));
        let expected = |field: &str, value: Option<Value>, from: &[&str]| {
            Some((field.to_owned(), value, from.iter().map(|file| (*file).to_owned()).collect()))
        };
        assert_eq!(parse("a.b = 1 from A.md"), expected("a.b", Some(json!(1)), &["A.md"]));
        assert_eq!(parse("a = \"x from y\""), expected("a", Some(json!("x from y")), &[]));
        assert_eq!(
            parse("a[] = [1, 2] from A.md, B.md"),
            expected("a[]", Some(json!([1, 2])), &["A.md", "B.md"])
        );
        assert_eq!(parse("a absent"), expected("a", None, &[]));
        assert_eq!(parse("a = b from A.md"), None);
        assert_eq!(parse("a 1"), None);
    }
}
