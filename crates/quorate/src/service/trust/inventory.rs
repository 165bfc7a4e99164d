//! The side effects that a workspace names: the executors, hooks, servers and addresses of every file below its root that
//! can name one. Starts none of them.

use std::path::{Path, PathBuf};

use quorate_manifest::check::is_candidate;
use quorate_manifest::config::{Configuration, KeySource};
use quorate_manifest::doctype::Doctype;
use quorate_manifest::loader::{OpenResult, Refs};

use super::super::disk;
use super::super::embedder;
use super::super::environment::Environment;
use super::super::error::ServiceError;
use super::super::executor;
use super::super::manifests::{Manifests, find_root};
use super::super::paths::display_path;
use super::super::workspace::{self, PathOverrides, boundary};
use super::super::{convene, runtime};
use super::consent::Trust;
use super::requests::{Inventory, TrustRequest};

/// The side effects of the workspace around a directory. Refused files have none, since they are not used.
///
/// # Errors
/// If the directory cannot be read.
pub fn of_workspace(environment: &Environment, start: &Path) -> Result<Inventory, ServiceError> {
    let root = find_root(environment, None, start);
    let files = disk::walk(&root).unwrap_or_default().into_iter().map(|found| found.path);
    of_files(
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
pub fn of_files(
    environment: &Environment,
    root: PathBuf,
    files: Vec<PathBuf>,
) -> Result<Inventory, ServiceError> {
    // Nothing is started here, so no trust is needed.
    let environment = &Environment { trust: Trust::default().trusting_all(), ..environment.clone() };
    let configuration = configuration(environment, &root);
    let manifests = Manifests::open(environment, &root, Refs::Followed)?;
    let loader = manifests.loader(&*environment.host);
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
                let request = runtime::Request { path: file, root: Some(root.clone()), ..Default::default() };
                if let Ok(runtime) =
                    runtime::open(environment, &PathOverrides::default(), &request, &environment.host)
                {
                    needs.extend(runtime.trust_requests());
                }
            }
            Doctype::Assembly | Doctype::Operator => {
                let names = convene::members::executor_names(&loader, &document);
                needs.extend(executor::trust_requests::of_names(
                    environment.host.registry(),
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
    let mut acts = executor::trust_requests::acts_of_tables(environment.host.registry(), configuration);
    acts.extend(executor::trust_requests::acts_of_servers(
        &configuration.dir,
        &executor::servers(configuration).all(),
    ));
    let embedder = embedder::configured(environment.host.registry(), configuration).ok().flatten();
    acts.extend(embedder.into_iter().flat_map(|embedder| embedder.needs().acts));
    if let Some((KeySource::Command(command), _)) = &configuration.keys.signing {
        acts.push(quorate_adapters::process::command_side_effect(command, &configuration.dir));
    }
    if let Some((command, _)) = &configuration.playbooks.scorer {
        acts.push(quorate_adapters::process::command_side_effect(command, &configuration.dir));
    }
    acts.extend(boundary::of_configuration(configuration));
    vec![TrustRequest { file: file.to_owned(), acts }]
}

fn of_council(environment: &Environment, root: &Path, file: &Path) -> Vec<TrustRequest> {
    let found = boundary::FoundFile { root, file };
    let loaded = workspace::load_council(environment, file, &display_path(environment, file), root, &found);
    let Some(council) = loaded.value else { return Vec::new() };
    let mut needs = executor::trust_requests::of_council(environment.host.registry(), &council, file);
    let mut acts = boundary::of_council(&council, root);
    acts.extend(boundary::of_watch(&council, root));
    needs.push(TrustRequest { file: file.to_owned(), acts });
    needs
}
