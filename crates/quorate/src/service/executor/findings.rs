//! Problems of a configuration's executors and MCP servers, used or not.

use quorate_adapters::process;
use quorate_diagnostics::{Place, codes};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::registry::Registry;
use quorate_manifest::config::{Configuration, ExecutorTable};
use quorate_manifest::council::Council;

use super::table::{Shared, by_runtime, by_table, refuse, settings, table_kind};
use super::{SelectedBy, by_name, with_help};
use crate::service::embedder;
use crate::service::error::ServiceError;

/// Builds every executor that a configuration or a council names, without calling any, and returns the errors, including
/// those of MCP server tables and the embedder.
pub fn build_errors(
    registry: &Registry,
    configuration: Option<&Configuration>,
    council: Option<&Council>,
) -> Vec<ServiceError> {
    let mut errors = Vec::new();
    if let Some(configuration) = configuration {
        let tables = configuration.executors.keys().map(|name| (name, None));
        let assemblies = configuration.assemblies.values();
        let named = assemblies.flat_map(|table| table.executor.iter().chain(table.members.values()));
        let playbooks = [&configuration.playbooks.judge, &configuration.playbooks.reflector];
        let named_executors = configuration.default_executor.iter().chain(playbooks.into_iter().flatten());
        let members = configuration.council_members.values().filter_map(|member| member.executor.as_ref());
        let named = named_executors.chain(members).chain(named).map(|(name, place)| (name, Some(place)));
        let build = |(name, place): (&String, Option<&Place>)| {
            by_name(registry, configuration, name, place, SelectedBy::Person)
        };
        errors.extend(tables.chain(named).map(build).filter_map(Result::err));
        errors.extend(server_errors(configuration));
        errors.extend(embedder::configured(registry, configuration).err());
    }
    if let Some(council) = council {
        let runtimes = council.runtimes();
        errors.extend(
            runtimes.filter_map(|table| by_runtime(registry, table, &council.dir, &council.dir).err()),
        );
    }
    errors
}

/// Misspellings in the executors and MCP servers of a `quorate.toml`: unknown keys, kinds or executor names, and invalid
/// `url`s. They are refused even if no run uses that executor or server; other errors of a table stop only runs that use
/// it.
pub fn typos(registry: &Registry, host: &Configuration) -> Vec<ServiceError> {
    let is_mistyped = |name: &str, table: &ExecutorTable| match table_kind(registry, table, name) {
        Ok((new, _)) => {
            let settings = settings(name, table, &host.dir, Shared::of(host));
            new(&settings).is_err_and(|refused| refused.is_unknown_key)
        }
        Err(_) => true,
    };
    let tables = host.executors.iter().filter(|(name, table)| is_mistyped(name, table));
    let tables = tables.filter_map(|(name, table)| by_table(registry, table, name, host).err());
    let is_unknown = |name: &str| {
        !host.executors.contains_key(name)
            && registry.preset_kind(name).is_none()
            && registry.executor_kind(name).is_none()
    };
    let named = host.named_executors().filter(|(name, _)| is_unknown(name));
    let named =
        named.filter_map(|(name, at)| by_name(registry, host, name, Some(at), SelectedBy::Person).err());
    let servers =
        server_errors_where(host, |refused| refused.is_unknown_key || refused.key.as_deref() == Some("url"));
    tables.chain(named).chain(servers).chain(embedder::typo(registry, host)).collect()
}

/// The tables of MCP servers that cannot be read.
pub fn server_errors(host: &Configuration) -> Vec<ServiceError> {
    server_errors_where(host, |_| true)
}

fn server_errors_where(host: &Configuration, matters: impl Fn(&ConfigError) -> bool) -> Vec<ServiceError> {
    let unread = host.servers.iter().filter_map(|(id, table)| {
        let refused = process::check_server(&table.json).err().filter(&matters)?;
        let message = format!("[mcp.{id}]: {}", refused.message);
        let body = with_help(table.body(refused.key.as_deref(), message), refused.help);
        Some(refuse(codes::HOST_INVALID, body, table))
    });
    unread.collect()
}
