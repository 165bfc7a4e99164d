//! The commands of trust: lists the side effects of a workspace or of named files, starting none of them, and records
//! or revokes the trust of a person.

use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use quorate_manifest::check::is_candidate;
use quorate_manifest::config::{Configuration, KeySource};
use quorate_manifest::doctype::Doctype;
use quorate_manifest::loader::{OpenResult, Refs};
use serde::Serialize;

use super::super::disk::{self, absolute, display_path};
use super::super::environment::Environment;
use super::super::error::Error;
use super::super::manifests::{Manifests, file_not_found};
use super::super::workspace::{self, PathOverrides, find_root};
use super::super::{convene, executor, runtime};
use super::requests::{Inventory, Trust, TrustRequest};
use super::{TrustRecord, TrustStore, canonical, file_hashes};

/// The side effects of the workspace around a directory. Refused files have none, since they are not used.
///
/// # Errors
/// If the directory cannot be read.
pub fn inventory_of_workspace(environment: &Environment, start: &Path) -> Result<Inventory, Error> {
    let root = find_root(environment, None, start);
    let files = disk::walk(&root).unwrap_or_default().into_iter().map(|found| found.path);
    inventory_of_files(
        environment,
        root.clone(),
        files
            .filter(|file| file.file_name().is_some_and(|name| is_candidate(&name.to_string_lossy())))
            .collect(),
    )
}

/// The side effects of these files of the workspace with this root.
///
/// # Errors
/// If the root cannot be read.
fn inventory_of_files(
    environment: &Environment,
    root: PathBuf,
    files: Vec<PathBuf>,
) -> Result<Inventory, Error> {
    // Nothing is started here, so no trust is needed.
    let environment = &Environment { trust: Trust::default().trusting_all(), ..environment.clone() };
    let configuration = configuration(environment, &root);
    let manifests = Manifests::open(environment, &root, Refs::Followed)?;
    let loader = manifests.loader(&*environment.registries);
    let mut needs = Vec::new();
    for file in files {
        if file == root.join("quorate.toml") {
            needs.extend(of_configuration(environment, &file, &configuration));
            continue;
        }
        let Ok(location) = manifests.location(&file) else { continue };
        let OpenResult::Document(document) = loader.open(&location) else {
            needs.extend(of_council(environment, &root, &file));
            continue;
        };
        match document.doctype {
            Doctype::Council => needs.extend(of_council(environment, &root, &file)),
            Doctype::Runtime => {
                let request =
                    runtime::RuntimeRequest { path: file, root: Some(root.clone()), ..Default::default() };
                if let Ok(runtime) = runtime::open(environment, &PathOverrides::default(), &request) {
                    needs.extend(runtime.trust_requests());
                }
            }
            Doctype::Assembly | Doctype::Operator => {
                let names = convene::spec::executor_names(&loader, &document);
                needs.extend(executor::of_names(
                    environment.registries.registry(),
                    &configuration,
                    &names,
                    &file,
                ));
            }
            _ => {}
        }
        loader.forget(&location);
    }
    Ok(Inventory::new(root, needs))
}

/// The configuration of a root; the default if it is refused.
fn configuration(environment: &Environment, root: &Path) -> Configuration {
    let path = root.join("quorate.toml");
    workspace::load_configuration(environment, &path).value.unwrap_or_default()
}

fn of_configuration(
    environment: &Environment,
    file: &Path,
    configuration: &Configuration,
) -> Vec<TrustRequest> {
    let mut acts = executor::acts_of_tables(environment.registries.registry(), configuration);
    acts.extend(executor::acts_of_servers(&configuration.dir, &executor::servers(configuration).all()));
    let embedder =
        executor::configured_embedder(environment.registries.registry(), configuration).ok().flatten();
    acts.extend(embedder.into_iter().flat_map(|embedder| embedder.needs().acts));
    if let Some((KeySource::Command(command), _)) = &configuration.keys.signing {
        acts.push(quorate_adapters::process::command_side_effect(command, &configuration.dir));
    }
    if let Some((command, _)) = &configuration.playbooks.scorer {
        acts.push(quorate_adapters::process::command_side_effect(command, &configuration.dir));
    }
    acts.extend(workspace::of_configuration(configuration));
    vec![TrustRequest { file: file.to_owned(), acts }]
}

fn of_council(environment: &Environment, root: &Path, file: &Path) -> Vec<TrustRequest> {
    let found = workspace::FoundFile { root, file };
    let loaded = workspace::load_council(environment, file, &display_path(environment, file), root, &found);
    let Some(council) = loaded.value else { return Vec::new() };
    let mut needs = executor::of_council(environment.registries.registry(), &council, file);
    let mut acts = workspace::of_council(&council, root);
    acts.extend(workspace::of_watch(&council, root));
    needs.push(TrustRequest { file: file.to_owned(), acts });
    needs
}

/// What happens to the trust in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustAction {
    /// The files were listed.
    Inspected,
    /// The files are trusted.
    Trusted,
    /// No file below the root is trusted.
    Revoked,
}

/// The files of a workspace that need trust, with their states after an action.
#[derive(Debug, Clone, Serialize)]
pub struct TrustReport {
    /// The root of the workspace.
    pub root: PathBuf,
    /// The hash over all files, which `QUORATE_TRUST` can name.
    pub hash: String,
    /// What the files would run or send.
    pub needs: Vec<TrustNeed>,
    /// The files.
    pub files: Vec<FileTrust>,
    /// What was done.
    #[serde(skip)]
    pub action: TrustAction,
}

/// What a file of a workspace would run or send.
#[derive(Debug, Clone, Serialize)]
pub struct TrustNeed {
    /// The file.
    pub file: PathBuf,
    /// Its path as shown to the user.
    #[serde(skip)]
    pub shown: String,
    /// Its commands, servers and other side effects, in words.
    pub acts: Vec<String>,
}

/// Whether a file is trusted.
#[derive(Debug, Clone, Serialize)]
pub struct FileTrust {
    /// The file, by its canonical path.
    pub file: PathBuf,
    /// Its path as shown to the user.
    #[serde(skip)]
    pub shown: String,
    /// SHA-256 of its bytes, in hex.
    pub sha256: String,
    /// Whether it is trusted with these bytes.
    pub trusted: bool,
}

/// A directory whose configuration counts, or no longer counts, although another user owns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum SafeDirectory {
    /// It counts from now on.
    #[serde(rename = "safe_directory")]
    Added(PathBuf),
    /// It no longer counts.
    #[serde(rename = "revoked_safe_directory")]
    Removed(PathBuf),
}

/// Inspects, trusts or revokes these files, or without any, the files of the workspace that need trust. Revoking covers
/// all files below the root.
///
/// # Errors
/// If a file does not exist, or the record of trust cannot be read or written.
pub fn decide(
    environment: &Environment,
    files: &[PathBuf],
    action: TrustAction,
) -> Result<TrustReport, Error> {
    let inventory = match files.is_empty() {
        true => inventory_of_workspace(environment, &environment.directory)?,
        false => inventory_of(environment, files)?,
    };
    match action {
        TrustAction::Trusted if !inventory.files.is_empty() => {
            required_store(environment)?.add(&inventory.files, environment.clock.now_ms())?;
        }
        TrustAction::Inspected | TrustAction::Trusted => {}
        TrustAction::Revoked => {
            let root = canonical(&inventory.root);
            required_store(environment)?.change(|trusted| {
                trusted
                    .files
                    .retain(|file, _| !file.starts_with(&root) && !inventory.files.contains_key(file));
            })?;
        }
    }
    let store = TrustStore::of(environment)?;
    let trusted = store.as_ref().map_or_else(|| Ok(TrustRecord::default()), TrustStore::read)?;
    let hash = inventory.hash();
    let need = |TrustRequest { file, acts }| TrustNeed {
        shown: display_path(environment, &file),
        file,
        acts: acts.into_iter().map(|act| act.what).collect(),
    };
    let file = |(file, sha256): (PathBuf, String)| FileTrust {
        shown: display_path(environment, &file),
        trusted: trusted.trusts(&file, &sha256),
        file,
        sha256,
    };
    Ok(TrustReport {
        root: inventory.root,
        hash,
        needs: inventory.requests.into_iter().map(need).collect(),
        files: inventory.files.into_iter().map(file).collect(),
        action,
    })
}

/// The inventory of files that a person names. It covers each of them, whether or not it has side effects now.
///
/// # Errors
/// If a file does not exist.
fn inventory_of(environment: &Environment, files: &[PathBuf]) -> Result<Inventory, Error> {
    let named: Vec<PathBuf> = files.iter().map(|file| absolute(&environment.directory, file)).collect();
    if let Some(at) = named.iter().position(|file| !file.is_file()) {
        return Err(file_not_found(&files[at].display().to_string()));
    }
    let start = named.first().and_then(|file| file.parent()).unwrap_or(&environment.directory);
    let mut found = inventory_of_files(environment, find_root(environment, None, start), named.clone())?;
    let named_requests =
        named.into_iter().map(|file| TrustRequest { file, acts: Vec::new() }).collect::<Vec<_>>();
    found.files.extend(file_hashes(&named_requests));
    Ok(found)
}

/// Allows a directory of another owner to configure Quorate.
///
/// # Errors
/// If the directory does not exist, or the record of trust cannot be read or written.
pub fn add_safe_directory(environment: &Environment, directory: &Path) -> Result<SafeDirectory, Error> {
    let path = absolute(&environment.directory, directory);
    let Some(path) = disk::canonical(&path).filter(|path| path.is_dir()) else {
        return Err(file_not_found(&directory.display().to_string()));
    };
    required_store(environment)?.change(|trusted| {
        trusted.safe_directories.insert(path.clone());
    })?;
    Ok(SafeDirectory::Added(path))
}

/// Revokes what [`add_safe_directory`] recorded. The directory need not exist any more.
///
/// # Errors
/// If it is not recorded, or the record of trust cannot be read or written.
pub fn remove_safe_directory(environment: &Environment, directory: &Path) -> Result<SafeDirectory, Error> {
    let path = disk::canonical_or_new(&absolute(&environment.directory, directory));
    let mut was_there = false;
    required_store(environment)?.change(|trusted| was_there = trusted.safe_directories.remove(&path))?;
    if was_there {
        return Ok(SafeDirectory::Removed(path));
    }
    let body = Body::new(format!("{} is not recorded as a safe directory", path.display()));
    let help = "pass the directory that was given to `--safe-directory`, not one below it";
    Err(Error::not_found(codes::FILE_UNREADABLE, body.help(help)))
}

fn required_store(environment: &Environment) -> Result<TrustStore, Error> {
    TrustStore::of(environment)?.ok_or_else(|| {
        let body = Body::new("cannot record trust: neither XDG_STATE_HOME nor HOME names a directory");
        let help = "set HOME, or use `--trust` or QUORATE_TRUST for each command";
        Error::configuration(codes::TRUST_UNREADABLE, body.help(help))
    })
}
