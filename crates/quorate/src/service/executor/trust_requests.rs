//! The side effects of executors that files name, which must be trusted, whether or not a run uses them.

use std::path::Path;

use quorate_adapters::process;
use quorate_kernel::ports::executor::SideEffect;
use quorate_kernel::registry::Registry;
use quorate_manifest::config::Configuration;
use quorate_manifest::council::Council;
use quorate_protocol::Json;
use serde_json::Map;

use super::{SelectedBy, by_name, by_runtime};
use crate::service::trust::TrustRequest;

/// The side effects of connecting to servers.
pub fn acts_of_servers(dir: &Path, servers: &[(String, Map<String, Json>)]) -> Vec<SideEffect> {
    servers.iter().map(|(id, table)| process::server_side_effect(id, table, dir)).collect()
}

/// The side effects of the executors that a `quorate.toml` configures or names.
pub fn acts_of_tables(registry: &Registry, host: &Configuration) -> Vec<SideEffect> {
    let file = host.path();
    let tables = host.executors.keys().map(|name| (name, None));
    let chosen = host.named_executors().map(|(name, place)| (name, Some(place)));
    let built = tables
        .chain(chosen)
        .filter_map(|(name, place)| by_name(registry, host, name, place, SelectedBy::File(&file)).ok());
    built.flat_map(|chosen| chosen.needs()).flat_map(|need| need.acts).collect()
}

/// The side effects of a council's executors: the common one, and those of single members.
pub fn of_council(registry: &Registry, council: &Council, file: &Path) -> Vec<TrustRequest> {
    let built = council.runtimes().filter_map(|table| by_runtime(registry, table, &council.dir, file).ok());
    built.flat_map(|chosen| chosen.needs()).collect()
}

/// The side effects of executors that a manifest names.
pub fn of_names(
    registry: &Registry,
    host: &Configuration,
    names: &[String],
    manifest: &Path,
) -> Vec<TrustRequest> {
    let built =
        names.iter().filter_map(|name| by_name(registry, host, name, None, SelectedBy::File(manifest)).ok());
    built.flat_map(|chosen| chosen.needs()).collect()
}
