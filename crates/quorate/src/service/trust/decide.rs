//! Lists the side effects of a workspace or of named files, starting none of them.

use std::path::{Path, PathBuf};

use quorate_kernel::files::Resolver;
use quorate_manifest::check::is_candidate;
use quorate_manifest::config::{Configuration, KeySource};
use quorate_manifest::doctype::Doctype;
use quorate_manifest::loader::{OpenResult, Refs};

use super::super::disk::{self, absolute, display_path};
use super::super::environment::Environment;
use super::super::error::Error;
use super::super::executor::Executors;
use super::super::manifests::{Manifests, file_not_found};
use super::super::workspace::{self, PathOverrides, find_root};
use super::super::{convene, executor, runtime};
use super::file_hashes;
use super::requests::{Inventory, Trust, TrustRequest};

/// The side effects of the workspace around a directory. Refused files have none, since they are not used.
///
/// # Errors
/// If the directory cannot be read.
pub(crate) fn inventory_of_workspace(environment: &Environment, start: &Path) -> Result<Inventory, Error> {
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
                needs.extend(executors(environment, &configuration).of_names(&names, &file));
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

fn executors<'a>(environment: &'a Environment, config: &'a Configuration) -> Executors<'a> {
    Executors { registry: environment.registries.registry(), config }
}

fn of_configuration(
    environment: &Environment,
    file: &Path,
    configuration: &Configuration,
) -> Vec<TrustRequest> {
    let executors = executors(environment, configuration);
    let mut acts = executors.acts_of_tables();
    acts.extend(executor::acts_of_servers(&configuration.dir, &executor::servers(configuration).all()));
    let needs = executors.configured_meaning().ok().flatten().map(|meaning| meaning.needs());
    acts.extend(needs.into_iter().flatten().flat_map(|need| need.acts));
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
    let config = configuration(environment, root);
    let mut needs = executors(environment, &config).of_council(&council, file);
    let mut acts = workspace::of_council(&council, root, &Resolver::default());
    acts.extend(workspace::of_watch(&council, root));
    needs.push(TrustRequest { file: file.to_owned(), acts });
    needs
}

/// The inventory of files that a person names. It covers each of them, whether or not it has side effects now.
///
/// # Errors
/// If a file does not exist.
pub(crate) fn inventory_of(environment: &Environment, files: &[PathBuf]) -> Result<Inventory, Error> {
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
