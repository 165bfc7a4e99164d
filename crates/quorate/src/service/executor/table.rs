//! Builds the executor that a table configures: of `quorate.toml`, or a `runtime` of `council.yaml`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::{Body, RefusalCode, codes};
use quorate_kernel::ports::executor::{Servers, Settings};
use quorate_kernel::registry::{ExecutorBuilder, Registry, Source};
use quorate_manifest::config::{Block, Configuration, ExecutorTable};
use quorate_manifest::tree::reader::nearest;
use quorate_protocol::Json;
use serde_json::Map;

use super::{Build, Origin, SelectedBy, SelectedExecutor, by_name_with, refuse_in, servers, with_help};
use crate::service::budget;
use crate::service::error::ServiceError;

/// The keys that every executor accepts.
const SHARED_KEYS: [&str; 2] = ["timeout", "retries"];

/// Builds the executor of a table of `quorate.toml`.
pub(super) fn by_table(
    registry: &Registry,
    table: &ExecutorTable,
    name: &str,
    host: &Configuration,
) -> Result<SelectedExecutor, ServiceError> {
    let (new, kind) = table_kind(registry, table, name)?;
    let file = host.path();
    let origin = Origin { file: Some(&file), servers: &file };
    let place = (&*host.dir, Shared::of(host));
    let Some((wrap, named)) = registry.wrapper_kind(&kind).zip(table.block.json.get("source")) else {
        return build((new, kind), name, table, place, origin, codes::EXECUTOR_INVALID);
    };
    // The model is the source's.
    let mut table = table.clone();
    let model = table.block.json.remove_entry("model");
    let source = wrapped(registry, &table, named, host, model.into_iter().collect())?;
    let inner =
        Source { executor: Arc::clone(&source.executor), timeout: source.timeout, retries: source.retries };
    let new: ExecutorBuilder = Arc::new(move |settings| wrap(settings, Some(inner.clone())));
    let mut built = build((new, kind), name, &table, place, origin, codes::EXECUTOR_INVALID)?;
    built.needs.extend(source.needs);
    Ok(built)
}

/// The executor that a table's `source` names.
fn wrapped(
    registry: &Registry,
    table: &ExecutorTable,
    named: &Json,
    host: &Configuration,
    extra: Map<String, Json>,
) -> Result<SelectedExecutor, ServiceError> {
    let refuse_source = |message: String, help: &str| {
        refuse(codes::EXECUTOR_INVALID, table.block.body(Some("source"), message).help(help), &table.block)
    };
    let Some(source) = named.as_str() else {
        return Err(refuse_source("`source` must be a string".to_owned(), "name an executor"));
    };
    let kind = match host.executors.get(source) {
        Some(table) => table.kind.as_ref().map(|(kind, _)| kind.as_str()),
        None => Some(source),
    };
    if kind.is_some_and(|kind| registry.wrapper_kind(kind).is_some()) {
        let message = format!("`{source}` has a source of its own");
        return Err(refuse_source(message, "name an executor without a source"));
    }
    let place = table.block.place_of(Some("source"));
    by_name_with(registry, host, source, Some(&place), SelectedBy::File(&host.path()), extra)
}

/// The kind of a table, which its preset or its command may imply.
pub(super) fn table_kind(
    registry: &Registry,
    table: &ExecutorTable,
    name: &str,
) -> Result<(ExecutorBuilder, String), ServiceError> {
    let block = &table.block.json;
    // A table with a command is an `agent-cli`, even if its preset has the name of a service.
    let starts = ["command", "cli"].iter().any(|key| block.contains_key(*key));
    let preset = || registry.preset_kind(block.get("preset").and_then(Json::as_str)?);
    let implied = registry.command_kind().filter(|_| starts).or_else(preset);
    let (kind, place) = match (&table.kind, implied) {
        (Some((kind, place)), _) => (kind.clone(), place.clone()),
        (None, Some(kind)) => (kind.to_owned(), table.block.place.clone()),
        (None, None) => {
            let known = registry.executor_kinds().collect::<Vec<_>>().join(", ");
            let body = table.block.body(None, format!("`[executors.{name}]` has no `kind`"));
            let body = body.help(format!("the kinds are {known}"));
            return Err(refuse(codes::HOST_INVALID, body, &table.block));
        }
    };
    let Some(new) = registry.executor_kind(&kind) else {
        let known = registry.executor_kinds().collect::<Vec<_>>().join(", ");
        let body = Body::new(format!("unknown executor kind `{kind}`"))
            .at(place)
            .help(format!("the kinds are {known}"));
        return Err(refuse(codes::KIND_UNKNOWN, body, &table.block));
    };
    Ok((new, kind))
}

/// Builds the executor of a `runtime` of `council.yaml`.
pub(in crate::service) fn by_runtime(
    registry: &Registry,
    table: &ExecutorTable,
    dir: &Path,
    file: &Path,
) -> Result<SelectedExecutor, ServiceError> {
    let Some((kind, place)) = &table.kind else {
        let body = table.block.body(None, "`runtime` has no `type`");
        return Err(refuse(codes::COUNCIL_INVALID, body, &table.block));
    };
    let Some(new) = registry.runtime_type_builder(kind) else {
        let known = registry.runtime_types().collect::<Vec<_>>().join(", ");
        let body = Body::new(format!("unknown runtime type `{kind}`")).at(place.clone());
        return Err(refuse(codes::KIND_UNKNOWN, body.help(format!("the types are {known}")), &table.block));
    };
    let origin = Origin { file: Some(file), servers: file };
    let (new, name) = ((new, kind.clone()), kind);
    build(new, name, table, (dir, Shared::default()), origin, codes::RUNTIME_UNSUPPORTED)
}

fn build(
    (new, kind): (ExecutorBuilder, String),
    name: &str,
    table: &ExecutorTable,
    (dir, shared): (&Path, Shared),
    origin: Origin<'_>,
    code: RefusalCode,
) -> Result<SelectedExecutor, ServiceError> {
    let settings = settings(name, table, dir, shared);
    let limits = (table.timeout, table.retries);
    Build { new, kind, settings, limits, origin }.finish(|mut refused| {
        // The adapter does not know the common keys, so it cannot suggest them.
        let shared = refused.key.as_deref().filter(|_| refused.is_unknown_key);
        if let Some(near) = shared.and_then(|key| nearest(key, &SHARED_KEYS)) {
            refused.help = Some(format!("did you mean `{near}`?"));
        }
        let code = match refused.key.as_deref() {
            None | Some("type") => code,
            Some(_) => codes::EXECUTOR_INVALID,
        };
        let body = with_help(table.block.body(refused.key.as_deref(), refused.message), refused.help);
        *refuse(code, body, &table.block).report
    })
}

/// The settings of `quorate.toml` that executors read besides their own table.
#[derive(Default)]
pub(super) struct Shared {
    servers: Servers,
    prices: Option<PathBuf>,
}

impl Shared {
    pub(super) fn of(host: &Configuration) -> Self {
        Shared { servers: servers(host), prices: budget::prices(host) }
    }
}

pub(super) fn settings(name: &str, table: &ExecutorTable, dir: &Path, shared: Shared) -> Settings {
    Settings {
        name: name.to_owned(),
        timeout: table.timeout.unwrap_or_default(),
        retries: table.retries.unwrap_or(0),
        dir: dir.to_owned(),
        block: table.block.json.clone(),
        servers: shared.servers,
        prices: shared.prices,
    }
}

pub(super) fn refuse(code: RefusalCode, body: Body, block: &Block) -> ServiceError {
    refuse_in(code, body, &block.source)
}
