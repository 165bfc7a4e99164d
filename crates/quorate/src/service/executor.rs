//! Which executor answers (C11): `--executor`, else the council's runtime, else `[defaults]`, else the rubric.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_adapters::default_registry;
use quorate_diagnostics::{Body, Place, RefusalCode, Report, codes};
use quorate_kernel::ports::executor::{Executor, Refused, Servers, Settings};
use quorate_kernel::registry::{Constructor, Registry};
use quorate_kernel::seat::Seat;
use quorate_manifest::council::Council;
use quorate_manifest::host::{Configuration, ExecutorTable};
use quorate_protocol::Json;
use serde_json::{Map, json};

use super::stop::{Class, Stop};
use super::workspace::Workspace;

/// The deadline of an invocation where nobody says another.
pub const TIMEOUT: Duration = Duration::from_secs(180);

/// An executor that was chosen.
#[derive(Clone)]
pub struct Chosen {
    /// The name that it goes by.
    pub name: Arc<str>,
    /// It.
    pub executor: Arc<dyn Executor>,
    /// The deadline of an invocation.
    pub timeout: Duration,
    /// How many failures are tried again.
    pub retries: u32,
    /// What the fingerprint is over.
    pub settings: Json,
}

impl Chosen {
    /// A seat for it, without a role.
    pub fn seat(self) -> Seat {
        Seat {
            executor: self.executor,
            executor_name: self.name,
            timeout: self.timeout,
            retries: self.retries,
            role: "".into(),
            persona: None,
            context: Vec::new(),
            weight: None,
            marks: Map::new(),
            speaking: None,
        }
    }
}

/// The MCP servers of a configuration, as adapters get them.
pub fn servers(host: &Configuration) -> Servers {
    let dir = std::path::absolute(&host.dir).unwrap_or_else(|_| host.dir.clone());
    let table = |block: &Map<String, Json>| {
        let mut table = block.clone();
        // Whoever starts it may be anywhere: paths are relative to the file that they stand in.
        if let Some(command) = block.get("command").and_then(Json::as_str) {
            let cwd = block.get("cwd").and_then(Json::as_str).unwrap_or_default();
            table.insert("cwd".to_owned(), json!(dir.join(cwd)));
            if command.contains('/') {
                table.insert("command".to_owned(), json!(dir.join(command)));
            }
        }
        table
    };
    Arc::new(host.servers.iter().map(|(id, block)| (id.clone(), table(&block.json))).collect())
}

/// All adapters that ship.
///
/// # Panics
/// When two of them claim one kind; a test of that crate rules it out.
pub fn registry() -> Registry {
    default_registry().expect("the shipped adapters have kinds of their own")
}

/// Chooses and builds.
///
/// # Errors
/// When the name or kind is unknown, or the adapter refuses its settings.
pub fn choose(workspace: &Workspace, named: Option<&str>, timeout: Option<Duration>) -> Result<Chosen, Stop> {
    let registry = registry();
    let host = &workspace.host;
    let mut chosen = match (named, &workspace.council.runtime, &host.default_executor) {
        (Some(name), ..) => by_name(&registry, host, name, None)?,
        (None, Some(table), _) => by_runtime(&registry, table, &workspace.council.dir)?,
        (None, None, Some((name, place))) => by_name(&registry, host, name, Some(place))?,
        (None, None, None) => by_name(&registry, host, registry.fallback_kind().unwrap_or_default(), None)?,
    };
    chosen.timeout = timeout.unwrap_or(chosen.timeout);
    Ok(chosen)
}

/// Builds every executor that a configuration or a council names, asking none, and says which cannot be had.
pub fn built(configuration: Option<&Configuration>, council: Option<&Council>) -> Vec<Stop> {
    let registry = registry();
    let mut stops = Vec::new();
    if let Some(configuration) = configuration {
        let default = configuration.default_executor.iter();
        let default = default.map(|(name, place)| by_name(&registry, configuration, name, Some(place)));
        let tables = configuration.executors.keys();
        let tables = tables.map(|name| by_name(&registry, configuration, name, None));
        let assemblies = configuration.assemblies.values();
        let named = assemblies.flat_map(|table| table.executor.iter().chain(table.members.values()));
        let named = named.map(|(name, place)| by_name(&registry, configuration, name, Some(place)));
        stops.extend(tables.chain(default).chain(named).filter_map(Result::err));
    }
    if let Some((council, table)) = council.and_then(|council| Some((council, council.runtime.as_ref()?))) {
        stops.extend(by_runtime(&registry, table, &council.dir).err());
    }
    stops
}

/// Builds the executor of a name: a table of `quorate.toml`, a ready-made one, or a kind that needs no settings.
///
/// # Errors
/// As [`choose`].
pub fn by_name(
    registry: &Registry,
    host: &Configuration,
    name: &str,
    place: Option<&Place>,
) -> Result<Chosen, Stop> {
    by_name_with(registry, host, name, place, Map::new())
}

/// As [`by_name`], with keys set beside those of the table.
///
/// # Errors
/// As [`choose`].
pub fn by_name_with(
    registry: &Registry,
    host: &Configuration,
    name: &str,
    place: Option<&Place>,
    extra: Map<String, Json>,
) -> Result<Chosen, Stop> {
    if let Some(table) = host.executors.get(name) {
        let mut table = table.clone();
        table.block.json.extend(extra);
        return by_table(registry, &table, name, host);
    }
    let (kind, mut block) = match registry.preset_kind(name) {
        Some(kind) => (kind, Map::from_iter([("preset".to_owned(), json!(name))])),
        None => (name, Map::new()),
    };
    let Some(new) = registry.executor_kind(kind) else {
        let body = Body::new(format!("there is no executor `{name}`")).help(known(registry, host));
        let body = match place {
            Some(place) => body.at(place.clone()),
            None => body,
        };
        return Err(Stop::configuration(codes::KIND_UNKNOWN, body));
    };
    block.extend(extra);
    let settings = Settings {
        name: name.to_owned(),
        timeout: TIMEOUT,
        retries: 0,
        dir: host.dir.clone(),
        block,
        servers: servers(host),
    };
    let build = Build { new, kind: kind.to_owned(), settings };
    build.finish(|refused| {
        let mut report = Report::new();
        report.refuse(codes::EXECUTOR_INVALID, help(Body::new(refused.message), refused.help));
        report
    })
}

fn by_table(
    registry: &Registry,
    table: &ExecutorTable,
    name: &str,
    host: &Configuration,
) -> Result<Chosen, Stop> {
    let block = &table.block.json;
    let preset = block.get("preset").and_then(Json::as_str).and_then(|preset| registry.preset_kind(preset));
    let implied = preset.or_else(|| registry.command_kind().filter(|_| block.contains_key("command")));
    let (kind, place) = match (&table.kind, implied) {
        (Some((kind, place)), _) => (kind.clone(), place.clone()),
        (None, Some(kind)) => (kind.to_owned(), table.block.place.clone()),
        (None, None) => {
            let known = registry.executor_kinds().collect::<Vec<_>>().join(", ");
            let body = table.block.say(None, format!("`[executors.{name}]` has no `kind`"));
            return Err(refuse(codes::HOST_INVALID, body.help(format!("the kinds are {known}")), table));
        }
    };
    let Some(new) = registry.executor_kind(&kind) else {
        let known = registry.executor_kinds().collect::<Vec<_>>().join(", ");
        let body = Body::new(format!("there is no executor kind `{kind}`"))
            .at(place)
            .help(format!("the kinds are {known}"));
        return Err(refuse(codes::KIND_UNKNOWN, body, table));
    };
    build(new, kind, name, table, (&host.dir, servers(host)), codes::EXECUTOR_INVALID)
}

fn by_runtime(registry: &Registry, table: &ExecutorTable, dir: &Path) -> Result<Chosen, Stop> {
    let Some((kind, place)) = &table.kind else {
        return Err(refuse(codes::COUNCIL_INVALID, table.block.say(None, "`runtime` has no `type`"), table));
    };
    let Some(new) = registry.runtime(kind) else {
        let known = registry.runtime_types().collect::<Vec<_>>().join(", ");
        let body = Body::new(format!("there is no runtime type `{kind}`")).at(place.clone());
        return Err(refuse(codes::KIND_UNKNOWN, body.help(format!("the types are {known}")), table));
    };
    build(new, kind.clone(), kind, table, (dir, Servers::default()), codes::RUNTIME_UNSUPPORTED)
}

fn build(
    new: Constructor,
    kind: String,
    name: &str,
    table: &ExecutorTable,
    (dir, servers): (&Path, Servers),
    code: RefusalCode,
) -> Result<Chosen, Stop> {
    let settings = Settings {
        name: name.to_owned(),
        timeout: table.timeout.unwrap_or(TIMEOUT),
        retries: table.retries.unwrap_or(0),
        dir: dir.to_owned(),
        block: table.block.json.clone(),
        servers,
    };
    Build { new, kind, settings }.finish(|refused| {
        let code = match refused.key.as_deref() {
            None | Some("type") => code,
            Some(_) => codes::EXECUTOR_INVALID,
        };
        let body = help(table.block.say(refused.key.as_deref(), refused.message), refused.help);
        *refuse(code, body, table).report
    })
}

struct Build {
    new: Constructor,
    kind: String,
    settings: Settings,
}

impl Build {
    fn finish(self, refused: impl FnOnce(Refused) -> Report) -> Result<Chosen, Stop> {
        let executor =
            (self.new)(&self.settings).map_err(|error| Stop::report(Class::Configuration, refused(error)))?;
        // Deadline, retries and the number of processes are left out: a resume with more time asks the same executor.
        let mut block = self.settings.block.clone();
        block.remove("max_processes");
        let settings = json!({
            "name": self.settings.name,
            "kind": self.kind,
            "block": block,
            "executor": executor.fingerprint(),
        });
        Ok(Chosen {
            name: self.settings.name.into(),
            executor,
            timeout: self.settings.timeout,
            retries: self.settings.retries,
            settings,
        })
    }
}

fn refuse(code: RefusalCode, body: Body, table: &ExecutorTable) -> Stop {
    let mut report = Report::new();
    report.source(table.block.place.file.clone(), table.block.source.clone());
    report.refuse(code, body);
    Stop::report(Class::Configuration, report)
}

/// Adds what to do, where something is said of it.
pub(super) fn help(body: Body, help: Option<String>) -> Body {
    match help {
        Some(help) => body.help(help),
        None => body,
    }
}

fn known(registry: &Registry, host: &Configuration) -> String {
    let mut names: Vec<String> = host.executors.keys().cloned().collect();
    names.extend(registry.presets().map(str::to_owned));
    names.extend(registry.fallback_kind().map(str::to_owned));
    format!("the executors are {}; others are tables `[executors.<name>]` of quorate.toml", names.join(", "))
}
