//! Builds executors: by a table of `quorate.toml`, a preset, an address, a kind, or a `runtime` of `council.yaml`. Which
//! member is asked through which executor (C11, Q1) is decided in `review/members.rs` and `convene/members.rs`.

pub mod findings;
pub mod model;
mod table;
pub mod trust_requests;

pub(super) use table::by_runtime;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::{Body, Place, RefusalCode, Report, codes};
use quorate_kernel::budget::{Caps, call_limit};
use quorate_kernel::member_config::MemberConfig;
use quorate_kernel::ports::executor::{
    About, CallLimit, ConfigError, Executor, Servers, Settings, SideEffect, Usage,
};
use quorate_kernel::registry::{ExecutorBuilder, Registry};
use quorate_manifest::config::Configuration;
use quorate_protocol::{Json, answers};
use serde_json::{Map, json};

use super::budget;
use super::error::{ExitClass, ServiceError};
use super::trust::{Permit, TrustRequest};

/// The party that named an executor.
#[derive(Debug, Clone, Copy)]
pub enum SelectedBy<'a> {
    /// A person, on the command line or through a client.
    Person,
    /// A file of the workspace.
    File(&'a Path),
}

/// A selected executor. It can be called once it is admitted.
#[derive(Clone)]
pub struct SelectedExecutor {
    pub name: Arc<str>,
    executor: Arc<dyn Executor>,
    /// The files that must be trusted before it is called.
    needs: Vec<TrustRequest>,
    /// The deadline of an invocation.
    pub timeout: Duration,
    /// The number of retries after failures.
    pub retries: u32,
    /// The settings that the fingerprint covers.
    pub settings: Json,
}

impl SelectedExecutor {
    /// An executor that was built with these settings; `recorded` holds those that the fingerprint covers.
    pub fn of(executor: Arc<dyn Executor>, settings: &Settings, origin: Origin<'_>, recorded: Json) -> Self {
        SelectedExecutor {
            name: settings.name.as_str().into(),
            needs: origin.needs(&*executor, settings),
            executor,
            timeout: settings.timeout,
            retries: settings.retries,
            settings: recorded,
        }
    }

    pub fn about(&self) -> About {
        self.executor.about()
    }

    /// The tools of a judge that uses it; `None` if unknown.
    pub fn tools(&self) -> Option<Vec<String>> {
        self.executor.tools()
    }

    /// The files that must be trusted before it is called.
    pub fn needs(&self) -> Vec<TrustRequest> {
        self.needs.clone()
    }

    pub fn executor(&self, _: Permit) -> Arc<dyn Executor> {
        Arc::clone(&self.executor)
    }

    /// Checks that the program it starts, the key that it sends, or the recordings that it replays are available.
    ///
    /// # Errors
    /// [`codes::COMMAND_MISSING`] with the way to install it, [`codes::MODEL_KEY_MISSING`] or [`codes::CASSETTE_INVALID`].
    pub fn ensure_installed(&self) -> Result<(), ServiceError> {
        installed(&self.name, &*self.executor)
    }

    /// Checks that it states the maximum cost of its calls if tokens or money are capped.
    ///
    /// # Errors
    /// [`codes::COST_UNKNOWN`].
    pub fn ensure_enforceable(&self, caps: &Caps) -> Result<(), ServiceError> {
        budget::ensure_holdable(caps, &self.name, &*self.executor)
    }

    /// The maximum cost of a call whose prompt has at most `prompt_tokens`; zero if no model is asked, `None` if unknown.
    pub fn call_limit(&self, prompt_tokens: u64, answer: answers::Schema) -> Option<CallLimit> {
        call_limit(&*self.executor, prompt_tokens, answer)
    }

    /// The price of a call with this usage, in billionths of a US dollar; `None` if unknown.
    pub fn price(&self, usage: &Usage) -> Option<u64> {
        self.executor.price(usage)
    }

    /// Its member config, without a role.
    pub fn into_member_config(self, admitted: Permit) -> MemberConfig {
        self.member_config(admitted)
    }

    /// Its member config for a runtime and its needs, which `Ready::swarm` has admitted before any call.
    pub(super) fn into_unadmitted_config(self) -> (MemberConfig, Vec<TrustRequest>) {
        let needs = self.needs();
        (self.member_config(Permit::DEFERRED), needs)
    }

    fn member_config(self, admitted: Permit) -> MemberConfig {
        MemberConfig {
            executor: self.executor(admitted),
            executor_name: self.name,
            timeout: self.timeout,
            retries: self.retries,
            role: "".into(),
            persona: None,
            context: Vec::new(),
            weight: None,
            extra_fields: Map::new(),
            conversation: None,
        }
    }
}

/// The MCP servers of a configuration, in the form that adapters read.
pub fn servers(host: &Configuration) -> Servers {
    let dir = std::path::absolute(&host.dir).unwrap_or_else(|_| host.dir.clone());
    let table = |block: &Map<String, Json>| {
        let mut table = block.clone();
        // The process may start in any directory, so paths are resolved against the file that names them.
        if let Some(command) = block.get("command").and_then(Json::as_str) {
            let cwd = block.get("cwd").and_then(Json::as_str).unwrap_or_default();
            table.insert("cwd".to_owned(), json!(dir.join(cwd)));
            if command.contains('/') {
                table.insert("command".to_owned(), json!(dir.join(command)));
            }
        }
        table
    };
    Servers::new(host.servers.iter().map(|(id, block)| (id.clone(), table(&block.json))).collect())
}

/// Refuses an executor whose program, key or recording is missing.
///
/// # Errors
/// [`codes::COMMAND_MISSING`], [`codes::MODEL_KEY_MISSING`] or [`codes::CASSETTE_INVALID`].
pub fn installed(name: &str, executor: &dyn Executor) -> Result<(), ServiceError> {
    executor.check_installed().map_err(|refused| {
        let body = Body::new(format!("executor `{name}`: {}", refused.message));
        let code = match refused.key.as_deref() {
            Some("key") => codes::MODEL_KEY_MISSING,
            Some("dir") => codes::CASSETTE_INVALID,
            _ => codes::COMMAND_MISSING,
        };
        ServiceError::configuration(code, with_help(body, refused.help))
    })
}

/// The default executor.
///
/// # Errors
/// If there is no such executor, or it refuses its settings.
pub fn fallback(registry: &Registry, host: &Configuration) -> Result<SelectedExecutor, ServiceError> {
    fallback_with(registry, host, Map::new())
}

/// As [`fallback`], with extra keys.
///
/// # Errors
/// If there is no such executor, or it refuses its settings.
pub fn fallback_with(
    registry: &Registry,
    host: &Configuration,
    extra: Map<String, Json>,
) -> Result<SelectedExecutor, ServiceError> {
    by_name_with(registry, host, registry.default_kind().unwrap_or_default(), None, SelectedBy::Person, extra)
}

/// Builds an executor by name: a table of `quorate.toml`, a preset, or a kind that needs no settings.
///
/// # Errors
/// If there is no such executor, or it refuses its settings.
pub fn by_name(
    registry: &Registry,
    host: &Configuration,
    name: &str,
    place: Option<&Place>,
    by: SelectedBy<'_>,
) -> Result<SelectedExecutor, ServiceError> {
    by_name_with(registry, host, name, place, by, Map::new())
}

/// As [`by_name`], with extra keys besides those of the table.
///
/// # Errors
/// If there is no such executor, or it refuses its settings.
pub fn by_name_with(
    registry: &Registry,
    host: &Configuration,
    name: &str,
    place: Option<&Place>,
    by: SelectedBy<'_>,
    extra: Map<String, Json>,
) -> Result<SelectedExecutor, ServiceError> {
    if let Some(table) = host.executors.get(name) {
        let mut table = table.clone();
        table.block.json.extend(extra);
        return table::by_table(registry, &table, name, host);
    }
    let servers_file = host.path();
    let (kind, mut block) = ready_made(registry, name);
    let Some(new) = registry.executor_kind(kind) else {
        let body = Body::new(format!("unknown executor `{name}`")).help(known_executors(registry, host));
        let body = match place {
            Some(place) => body.at(place.clone()),
            None => body,
        };
        return Err(ServiceError::configuration(codes::KIND_UNKNOWN, body));
    };
    block.extend(extra);
    let settings = Settings {
        name: name.to_owned(),
        timeout: Duration::ZERO,
        retries: 0,
        dir: host.dir.clone(),
        block,
        servers: servers(host),
        prices: budget::prices(host),
    };
    let file = match by {
        SelectedBy::Person => None,
        SelectedBy::File(file) => Some(file),
    };
    let origin = Origin { file, servers: &servers_file };
    let build = Build { new, kind: kind.to_owned(), settings, limits: (None, None), origin };
    build.finish(|refused| {
        let mut report = Report::new();
        report.refuse(codes::EXECUTOR_INVALID, with_help(Body::new(refused.message), refused.help));
        report
    })
}

/// The kind and the table of a name that no file configures: a preset, a preset with a model (`anthropic:claude-opus-4-8`),
/// an address with a model (`http://localhost:8080/v1#qwen3`), or a kind that needs no settings.
fn ready_made<'a>(registry: &'a Registry, name: &'a str) -> (&'a str, Map<String, Json>) {
    let table =
        |keys: &[(&str, &str)]| keys.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    if let Some(kind) = registry.preset_kind(name) {
        return (kind, table(&[("preset", name)]));
    }
    if let Some(kind) =
        registry.url_kind().filter(|_| name.starts_with("http://") || name.starts_with("https://"))
    {
        return match name.split_once('#') {
            Some((address, model)) => (kind, table(&[("base_url", address), ("model", model)])),
            None => (kind, table(&[("base_url", name)])),
        };
    }
    match name.split_once(':') {
        Some((preset, model)) => match registry.preset_kind(preset) {
            Some(kind) => (kind, table(&[("preset", preset), ("model", model)])),
            None => (name, Map::new()),
        },
        None => (name, Map::new()),
    }
}

/// The files that configure an executor.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The file that configures or names it; `None` if a person named a preset.
    pub file: Option<&'a Path>,
    /// The file that configures MCP servers.
    pub servers: &'a Path,
}

impl Origin<'_> {
    /// The side effects that must be trusted before an executor with these settings is called.
    pub fn needs(&self, executor: &dyn Executor, settings: &Settings) -> Vec<TrustRequest> {
        let own = self.file.map(|file| {
            let name = &settings.name;
            let named =
                |act: SideEffect| SideEffect { what: format!("{} (executor `{name}`)", act.what), ..act };
            TrustRequest {
                file: file.to_owned(),
                acts: executor.side_effects().into_iter().map(named).collect(),
            }
        });
        let servers = trust_requests::acts_of_servers(&settings.dir, &settings.servers.used());
        own.into_iter().chain([TrustRequest { file: self.servers.to_owned(), acts: servers }]).collect()
    }
}

struct Build<'a> {
    new: ExecutorBuilder,
    kind: String,
    settings: Settings,
    /// The timeout and the retries that a table sets; the executor has defaults for both.
    limits: (Option<Duration>, Option<u32>),
    origin: Origin<'a>,
}

impl Build<'_> {
    fn finish(
        mut self,
        refused: impl FnOnce(ConfigError) -> Report,
    ) -> Result<SelectedExecutor, ServiceError> {
        let executor = (self.new)(&self.settings)
            .map_err(|error| ServiceError::from_report(ExitClass::Configuration, refused(error)))?;
        let (timeout, retries) = self.limits;
        self.settings.timeout = timeout.unwrap_or_else(|| executor.default_timeout());
        self.settings.retries = retries.unwrap_or_else(|| executor.default_retries());
        // Deadline, retries and concurrency are left out: a resumed run with a longer deadline uses the same executor.
        let mut block = self.settings.block.clone();
        for limit in ["max_processes", "concurrency", "idle", "pool"] {
            block.remove(limit);
        }
        let settings = json!({
            "name": self.settings.name,
            "kind": self.kind,
            "block": block,
            "executor": executor.fingerprint(),
        });
        Ok(SelectedExecutor::of(executor, &self.settings, self.origin, settings))
    }
}

/// A refusal at a place of a file with this text.
pub(super) fn refuse_in(code: RefusalCode, body: Body, text: &Arc<str>) -> ServiceError {
    let mut report = Report::new();
    if let Some(place) = &body.place {
        report.add_source(place.file.clone(), text.clone());
    }
    report.refuse(code, body);
    ServiceError::from_report(ExitClass::Configuration, report)
}

/// Adds the adapter's help, if it has one.
pub(super) fn with_help(body: Body, help: Option<String>) -> Body {
    match help {
        Some(help) => body.help(help),
        None => body,
    }
}

fn known_executors(registry: &Registry, host: &Configuration) -> String {
    let mut names: Vec<String> = host.executors.keys().cloned().collect();
    names.extend(registry.presets().map(str::to_owned));
    names.extend(registry.default_kind().map(str::to_owned));
    format!("the executors are {}; add others as tables `[executors.<name>]` of quorate.toml", names.join(", "))
}
