//! Builds executors and the embedder: by a table of `quorate.toml`, a preset, an address, a kind, or a `runtime` of
//! `council.yaml`. `review.rs` and `convene/spec.rs` decide which member is asked through which executor: that of the
//! most specific setting (C11, Q1). A `fallback` adds executors that stand in when a service fails.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorate_adapters::process;
use quorate_diagnostics::{Body, Place, RefusalCode, Report, codes};
use quorate_kernel::attempts::{MemberConfig, StandIn};
use quorate_kernel::budget::{Caps, call_limit};
use quorate_kernel::meaning::{Meaning, MeaningQuestion};
use quorate_kernel::ports::executor::{
    About, CallLimit, ConfigError, Executor, Servers, Settings, SideEffect, Usage,
};
use quorate_kernel::ports::extension::Embedder;
use quorate_kernel::registry::{ExecutorBuilder, Registry, Source};
use quorate_manifest::config::{
    Block, Configuration, EmbedderTable, ExecutorTable, Fallback, MeaningTable, MemberSettings,
};
use quorate_manifest::council::Council;
use quorate_manifest::money::Money;
use quorate_manifest::tree::reader::nearest;
use quorate_protocol::{Json, answers};
use serde_json::{Map, json};

use super::budget;
use super::error::{Error, ErrorKind};
use super::trust::Permit;
use super::trust::requests::TrustRequest;
use super::wrong_guess;

/// The party that named an executor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SelectedBy<'a> {
    /// A person, on the command line or through a client.
    Person,
    /// A file of the workspace.
    File(&'a Path),
}

/// An executor's name, its place if a file has it, and the party that named it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedExecutor<'a> {
    pub name: &'a str,
    pub place: Option<&'a Place>,
    pub by: SelectedBy<'a>,
}

impl<'a> NamedExecutor<'a> {
    /// The executor of `--executor`.
    pub(crate) fn by_person(name: &'a str) -> Self {
        NamedExecutor { name, place: None, by: SelectedBy::Person }
    }

    /// An executor that a file names.
    pub(crate) fn by_file((name, place): &'a (String, Place), file: &'a Path) -> Self {
        NamedExecutor { name, place: Some(place), by: SelectedBy::File(file) }
    }
}

/// A selected executor. It can be called once it is admitted.
#[derive(Clone)]
pub(crate) struct SelectedExecutor {
    pub name: Arc<str>,
    executor: Arc<dyn Executor>,
    /// The files that must be trusted before it is called.
    needs: Vec<TrustRequest>,
    /// The deadline of an invocation.
    pub timeout: Duration,
    /// The number of retries after failures.
    pub retries: u32,
    /// How many times the member of a council or an assembly is asked for each answer.
    pub samples: u32,
    /// Its own settings, without those of its stand-ins.
    pub settings: Json,
    /// The executors that stand in for it, in the order in which they are asked. They have no stand-ins themselves.
    pub stand_ins: Vec<SelectedExecutor>,
}

impl SelectedExecutor {
    /// The same executor with the stand-ins that a list names, in place of those that it has. The stand-ins' own lists are
    /// not followed.
    ///
    /// # Errors
    /// If the list names the executor itself or one that is unknown or refuses its settings.
    pub(crate) fn with_fallback(
        mut self,
        list: &Fallback,
        from: Executors<'_>,
        by: SelectedBy<'_>,
    ) -> Result<Self, Error> {
        self.stand_ins.clear();
        for (name, place) in list {
            if **name == *self.name {
                let body = Body::new(format!("`{name}` cannot stand in for itself")).at(place.clone());
                return Err(name_another(body));
            }
            let named = NamedExecutor { name, place: Some(place), by };
            self.stand_ins.push(from.alone(named, Map::new())?);
        }
        Ok(self)
    }

    /// Sets the deadline that a person named, which holds for each stand-in as well.
    pub(crate) fn limit_time(&mut self, timeout: Option<Duration>) {
        let all =
            std::iter::once(&mut self.timeout).chain(self.stand_ins.iter_mut().map(|one| &mut one.timeout));
        all.for_each(|limit| *limit = timeout.unwrap_or(*limit));
    }

    /// The settings that the fingerprint covers: its own, the number of samples, and those of its stand-ins.
    pub(crate) fn recorded_settings(&self) -> Json {
        let mut settings = self.settings.clone();
        if let (false, Some(settings)) = (self.stand_ins.is_empty(), settings.as_object_mut()) {
            let stand_ins = self.stand_ins.iter().map(|stand_in| stand_in.settings.clone()).collect();
            settings.insert("fallback".to_owned(), stand_ins);
        }
        if let (true, Some(settings)) = (self.samples > 1, settings.as_object_mut()) {
            settings.insert(SAMPLES.to_owned(), self.samples.into());
        }
        settings
    }

    /// Itself and its stand-ins.
    pub(crate) fn all(&self) -> impl Iterator<Item = &SelectedExecutor> {
        std::iter::once(self).chain(&self.stand_ins)
    }

    /// Checks that it and its stand-ins may answer in a form.
    ///
    /// # Errors
    /// [`codes::EXECUTOR_INVALID`].
    pub(crate) fn ensure_answers(&self, answer: answers::Schema) -> Result<(), Error> {
        let refused = self.all().find_map(|one| Some((&one.name, one.executor.refuses(answer)?)));
        refused.map_or(Ok(()), |(name, why)| {
            Err(name_another(Body::new(format!("`{name}` cannot be asked this: {why}"))))
        })
    }

    pub(crate) fn about(&self) -> About {
        self.executor.about()
    }

    /// The tools of a judge that uses it; `None` if unknown.
    pub(crate) fn tools(&self) -> Option<Vec<String>> {
        self.executor.tools()
    }

    /// The files that must be trusted before it or a stand-in is called.
    pub(crate) fn needs(&self) -> Vec<TrustRequest> {
        self.all().flat_map(|one| &one.needs).cloned().collect()
    }

    pub(crate) fn executor(&self, _: Permit) -> Arc<dyn Executor> {
        Arc::clone(&self.executor)
    }

    /// Checks that the program it starts, the key that it sends, or the recordings that it replays are available. With
    /// stand-ins it is enough that one of them has its program and key.
    ///
    /// # Errors
    /// [`codes::COMMAND_MISSING`] with the way to install it, [`codes::MODEL_KEY_MISSING`] or
    /// [`codes::CASSETTE_INVALID`].
    pub(crate) fn ensure_installed(&self) -> Result<(), Error> {
        let replays = self.executor.recordings().is_some();
        let can_stand_in = |one: &SelectedExecutor| installed(&one.name, &*one.executor).is_ok();
        match installed(&self.name, &*self.executor) {
            Err(_) if !replays && self.stand_ins.iter().any(can_stand_in) => Ok(()),
            checked => checked,
        }
    }

    /// Checks that it and its stand-ins state the maximum cost of their calls if tokens or money are capped.
    ///
    /// # Errors
    /// [`codes::COST_UNKNOWN`].
    pub(crate) fn ensure_enforceable(&self, caps: &Caps) -> Result<(), Error> {
        self.all().try_for_each(|one| budget::ensure_holdable(caps, &one.name, &*one.executor))
    }

    /// The maximum cost of a call whose prompt has at most `prompt_tokens`; zero if no model is asked, `None` if
    /// unknown.
    pub(crate) fn call_limit(&self, prompt_tokens: u64, answer: answers::Schema) -> Option<CallLimit> {
        call_limit(&*self.executor, prompt_tokens, answer)
    }

    /// The price of a call with this usage, in billionths of a US dollar; `None` if unknown.
    pub(crate) fn price(&self, usage: &Usage) -> Option<Money> {
        self.executor.price(usage)
    }

    /// Its member config for a runtime and its needs, which `Ready::swarm` has admitted before any call.
    pub(super) fn into_unadmitted_config(self) -> (MemberConfig, Vec<TrustRequest>) {
        let needs = self.needs();
        (self.into_member_config(Permit::DEFERRED), needs)
    }

    /// Its member config, without a role.
    pub(crate) fn into_member_config(self, admitted: Permit) -> MemberConfig {
        let stand_in = |stand_in: &SelectedExecutor| StandIn {
            executor: Arc::clone(&stand_in.executor),
            executor_name: stand_in.name.clone(),
            timeout: stand_in.timeout,
            retries: stand_in.retries,
        };
        MemberConfig {
            stand_ins: self.stand_ins.iter().map(stand_in).collect(),
            samples: 1,
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
            shared: None,
        }
    }
}

fn name_another(body: Body) -> Error {
    Error::configuration(codes::EXECUTOR_INVALID, body.help("name another executor"))
}

/// The MCP servers of a configuration, in the form that adapters read.
pub(crate) fn servers(config: &Configuration) -> Servers {
    let dir = std::path::absolute(&config.dir).unwrap_or_else(|_| config.dir.clone());
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
    Servers::new(config.servers.iter().map(|(id, block)| (id.clone(), table(&block.json))).collect())
}

/// Refuses an executor whose program, key or recording is missing.
///
/// # Errors
/// [`codes::COMMAND_MISSING`], [`codes::MODEL_KEY_MISSING`] or [`codes::CASSETTE_INVALID`].
pub(crate) fn installed(name: &str, executor: &dyn Executor) -> Result<(), Error> {
    executor.check_installed().map_err(|refused| {
        let body = Body::new(format!("executor `{name}`: {}", refused.message));
        let code = match refused.key.as_deref() {
            Some("key") => codes::MODEL_KEY_MISSING,
            Some("dir") => codes::CASSETTE_INVALID,
            _ => codes::COMMAND_MISSING,
        };
        Error::configuration(code, with_help(body, refused.help))
    })
}

/// The adapters of the program, and a configuration with tables of executors.
#[derive(Clone, Copy)]
pub(crate) struct Executors<'a> {
    pub registry: &'a Registry,
    pub config: &'a Configuration,
}

impl Executors<'_> {
    /// The names of the configured executors, and of the built-in default, which starts no program and sends nothing.
    pub(crate) fn offered(self) -> Vec<String> {
        let tables = &self.config.executors;
        let default = self.registry.default_kind.map(str::to_owned).filter(|name| !tables.contains_key(name));
        tables.keys().cloned().chain(default).collect()
    }

    /// Refuses an executor that the configuration does not offer, for a client that may not choose a program or an address: a
    /// preset or an address that a person names needs no trust (X14).
    ///
    /// # Errors
    /// [`codes::EXECUTOR_INVALID`].
    pub(crate) fn ensure_offered(self, name: Option<&String>) -> Result<(), Error> {
        let offered = self.offered();
        let Some(name) = name.filter(|name| !offered.contains(name)) else { return Ok(()) };
        let body = Body::new(format!("`{name}` is not an executor that this server offers"));
        let help = format!("name one of {}, or add `[executors.NAME]` to quorate.toml", offered.join(", "));
        Err(Error::configuration(codes::EXECUTOR_INVALID, body.help(help)))
    }

    /// The default executor, with extra keys.
    ///
    /// # Errors
    /// If there is no such executor, or it refuses its settings.
    pub(crate) fn fallback(self, extra: Map<String, Json>) -> Result<SelectedExecutor, Error> {
        self.by_name(NamedExecutor::by_person(self.registry.default_kind.unwrap_or_default()), extra)
    }

    /// Builds an executor by name: a table of `quorate.toml`, a preset, or a kind that needs no settings. It gets extra keys
    /// besides those of the table.
    ///
    /// # Errors
    /// If there is no such executor, or it or a stand-in refuses its settings.
    pub(crate) fn by_name(
        self,
        named: NamedExecutor<'_>,
        extra: Map<String, Json>,
    ) -> Result<SelectedExecutor, Error> {
        let selected = self.alone(named, extra)?;
        match self.config.executors.get(named.name).and_then(|table| table.fallback.as_ref()) {
            Some(list) => selected.with_fallback(list, self, SelectedBy::File(&self.config.path())),
            None => Ok(selected),
        }
    }

    /// As [`by_name`](Self::by_name), without the stand-ins that its table names.
    fn alone(
        self,
        NamedExecutor { name, place, by }: NamedExecutor<'_>,
        extra: Map<String, Json>,
    ) -> Result<SelectedExecutor, Error> {
        let Executors { registry, config } = self;
        if let Some(table) = config.executors.get(name) {
            let mut table = table.clone();
            table.block.json.extend(extra);
            return self.by_table(&table, name);
        }
        let (kind, mut block) = ready_made(registry, name);
        let guessed = || wrong_guess::name(registry, name, config.executors.keys().map(String::as_str));
        let is_address = block.contains_key("base_url");
        let new = registry.executor_kind(kind).filter(|_| !is_address || guessed().is_none());
        let Some(new) = new else {
            let help = guessed().map_or_else(|| self.known(), |right| right_name(registry, &right));
            let mut body = Body::new(format!("unknown executor `{name}`")).help(help);
            body.place = place.cloned();
            return Err(Error::configuration(codes::KIND_UNKNOWN, body));
        };
        block.extend(extra);
        let file = match by {
            SelectedBy::Person => None,
            SelectedBy::File(file) => Some(file),
        };
        let origin = Origin { file, servers: &config.path() };
        let settings = settings(name, block, (None, None), &config.dir, Shared::of(config));
        construct((new, kind), settings, (None, None), origin).map_err(|refused| {
            let body = with_help(Body::new(refused.message), refused.help);
            Error::configuration(codes::EXECUTOR_INVALID, body)
        })
    }

    fn known(self) -> String {
        let ready_made = self.registry.presets().chain(self.registry.default_kind).map(str::to_owned);
        let names: Vec<String> = self.config.executors.keys().cloned().chain(ready_made).collect();
        format!(
            "the executors are {}; add others as tables `[executors.<name>]` of quorate.toml",
            names.join(", ")
        )
    }
}

/// The kind and the table of a name that no file configures: a preset, a preset with a model
/// (`anthropic:claude-opus-4-8`), an address with a model (`http://localhost:8080/v1#qwen3`), or a kind that needs no
/// settings.
fn ready_made<'a>(registry: &'a Registry, name: &'a str) -> (&'a str, Map<String, Json>) {
    let table =
        |keys: &[(&str, &str)]| keys.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    if let Some(kind) = registry.preset_kind(name) {
        return (kind, table(&[("preset", name)]));
    }
    if let Some(kind) =
        registry.url_kind.filter(|_| name.starts_with("http://") || name.starts_with("https://"))
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
pub(crate) struct Origin<'a> {
    /// The file that configures or names it; `None` if a person named a preset.
    pub file: Option<&'a Path>,
    /// The file that configures MCP servers.
    pub servers: &'a Path,
}

impl Origin<'_> {
    /// The side effects that must be trusted before an executor with these settings is called.
    pub(crate) fn needs(&self, executor: &dyn Executor, settings: &Settings) -> Vec<TrustRequest> {
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

/// Builds an executor of a kind. Deadline and retries are those of the limits, else the executor's own.
pub(super) fn construct(
    (new, kind): (ExecutorBuilder, &str),
    mut settings: Settings,
    (timeout, retries): Limits,
    origin: Origin<'_>,
) -> Result<SelectedExecutor, ConfigError> {
    let executor = new(&settings)?;
    settings.timeout = timeout.unwrap_or_else(|| executor.default_timeout());
    settings.retries = retries.unwrap_or_else(|| executor.default_retries());
    // Deadline, retries and concurrency are left out: a resumed run with a longer deadline uses the same executor.
    let mut block = settings.block.clone();
    for limit in ["max_processes", "concurrency", "idle", "pool"] {
        block.remove(limit);
    }
    Ok(SelectedExecutor {
        name: settings.name.as_str().into(),
        needs: origin.needs(&*executor, &settings),
        timeout: settings.timeout,
        retries: settings.retries,
        samples: 1,
        settings: json!({
            "name": settings.name, "kind": kind, "block": block, "executor": executor.fingerprint(),
        }),
        stand_ins: Vec::new(),
        executor,
    })
}

/// A refusal at a place of a file with this text.
pub(super) fn refuse_in(code: RefusalCode, body: Body, text: &Arc<str>) -> Error {
    let mut report = Report::new();
    if let Some(place) = &body.place {
        report.add_source(place.file.clone(), text.clone());
    }
    report.refuse(code, body);
    Error::from_report(ErrorKind::Configuration, report)
}

/// Adds the adapter's help, if it has one.
pub(super) fn with_help(body: Body, help: Option<String>) -> Body {
    match help {
        Some(help) => body.help(help),
        None => body,
    }
}

/// What to write in place of a wrong name, and the command that lists the models.
fn right_name(registry: &Registry, right: &str) -> String {
    let (kind, block) = ready_made(registry, right);
    let service = right.split('#').next().filter(|service| service.contains("://"));
    let service = service.or_else(|| block.get("preset").and_then(Json::as_str));
    match service.filter(|_| Some(kind) == registry.url_kind) {
        Some(service) => format!("write `{right}`; `quorate models {service}` lists the models"),
        None => format!("write `{right}`"),
    }
}

/// A named model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedModel<'a> {
    pub name: &'a str,
    /// The settings of a file that name it; `None` for `--model`.
    settings: Option<&'a MemberSettings>,
    /// The council's file, if it names it.
    pub council: Option<&'a Path>,
}

impl<'a> NamedModel<'a> {
    /// The model of `--model`.
    pub(crate) fn by_person(name: &'a str) -> Self {
        NamedModel { name, settings: None, council: None }
    }

    /// The model that quorate.toml names for a council's member, or the council's file `council`.
    pub(crate) fn by_file(settings: &'a MemberSettings, council: Option<&'a Path>) -> Option<Self> {
        let (name, _) = settings.model.as_ref()?;
        Some(NamedModel { name, settings: Some(settings), council })
    }
}

/// Builds an executor, with the named model if there is one. A council's file that names the model of an executor of
/// quorate.toml must be trusted as well: behind a gateway the model decides which service gets the text.
///
/// # Errors
/// As `build`, and if the executor has no model.
pub(crate) fn with_model(
    model: Option<NamedModel<'_>>,
    build: impl Fn(Map<String, Json>) -> Result<SelectedExecutor, Error>,
) -> Result<SelectedExecutor, Error> {
    let Some(model) = model else { return build(Map::new()) };
    let mut built = build(Map::from_iter([("model".to_owned(), json!(model.name))]));
    if let (Ok(built), Some(file)) = (&mut built, model.council) {
        let others = built.needs.iter().filter(|need| need.file != file).flat_map(|need| &need.acts);
        let what = |act: &SideEffect| format!("{}, with the model `{}`", act.what, model.name);
        let acts = others.map(|act| SideEffect { what: what(act), ..act.clone() }).collect();
        built.needs.push(TrustRequest { file: file.to_owned(), acts });
    }
    match built.is_err().then(|| build(Map::new())) {
        Some(Ok(without)) if !without.about().asks_a_model => Err(asks_no_model(model, &without.name)),
        _ => built,
    }
}

fn asks_no_model(model: NamedModel<'_>, executor: &str) -> Error {
    let body = Body::new(format!("cannot use the model `{}`: `{executor}` asks no model", model.name));
    let help = match wrong_guess::executor_of(model.name) {
        Some(right) => format!("write `--executor {right}` in place of `--model`"),
        None => "name an executor that asks one: `--executor claude`, anthropic, openai, ollama, or a table of quorate.toml".to_owned(),
    };
    match model.settings {
        None => Error::usage(body.help(help)),
        Some(settings) => {
            let place = settings.model.as_ref().map_or(&settings.place, |(_, place)| place);
            let body = body.at(place.clone()).help("remove `model`, or name an executor that asks a model");
            let code = model.council.map_or(codes::HOST_INVALID, |_| codes::COUNCIL_INVALID);
            refuse_in(code, body, &settings.source)
        }
    }
}

/// Refuses `--model` if members are asked through different executors: a model's name has no meaning for another
/// service.
///
/// # Errors
/// [`codes::USAGE`], with the executors' names.
pub(crate) fn ensure_one_executor<'a>(
    model: Option<&str>,
    executors: impl IntoIterator<Item = &'a SelectedExecutor>,
) -> Result<(), Error> {
    let Some(model) = model else { return Ok(()) };
    let mut distinct: Vec<&SelectedExecutor> = Vec::new();
    for executor in executors {
        if !distinct.iter().any(|known| known.settings == executor.settings) {
            distinct.push(executor);
        }
    }
    if distinct.len() < 2 {
        return Ok(());
    }
    let mut names: Vec<String> = distinct.iter().map(|executor| format!("`{}`", executor.name)).collect();
    names.dedup();
    let body = Body::new(format!(
        "cannot use the model `{model}`: the members have different executors, {}",
        names.join(", ")
    ));
    let help =
        "add `--executor NAME` to ask all through one, or set `model` where each member's executor is named";
    Err(Error::usage(body.help(help)))
}

/// The key that only members of councils and assemblies have.
const SAMPLES: &str = "samples";

/// The keys that every executor accepts.
const SHARED_KEYS: [&str; 3] = ["timeout", "retries", "fallback"];

impl Executors<'_> {
    /// Builds the executor of a table of `quorate.toml`.
    fn by_table(self, table: &ExecutorTable, name: &str) -> Result<SelectedExecutor, Error> {
        let Executors { registry, config } = self;
        let (new, kind) = table_kind(registry, table, name)?;
        let file = config.path();
        let origin = Origin { file: Some(&file), servers: &file };
        let place = (&*config.dir, Shared::of(config));
        let Some((wrap, named)) = registry.wrapper_kind(&kind).zip(table.block.json.get("source")) else {
            return build((new, &kind), name, table, place, origin, codes::EXECUTOR_INVALID);
        };
        // The model is the source's.
        let mut table = table.clone();
        let model = table.block.json.remove_entry("model");
        let source = self.wrapped(&table, named, model.into_iter().collect())?;
        let inner = Source {
            executor: Arc::clone(&source.executor),
            timeout: source.timeout,
            retries: source.retries,
        };
        let new: ExecutorBuilder = Arc::new(move |settings| wrap(settings, Some(inner.clone())));
        let mut built = build((new, &kind), name, &table, place, origin, codes::EXECUTOR_INVALID)?;
        built.needs.extend(source.needs);
        Ok(built)
    }

    /// The executor that a table's `source` names.
    fn wrapped(
        self,
        table: &ExecutorTable,
        named: &Json,
        extra: Map<String, Json>,
    ) -> Result<SelectedExecutor, Error> {
        let refuse_source = |message: String, help: &str| {
            let body = table.block.body(Some("source"), message).help(help);
            refuse(codes::EXECUTOR_INVALID, body, &table.block)
        };
        let Some(source) = named.as_str() else {
            return Err(refuse_source("`source` must be a string".to_owned(), "name an executor"));
        };
        let kind = match self.config.executors.get(source) {
            Some(table) => table.kind.as_ref().map(|(kind, _)| kind.as_str()),
            None => Some(source),
        };
        if kind.is_some_and(|kind| self.registry.wrapper_kind(kind).is_some()) {
            let message = format!("`{source}` has a source of its own");
            return Err(refuse_source(message, "name an executor without a source"));
        }
        let place = table.block.place_of(Some("source"));
        let (file, place) = (self.config.path(), Some(&place));
        self.alone(NamedExecutor { name: source, place, by: SelectedBy::File(&file) }, extra)
    }

    /// Builds the executors that a council's file names for members, with their models. A model without an executor is for
    /// the default one, unless the council has a `runtime`.
    fn of_members(self, council: &Council, file: &Path) -> Vec<Result<SelectedExecutor, Error>> {
        let default = self.config.defaults.executor.as_ref().filter(|_| council.runtime.is_none());
        let build = |own: &MemberSettings| {
            let named = own.executor.as_ref().or(default.filter(|_| own.model.is_some()))?;
            let named = NamedExecutor::by_file(named, file);
            let model = NamedModel::by_file(own, Some(file));
            Some(with_model(model, |extra| self.by_name(named, extra)))
        };
        council.settings().filter_map(build).collect()
    }

    /// Builds every executor that a council names, or else a configuration, without calling any. Returns the errors,
    /// including those of MCP server tables and the embedder, and warnings about stand-ins that cannot be asked here, since
    /// a program or a key is missing.
    pub(crate) fn build_errors(self, council: Option<&Council>) -> (Vec<Error>, Vec<Body>) {
        let config = self.config;
        let build = |name: &str, place: Option<&Place>| {
            self.alone(NamedExecutor { name, place, by: SelectedBy::Person }, Map::new())
        };
        let error = |(name, place): (&String, &Place)| build(name, Some(place)).err();
        let (mut errors, stand_ins): (Vec<Error>, Vec<&(String, Place)>);
        match council {
            Some(council) => {
                let dir = &council.dir;
                let by_runtime = |table| by_runtime(self.registry, table, dir, dir).err();
                errors = council.runtimes().filter_map(by_runtime).collect();
                errors.extend(self.of_members(council, dir).into_iter().filter_map(Result::err));
                stand_ins = council.stand_ins().collect();
                errors.extend(stand_ins.iter().filter_map(|(name, place)| error((name, place))));
            }
            None => {
                errors = config.executors.keys().filter_map(|name| build(name, None).err()).collect();
                errors.extend(config.named_executors().filter_map(error));
                errors.extend(server_errors(config, |_| true));
                errors.extend(self.configured_meaning().err());
                stand_ins = config.stand_ins().collect();
            }
        }
        let warning = |(name, place): &(String, Place)| {
            let refused = build(name, Some(place)).ok()?.executor.check_installed().err()?;
            let body = Body::new(format!("`{name}` cannot stand in here: {}", refused.message));
            Some(with_help(body.at(place.clone()), refused.help))
        };
        (errors, stand_ins.into_iter().filter_map(warning).collect())
    }

    /// Misspellings in the executors and MCP servers of a `quorate.toml`: unknown keys, kinds or executor names, and
    /// invalid `url`s. They are refused even if no run uses that executor or server; other errors of a table stop only runs
    /// that use it.
    pub(crate) fn typos(self) -> Vec<Error> {
        let Executors { registry, config } = self;
        let is_mistyped = |name: &str, table: &ExecutorTable| match table_kind(registry, table, name) {
            Ok((new, _)) => {
                let (block, limits) = (table.block.json.clone(), (table.timeout, table.retries));
                let settings = settings(name, block, limits, &config.dir, Shared::of(config));
                new(&settings).is_err_and(|refused| refused.is_unknown_key)
            }
            Err(_) => true,
        };
        let tables = config.executors.iter().filter(|(name, table)| is_mistyped(name, table));
        let tables = tables.filter_map(|(name, table)| self.by_table(table, name).err());
        let is_unknown = |name: &str| {
            !config.executors.contains_key(name)
                && registry.preset_kind(name).is_none()
                && registry.executor_kind(name).is_none()
        };
        let named = config.named_executors().filter(|(name, _)| is_unknown(name));
        let named = named.filter_map(|(name, at)| {
            let named = NamedExecutor { name, place: Some(at), by: SelectedBy::Person };
            self.by_name(named, Map::new()).err()
        });
        let is_typo = |refused: &ConfigError| refused.is_unknown_key || refused.key.as_deref() == Some("url");
        tables.chain(named).chain(server_errors(config, is_typo)).chain(self.embedder_typo()).collect()
    }

    /// The side effects of the executors that a `quorate.toml` configures or names.
    pub(crate) fn acts_of_tables(self) -> Vec<SideEffect> {
        let file = self.config.path();
        let tables = self.config.executors.keys().map(|name| (name, None));
        let chosen = self.config.named_executors().map(|(name, place)| (name, Some(place)));
        let by = SelectedBy::File(&file);
        let named = tables.chain(chosen).map(|(name, place)| NamedExecutor { name, place, by });
        let built = named.filter_map(|named| self.alone(named, Map::new()).ok());
        built.flat_map(|chosen| chosen.needs()).flat_map(|need| need.acts).collect()
    }

    /// The side effects of a council's executors: the common one, and those of single members.
    pub(crate) fn of_council(self, council: &Council, file: &Path) -> Vec<TrustRequest> {
        let by_runtime = |table| by_runtime(self.registry, table, &council.dir, file).ok();
        let built = council.runtimes().filter_map(by_runtime);
        let named = self.of_members(council, file).into_iter().flatten();
        let stand_ins = council.stand_ins().map(|one| NamedExecutor::by_file(one, file));
        let stand_ins = stand_ins.filter_map(|named| self.alone(named, Map::new()).ok());
        built.chain(named).chain(stand_ins).flat_map(|chosen| chosen.needs()).collect()
    }

    /// The side effects of executors that a manifest names.
    pub(crate) fn of_names(self, names: &[String], manifest: &Path) -> Vec<TrustRequest> {
        let by = SelectedBy::File(manifest);
        let named = names.iter().map(|name| NamedExecutor { name, place: None, by });
        let built = named.filter_map(|named| self.by_name(named, Map::new()).ok());
        built.flat_map(|chosen| chosen.needs()).collect()
    }
}

/// The kind of a table, which its preset or its command may imply.
fn table_kind(
    registry: &Registry,
    table: &ExecutorTable,
    name: &str,
) -> Result<(ExecutorBuilder, String), Error> {
    let block = &table.block.json;
    // A table with a command is an `agent-cli`, even if its preset has the name of a service.
    let starts = ["command", "cli"].iter().any(|key| block.contains_key(*key));
    let preset = || registry.preset_kind(block.get("preset").and_then(Json::as_str)?);
    let implied = registry.command_kind.filter(|_| starts).or_else(preset);
    let (kind, place) = match (&table.kind, implied) {
        (Some((kind, place)), _) => (kind.clone(), place.clone()),
        (None, Some(kind)) => (kind.to_owned(), table.block.place.clone()),
        (None, None) => {
            let known = registry.executor_kinds().collect::<Vec<_>>().join(", ");
            let body = match block.get("preset").and_then(Json::as_str) {
                Some(preset) => table
                    .block
                    .body(Some("preset"), format!("unknown preset `{preset}`"))
                    .help(wrong_guess::unknown_preset(registry, preset)),
                None => table
                    .block
                    .body(None, format!("`[executors.{name}]` has no `kind`"))
                    .help(format!("the kinds are {known}")),
            };
            return Err(refuse(codes::HOST_INVALID, body, &table.block));
        }
    };
    let Some(new) = registry.executor_kind(&kind) else {
        let known = registry.executor_kinds().collect::<Vec<_>>().join(", ");
        let help = wrong_guess::kind(registry, &kind).unwrap_or_else(|| format!("the kinds are {known}"));
        let body = Body::new(format!("unknown executor kind `{kind}`")).at(place).help(help);
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
) -> Result<SelectedExecutor, Error> {
    let Some((kind, place)) = &table.kind else {
        let body = table.block.body(None, "`runtime` has no `type`");
        return Err(refuse(codes::COUNCIL_INVALID, body, &table.block));
    };
    let Some(new) = registry.runtime_type_builder(kind) else {
        let known = registry.runtime_types().collect::<Vec<_>>().join(", ");
        let help = match wrong_guess::preset(registry, kind)
            .and_then(|name| Some((name, registry.preset_kind(name)?)))
        {
            Some((preset, kind)) => format!("write `type: {kind}` and `preset: {preset}`"),
            None => format!("the types are {known}"),
        };
        let body = Body::new(format!("unknown runtime type `{kind}`")).at(place.clone());
        return Err(refuse(codes::KIND_UNKNOWN, body.help(help), &table.block));
    };
    let origin = Origin { file: Some(file), servers: file };
    build((new, kind), kind, table, (dir, Shared::default()), origin, codes::RUNTIME_UNSUPPORTED)
}

fn build(
    kind: (ExecutorBuilder, &str),
    name: &str,
    table: &ExecutorTable,
    (dir, shared): (&Path, Shared),
    origin: Origin<'_>,
    code: RefusalCode,
) -> Result<SelectedExecutor, Error> {
    let limits = (table.timeout, table.retries);
    let settings = settings(name, table.block.json.clone(), limits, dir, shared);
    construct(kind, settings, limits, origin).map_err(|mut refused| {
        // The adapter does not know the common keys, so it cannot suggest them.
        let shared = refused.key.as_deref().filter(|_| refused.is_unknown_key);
        if let Some(near) = shared.and_then(|key| nearest(key, &SHARED_KEYS)) {
            refused.help = Some(format!("did you mean `{near}`?"));
        }
        if refused.key.as_deref() == Some(SAMPLES) {
            let help = "set `samples` for a member: in `[council.members.<id>]` or `[assemblies.<name>]`";
            refused.help = Some(help.to_owned());
        }
        let code = match refused.key.as_deref() {
            None | Some("type") => code,
            Some(_) => codes::EXECUTOR_INVALID,
        };
        let body = with_help(table.block.body(refused.key.as_deref(), refused.message), refused.help);
        refuse(code, body, &table.block)
    })
}

/// The settings of `quorate.toml` that executors read besides their own table.
#[derive(Default)]
pub(super) struct Shared {
    pub servers: Servers,
    pub prices: Option<PathBuf>,
}

impl Shared {
    fn of(config: &Configuration) -> Self {
        Shared { servers: servers(config), prices: budget::prices(config) }
    }
}

/// The timeout and the retries that a table sets; the executor has defaults for both.
type Limits = (Option<Duration>, Option<u32>);

pub(super) fn settings(
    name: &str,
    block: Map<String, Json>,
    limits: Limits,
    dir: &Path,
    shared: Shared,
) -> Settings {
    Settings {
        name: name.to_owned(),
        timeout: limits.0.unwrap_or_default(),
        retries: limits.1.unwrap_or(0),
        dir: dir.to_owned(),
        block,
        servers: shared.servers,
        prices: shared.prices,
    }
}

fn refuse(code: RefusalCode, body: Body, block: &Block) -> Error {
    refuse_in(code, body, &block.source)
}

/// The tables of MCP servers that cannot be read, for reasons that matter.
pub(crate) fn server_errors(config: &Configuration, matters: impl Fn(&ConfigError) -> bool) -> Vec<Error> {
    let unread = config.servers.iter().filter_map(|(id, table)| {
        let refused = process::check_server(&table.json).err().filter(&matters)?;
        let message = format!("[mcp.{id}]: {}", refused.message);
        let body = with_help(table.body(refused.key.as_deref(), message), refused.help);
        Some(refuse(codes::HOST_INVALID, body, table))
    });
    unread.collect()
}

/// The side effects of connecting to servers.
pub(crate) fn acts_of_servers(dir: &Path, servers: &[(String, Map<String, Json>)]) -> Vec<SideEffect> {
    servers.iter().map(|(id, table)| process::server_side_effect(id, table, dir)).collect()
}

/// The deadline of one comparison, if the table has none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// The embedder or the executor that compares texts by meaning, as configured. It can be called once it is admitted.
#[derive(Clone)]
pub(crate) struct SelectedMeaning {
    meaning: Meaning,
    /// The executor that is asked; `None` where vectors are compared.
    pub asked: Option<SelectedExecutor>,
    needs: Vec<TrustRequest>,
    /// The settings that the fingerprint of a run covers.
    pub settings: Json,
}

impl SelectedMeaning {
    /// The side effects that must be trusted before it is called.
    pub(crate) fn needs(&self) -> Vec<TrustRequest> {
        self.needs.clone()
    }

    pub(crate) fn meaning(&self, _: Permit) -> Meaning {
        self.meaning.clone()
    }

    /// Checks that its price is known if money is capped.
    ///
    /// # Errors
    /// [`codes::COST_UNKNOWN`].
    pub(crate) fn ensure_enforceable(&self, caps: &Caps) -> Result<(), Error> {
        match &self.meaning {
            Meaning::Embedder(embedder) => budget::ensure_embedder_holdable(caps, &**embedder),
            Meaning::Question(_) => self.asked.iter().try_for_each(|asked| asked.ensure_enforceable(caps)),
        }
    }

    /// Checks that the key that it sends, or the program that it starts, is available.
    ///
    /// # Errors
    /// [`codes::MODEL_KEY_MISSING`], or as [`SelectedExecutor::ensure_installed`].
    pub(crate) fn ensure_installed(&self) -> Result<(), Error> {
        match &self.meaning {
            Meaning::Question(_) => self.asked.iter().try_for_each(SelectedExecutor::ensure_installed),
            Meaning::Embedder(embedder) => embedder.check_installed().map_err(|refused| {
                let body = Body::new(format!("the embedder: {}", refused.message));
                Error::configuration(codes::MODEL_KEY_MISSING, with_help(body, refused.help))
            }),
        }
    }
}

impl Executors<'_> {
    /// What a configuration compares meanings with: the executor of `[meaning]`, or the embedder; `None` without either
    /// table.
    ///
    /// # Errors
    /// [`codes::EMBEDDER_INVALID`] if the table cannot be used, and as [`by_name`](Self::by_name).
    pub(crate) fn configured_meaning(self) -> Result<Option<SelectedMeaning>, Error> {
        let config = self.config;
        if let Some(MeaningTable { executor, threshold }) = &config.meaning {
            let executor = self.by_name(NamedExecutor::by_file(executor, &config.path()), Map::new())?;
            executor.ensure_answers(answers::Schema::Predicate)?;
            let settings = json!({"question": executor.recorded_settings(), "threshold": threshold});
            let (config, needs) = executor.clone().into_unadmitted_config();
            let meaning = Meaning::Question(Box::new(MeaningQuestion { config, threshold: *threshold }));
            return Ok(Some(SelectedMeaning { meaning, asked: Some(executor), needs, settings }));
        }
        let Some(table) = &config.embedder else { return Ok(None) };
        let embedder = self.build_embedder(table).map_err(|refused| refused_embedder(table, refused))?;
        let named = |act: SideEffect| SideEffect { what: format!("{} (embedder)", act.what), ..act };
        let acts = embedder.side_effects().into_iter().map(named).collect();
        let needs = vec![TrustRequest { file: config.path(), acts }];
        let (meaning, settings) = (Meaning::Embedder(embedder), json!(table.block.json));
        Ok(Some(SelectedMeaning { meaning, asked: None, needs, settings }))
    }

    /// A misspelled key of the embedder's table. It is refused even if no run needs the embedder.
    fn embedder_typo(self) -> Option<Error> {
        let table = self.config.embedder.as_ref()?;
        let refused = self.build_embedder(table).err().filter(|refused| refused.is_unknown_key)?;
        Some(refused_embedder(table, refused))
    }

    fn build_embedder(self, table: &EmbedderTable) -> Result<Arc<dyn Embedder>, ConfigError> {
        let Some(new) = &self.registry.embedder else {
            return Err(ConfigError::for_block("this program has no configurable embedder"));
        };
        let shared = Shared { servers: Servers::default(), prices: budget::prices(self.config) };
        let limits = (Some(table.timeout.unwrap_or(DEFAULT_TIMEOUT)), None);
        new(&settings("embedder", table.block.json.clone(), limits, &self.config.dir, shared))
    }
}

fn refused_embedder(table: &EmbedderTable, refused: ConfigError) -> Error {
    let body = table.block.body(refused.key.as_deref(), format!("[embedder]: {}", refused.message));
    refuse(codes::EMBEDDER_INVALID, with_help(body, refused.help), &table.block)
}
