//! What is wrong with the executors of a configuration, whether or not anybody asks them.

use quorate_diagnostics::Place;
use quorate_manifest::config::{Configuration, ExecutorTable};
use quorate_manifest::council::Council;

use super::{SelectedBy, by_name, by_runtime, by_table, registry, servers, settings, table_kind};
use crate::service::error::ServiceError;

/// Builds every executor that a configuration or a council names, asking none, and says which cannot be had.
pub fn build_errors(configuration: Option<&Configuration>, council: Option<&Council>) -> Vec<ServiceError> {
    let registry = registry();
    let mut stops = Vec::new();
    if let Some(configuration) = configuration {
        let tables = configuration.executors.keys().map(|name| (name, None));
        let assemblies = configuration.assemblies.values();
        let named = assemblies.flat_map(|table| table.executor.iter().chain(table.members.values()));
        let playbooks = [&configuration.playbooks.judge, &configuration.playbooks.reflector];
        let own = configuration.default_executor.iter().chain(playbooks.into_iter().flatten());
        let named = own.chain(named).map(|(name, place)| (name, Some(place)));
        let build = |(name, place): (&String, Option<&Place>)| {
            by_name(&registry, configuration, name, place, SelectedBy::Person)
        };
        stops.extend(tables.chain(named).map(build).filter_map(Result::err));
    }
    if let Some((council, table)) = council.and_then(|council| Some((council, council.runtime.as_ref()?))) {
        stops.extend(by_runtime(&registry, table, &council.dir, &council.dir).err());
    }
    stops
}

/// What is mistyped in the executors of a `quorate.toml`: a key or a kind that there is none of in a table, and a name that no
/// executor has. It is refused also where nobody asks that executor; what else is wrong with a table stops those who use it.
pub fn typos(host: &Configuration) -> Vec<ServiceError> {
    let registry = registry();
    let is_mistyped = |name: &str, table: &ExecutorTable| match table_kind(&registry, table, name) {
        Ok((new, _)) => {
            let settings = settings(name, table, &host.dir, servers(host));
            new(&settings).is_err_and(|refused| refused.is_unknown_key)
        }
        Err(_) => true,
    };
    let tables = host.executors.iter().filter(|(name, table)| is_mistyped(name, table));
    let tables = tables.filter_map(|(name, table)| by_table(&registry, table, name, host).err());
    let is_unknown = |name: &str| {
        !host.executors.contains_key(name)
            && registry.preset_kind(name).is_none()
            && registry.executor_kind(name).is_none()
    };
    let named = host.named_executors().filter(|(name, _)| is_unknown(name));
    let named =
        named.filter_map(|(name, at)| by_name(&registry, host, name, Some(at), SelectedBy::Person).err());
    tables.chain(named).collect()
}
