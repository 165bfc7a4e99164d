//! Builds the ports of a manifest: kinds are looked up in the registry, blocks go to the adapters verbatim (K1), and
//! refusals point at their places. Warns about valid manifests that may behave unexpectedly.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_adapters::{effectors, lifecycle};
use quorate_diagnostics::{Body, Place, RefusalCode, Report, codes};
use quorate_kernel::attempts::MemberConfig;
use quorate_kernel::conversation::{Capability, Participant, Tools};
use quorate_kernel::ports::dispatcher::Dispatcher;
use quorate_kernel::ports::effectors::Effectors;
use quorate_kernel::ports::executor::{ConfigError, Servers, SideEffect};
use quorate_kernel::ports::provisioning::Provisioning;
use quorate_kernel::ports::state::State;
use quorate_kernel::ports::substrate::Substrate;
use quorate_kernel::ports::telemetry::Lifecycle;
use quorate_kernel::registry::{BuildContext, ExecutorBuilder, ExecutorResolver, Kinds};
use quorate_kernel::turn::{HookFlags, Policy, Prompt, Speaker};
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::config::MAX_STAND_INS;
use quorate_manifest::document::Document;
use quorate_protocol::{Json, Name};
use serde_json::{Map, json};

use super::load::{LoadedRuntime, ParticipantPrompt, participant_place, place_in};
use super::{RuntimeRequest, budget};
use crate::service::compose::Sources;
use crate::service::environment::Environment;
use crate::service::error::{Error, ErrorKind};
use crate::service::executor::{
    self, Executors, NamedExecutor, Origin, SelectedBy, SelectedExecutor, with_help,
};
use crate::service::trust::requests::TrustRequest;
use crate::service::workspace::Workspace;

#[cfg(feature = "nats")]
use quorate_adapters::executor::remote;

/// The ports of a runtime.
pub(super) struct Ports {
    pub(super) substrate: Arc<dyn Substrate>,
    pub(super) dispatcher: Arc<dyn Dispatcher>,
    pub(super) state: Arc<dyn State>,
    pub(super) lifecycles: Vec<Arc<dyn Lifecycle>>,
    pub(super) flags: HookFlags,
    pub(super) policy: Policy,
    pub(super) speakers: Vec<Speaker>,
    pub(super) provisioning: Option<Arc<dyn Provisioning>>,
    /// The sources of prompts that are composed again for each turn, by participant.
    pub(super) prompt_sources: BTreeMap<Name, Arc<Sources>>,
    /// The `config` of participants with a remote executor.
    #[cfg(feature = "nats")]
    pub(super) remote_configs: BTreeMap<Name, Map<String, Json>>,
    /// Trust needed for the conversation and its state: servers, and places outside of the workspace.
    pub(super) contacts: Vec<TrustRequest>,
    /// Trust needed for participants and hooks.
    pub(super) needs: Vec<TrustRequest>,
    /// Warnings of the manifest.
    pub(super) report: Report,
    /// Warnings for a process that runs the manifest, as opposed to one that reads or posts.
    pub(super) cautions: Report,
}

pub(super) fn build(
    environment: &Environment,
    written: &LoadedRuntime,
    workspace: &Workspace,
    request: &RuntimeRequest,
) -> Result<Ports, Error> {
    let mut building = PortBuilder {
        written,
        document: &written.document,
        executors: Executors { registry: environment.registries.registry(), config: &workspace.config },
        servers: add_shared_connections(executor::servers(&workspace.config), environment, &workspace.ledger),
        needs: RefCell::default(),
        request,
        report: Report::new(),
        cautions: Report::new(),
    };
    for report in [&mut building.report, &mut building.cautions] {
        report.add_source(Arc::clone(&written.document.shown), Arc::clone(&written.document.text));
    }
    let ports = building.ports(&environment.registries.lifecycles);
    match ports {
        Some(mut ports) if !building.report.has_refusals() => {
            (ports.report, ports.cautions) = (building.report, building.cautions);
            Ok(ports)
        }
        _ => Err(Error::from_report(ErrorKind::Configuration, building.report)),
    }
}

struct PortBuilder<'a> {
    written: &'a LoadedRuntime,
    document: &'a Document,
    executors: Executors<'a>,
    servers: Servers,
    /// Trust needed for participants, router and hooks.
    needs: RefCell<Vec<TrustRequest>>,
    request: &'a RuntimeRequest,
    report: Report,
    cautions: Report,
}

impl PortBuilder<'_> {
    fn ports(&mut self, lifecycles: &[Arc<dyn Lifecycle>]) -> Option<Ports> {
        let runtime = &self.written.runtime;
        let effectors = self.effectors();
        let prompts = runtime.participants.iter().zip(&self.written.participant_prompts);
        let participants: Vec<Participant> = prompts
            .map(|(participant, prompt)| Participant {
                id: participant.id.as_str().into(),
                executor: participant.executor.clone(),
                display_name: participant.display_name.clone().unwrap_or_else(|| participant.id.clone()),
                meta: participant.meta.clone().unwrap_or_default(),
                role: prompt.base.render().into(),
                tools: effectors.tools(&participant.id),
            })
            .collect();
        let speakers: Vec<Option<Speaker>> =
            (0..participants.len()).map(|at| self.speaker(at, &participants[at])).collect();
        let block = |adapter: &quorate_manifest::runtime::Adapter| {
            let mut block = Map::from_iter([("kind".to_owned(), json!(adapter.kind))]);
            block.extend(adapter.settings.clone());
            block
        };
        let registry = self.executors.registry;
        let substrate =
            self.port("substrate", &registry.substrates, block(&runtime.substrate), "", &participants);
        let place = substrate.as_ref().map(|substrate| substrate.about().place).unwrap_or_default();
        let dispatcher = block(&runtime.dispatcher);
        let dispatcher = self.port("dispatcher", &registry.dispatchers, dispatcher, &place, &participants);
        let state = match &runtime.state {
            Some(state) => block(state),
            None => Map::from_iter([("kind".to_owned(), json!(registry.default_state_kind))]),
        };
        let state = self.port("state", &registry.states, state, &place, &participants);
        // Nothing is set up by running; `quorate provision install` does it.
        let provisioning = runtime.provisioning.as_ref().and_then(|provisioning| {
            let block = block(provisioning);
            self.port("provisioning", &registry.provisionings, block, &place, &participants)
        });
        let policy = self.policy(&runtime.dispatcher.settings);
        let mut lifecycles = lifecycles.to_vec();
        let hooks = self.hooks();
        let acts = hooks.iter().flat_map(|hooks| hooks.side_effects()).collect();
        self.needs.borrow_mut().push(TrustRequest { file: self.written.path.clone(), acts });
        lifecycles.extend(hooks);
        let flag = |written: Option<Option<bool>>| written.flatten().unwrap_or(true);
        let lifecycle = runtime.lifecycle.as_ref();
        let flags = HookFlags {
            on_turn_end: flag(lifecycle.map(|lifecycle| lifecycle.on_turn_end)),
            on_mention: flag(lifecycle.map(|lifecycle| lifecycle.on_mention)),
            on_idle: flag(lifecycle.map(|lifecycle| lifecycle.on_idle)),
        };
        let (substrate, dispatcher, state) = (substrate?, dispatcher?, state?);
        self.check_executors(&*substrate, &speakers);
        self.collect_warnings(&*substrate, &*dispatcher, &participants, &speakers);
        let with_prompts = participants.iter().zip(&self.written.participant_prompts);
        let weaving = with_prompts
            .filter_map(|(one, with_prompts)| Some((one.id.clone(), with_prompts.sources.clone()?)));
        #[cfg(feature = "nats")]
        let remote_configs = {
            let remote = runtime.participants.iter().filter(|one| one.executor == remote::KIND);
            remote.map(|one| (one.id.as_str().into(), one.config.clone().unwrap_or_default())).collect()
        };
        Some(Ports {
            #[cfg(feature = "nats")]
            remote_configs,
            contacts: self.contacts(),
            needs: self.needs.take(),
            prompt_sources: weaving.collect(),
            speakers: speakers.into_iter().collect::<Option<Vec<_>>>()?,
            state,
            provisioning,
            report: Report::new(),
            cautions: Report::new(),
            substrate,
            dispatcher,
            lifecycles,
            flags,
            policy,
        })
    }

    /// Trust for the servers and connections that adapters have looked up, including the servers of participants' tools.
    fn contacts(&self) -> Vec<TrustRequest> {
        let config = self.executors.config;
        let servers = executor::acts_of_servers(&config.dir, &self.servers.used());
        let shared = self.servers.used_connections();
        let kept =
            shared.iter().map(|to| SideEffect::new(format!("keep the conversation or its state in {to}")));
        let acts = self.written.elsewhere.iter().cloned().chain(kept).collect();
        vec![
            TrustRequest { file: config.path(), acts: servers },
            TrustRequest { file: self.written.path.clone(), acts },
        ]
    }

    /// The adapter of a port.
    fn port<Port: ?Sized>(
        &mut self,
        port: &'static str,
        kinds: &Kinds<Port>,
        block: Map<String, Json>,
        conversation: &str,
        participants: &[Participant],
    ) -> Option<Arc<Port>> {
        let kind = block.get("kind").and_then(Json::as_str).unwrap_or_default();
        let Some(new) = kinds.get(kind) else {
            let body = Body::new(format!("unknown kind of {port}: `{kind}`"));
            let known: Vec<&str> = kinds.keys().map(String::as_str).collect();
            let help = format!("the kinds of {port}s are {}", known.join(", "));
            let node = self.document.root.key(port).and_then(|node| node.key("kind"));
            let span = node.map_or(0..0, |node| node.span.clone());
            let at = self.document.place(span, format!("{port}.kind"));
            self.refuse(codes::KIND_UNKNOWN, body.at(at).help(help));
            return None;
        };
        let factory =
            MemberFactory { executors: self.executors, manifest: &self.written.path, needs: &self.needs };
        let built = new(&BuildContext {
            block: &block,
            dir: &self.written.dir,
            runtime: &self.written.runtime.id,
            conversation,
            participants,
            servers: &self.servers,
            executors: &factory,
        });
        built.map_err(|refused| self.refuse_adapter(port, refused)).ok()
    }

    fn refuse_adapter(&mut self, path: &str, refused: ConfigError) {
        let place = self.place_of(path, refused.key.as_deref().unwrap_or_default());
        let body = with_help(Body::new(refused.message).at(place), refused.help);
        self.refuse(codes::ADAPTER_INVALID, body);
    }

    fn refuse(&mut self, code: RefusalCode, body: Body) {
        self.report.refuse(code, body);
    }

    /// The place of a key of a block.
    fn place_of(&self, block: &str, key: &str) -> Place {
        let node = self.document.root.key(block);
        let key_span = node.and_then(|node| node.entry(key)).map(|entry| entry.key_span.clone());
        let span = key_span.or(node.map(|node| node.span.clone())).unwrap_or(0..0);
        let path = if key.is_empty() { block.to_owned() } else { format!("{block}.{key}") };
        self.document.place(span, path)
    }

    /// One participant with its executor: the first of the request's, the one in quorate.toml and the manifest's (Q1).
    fn speaker(&mut self, at: usize, participant: &Participant) -> Option<Speaker> {
        let prompt = self.written.participant_prompts.get(at).cloned().unwrap_or_default();
        let chosen = self.executor(at, participant, &prompt);
        let chosen = match chosen.and_then(|chosen| self.with_fallback(at, participant, chosen)) {
            Ok(mut chosen) => {
                chosen.limit_time(self.request.timeout);
                chosen
            }
            Err(error) => {
                self.report.absorb(*error.report);
                return None;
            }
        };
        let (config, needs) = chosen.into_unadmitted_config();
        self.needs.borrow_mut().extend(needs);
        let config = MemberConfig { role: participant.role.clone(), ..config };
        let prompt = Prompt { text: participant.role.clone(), ..Prompt::default() };
        Some(Speaker { participant: participant.clone(), member: config, prompts: Arc::new(prompt) })
    }

    fn executor(
        &self,
        at: usize,
        participant: &Participant,
        prompt: &ParticipantPrompt,
    ) -> Result<SelectedExecutor, Error> {
        let Executors { registry, config: configuration } = self.executors;
        let (host, by_manifest) = (configuration.path(), SelectedBy::File(&self.written.path));
        let by_name = |named: NamedExecutor<'_>| self.executors.by_name(named, Map::new());
        if let Some(name) = &self.request.executor {
            return by_name(NamedExecutor::by_person(name));
        }
        let table = configuration.runtimes.get(&self.written.runtime.id);
        if let Some(named) = table.and_then(|table| table.of(&participant.id, |own| own.executor.as_ref())) {
            return by_name(NamedExecutor::by_file(named, &host));
        }
        let kind = participant.executor.as_str();
        let written = &self.written.runtime.participants[at];
        let mut config = written.config.clone().unwrap_or_default();
        config.remove(FALLBACK);
        let here = participant_place(self.document, at, "executor");
        let Some(new) = registry.executor_kind(kind) else {
            if configuration.executors.contains_key(kind) || registry.preset_kind(kind).is_some() {
                let named = NamedExecutor { name: kind, place: Some(&here), by: by_manifest };
                return self.executors.by_name(named, config);
            }
            let kinds = registry.executor_kinds().collect::<Vec<_>>().join(", ");
            let body = Body::new(format!("unknown kind of executor: `{kind}`")).at(here);
            let help = format!("the kinds are {kinds}; a program that uses the library can register its own");
            return Err(Error::configuration(codes::KIND_UNKNOWN, body.help(help)));
        };
        if config.is_empty()
            && let Some(preset) = registry.bare_presets.get(kind).copied()
        {
            // The host chooses: the operator's executor, else the default if it is of this kind, else the preset.
            let of_kind = |name: &str| {
                let table = configuration.executors.get(name);
                let stated = table.and_then(|table| table.kind.as_ref()).map(|(kind, _)| kind.as_str());
                stated.or_else(|| table.and(registry.command_kind)).or_else(|| registry.preset_kind(name))
            };
            let default =
                configuration.defaults.executor.as_ref().filter(|(name, _)| of_kind(name) == Some(kind));
            let by_manifest = |name| NamedExecutor { name, place: Some(&here), by: by_manifest };
            return by_name(match (&prompt.executor, default) {
                (Some(name), _) => by_manifest(name),
                (None, Some(named)) => NamedExecutor::by_file(named, &host),
                (None, None) => by_manifest(preset),
            });
        }
        self.executor_with_config(at, kind, config, new)
    }

    /// The executor with the stand-ins of `[runtimes.<id>]`, else of the participant's `config`, unless the request names an
    /// executor.
    fn with_fallback(
        &self,
        at: usize,
        participant: &Participant,
        chosen: SelectedExecutor,
    ) -> Result<SelectedExecutor, Error> {
        if self.request.executor.is_some() {
            return Ok(chosen);
        }
        let (from, configuration) = (self.executors, self.executors.config);
        let table = configuration.runtimes.get(&self.written.runtime.id);
        if let Some(list) = table.and_then(|table| table.of(&participant.id, |own| own.fallback.as_ref())) {
            return chosen.with_fallback(list, from, SelectedBy::File(&configuration.path()));
        }
        let config = self.written.runtime.participants[at].config.as_ref();
        let Some(list) = config.and_then(|config| config.get(FALLBACK)) else { return Ok(chosen) };
        let place = participant_place(self.document, at, "config.fallback");
        let name =
            |item: &Json| Some((item.as_str().filter(|name| !name.is_empty())?.to_owned(), place.clone()));
        let named = list.as_array().filter(|items| items.len() <= MAX_STAND_INS);
        let Some(list) = named.and_then(|items| items.iter().map(name).collect::<Option<Vec<_>>>()) else {
            let message = format!("`fallback` must be a list of at most {MAX_STAND_INS} names of executors");
            let body = Body::new(message).at(place);
            let help = "name the executors that stand in when the service fails";
            return Err(Error::configuration(codes::EXECUTOR_INVALID, body.help(help)));
        };
        chosen.with_fallback(&list, from, SelectedBy::File(&self.written.path))
    }

    /// An executor with the participant's own settings.
    fn executor_with_config(
        &self,
        at: usize,
        kind: &str,
        mut config: Map<String, Json>,
        new: ExecutorBuilder,
    ) -> Result<SelectedExecutor, Error> {
        let refused = |refused: ConfigError| {
            let key = refused.key.map_or_else(|| "config".to_owned(), |key| format!("config.{key}"));
            let body = Body::new(refused.message).at(participant_place(self.document, at, &key));
            Error::configuration(codes::EXECUTOR_INVALID, with_help(body, refused.help))
        };
        let whole = |key: &str, value: Option<Json>, least: u64| match value {
            None => Ok(None),
            Some(value) => value.as_u64().filter(|n| *n >= least).map(Some).ok_or_else(|| {
                let message = format!("`{key}` must be a whole number of at least {least}");
                refused(ConfigError::for_key(key, message))
            }),
        };
        let timeout = whole("timeout_ms", config.remove("timeout_ms"), 1)?;
        let retries = whole("retries", config.remove("retries"), 0)?;
        let retries = retries.map(|retries| u32::try_from(retries).unwrap_or(u32::MAX));
        let shared = executor::Shared {
            servers: self.servers.with_own_usage(),
            prices: budget::prices(self.executors.config),
        };
        let settings = executor::settings(kind, config, (None, None), &self.written.dir, shared);
        let origin = Origin { file: Some(&self.written.path), servers: &self.executors.config.path() };
        let limits = (timeout.map(Duration::from_millis), retries);
        executor::construct((new, kind), settings, limits, origin).map_err(refused)
    }

    fn hooks(&mut self) -> Option<Arc<dyn Lifecycle>> {
        let hooks = self.written.runtime.hooks.as_ref()?;
        match lifecycle::new(hooks, &self.written.dir, &self.written.runtime.id) {
            Ok(hooks) => hooks,
            Err(refused) => {
                self.refuse_adapter("hooks", refused);
                None
            }
        }
    }

    /// The limits of all dispatchers, which are in the dispatcher's block.
    fn policy(&mut self, block: &Map<String, Json>) -> Policy {
        let mut policy = Policy::default();
        let present = |key: &str| block.get(key).filter(|value| !value.is_null());
        match present("reentry").map(Json::as_bool) {
            Some(Some(reentry)) => policy.reentry = reentry,
            Some(None) => self.refuse_adapter(
                "dispatcher",
                ConfigError::for_key("reentry", "`reentry` must be true or false"),
            ),
            None => {}
        }
        for (key, number) in [("maxAgentTurns", &mut policy.max_agent_turns), ("window", &mut policy.window)]
        {
            let Some(value) = present(key) else { continue };
            match value.as_u64().filter(|n| (1..=10_000).contains(n)) {
                Some(found) => *number = found as usize,
                None => {
                    let message = format!("`{key}` must be a whole number from 1 to 10000");
                    self.refuse_adapter("dispatcher", ConfigError::for_key(key, message));
                }
            }
        }
        policy
    }
}

/// The key of a participant's `config` that names stand-ins.
const FALLBACK: &str = "fallback";

/// The key of a block that names a model.
const MODEL: &str = "model";

/// Executors for adapters that ask a model.
struct MemberFactory<'a> {
    executors: Executors<'a>,
    manifest: &'a Path,
    needs: &'a RefCell<Vec<TrustRequest>>,
}

impl ExecutorResolver for MemberFactory<'_> {
    fn resolve(&self, name: Option<&str>, block: Map<String, Json>) -> Result<MemberConfig, ConfigError> {
        let Executors { registry, config: configuration } = self.executors;
        let default = configuration.defaults.executor.as_ref().map(|(name, _)| name.as_str());
        // A block that names a model needs an executor that can ask one, also without a configured executor.
        let bare = || registry.command_kind.and_then(|kind| registry.bare_presets.get(kind).copied());
        let fallback = if block.contains_key(MODEL) { bare() } else { registry.default_kind };
        let chosen_by_host = name.is_none();
        let name = name.or(default).or(fallback).unwrap_or_default();
        let named = NamedExecutor { name, place: None, by: SelectedBy::File(self.manifest) };
        let mut chosen = self.executors.by_name(named, block.clone());
        if chosen.is_err() && chosen_by_host && block.contains_key(MODEL) {
            // The default executor may not accept a model.
            let without = block.into_iter().filter(|(key, _)| key != MODEL).collect();
            chosen = self.executors.by_name(named, without);
        }
        let chosen = chosen.map_err(|error| ConfigError::for_key("executor", error.first_message()))?;
        let (config, needs) = chosen.into_unadmitted_config();
        self.needs.borrow_mut().extend(needs);
        Ok(config)
    }
}

impl PortBuilder<'_> {
    /// The tools and MCP servers of each participant. Warns about unknown servers.
    fn effectors(&mut self) -> Arc<dyn Effectors> {
        let bindings = self.written.runtime.effectors.iter().flatten().map(|effector| {
            let servers = effector.mcp_servers.clone().unwrap_or_default();
            (effector.participant_id.clone(), Tools { allowed: Some(effector.tools.clone()), servers })
        });
        let effectors = effectors::new(bindings.collect(), &self.servers);
        for (participant, server) in effectors.unknown_servers() {
            let body = Body::new(format!(
                "`{participant}` may use the MCP server `{server}`, which is not configured"
            ));
            let help = format!("add `[mcp.{server}]` to quorate.toml; until then it is not passed on");
            let body = body.at(self.effector_place(&participant, &server)).help(help);
            self.cautions.warn(codes::EFFECTOR_UNKNOWN_SERVER, body);
        }
        effectors
    }

    /// The place that allows a participant to use a server.
    fn effector_place(&self, participant: &str, server: &str) -> Place {
        let bindings = self.written.runtime.effectors.iter().flatten().enumerate();
        let mut of = bindings.filter(|(_, one)| one.participant_id == participant).filter_map(|(at, one)| {
            Some((at, one.mcp_servers.iter().flatten().position(|id| id == server)?))
        });
        let Some((at, of)) = of.next() else { return self.place_of("effectors", "") };
        place_in(self.document, format!("effectors[{at}].mcpServers[{of}]"))
    }

    /// Refuses participants whose executors could never take their turns here.
    fn check_executors(&mut self, substrate: &dyn Substrate, speakers: &[Option<Speaker>]) {
        let conversation = substrate.about().conversation;
        for (at, speaker) in speakers.iter().enumerate() {
            let Some(Speaker { participant, member: config, .. }) = speaker else { continue };
            let schema = config.executor.turn_schema();
            let other = config.executors().find(|(executor, _)| executor.turn_schema() != schema);
            let refused = other.map(|(_, name)| {
                let first = &config.executor_name;
                let message = format!("`{name}` cannot stand in for `{first}`: its turns have another form");
                ConfigError::for_key("executor", message)
                    .with_help("in `fallback`, name executors of the same kind")
            });
            let mut checks = config
                .executors()
                .map(|(executor, _)| executor.check_participant(participant, conversation.as_deref()));
            if let Some(refused) = refused.or_else(|| checks.find_map(Result::err)) {
                let at = participant_place(self.document, at, refused.key.as_deref().unwrap_or("executor"));
                let body = with_help(Body::new(refused.message).at(at), refused.help);
                self.refuse(codes::EXECUTOR_INVALID, body);
            }
        }
    }

    /// Warnings about valid manifests that may behave unexpectedly.
    fn collect_warnings(
        &mut self,
        substrate: &dyn Substrate,
        dispatcher: &dyn Dispatcher,
        participants: &[Participant],
        speakers: &[Option<Speaker>],
    ) {
        let document = self.document;
        let at = |message: String, port: &str| Body::new(message).at(place_in(document, port.to_owned()));
        for caution in dispatcher.warnings(participants) {
            self.cautions.warn(codes::DISPATCH_AMBIGUOUS, at(caution, "dispatcher"));
        }
        // Readers of the conversation get these as well.
        for caution in substrate.warnings() {
            self.report.warn(codes::CONVERSATION_DOUBTFUL, at(caution, "substrate"));
        }
        // If the substrate gives authors their own identities, an operator of the remote side may also answer (K8).
        let identities = substrate.about().capabilities.contains(&Capability::Identity);
        for (at, speaker) in speakers.iter().enumerate() {
            let Some(speaker) = speaker else { continue };
            self.warn_unpassed_servers(speaker);
            if identities {
                self.warn_double_answers(at, speaker);
            }
        }
    }

    /// Warns about servers that an executor does not pass on.
    fn warn_unpassed_servers(&mut self, Speaker { participant, member: config, .. }: &Speaker) {
        let Some(server) = participant.tools.servers.first() else { return };
        let mut executors = config.executors();
        let Some((_, name)) = executors.find(|(executor, _)| !executor.forwards_mcp_servers()) else {
            return;
        };
        let body = Body::new(format!(
            "`{}` may use MCP servers, but its executor `{name}` does not pass them on",
            participant.id
        ));
        let body = body.at(self.effector_place(&participant.id, server));
        let help =
            "remove `mcpServers`, or use a CLI that gets the servers: the presets `claude` and `codex`";
        self.cautions.warn(codes::FIELD_WITHOUT_EFFECT, body.help(help));
    }

    /// Warns about a participant for which the remote side may also answer.
    fn warn_double_answers(&mut self, at: usize, Speaker { participant, member: config, .. }: &Speaker) {
        // The remote side answers only because it is asked from here, so its answer is posted once.
        if config.executors().all(|(executor, _)| executor.returns_answer_only()) {
            return;
        }
        let Some(operator) = participant.operator() else { return };
        let body = Body::new(format!(
            "`{}` may also be an operator of the conversation (`{operator}`): if the server answers mentions by itself, \
             each mention is answered twice",
            participant.id
        ));
        let help = "use the executor `db-operator` with `postReply: false`, so that the operator answers from the server, \
                    or turn off routing of mentions to it on the server";
        let at = participant_place(self.document, at, "meta.operatorId");
        self.cautions.warn(codes::ORCHESTRATOR_COEXISTS, body.at(at).help(help));
    }
}

/// Adds the shared connections to the servers that adapters get. It does not connect yet.
pub(super) fn add_shared_connections(
    servers: Servers,
    environment: &Environment,
    ledger: &StoreAddress,
) -> Servers {
    // Unused in a build without the features.
    let _ = (environment, ledger);
    #[cfg(feature = "postgres")]
    let servers = match ledger {
        StoreAddress::Postgres { .. } => {
            servers.with_connection("the ledger's database", std::sync::Arc::new(postgres::shared(ledger)))
        }
        StoreAddress::File(_) => servers,
    };
    #[cfg(feature = "nats")]
    let servers = match &environment.nats {
        Some(nats) => servers.with_connection("the NATS servers", std::sync::Arc::new(nats::shared(nats))),
        None => servers,
    };
    servers
}

#[cfg(feature = "nats")]
pub(super) mod nats {
    use quorate_adapters::nats::SharedNats;

    use crate::cluster::nats::address;
    use crate::service::commit_events::DEFAULT_TENANT;
    use crate::service::environment::NatsServers;

    pub(in crate::service::runtime) fn shared(servers: &NatsServers) -> SharedNats {
        SharedNats::new(address(servers), DEFAULT_TENANT)
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use std::sync::Arc;

    use async_trait::async_trait;
    use quorate_adapters::postgres::{Database, Error, PgArguments, PgRow, SharedDatabase};
    use quorate_ledger::store::SharedConnection;
    use quorate_ledger::store::address::StoreAddress;

    struct LedgerDatabase(SharedConnection);

    pub(super) fn shared(ledger: &StoreAddress) -> SharedDatabase {
        SharedDatabase(Arc::new(LedgerDatabase(SharedConnection::new(ledger.clone()))))
    }

    #[async_trait]
    impl Database for LedgerDatabase {
        async fn run(&self, text: &'static str, arguments: PgArguments) -> Result<Vec<PgRow>, Error> {
            self.0.run(text, arguments).await
        }
    }
}
