//! Check: reports every problem of manifests, given as files, directories, globs or standard input.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use globset::GlobBuilder;
use quorate_diagnostics::{Body, Report, codes};
use quorate_manifest::assembly::Signing;
use quorate_manifest::assembly::{Mode, Resolved};
use quorate_manifest::check::{self, Deduplicator, Discovery, FileOutcome};
use quorate_manifest::config;
use quorate_manifest::doctype::Doctype;
use quorate_manifest::loader::Refs;
use quorate_manifest::playbook::FOLDER;
use quorate_manifest::workspace::{Scope, WorkspacePath};
use quorate_protocol::assembly::{describe_operators, operator_ids};

use super::disk;
use super::environment::Environment;
use super::error::{ExitClass, ServiceError};
use super::executor;
use super::keys::Keys;
use super::manifests::{self, Manifests, file_not_found, find_root, search_start};
use super::paths::absolute;
use super::playbook::inspect;
use super::playbook::library::Library;
use super::review::members;
use super::runtime;
use super::signer;
use super::trust::Trust;
use super::workspace::boundary::FoundFile;
use super::workspace::{self, PathOverrides, load_council};

/// What to check.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Files, directories, globs, or `-`.
    pub paths: Vec<PathBuf>,
    /// The workspace's root; `None` searches for it.
    pub root: Option<PathBuf>,
    /// Whether to follow refs.
    pub refs: Refs,
}

#[derive(Debug, Default)]
pub struct Outcome {
    /// Manifests checked.
    pub files: usize,
    /// Files found that are not manifests.
    pub skipped: usize,
    /// Files that cannot be read.
    pub unreadable: usize,
    /// For each advisory assembly, the operators whose prompts its advice goes into.
    pub notes: Vec<String>,
    pub report: Report,
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
pub fn check(
    environment: &Environment,
    request: &Request,
    stdin: Option<Vec<u8>>,
) -> Result<Outcome, ServiceError> {
    let mut outcome = Outcome::default();
    let mut deduplicator = Deduplicator::default();
    for work in collect_files(environment, request)? {
        check_workspace(environment, request, &work, None, &mut outcome, &mut deduplicator)?;
    }
    if let Some(bytes) = stdin {
        let root = find_root(environment, request.root.as_deref(), &environment.directory);
        let work = WorkspaceFiles { root, files: BTreeMap::new() };
        check_workspace(environment, request, &work, Some(bytes), &mut outcome, &mut deduplicator)?;
    }
    Ok(outcome)
}

fn check_workspace(
    environment: &Environment,
    request: &Request,
    work: &WorkspaceFiles,
    stdin: Option<Vec<u8>>,
    outcome: &mut Outcome,
    deduplicator: &mut Deduplicator,
) -> Result<(), ServiceError> {
    let manifests = Manifests::open(environment, &work.root, request.refs)?;
    deduplicator.add(manifests.report.clone(), &mut outcome.report);
    let loader = manifests.loader(&*environment.host);
    let locations: Vec<WorkspacePath> = work.files.keys().cloned().collect();
    check::register_planned(&loader, &locations);
    let mut take = |checked: FileOutcome, location: &WorkspacePath| -> Result<(), ServiceError> {
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
                    let report = runtime::inspect(environment, &path, &work.root, &environment.host);
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
            let library =
                Library::open(environment, &PathOverrides::default(), Some(&root), &environment.host)?;
            let is_checked = |location: &WorkspacePath| work.files.contains_key(location);
            deduplicator.add(inspect::findings(environment, &library, &is_checked), &mut outcome.report);
        }
    }
    Ok(())
}

/// The problems that would keep `convene` from signing a run of the assembly at this path, in the workspace that it would use.
fn signing_warnings(environment: &Environment, path: &Path, resolved: &Resolved) -> Report {
    if resolved.audit.signing != Signing::Required {
        return Report::new();
    }
    let directory = path.parent().unwrap_or(path);
    // Problems of the configuration are reported at its own file.
    workspace::load(environment, &PathOverrides::default(), directory).map_or_else(
        |_| Report::new(),
        |workspace| signer::signing_warnings(&Keys::of(environment, &workspace), resolved),
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
    if let Some(place) = configuration.as_ref().and_then(|host| host.playbooks.judge_off.clone()) {
        let body = Body::new("no executor reads playbook proposals: only word lists guard the locked traits");
        let help = "remove `judge`, so that the default executor reads them, or name an executor";
        report.warn(codes::JUDGE_OFF, body.at(place).help(help));
    }
    // Only the registry knows whether an executor can be built.
    let built = executor::findings::build_errors(
        environment.host.registry(),
        configuration.as_ref(),
        council.as_ref(),
    );
    built.into_iter().for_each(|error| report.absorb(*error.report));
    if !report.has_refusals() {
        let written = path.parent().unwrap_or(root);
        let members = configuration.filter(|host| !host.council_members.is_empty());
        let members = members.and_then(|_| unknown_members(environment, written));
        workspace::check_files(environment, named, written)
            .into_iter()
            .chain(members)
            .for_each(|error| report.absorb(*error.report));
    }
    report
}

/// The refusal of a table for a member that is not in the council's file in this directory. Without such a file, the council
/// is in a directory further below, and a review makes the comparison.
fn unknown_members(environment: &Environment, directory: &Path) -> Option<ServiceError> {
    // No member is asked, so no trust is needed.
    let environment = &Environment { trust: Trust::default().trusting_all(), ..environment.clone() };
    let workspace = workspace::load(environment, &PathOverrides::default(), directory).ok()?;
    workspace.council_path.as_ref()?;
    members::ensure_known_members(&workspace).err()
}

/// Collects the named files by workspace.
pub(super) fn collect_files(
    environment: &Environment,
    request: &Request,
) -> Result<Vec<WorkspaceFiles>, ServiceError> {
    let mut works: BTreeMap<PathBuf, BTreeMap<WorkspacePath, Discovery>> = BTreeMap::new();
    for path in &request.paths {
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
        let root = find_root(environment, request.root.as_deref(), &start);
        let work = works.entry(root.clone()).or_default();
        for (file, named) in files {
            let location = manifests::location(&root, &file)?;
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
fn glob(environment: &Environment, pattern: &Path) -> Result<Vec<(PathBuf, Discovery)>, ServiceError> {
    let text = pattern.to_string_lossy();
    let is_special = |part: &str| part.contains(['*', '?', '[', '{']);
    if !is_special(&text) {
        return Err(file_not_found(&text));
    }
    let matcher = GlobBuilder::new(&text).literal_separator(true).build().map_err(|error| {
        ServiceError::new(
            ExitClass::Usage,
            codes::USAGE,
            Body::new(format!("`{text}` is not a glob: {}", error.kind())),
        )
    })?;
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

fn unreadable(path: &Path, error: &std::io::Error) -> ServiceError {
    ServiceError::configuration(
        codes::FILE_UNREADABLE,
        Body::new(format!("cannot read {}: {error}", path.display())),
    )
}
