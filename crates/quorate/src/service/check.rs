//! Check: everything that is wrong with manifests, of files, directories, globs or standard input, at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use globset::GlobBuilder;
use quorate_diagnostics::{Body, Report, codes};
use quorate_manifest::assembly::Mode;
use quorate_manifest::check::{self, Checked, Named, Once};
use quorate_manifest::doctype::Doctype;
use quorate_manifest::host;
use quorate_manifest::playbook::shelf::FOLDER;
use quorate_manifest::round::Refs;
use quorate_manifest::workspace::{Scope, Spot};
use quorate_protocol::assembly::{addressed, operators};

use super::disk::{self, Disk};
use super::environment::Environment;
use super::error::{ExitClass, ServiceError};
use super::executor;
use super::host::Host;
use super::manifests::{self, Manifests, file_not_found, find_root, search_start};
use super::playbook::inspect;
use super::playbook::library::Library;
use super::runtime;
use super::workspace::{PathOverrides, absolute, load_council};

/// What is to be checked.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Files, directories, globs, or `-`.
    pub paths: Vec<PathBuf>,
    /// The workspace's root, where it is not to be found by itself.
    pub root: Option<PathBuf>,
    /// Whether refs are followed.
    pub refs: Refs,
}

/// What was checked and what there is to say.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many manifests were checked.
    pub files: usize,
    /// How many files were found and are none.
    pub skipped: usize,
    /// How many files cannot be read at all.
    pub unreadable: usize,
    /// Whose prompts the advice of each advisory assembly goes into.
    pub notes: Vec<String>,
    /// Everything that is to be said.
    pub report: Report,
}

/// A workspace's root, and what is to be checked below it.
pub(super) struct WorkspaceFiles {
    pub(super) root: PathBuf,
    pub(super) files: BTreeMap<Spot, Named>,
}

/// Checks.
///
/// # Errors
/// When a path is not there or cannot be read, or a `quorate.toml` above is refused.
pub fn check(
    environment: &Environment,
    request: &Request,
    stdin: Option<Vec<u8>>,
) -> Result<Outcome, ServiceError> {
    let mut outcome = Outcome::default();
    let mut said = Once::default();
    for work in collect_files(environment, request)? {
        check_workspace(environment, request, &work, None, &mut outcome, &mut said)?;
    }
    if let Some(bytes) = stdin {
        let root = find_root(environment, request.root.as_deref(), &environment.directory);
        let work = WorkspaceFiles { root, files: BTreeMap::new() };
        check_workspace(environment, request, &work, Some(bytes), &mut outcome, &mut said)?;
    }
    Ok(outcome)
}

fn check_workspace(
    environment: &Environment,
    request: &Request,
    work: &WorkspaceFiles,
    stdin: Option<Vec<u8>>,
    outcome: &mut Outcome,
    said: &mut Once,
) -> Result<(), ServiceError> {
    let manifests = Manifests::open(environment, &work.root, request.refs)?;
    said.keep(manifests.report.clone(), &mut outcome.report);
    let host = Host::new();
    let round = manifests.loader(&host);
    let spots: Vec<Spot> = work.files.keys().cloned().collect();
    check::plan(&round, &spots);
    let mut take = |checked: Checked, spot: &Spot| -> Result<(), ServiceError> {
        match checked {
            Checked::PassedOver => outcome.skipped += 1,
            Checked::Missing => return Err(file_not_found(&round.shown(spot))),
            Checked::Unreadable(report) => {
                outcome.unreadable += 1;
                said.keep(report, &mut outcome.report);
            }
            Checked::Elsewhere(doctype) => {
                outcome.files += 1;
                let path = work.root.join(spot.in_workspace());
                let report = check_standalone(environment, doctype, (&path, &round.shown(spot)), &work.root);
                said.keep(report, &mut outcome.report);
            }
            Checked::Assembly(report, resolved) => {
                outcome.files += 1;
                said.keep(report, &mut outcome.report);
                let followed = request.refs == Refs::Followed;
                if let Some(resolved) = resolved.filter(|one| followed && one.mode == Mode::Advisory) {
                    let advice = addressed(&operators(&resolved));
                    outcome.notes.push(format!("{}: advice {advice}", round.shown(spot)));
                }
            }
            Checked::Said(doctype, report) => {
                outcome.files += 1;
                let runs = doctype == Doctype::Runtime && !report.refused();
                said.keep(report, &mut outcome.report);
                if runs && request.refs == Refs::Followed && work.files.contains_key(spot) {
                    // Which kinds there are, and what each reads, is known to the registry alone.
                    let path = work.root.join(spot.in_workspace());
                    let report = runtime::inspect(environment, &path, &work.root, &host);
                    said.keep(report, &mut outcome.report);
                }
            }
        }
        Ok(())
    };
    for (spot, named) in &work.files {
        let checked = check::check(&round, spot, *named);
        // Only assemblies are many views of few parents; whatever else is needed again is read again.
        if !matches!(checked, Checked::Assembly(..)) {
            round.forget(spot);
        }
        take(checked, spot)?;
    }
    if let Some(bytes) = stdin {
        let spot = Spot::new("-").map_err(|_| file_not_found("-"))?;
        take(check::check_bytes(&round, &spot, bytes), &spot)?;
    }
    if request.refs == Refs::Followed {
        let mut scopes: Vec<&Scope> =
            work.files.keys().filter(|spot| is_in_playbooks_folder(spot)).map(Spot::scope).collect();
        scopes.dedup();
        for scope in scopes {
            let root = work.root.join(scope.folder());
            let library = Library::open(environment, &PathOverrides::default(), Some(&root), &host)?;
            let asked = |spot: &Spot| work.files.contains_key(spot);
            said.keep(inspect::findings(environment, &library, &asked), &mut outcome.report);
        }
    }
    Ok(())
}

/// Whether a file lies among the playbooks of its scope.
fn is_in_playbooks_folder(spot: &Spot) -> bool {
    let below = spot.in_workspace();
    let folder = match spot.scope() {
        Scope::Workspace => format!("{FOLDER}/"),
        tenant => format!("{}/{FOLDER}/", tenant.folder()),
    };
    below.starts_with(&folder)
}

/// The doctypes that are loaded by their path alone.
fn check_standalone(
    environment: &Environment,
    doctype: Doctype,
    (path, shown): (&Path, &str),
    root: &Path,
) -> Report {
    let (mut report, council, configuration) = match doctype {
        Doctype::Host => {
            let loaded = host::load(path, shown, &Disk);
            (loaded.report, None, loaded.value)
        }
        _ => {
            let loaded = load_council(environment, path, shown, root);
            (loaded.report, loaded.value, None)
        }
    };
    // Whether an executor can be had is known to the registry alone.
    let built = executor::build_errors(configuration.as_ref(), council.as_ref());
    built.into_iter().for_each(|stop| report.absorb(*stop.report));
    report
}

/// Every path that was named, sorted into workspaces.
pub(super) fn collect_files(
    environment: &Environment,
    request: &Request,
) -> Result<Vec<WorkspaceFiles>, ServiceError> {
    let mut works: BTreeMap<PathBuf, BTreeMap<Spot, Named>> = BTreeMap::new();
    for path in &request.paths {
        let named = absolute(&environment.directory, path);
        let (start, files) = match std::fs::metadata(&named) {
            Ok(metadata) if metadata.is_dir() => {
                let found = disk::walk(&named).map_err(|error| unreadable(path, &error))?;
                let candidates = found.into_iter().map(|one| one.path).filter(|path| is_candidate(path));
                (named.clone(), candidates.map(|path| (path, Named::ByDirectory)).collect())
            }
            Ok(_) => (search_start(environment, &named), vec![(named.clone(), Named::Explicitly)]),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let files = glob(environment, path)?;
                (search_start(environment, &named), files)
            }
            Err(error) => return Err(unreadable(path, &error)),
        };
        let root = find_root(environment, request.root.as_deref(), &start);
        let work = works.entry(root.clone()).or_default();
        for (file, named) in files {
            let spot = manifests::spot(&root, &file)?;
            let entry = work.entry(spot).or_insert(named);
            if named == Named::Explicitly {
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
fn glob(environment: &Environment, pattern: &Path) -> Result<Vec<(PathBuf, Named)>, ServiceError> {
    let text = pattern.to_string_lossy();
    let special = |part: &str| part.contains(['*', '?', '[', '{']);
    if !special(&text) {
        return Err(file_not_found(&text));
    }
    let matcher = GlobBuilder::new(&text).literal_separator(true).build().map_err(|error| {
        ServiceError::new(
            ExitClass::Usage,
            codes::USAGE,
            Body::new(format!("`{text}` is no glob: {}", error.kind())),
        )
    })?;
    let matcher = matcher.compile_matcher();
    let fixed: PathBuf =
        pattern.components().take_while(|part| !special(&part.as_os_str().to_string_lossy())).collect();
    let start = absolute(&environment.directory, &fixed);
    let found = disk::walk(&start).map_err(|_| file_not_found(&text))?;
    let files: Vec<_> = found
        .into_iter()
        .filter(|one| {
            let below = one.path.strip_prefix(&start).unwrap_or(&one.path);
            matcher.is_match(fixed.join(below)) || matcher.is_match(&one.path)
        })
        .map(|one| (one.path, Named::Explicitly))
        .collect();
    if files.is_empty() { Err(file_not_found(&text)) } else { Ok(files) }
}

fn unreadable(path: &Path, error: &std::io::Error) -> ServiceError {
    ServiceError::configuration(
        codes::FILE_UNREADABLE,
        Body::new(format!("cannot read {}: {error}", path.display())),
    )
}
