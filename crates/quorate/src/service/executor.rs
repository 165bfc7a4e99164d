//! Selects the executor (C11): `--executor`, else the council's runtime, else `[defaults]`, else the rubric.

pub mod findings;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_adapters::process;
use quorate_diagnostics::{Body, Place, RefusalCode, Report, codes};
use quorate_kernel::member_config::MemberConfig;
use quorate_kernel::ports::executor::{About, ConfigError, Executor, Servers, Settings, SideEffect};
use quorate_kernel::registry::{ExecutorBuilder, Registry};
use quorate_manifest::config::{Block, Configuration, ExecutorTable};
use quorate_manifest::council::Council;
use quorate_manifest::tree::reader::nearest;
use quorate_protocol::Json;
use serde_json::{Map, json};

use super::error::{ExitClass, ServiceError};
use super::trust::{Permit, TrustRequest};

/// Who named an executor.
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
    /// How many failures are retried.
    pub retries: u32,
    /// The settings that the fingerprint covers.
    pub settings: Json,
}

impl SelectedExecutor {
    /// An executor that was built with these settings; `recorded` is what the fingerprint covers.
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

    /// Checks that the program it starts, or the key that it sends, exists.
    ///
    /// # Errors
    /// [`codes::COMMAND_MISSING`] with the way to install it, or [`codes::MODEL_KEY_MISSING`].
    pub fn ensure_installed(&self) -> Result<(), ServiceError> {
        installed(&self.name, &*self.executor)
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
        // The process may start anywhere, so paths are resolved against their file.
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
    built.flat_map(|chosen| chosen.needs).flat_map(|need| need.acts).collect()
}

/// The side effects of a council's executor.
pub fn trust_requests_of_council(registry: &Registry, council: &Council, file: &Path) -> Vec<TrustRequest> {
    let built = council.runtime.as_ref().map(|table| by_runtime(registry, table, &council.dir, file));
    built.and_then(Result::ok).map(|chosen| chosen.needs).unwrap_or_default()
}

/// The side effects of executors that a manifest names.
pub fn trust_requests_of_names(
    registry: &Registry,
    host: &Configuration,
    names: &[String],
    manifest: &Path,
) -> Vec<TrustRequest> {
    let built =
        names.iter().filter_map(|name| by_name(registry, host, name, None, SelectedBy::File(manifest)).ok());
    built.flat_map(|chosen| chosen.needs).collect()
}

/// Builds an executor with the model that a person names.
///
/// # Errors
/// As `build`, and if the executor has no model.
pub fn with_model(
    model: Option<&str>,
    build: impl Fn(Map<String, Json>) -> Result<SelectedExecutor, ServiceError>,
) -> Result<SelectedExecutor, ServiceError> {
    let Some(model) = model else { return build(Map::new()) };
    let built = build(Map::from_iter([("model".to_owned(), json!(model))]));
    match built.is_err().then(|| build(Map::new())) {
        Some(Ok(without)) if !without.about().asks_a_model => {
            let body = Body::new(format!("cannot ask the model `{model}`: `{}` asks no model", without.name));
            let help = "name an executor that does: `--executor claude`, anthropic, openai, ollama, or a table of quorate.toml";
            Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body.help(help)))
        }
        _ => built,
    }
}

/// Refuses an executor whose program or key does not exist.
///
/// # Errors
/// [`codes::COMMAND_MISSING`] or [`codes::MODEL_KEY_MISSING`].
pub fn installed(name: &str, executor: &dyn Executor) -> Result<(), ServiceError> {
    executor.check_installed().map_err(|refused| {
        let body = Body::new(format!("executor `{name}`: {}", refused.message));
        let code = match refused.key.as_deref() {
            Some("key") => codes::MODEL_KEY_MISSING,
            _ => codes::COMMAND_MISSING,
        };
        ServiceError::configuration(code, with_help(body, refused.help))
    })
}

/// The executor if none is named.
///
/// # Errors
/// When there is no such executor, or it refuses its settings.
pub fn fallback(registry: &Registry, host: &Configuration) -> Result<SelectedExecutor, ServiceError> {
    fallback_with(registry, host, Map::new())
}

/// As [`fallback`], with extra keys.
///
/// # Errors
/// When there is no such executor, or it refuses its settings.
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
/// When there is no such executor, or it refuses its settings.
pub fn by_name(
    registry: &Registry,
    host: &Configuration,
    name: &str,
    place: Option<&Place>,
    by: SelectedBy<'_>,
) -> Result<SelectedExecutor, ServiceError> {
    by_name_with(registry, host, name, place, by, Map::new())
}

/// As [`by_name`], with keys added to those of the table.
///
/// # Errors
/// When there is no such executor, or it refuses its settings.
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
        return by_table(registry, &table, name, host);
    }
    let servers_file = host.path();
    let (kind, mut block) = ready_made(registry, name);
    let Some(new) = registry.executor_kind(kind) else {
        let body = Body::new(format!("there is no executor `{name}`")).help(known_executors(registry, host));
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

fn by_table(
    registry: &Registry,
    table: &ExecutorTable,
    name: &str,
    host: &Configuration,
) -> Result<SelectedExecutor, ServiceError> {
    let (new, kind) = table_kind(registry, table, name)?;
    let file = host.path();
    let origin = Origin { file: Some(&file), servers: &file };
    build((new, kind), name, table, (&host.dir, servers(host)), origin, codes::EXECUTOR_INVALID)
}

/// The kind of a table, which its preset or its command may imply.
fn table_kind(
    registry: &Registry,
    table: &ExecutorTable,
    name: &str,
) -> Result<(ExecutorBuilder, String), ServiceError> {
    let block = &table.block.json;
    // What starts a command is an `agent-cli`, also where its preset has the name of a service.
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
        let body = Body::new(format!("there is no executor kind `{kind}`"))
            .at(place)
            .help(format!("the kinds are {known}"));
        return Err(refuse(codes::KIND_UNKNOWN, body, &table.block));
    };
    Ok((new, kind))
}

pub(super) fn by_runtime(
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
        let body = Body::new(format!("there is no runtime type `{kind}`")).at(place.clone());
        return Err(refuse(codes::KIND_UNKNOWN, body.help(format!("the types are {known}")), &table.block));
    };
    let origin = Origin { file: Some(file), servers: file };
    let (new, name) = ((new, kind.clone()), kind);
    build(new, name, table, (dir, Servers::default()), origin, codes::RUNTIME_UNSUPPORTED)
}

fn build(
    (new, kind): (ExecutorBuilder, String),
    name: &str,
    table: &ExecutorTable,
    (dir, servers): (&Path, Servers),
    origin: Origin<'_>,
    code: RefusalCode,
) -> Result<SelectedExecutor, ServiceError> {
    let settings = settings(name, table, dir, servers);
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

/// The keys that every executor accepts.
const SHARED_KEYS: [&str; 2] = ["timeout", "retries"];

fn settings(name: &str, table: &ExecutorTable, dir: &Path, servers: Servers) -> Settings {
    Settings {
        name: name.to_owned(),
        timeout: table.timeout.unwrap_or_default(),
        retries: table.retries.unwrap_or(0),
        dir: dir.to_owned(),
        block: table.block.json.clone(),
        servers,
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
    /// What must be trusted before an executor with these settings is called.
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
        let servers = acts_of_servers(&settings.dir, &settings.servers.used());
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
        // Deadline, retries and concurrency are left out: a resume with more time calls the same executor.
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

fn refuse(code: RefusalCode, body: Body, block: &Block) -> ServiceError {
    let mut report = Report::new();
    report.add_source(block.place.file.clone(), block.source.clone());
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
    format!("the executors are {}; others are tables `[executors.<name>]` of quorate.toml", names.join(", "))
}
