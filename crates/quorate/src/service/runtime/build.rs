//! Builds the ports of a manifest: kinds are looked up in the registry, blocks go to the adapters verbatim (K1), and
//! refusals point at their places. `build/warnings.rs` warns about valid manifests that may behave unexpectedly.

mod warnings;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "nats")]
use quorate_adapters::executor::remote;
use quorate_adapters::lifecycle;
use quorate_diagnostics::{Body, Place, RefusalCode, Report, codes};
use quorate_kernel::conversation::Participant;
use quorate_kernel::member_config::MemberConfig;
use quorate_kernel::ports::dispatcher::Dispatcher;
use quorate_kernel::ports::executor::{ConfigError, Servers, Settings, SideEffect};
use quorate_kernel::ports::lifecycle::Lifecycle;
use quorate_kernel::ports::provisioning::Provisioning;
use quorate_kernel::ports::state::State;
use quorate_kernel::ports::substrate::Substrate;
use quorate_kernel::registry::{BuildContext, Builder, ExecutorResolver, Registry};
use quorate_kernel::turn::{HookFlags, Policy, Prompt, Speaker};
use quorate_manifest::config::Configuration;
use quorate_manifest::document::Document;
use quorate_protocol::{Json, Name};
use serde_json::{Map, json};

use super::budget;
use super::load::{LoadedRuntime, ParticipantPrompt, participant_place};
use super::request::Request;
use super::shared_connections;
use crate::service::compose::Sources;
use crate::service::environment::Environment;
use crate::service::error::{ExitClass, ServiceError};
use crate::service::executor::{self, Origin, SelectedBy, SelectedExecutor, with_help};
use crate::service::host::Host;
use crate::service::trust::TrustRequest;
use crate::service::workspace::Workspace;

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
    request: &Request,
    host: &Host,
) -> Result<Ports, ServiceError> {
    let mut building = PortBuilder {
        written,
        document: &written.document,
        configuration: &workspace.host,
        registry: host.registry(),
        servers: shared_connections::add(executor::servers(&workspace.host), environment, &workspace.ledger),
        needs: RefCell::default(),
        request,
        report: Report::new(),
        cautions: Report::new(),
    };
    for report in [&mut building.report, &mut building.cautions] {
        report.add_source(Arc::clone(&written.document.shown), Arc::clone(&written.document.text));
    }
    let ports = building.ports(host);
    match ports {
        Some(mut ports) if !building.report.has_refusals() => {
            (ports.report, ports.cautions) = (building.report, building.cautions);
            Ok(ports)
        }
        _ => Err(ServiceError::from_report(ExitClass::Configuration, building.report)),
    }
}

struct PortBuilder<'a> {
    written: &'a LoadedRuntime,
    document: &'a Document,
    configuration: &'a Configuration,
    registry: &'a Registry,
    servers: Servers,
    /// Trust needed for participants, router and hooks.
    needs: RefCell<Vec<TrustRequest>>,
    request: &'a Request,
    report: Report,
    cautions: Report,
}

impl PortBuilder<'_> {
    fn ports(&mut self, host: &Host) -> Option<Ports> {
        let runtime = &self.written.runtime;
        let effectors = self.effectors();
        let mut participants: Vec<Participant> = runtime
            .participants
            .iter()
            .map(|participant| Participant {
                id: participant.id.as_str().into(),
                executor: participant.executor.clone(),
                display_name: participant.display_name.clone().unwrap_or_else(|| participant.id.clone()),
                meta: participant.meta.clone().unwrap_or_default(),
                role: "".into(),
                tools: effectors.tools(&participant.id),
            })
            .collect();
        for (participant, prompt) in participants.iter_mut().zip(&self.written.participant_prompts) {
            participant.role = prompt.base.render().into();
        }
        let speakers: Vec<Option<Speaker>> =
            (0..participants.len()).map(|at| self.speaker(at, &participants[at])).collect();
        let block = |adapter: &quorate_manifest::runtime::Adapter| {
            let mut block = Map::from_iter([("kind".to_owned(), json!(adapter.kind))]);
            block.extend(adapter.settings.clone());
            block
        };
        let kinds = |kinds: &mut dyn Iterator<Item = &str>| kinds.collect::<Vec<_>>().join(", ");
        let known = kinds(&mut self.registry.substrate_kinds());
        let new = self.registry.substrate_kind(&runtime.substrate.kind);
        let substrate = self.port("substrate", new, &known, block(&runtime.substrate), "", &participants);
        let place = substrate.as_ref().map(|substrate| substrate.about().place).unwrap_or_default();
        let known = kinds(&mut self.registry.dispatcher_kinds());
        let new = self.registry.dispatcher_kind(&runtime.dispatcher.kind);
        let dispatcher =
            self.port("dispatcher", new, &known, block(&runtime.dispatcher), &place, &participants);
        let state = match &runtime.state {
            Some(state) => block(state),
            None => Map::from_iter([("kind".to_owned(), json!(self.registry.default_state_kind()))]),
        };
        let known = kinds(&mut self.registry.state_kinds());
        let kind = state.get("kind").and_then(Json::as_str).unwrap_or_default().to_owned();
        let new = self.registry.state_kind(&kind);
        let state = self.port("state", new, &known, state, &place, &participants);
        // Nothing is set up by running; `quorate provision install` does it.
        let provisioning = runtime.provisioning.as_ref().and_then(|provisioning| {
            let known = kinds(&mut self.registry.provisioning_kinds());
            let new = self.registry.provisioning_kind(&provisioning.kind);
            self.port("provisioning", new, &known, block(provisioning), &place, &participants)
        });
        let policy = self.policy(&runtime.dispatcher.settings);
        let mut lifecycles = host.lifecycles().to_vec();
        let hooks = self.hooks();
        let acts = hooks.iter().flat_map(|hooks| hooks.side_effects()).collect();
        self.needs.borrow_mut().push(TrustRequest { file: self.written.path.clone(), acts });
        lifecycles.extend(hooks);
        let flag = |of: fn(&quorate_manifest::runtime::Lifecycle) -> Option<bool>| {
            runtime.lifecycle.as_ref().and_then(of).unwrap_or(true)
        };
        let flags = HookFlags {
            on_turn_end: flag(|lifecycle| lifecycle.on_turn_end),
            on_mention: flag(|lifecycle| lifecycle.on_mention),
            on_idle: flag(|lifecycle| lifecycle.on_idle),
        };
        let (substrate, dispatcher, state) = (substrate?, dispatcher?, state?);
        self.check_executors(&*substrate, &speakers);
        self.collect_warnings(&*substrate, &*dispatcher, &participants, &speakers);
        self.warn_states(&*state);
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
        let servers =
            executor::trust_requests::acts_of_servers(&self.configuration.dir, &self.servers.used());
        let shared = self.servers.used_connections();
        let kept =
            shared.iter().map(|to| SideEffect::new(format!("keep the conversation or its state in {to}")));
        let acts = self.written.elsewhere.iter().cloned().chain(kept).collect();
        vec![
            TrustRequest { file: self.configuration.path(), acts: servers },
            TrustRequest { file: self.written.path.clone(), acts },
        ]
    }

    /// The adapter of a port.
    fn port<Port: ?Sized>(
        &mut self,
        port: &'static str,
        new: Option<Builder<Port>>,
        known: &str,
        block: Map<String, Json>,
        conversation: &str,
        participants: &[Participant],
    ) -> Option<Arc<Port>> {
        let Some(new) = new else {
            let kind = block.get("kind").and_then(Json::as_str).unwrap_or_default();
            let body = Body::new(format!("unknown kind of {port}: `{kind}`"));
            let help = format!("the kinds of {port}s are {known}");
            let node = self.document.root.key(port).and_then(|node| node.key("kind"));
            let span = node.map_or(0..0, |node| node.span.clone());
            let at = self.document.place(span, format!("{port}.kind"));
            self.refuse(codes::KIND_UNKNOWN, body.at(at).help(help));
            return None;
        };
        let factory = MemberFactory {
            registry: self.registry,
            configuration: self.configuration,
            manifest: &self.written.path,
            needs: &self.needs,
        };
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

    /// One participant with its executor (Q1).
    fn speaker(&mut self, at: usize, participant: &Participant) -> Option<Speaker> {
        let prompt = self.written.participant_prompts.get(at).cloned().unwrap_or_default();
        let chosen = match self.executor(at, participant, &prompt) {
            Ok(chosen) => chosen,
            Err(error) => {
                self.report.absorb(*error.report);
                return None;
            }
        };
        let (config, needs) = chosen.into_unadmitted_config();
        self.needs.borrow_mut().extend(needs);
        let timeout = self.request.timeout.unwrap_or(config.timeout);
        let config = MemberConfig { timeout, role: participant.role.clone(), ..config };
        let prompt = Prompt { text: participant.role.clone(), ..Prompt::default() };
        Some(Speaker { participant: participant.clone(), member: config, prompts: Arc::new(prompt) })
    }

    fn executor(
        &self,
        at: usize,
        participant: &Participant,
        prompt: &ParticipantPrompt,
    ) -> Result<SelectedExecutor, ServiceError> {
        let (registry, host) = (self.registry, self.configuration);
        if let Some(name) = &self.request.executor {
            return executor::by_name(registry, host, name, None, SelectedBy::Person);
        }
        if let Some(table) = host.runtimes.get(&self.written.runtime.id)
            && let Some((name, place)) = table.participants.get(&*participant.id).or(table.executor.as_ref())
        {
            return executor::by_name(registry, host, name, Some(place), SelectedBy::File(&host.path()));
        }
        let selected_by = SelectedBy::File(&self.written.path);
        let kind = participant.executor.as_str();
        let written = &self.written.runtime.participants[at];
        let config = written.config.clone().unwrap_or_default();
        let here = participant_place(self.document, at, "executor");
        let Some(new) = registry.executor_kind(kind) else {
            let named = host.executors.contains_key(kind) || registry.preset_kind(kind).is_some();
            if named {
                return executor::by_name_with(registry, host, kind, Some(&here), selected_by, config);
            }
            let kinds = registry.executor_kinds().collect::<Vec<_>>().join(", ");
            let body = Body::new(format!("unknown kind of executor: `{kind}`")).at(here);
            let help = format!("the kinds are {kinds}; a program that uses the library can register its own");
            return Err(ServiceError::configuration(codes::KIND_UNKNOWN, body.help(help)));
        };
        if config.is_empty()
            && let Some(preset) = registry.bare_preset(kind)
        {
            // The host chooses: the operator's executor, else the default if it is of this kind, else the preset.
            let of_kind = |name: &str| {
                let table = host.executors.get(name);
                let stated = table.and_then(|table| table.kind.as_ref()).map(|(kind, _)| kind.as_str());
                stated.or_else(|| table.and(registry.command_kind())).or_else(|| registry.preset_kind(name))
            };
            let default = host.default_executor.as_ref().filter(|(name, _)| of_kind(name) == Some(kind));
            return match (&prompt.executor, default) {
                (Some(name), _) => executor::by_name(registry, host, name, Some(&here), selected_by),
                (None, Some((name, place))) => {
                    executor::by_name(registry, host, name, Some(place), SelectedBy::File(&host.path()))
                }
                (None, None) => executor::by_name(registry, host, preset, Some(&here), selected_by),
            };
        }
        self.executor_with_config(at, kind, config, &new)
    }

    /// An executor with the participant's own settings.
    fn executor_with_config(
        &self,
        at: usize,
        kind: &str,
        mut config: Map<String, Json>,
        new: &quorate_kernel::registry::ExecutorBuilder,
    ) -> Result<SelectedExecutor, ServiceError> {
        let refused = |refused: ConfigError| {
            let key = refused.key.map_or_else(|| "config".to_owned(), |key| format!("config.{key}"));
            let body = with_help(
                Body::new(refused.message).at(participant_place(self.document, at, &key)),
                refused.help,
            );
            ServiceError::configuration(codes::EXECUTOR_INVALID, body)
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
        let mut settings = Settings {
            name: kind.to_owned(),
            timeout: Duration::ZERO,
            retries: 0,
            dir: self.written.dir.clone(),
            block: config,
            servers: self.servers.with_own_usage(),
            prices: budget::prices(self.configuration),
        };
        let executor = new(&settings).map_err(refused)?;
        settings.timeout = timeout.map_or_else(|| executor.default_timeout(), Duration::from_millis);
        settings.retries = retries
            .map_or_else(|| executor.default_retries(), |retries| u32::try_from(retries).unwrap_or(u32::MAX));
        let recorded = json!({"kind": kind, "block": settings.block, "executor": executor.fingerprint()});
        let servers = self.configuration.path();
        let origin = Origin { file: Some(&self.written.path), servers: &servers };
        Ok(SelectedExecutor::of(executor, &settings, origin, recorded))
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

/// The key of a block that names a model.
const MODEL: &str = "model";

/// Executors for adapters that ask a model.
struct MemberFactory<'a> {
    registry: &'a Registry,
    configuration: &'a Configuration,
    manifest: &'a Path,
    needs: &'a RefCell<Vec<TrustRequest>>,
}

impl ExecutorResolver for MemberFactory<'_> {
    fn resolve(&self, name: Option<&str>, block: Map<String, Json>) -> Result<MemberConfig, ConfigError> {
        let (registry, host) = (self.registry, self.configuration);
        let default = host.default_executor.as_ref().map(|(name, _)| name.as_str());
        // A block that names a model needs an executor that can ask one, also without a configured executor.
        let bare = || registry.command_kind().and_then(|kind| registry.bare_preset(kind));
        let fallback = if block.contains_key(MODEL) { bare() } else { registry.default_kind() };
        let chosen_by_host = name.is_none();
        let name = name.or(default).or(fallback).unwrap_or_default();
        let selected_by = SelectedBy::File(self.manifest);
        let mut chosen = executor::by_name_with(registry, host, name, None, selected_by, block.clone());
        if chosen.is_err() && chosen_by_host && block.contains_key(MODEL) {
            // The default executor may not accept a model.
            let without = block.into_iter().filter(|(key, _)| key != MODEL).collect();
            chosen = executor::by_name_with(registry, host, name, None, selected_by, without);
        }
        let chosen = chosen.map_err(|error| ConfigError::for_key("executor", error.first_message()))?;
        let (config, needs) = chosen.into_unadmitted_config();
        self.needs.borrow_mut().extend(needs);
        Ok(config)
    }
}
