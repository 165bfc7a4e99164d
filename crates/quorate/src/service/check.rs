//! Check: reports every problem of manifests, given as files, directories, globs or standard input. Format: writes them in
//! canonical key order and spacing, with every comment kept.
//!
//! The modularity scan (C7) checks that no prompt that produces artifacts names the council that reviews them, so that
//! either can be removed. The agent that routes artifacts to the council is exempt; the caller names it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use globset::GlobBuilder;
use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_manifest::assembly::{Mode, ResolvedAssembly, Signing};
use quorate_manifest::check::{self, Deduplicator, Discovery, FileOutcome};
use quorate_manifest::doctype::{self, Doctype};
use quorate_manifest::document::{self, Syntax};
use quorate_manifest::format::{self as layout, Order, orders};
use quorate_manifest::loader::Refs;
use quorate_manifest::playbook::{FOLDER, HISTORY_SUFFIX};
use quorate_manifest::tree::{Problem, decode, yaml};
use quorate_manifest::workspace::{Scope, WorkspacePath};
use quorate_manifest::{config, frontmatter};
use quorate_protocol::assembly::{describe_operators, operator_ids};
use regex::Regex;

use super::artifact::MAX_BYTES;
use super::disk::{self, absolute, display_path};
use super::environment::Environment;
use super::error::{Error, ErrorKind};
use super::keys::WorkspaceKeys;
use super::manifests::{self, Manifests, file_not_found};
use super::trust::requests::Trust;
use super::workspace::{self, FoundFile, PathOverrides, find_root, load_council, search_start};
use super::{executor, review, runtime, signer};
use crate::playbook::inspect;
use crate::playbook::library::Library;

/// What to check.
#[derive(Debug, Clone, Default)]
pub struct CheckRequest {
    /// Files, directories or globs.
    pub paths: Vec<PathBuf>,
    /// A text to check as well, as a file named `-` in the workspace's root.
    pub text: Option<Vec<u8>>,
    /// The workspace's root; `None` searches for it.
    pub root: Option<PathBuf>,
    /// Whether to follow refs.
    pub refs: Refs,
}

impl CheckRequest {
    /// Checks these files, directories and globs.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> CheckRequest {
        CheckRequest { paths: paths.into_iter().map(Into::into).collect(), ..CheckRequest::default() }
    }
}

/// What a check found.
#[derive(Debug, Default)]
pub struct CheckOutcome {
    /// Manifests checked.
    pub files: usize,
    /// Files found that are not manifests.
    pub skipped: usize,
    /// Files that cannot be read.
    pub unreadable: usize,
    /// For each advisory assembly, the operators whose prompts its advice goes into.
    pub notes: Vec<String>,
    /// Refusals and warnings.
    pub report: Report,
}

impl CheckOutcome {
    /// Its numbers, on one line.
    pub fn summary(&self) -> String {
        let skipped = match self.skipped {
            0 => String::new(),
            skipped => format!(", {skipped} passed over"),
        };
        format!(
            "{} checked{skipped}: {}, {}",
            count_of(self.files, "file"),
            count_of(self.report.refusals.len(), "refusal"),
            count_of(self.report.warnings.len(), "warning")
        )
    }
}

fn count_of(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A workspace's root, and the files to check below it.
pub(super) struct WorkspaceFiles {
    pub(super) root: PathBuf,
    pub(super) files: BTreeMap<WorkspacePath, Discovery>,
}

/// Checks manifests.
///
/// # Errors
/// If a path does not exist or cannot be read, or a `quorate.toml` above is refused.
pub fn check(environment: &Environment, request: &CheckRequest) -> Result<CheckOutcome, Error> {
    let mut outcome = CheckOutcome::default();
    let mut deduplicator = Deduplicator::default();
    for work in collect_files(environment, &request.paths, request.root.as_deref())? {
        check_workspace(environment, request, &work, None, &mut outcome, &mut deduplicator)?;
    }
    if let Some(bytes) = request.text.clone() {
        let root = find_root(environment, request.root.as_deref(), &environment.directory);
        let work = WorkspaceFiles { root, files: BTreeMap::new() };
        check_workspace(environment, request, &work, Some(bytes), &mut outcome, &mut deduplicator)?;
    }
    Ok(outcome)
}

fn check_workspace(
    environment: &Environment,
    request: &CheckRequest,
    work: &WorkspaceFiles,
    stdin: Option<Vec<u8>>,
    outcome: &mut CheckOutcome,
    deduplicator: &mut Deduplicator,
) -> Result<(), Error> {
    let manifests = Manifests::open(environment, &work.root, request.refs)?;
    deduplicator.add(manifests.report.clone(), &mut outcome.report);
    let loader = manifests.loader(&*environment.registries);
    let locations: Vec<WorkspacePath> = work.files.keys().cloned().collect();
    check::register_planned(&loader, &locations);
    let mut take = |checked: FileOutcome, location: &WorkspacePath| -> Result<(), Error> {
        match checked {
            FileOutcome::Skipped => outcome.skipped += 1,
            FileOutcome::Missing => return Err(file_not_found(&loader.display_name(location))),
            FileOutcome::Unreadable(report) => {
                outcome.unreadable += 1;
                deduplicator.add(report, &mut outcome.report);
            }
            FileOutcome::Standalone(doctype) => {
                outcome.files += 1;
                let path = work.root.join(location.workspace_relative());
                let report = check_standalone(
                    environment,
                    doctype,
                    (&path, &loader.display_name(location)),
                    &work.root,
                );
                deduplicator.add(report, &mut outcome.report);
            }
            FileOutcome::Assembly(report, resolved) => {
                outcome.files += 1;
                deduplicator.add(report, &mut outcome.report);
                let Some(resolved) = resolved.filter(|_| request.refs == Refs::Followed) else {
                    return Ok(());
                };
                if resolved.mode == Mode::Advisory {
                    let advice = describe_operators(&operator_ids(&resolved));
                    outcome.notes.push(format!("{}: advice {advice}", loader.display_name(location)));
                }
                let path = work.root.join(location.workspace_relative());
                deduplicator.add(signing_warnings(environment, &path, &resolved), &mut outcome.report);
            }
            FileOutcome::Checked(doctype, report) => {
                outcome.files += 1;
                let runs = doctype == Doctype::Runtime && !report.has_refusals();
                deduplicator.add(report, &mut outcome.report);
                if runs && request.refs == Refs::Followed && work.files.contains_key(location) {
                    // Only the registry knows which kinds exist and what each reads.
                    let path = work.root.join(location.workspace_relative());
                    let report = runtime::inspect(environment, &path, &work.root);
                    deduplicator.add(report, &mut outcome.report);
                }
            }
        }
        Ok(())
    };
    for (location, named) in &work.files {
        let checked = check::check(&loader, location, *named);
        // Only assemblies are kept: many views share few parents. Other documents are read again.
        if !matches!(checked, FileOutcome::Assembly(..)) {
            loader.forget(location);
        }
        take(checked, location)?;
    }
    if let Some(bytes) = stdin {
        let location = WorkspacePath::new("-").map_err(|_| file_not_found("-"))?;
        take(check::check_bytes(&loader, &location, bytes), &location)?;
    }
    if request.refs == Refs::Followed {
        // If the playbooks' folder is gone, the ledger may still have playbooks for the operators.
        let has_playbooks = |location: &&WorkspacePath| {
            is_below(location, FOLDER)
                || is_below(location, "operators")
                    && !work.root.join(location.scope().folder()).join(FOLDER).is_dir()
        };
        let mut scopes: Vec<&Scope> =
            work.files.keys().filter(has_playbooks).map(WorkspacePath::scope).collect();
        scopes.dedup();
        for scope in scopes {
            let root = work.root.join(scope.folder());
            let library = Library::open(environment, &PathOverrides::default(), Some(&root))?;
            let is_checked = |location: &WorkspacePath| work.files.contains_key(location);
            deduplicator.add(inspect::findings(&library, &is_checked), &mut outcome.report);
        }
    }
    Ok(())
}

/// The problems that would keep `convene` from signing a run of the assembly at this path, in the workspace that it
/// would use.
fn signing_warnings(environment: &Environment, path: &Path, resolved: &ResolvedAssembly) -> Report {
    if resolved.audit.signing != Signing::Required {
        return Report::new();
    }
    let directory = path.parent().unwrap_or(path);
    // Problems of the configuration are reported at its own file.
    workspace::load(environment, &PathOverrides::default(), directory).map_or_else(
        |_| Report::new(),
        |workspace| signer::signing_warnings(&WorkspaceKeys::of(environment, &workspace), resolved),
    )
}

/// Whether a file is in a folder of its scope.
fn is_below(location: &WorkspacePath, folder: &str) -> bool {
    let folder = match location.scope() {
        Scope::Workspace => format!("{folder}/"),
        tenant => format!("{}/{folder}/", tenant.folder()),
    };
    location.workspace_relative().starts_with(&folder)
}

/// Checks the doctypes that are loaded by their path alone.
fn check_standalone(
    environment: &Environment,
    doctype: Doctype,
    (path, shown): (&Path, &str),
    root: &Path,
) -> Report {
    let named = (doctype == Doctype::Council).then(|| path.to_owned());
    let (mut report, council, configuration) = match doctype {
        Doctype::Config => {
            let found = FoundFile { root: path.parent().unwrap_or(root), file: path };
            let loaded = config::load(path, shown, &found);
            (loaded.report, None, loaded.value)
        }
        _ => {
            let found = FoundFile { root, file: path };
            let loaded = load_council(environment, path, shown, root, &found);
            (loaded.report, loaded.value, None)
        }
    };
    if let Some(place) = configuration.as_ref().and_then(|config| config.playbooks.judge_off.clone()) {
        let body = Body::new("no executor reads playbook proposals: only word lists guard the locked traits");
        let help = "remove `judge`, so that the default executor reads them, or name an executor";
        report.warn(codes::JUDGE_OFF, body.at(place).help(help));
    }
    // Only the registry knows whether an executor can be built.
    let built =
        executor::build_errors(environment.registries.registry(), configuration.as_ref(), council.as_ref());
    built.into_iter().for_each(|error| report.absorb(*error.report));
    if !report.has_refusals() {
        let written = path.parent().unwrap_or(root);
        let members = configuration.filter(|config| !config.council_members.is_empty());
        let members = members.and_then(|_| unknown_members(environment, written));
        workspace::check_files(environment, named, written)
            .into_iter()
            .chain(members)
            .for_each(|error| report.absorb(*error.report));
    }
    report
}

/// The refusal of a table for a member that is not in the council's file in this directory. Without such a file, the
/// council is in a directory further below, and a review makes the comparison.
fn unknown_members(environment: &Environment, directory: &Path) -> Option<Error> {
    // No member is asked, so no trust is needed.
    let environment = &Environment { trust: Trust::default().trusting_all(), ..environment.clone() };
    let workspace = workspace::load(environment, &PathOverrides::default(), directory).ok()?;
    workspace.council_path.as_ref()?;
    review::ensure_known_members(&workspace).err()
}

/// Collects the named files by workspace.
pub(super) fn collect_files(
    environment: &Environment,
    paths: &[PathBuf],
    root: Option<&Path>,
) -> Result<Vec<WorkspaceFiles>, Error> {
    let mut works: BTreeMap<PathBuf, BTreeMap<WorkspacePath, Discovery>> = BTreeMap::new();
    for path in paths {
        let named = absolute(&environment.directory, path);
        let (start, files) = match std::fs::metadata(&named) {
            Ok(metadata) if metadata.is_dir() => {
                let found = disk::walk(&named).map_err(|error| unreadable(path, &error))?;
                let candidates = found.into_iter().map(|entry| entry.path).filter(|path| is_candidate(path));
                (named.clone(), candidates.map(|path| (path, Discovery::Walked)).collect())
            }
            Ok(_) => (search_start(environment, &named), vec![(named.clone(), Discovery::Explicit)]),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let files = glob(environment, path)?;
                (search_start(environment, &named), files)
            }
            Err(error) => return Err(unreadable(path, &error)),
        };
        let root = find_root(environment, root, &start);
        let work = works.entry(root.clone()).or_default();
        for (file, named) in files {
            let location = manifests::workspace_location(&root, &file)?;
            let entry = work.entry(location).or_insert(named);
            if named == Discovery::Explicit {
                *entry = named;
            }
        }
    }
    Ok(works.into_iter().map(|(root, files)| WorkspaceFiles { root, files }).collect())
}

fn is_candidate(path: &Path) -> bool {
    path.file_name().is_some_and(|name| check::is_candidate(&name.to_string_lossy()))
}

/// The files that a glob matches.
fn glob(environment: &Environment, pattern: &Path) -> Result<Vec<(PathBuf, Discovery)>, Error> {
    let text = pattern.to_string_lossy();
    let is_special = |part: &str| part.contains(['*', '?', '[', '{']);
    if !is_special(&text) {
        return Err(file_not_found(&text));
    }
    let matcher = GlobBuilder::new(&text)
        .literal_separator(true)
        .build()
        .map_err(|error| Error::invalid_request(format!("`{text}` is not a glob: {}", error.kind())))?;
    let matcher = matcher.compile_matcher();
    let fixed: PathBuf =
        pattern.components().take_while(|part| !is_special(&part.as_os_str().to_string_lossy())).collect();
    let start = absolute(&environment.directory, &fixed);
    let found = disk::walk(&start).map_err(|_| file_not_found(&text))?;
    let files: Vec<_> = found
        .into_iter()
        .filter(|entry| {
            let below = entry.path.strip_prefix(&start).unwrap_or(&entry.path);
            matcher.is_match(fixed.join(below)) || matcher.is_match(&entry.path)
        })
        .map(|entry| (entry.path, Discovery::Explicit))
        .collect();
    if files.is_empty() { Err(file_not_found(&text)) } else { Ok(files) }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    let body = Body::new(format!("cannot read {}: {error}", path.display()));
    Error::configuration(codes::FILE_UNREADABLE, body)
}

/// What a scan for the council's name found.
#[derive(Debug)]
pub struct ScanOutcome {
    /// Scanned files with instructions for agents.
    pub files: usize,
    /// Files of exempt agents.
    pub exempt: usize,
    /// The places that name the council, as refusals.
    pub report: Report,
}

impl ScanOutcome {
    /// Its numbers, on one line.
    pub fn summary(&self) -> String {
        let exempt = match self.exempt {
            0 => String::new(),
            exempt => format!(", {exempt} exempt"),
        };
        let hits = count_of(self.report.refusals.len(), "reference");
        format!("{} scanned{exempt}, {hits}", count_of(self.files, "file"))
    }
}

/// Scans the prompts, operators, personas and playbooks of a directory, except those in a folder with the name of an
/// exempt agent.
///
/// # Errors
/// If the directory or a file cannot be read, an exempt agent has no file, or no file instructs an agent: such a scan
/// would prove nothing.
pub fn scan_modularity(dir: &Path, shown: &Path, exempt: &[String]) -> Result<ScanOutcome, Error> {
    let found = disk::walk(dir).map_err(|error| {
        let body = Body::new(format!("cannot read {}: {error}", shown.display()));
        match error.kind() {
            std::io::ErrorKind::NotFound => Error::not_found(codes::ARTIFACT_MISSING, body),
            _ => Error::configuration(codes::ARTIFACT_UNREADABLE, body),
        }
    })?;
    let mut scanned = ScanOutcome { files: 0, exempt: 0, report: Report::new() };
    let mut unseen: BTreeSet<&str> = exempt.iter().map(String::as_str).collect();
    let above = names_of(dir);
    for entry in found {
        let relative = entry.path.strip_prefix(dir).unwrap_or(&entry.path);
        // The directory may itself be `agents` or `playbooks`, or lie in one.
        let placed = above.join(relative);
        if !is_agent_prompt(&placed) {
            continue;
        }
        let folder = placed.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        if let Some(agent) = exempt.iter().find(|agent| **agent == folder) {
            unseen.remove(agent.as_str());
            scanned.exempt += 1;
            continue;
        }
        scanned.files += 1;
        let shown = if relative.as_os_str().is_empty() { shown.to_owned() } else { shown.join(relative) };
        let unreadable = |reason: String| {
            let body = Body::new(format!("cannot read {}: {reason}", shown.display()));
            Error::configuration(codes::ARTIFACT_UNREADABLE, body)
        };
        let bytes =
            disk::read_up_to(&entry.path, MAX_BYTES).map_err(|error| unreadable(error.to_string()))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(unreadable(format!("it has more than {MAX_BYTES} bytes")));
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let file = shown.display().to_string();
        // Agents see only the body of a playbook; of other files, they see everything but `metadata`.
        let hidden_span = match frontmatter::split(&text) {
            Ok(parts) if is_playbook(&placed) => 0..parts.body.start,
            Ok(parts) => metadata_span(&text[..parts.body.start]),
            Err(_) => 0..0,
        };
        for (hit, start) in council_mentions(&text).filter(|(_, start)| !hidden_span.contains(start)) {
            let span = start..start + hit.len();
            let place = Place { file: file.as_str().into(), span, path: String::new() };
            let body = Body::new(format!("a producer's prompt names its reviewers: `{hit}`"));
            scanned.report.refuse(
                codes::MODULARITY,
                body.at(place).help("move the words to the component that routes artifacts to the review"),
            );
        }
        scanned.report.add_source(file, text);
    }
    if let Some(agent) = unseen.first() {
        let body = Body::new(format!("the exempt agent `{agent}` has no file below {}", shown.display()));
        let help = "pass the name of the agent's folder, as in `agents/<name>/prompt.md`";
        return Err(Error::not_found(codes::ARTIFACT_MISSING, body.help(help)));
    }
    if scanned.files == 0 {
        let body = Body::new(format!("no file below {} instructs an agent", shown.display()));
        let help = "pass a directory with `agents/*/prompt.md`, OPERATOR.md, PERSONA.md or playbooks";
        return Err(Error::not_found(codes::ARTIFACT_MISSING, body.help(help)));
    }
    Ok(scanned)
}

/// The last names of a directory's path, as many as the path of an agent's prompt has.
fn names_of(dir: &Path) -> PathBuf {
    let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let names: Vec<_> = whole.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    names[names.len().saturating_sub(3)..].iter().collect()
}

/// The range of the metadata in a frontmatter: from its key to the next one.
fn metadata_span(frontmatter: &str) -> Range<usize> {
    let mut at = 0;
    let mut found: Option<Range<usize>> = None;
    for line in frontmatter.split_inclusive('\n') {
        let begins_a_key = !line.starts_with([' ', '\t', '\r', '\n', '#']);
        match &mut found {
            None if line.starts_with("metadata:") => found = Some(at..at + line.len()),
            Some(_) if begins_a_key => break,
            Some(range) => range.end = at + line.len(),
            None => {}
        }
        at += line.len();
    }
    found.unwrap_or(0..0)
}

/// The words that name the council, with their offsets. They are those of the public tool. The word `council` alone is
/// not a reference, since there are other councils.
pub fn council_mentions(text: &str) -> impl Iterator<Item = (&str, usize)> {
    static NAMES: LazyLock<Regex> = LazyLock::new(|| {
        let names = r"(?i)\b(agent[-_]council|council[-_]review)\b";
        Regex::new(names).expect("the pattern is valid")
    });
    NAMES.find_iter(text).map(|hit| (hit.as_str(), hit.start()))
}

/// Whether a file instructs an agent: `agents/*/prompt.md`, OPERATOR.md, PERSONA.md, and playbooks.
fn is_agent_prompt(relative: &Path) -> bool {
    let parts: Vec<_> = relative.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    let Some(name) = parts.last() else { return false };
    match &**name {
        "OPERATOR.md" | "PERSONA.md" => true,
        "prompt.md" => parts.len() >= 3 && parts[parts.len() - 3] == "agents",
        _ => is_playbook(relative),
    }
}

/// Whether a file is a playbook; no agent sees the other files of its folder.
fn is_playbook(relative: &Path) -> bool {
    let name = relative.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let lies_there = relative.iter().rev().skip(1).any(|part| part == FOLDER);
    lies_there && name.ends_with(".md") && !name.starts_with('_') && !name.ends_with(HISTORY_SUFFIX)
}

/// What to format.
#[derive(Debug, Clone, Default)]
pub struct FormatRequest {
    /// Files, directories or globs.
    pub paths: Vec<PathBuf>,
    /// Only list the files that would change.
    pub dry_run: bool,
}

/// What was formatted.
#[derive(Debug, Default)]
pub struct FormatOutcome {
    /// Manifests read.
    pub files: usize,
    /// Manifests that were, or would be, changed.
    pub changed: Vec<String>,
    /// Files that cannot be parsed as manifests.
    pub report: Report,
}

/// Formats files.
///
/// # Errors
/// If a path does not exist, or a file cannot be written.
pub fn format(environment: &Environment, request: FormatRequest) -> Result<FormatOutcome, Error> {
    let mut outcome = FormatOutcome::default();
    for work in collect_files(environment, &request.paths, None)? {
        for (location, named) in &work.files {
            let path = work.root.join(location.workspace_relative());
            format_file(environment, (&work.root, &path), *named, request.dry_run, &mut outcome)?;
        }
    }
    Ok(outcome)
}

fn format_file(
    environment: &Environment,
    (root, path): (&Path, &Path),
    named: Discovery,
    dry_run: bool,
    outcome: &mut FormatOutcome,
) -> Result<(), Error> {
    let file = display_path(environment, path);
    let limit = quorate_manifest::tree::MAX_BYTES as u64;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let bytes = match disk::read_up_to(path, limit) {
        Ok(bytes) => bytes,
        Err(_) if named == Discovery::Walked && doctype::from_name(&name).is_none() => return Ok(()),
        // An unreadable file does not stop the others.
        Err(error) => {
            let body = Body::new(format!("cannot read {file}: {error}"));
            let help = "check that it is a file, and that you may read it";
            outcome.report.refuse(codes::FILE_UNREADABLE, body.help(help));
            return Ok(());
        }
    };
    match format_bytes(&name, &file, bytes.clone()) {
        FormatResult::Text(text) => {
            outcome.files += 1;
            if text.as_bytes() == bytes {
                return Ok(());
            }
            if !dry_run {
                if !disk::is_inside(root, path) {
                    let why = "it is a link that leads out of the workspace";
                    let body = Body::new(format!("cannot write {file}: {why}"));
                    let help = "format the file itself, at its own path";
                    outcome.report.refuse(codes::PATH_OUTSIDE, body.help(help));
                    return Ok(());
                }
                disk::replace(path, text.as_bytes()).map_err(|error| {
                    let body = Body::new(format!("cannot write {file}: {error}"));
                    Error::configuration(codes::FILE_UNREADABLE, body)
                })?;
            }
            outcome.changed.push(file);
        }
        FormatResult::NotFormattable if named == Discovery::Walked => {}
        FormatResult::NotFormattable => {
            let body = Body::new(format!("cannot format {file}: its doctype has no formatter"));
            let help = "pass manifests; `fmt` does not change files such as quorate.toml";
            outcome.report.refuse(codes::DOCTYPE_UNKNOWN, body.help(help));
        }
        FormatResult::Broken(report) => outcome.report.absorb(report),
    }
    Ok(())
}

/// Formats one text.
///
/// # Errors
/// If it is not a manifest, or cannot be parsed.
pub fn format_text(bytes: Vec<u8>) -> Result<String, Error> {
    match format_bytes("-", "-", bytes) {
        FormatResult::Text(text) => Ok(text),
        FormatResult::NotFormattable => Err(Error::new(
            ErrorKind::Refused,
            codes::DOCTYPE_UNKNOWN,
            Body::new("the type of this text is unknown"),
        )),
        FormatResult::Broken(report) => Err(Error::from_report(ErrorKind::Refused, report)),
    }
}

enum FormatResult {
    Text(String),
    /// Not a manifest, or of a doctype that is not formatted.
    NotFormattable,
    /// A manifest that cannot be parsed.
    Broken(Report),
}

fn format_bytes(name: &str, shown: &str, bytes: Vec<u8>) -> FormatResult {
    // Only files that look like manifests can be refused; others are skipped.
    let unreadable = |bytes: Vec<u8>| match document::unreadable(name, shown, bytes) {
        Some((doctype, report)) if key_order(doctype).is_some() => FormatResult::Broken(report),
        _ => FormatResult::NotFormattable,
    };
    let Ok(text) = decode(bytes.clone()) else { return unreadable(bytes) };
    let mut syntax = Syntax::from_name(name);
    if name == "-" && frontmatter::split(&text).is_err() {
        syntax = Syntax::Yaml;
    }
    let (yaml_text, from) = match syntax {
        Syntax::Yaml => (text.as_str(), 0),
        Syntax::Frontmatter => match frontmatter::split(&text) {
            Ok(parts) => (&text[parts.yaml.clone()], parts.yaml.start),
            Err(_) => return unreadable(bytes),
        },
    };
    let (root, problems) = yaml::parse(yaml_text);
    let Some(doctype) = root.as_ref().and_then(|root| doctype::detect(name, root)) else {
        return unreadable(bytes);
    };
    if !problems.is_empty() {
        return FormatResult::broken(shown, &text, from, problems);
    }
    let Some(order) = key_order(doctype) else { return FormatResult::NotFormattable };
    let done = match syntax {
        Syntax::Yaml => layout::format(&text, order),
        Syntax::Frontmatter => layout::frontmatter(&text, order),
    };
    match done {
        Ok(text) => FormatResult::Text(text),
        Err(problems) => FormatResult::broken(shown, &text, 0, problems),
    }
}

impl FormatResult {
    /// With problems of the part of a text that begins at `from`.
    fn broken(shown: &str, text: &str, from: usize, problems: Vec<Problem>) -> Self {
        let mut report = Report::new();
        report.add_source(shown, text);
        let place = |span: Range<usize>| {
            let span = span.start + from..span.end + from;
            Place { file: shown.into(), span, path: String::new() }
        };
        for problem in problems {
            report.refuse(codes::SYNTAX, Problem { related: None, ..problem }.body(place));
        }
        FormatResult::Broken(report)
    }
}

fn key_order(doctype: Doctype) -> Option<&'static Order> {
    match doctype {
        Doctype::Assembly => Some(&orders::ASSEMBLY),
        Doctype::Persona => Some(&orders::PERSONA),
        Doctype::Playbook => Some(&orders::PLAYBOOK),
        Doctype::Runtime => Some(&orders::RUNTIME),
        Doctype::Operator => Some(&orders::OPERATOR),
        Doctype::Council => Some(&orders::COUNCIL),
        Doctype::Role | Doctype::Config => None,
    }
}
