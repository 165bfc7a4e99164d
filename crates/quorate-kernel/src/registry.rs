//! The registry: maps the kinds that manifests name to constructors. The kernel itself matches on no kind.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_protocol::Json;
use serde_json::Map;

use crate::attempts::MemberConfig;
use crate::conversation::Participant;
use crate::ports::dispatcher::Dispatcher;
use crate::ports::executor::{ConfigError, Executor, Servers, Settings};
use crate::ports::extension::Embedder;
use crate::ports::provisioning::Provisioning;
use crate::ports::state::State;
use crate::ports::substrate::Substrate;

/// Builds an executor from its settings.
pub type ExecutorBuilder = Arc<dyn Fn(&Settings) -> Result<Arc<dyn Executor>, ConfigError> + Send + Sync>;

/// Builds an embedder from its settings.
pub type EmbedderBuilder = Arc<dyn Fn(&Settings) -> Result<Arc<dyn Embedder>, ConfigError> + Send + Sync>;

/// Builds an executor that may put another one's answers through, which its key `source` names.
pub type WrapperBuilder =
    Arc<dyn Fn(&Settings, Option<Source>) -> Result<Arc<dyn Executor>, ConfigError> + Send + Sync>;

/// The executor that a wrapper asks.
#[derive(Clone)]
pub struct Source {
    /// The executor.
    pub executor: Arc<dyn Executor>,
    /// The deadline of an invocation, as the source's own settings have it.
    pub timeout: Duration,
    /// How many failures are tried again.
    pub retries: u32,
}

/// Builds another port's adapter from its block.
pub type Builder<Port> = Arc<dyn Fn(&BuildContext<'_>) -> Result<Arc<Port>, ConfigError> + Send + Sync>;

/// The constructors of a port's kinds.
pub type Kinds<Port> = BTreeMap<String, Builder<Port>>;

/// The input of an adapter's constructor: its block of the manifest, verbatim, and the place of the build.
pub struct BuildContext<'a> {
    /// The block, with its `kind`.
    pub block: &'a Map<String, Json>,
    /// The directory of the manifest; relative paths are relative to it.
    pub dir: &'a Path,
    /// The id of the runtime.
    pub runtime: &'a str,
    /// Which conversation the runtime has, as its substrate names the place; empty for the substrate itself.
    pub conversation: &'a str,
    /// The participants, in the manifest's order.
    pub participants: &'a [Participant],
    /// The MCP servers that the host has configured.
    pub servers: &'a Servers,
    /// Executors, for adapters that ask a model.
    pub executors: &'a dyn ExecutorResolver,
}

/// Adds executors for adapters that ask a model.
pub trait ExecutorResolver {
    /// The executor of a name (a table of `quorate.toml`, a ready-made one, a kind), or the default one, with these
    /// keys set beside its own.
    ///
    /// # Errors
    /// If no executor has that name, or it refuses its settings.
    fn resolve(&self, name: Option<&str>, block: Map<String, Json>) -> Result<MemberConfig, ConfigError>;
}

/// All kinds that this program knows.
#[derive(Default, Clone)]
pub struct Registry {
    executors: BTreeMap<String, ExecutorBuilder>,
    wrappers: BTreeMap<&'static str, WrapperBuilder>,
    presets: BTreeMap<&'static str, &'static str>,
    runtime_types: BTreeMap<&'static str, ExecutorBuilder>,
    /// The kind that a table means which names a `command` and no kind.
    pub command_kind: Option<&'static str>,
    /// The kind that asks at an address: its block is then `{"base_url": address}`.
    pub url_kind: Option<&'static str>,
    /// The default kind, which needs no settings.
    pub default_kind: Option<&'static str>,
    /// The ready-made executor of a participant whose manifest names this kind and nothing else.
    pub bare_presets: BTreeMap<&'static str, &'static str>,
    /// Kinds that are known but not built in; they refuse until registered.
    unavailable: BTreeSet<String>,
    /// Substrates by kind.
    pub substrates: Kinds<dyn Substrate>,
    /// Dispatchers by kind.
    pub dispatchers: Kinds<dyn Dispatcher>,
    /// State stores by kind.
    pub states: Kinds<dyn State>,
    /// The kind that keeps state where the manifest says none.
    pub default_state_kind: Option<&'static str>,
    /// Provisionings by kind.
    pub provisionings: Kinds<dyn Provisioning>,
    /// What the table `[embedder]` is built with.
    pub embedder: Option<EmbedderBuilder>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("executors", &self.executors.keys())
            .field("substrates", &self.substrates.keys())
            .field("dispatchers", &self.dispatchers.keys())
            .field("states", &self.states.keys())
            .finish_non_exhaustive()
    }
}

/// A kind was registered twice.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the kind `{0}` is registered twice")]
pub struct Duplicate(pub String);

/// Adds a kind to those of a port.
///
/// # Errors
/// When the kind is already registered.
pub fn add<Port: ?Sized>(
    kinds: &mut Kinds<Port>,
    kind: &str,
    new: impl Fn(&BuildContext<'_>) -> Result<Arc<Port>, ConfigError> + Send + Sync + 'static,
) -> Result<(), Duplicate> {
    insert(kinds, kind, Arc::new(new))
}

impl Registry {
    /// No kinds.
    pub fn new() -> Self {
        Registry::default()
    }

    /// Adds an executor kind.
    ///
    /// # Errors
    /// When the kind is already registered.
    pub fn executor(
        &mut self,
        kind: &str,
        new: impl Fn(&Settings) -> Result<Arc<dyn Executor>, ConfigError> + Send + Sync + 'static,
    ) -> Result<(), Duplicate> {
        if self.unavailable.remove(kind) {
            self.executors.remove(kind);
        }
        insert(&mut self.executors, kind, Arc::new(new))
    }

    /// Adds an executor kind that this build lacks: its constructor returns an error until the kind is registered.
    ///
    /// # Errors
    /// When the kind is already registered.
    pub fn unavailable_executor(
        &mut self,
        kind: &str,
        refuses: impl Fn(&Settings) -> Result<Arc<dyn Executor>, ConfigError> + Send + Sync + 'static,
    ) -> Result<(), Duplicate> {
        self.executor(kind, refuses)?;
        self.unavailable.insert(kind.to_owned());
        Ok(())
    }

    /// Adds an executor kind whose key `source` names another executor. Where no host resolves that name, it is built without.
    ///
    /// # Errors
    /// When the kind is already registered.
    pub fn wrapping_executor(
        &mut self,
        kind: &'static str,
        new: impl Fn(&Settings, Option<Source>) -> Result<Arc<dyn Executor>, ConfigError> + Send + Sync + 'static,
    ) -> Result<(), Duplicate> {
        let new: WrapperBuilder = Arc::new(new);
        let without_source = Arc::clone(&new);
        self.executor(kind, move |settings| without_source(settings, None))?;
        self.wrappers.insert(kind, new);
        Ok(())
    }

    /// Adds a ready-made executor that can be named without a table in `quorate.toml`: the block of `kind` is then
    /// just `{"preset": name}`.
    pub fn preset(&mut self, name: &'static str, kind: &'static str) {
        self.presets.insert(name, kind);
    }

    /// Adds a `runtime.type` of the public `council.yaml`, whose block has other keys than ours.
    pub fn runtime_type(
        &mut self,
        name: &'static str,
        new: fn(&Settings) -> Result<Arc<dyn Executor>, ConfigError>,
    ) {
        self.runtime_types.insert(name, Arc::new(new));
    }

    /// The constructor of an executor kind.
    pub fn executor_kind(&self, kind: &str) -> Option<ExecutorBuilder> {
        self.executors.get(kind).cloned()
    }

    /// The constructor of a kind whose key `source` names another executor.
    pub fn wrapper_kind(&self, kind: &str) -> Option<WrapperBuilder> {
        self.wrappers.get(kind).cloned()
    }

    /// The kind behind a ready-made executor.
    pub fn preset_kind(&self, name: &str) -> Option<&'static str> {
        self.presets.get(name).copied()
    }

    /// The constructor of a public runtime type; the executor kinds serve as runtime types too.
    pub fn runtime_type_builder(&self, name: &str) -> Option<ExecutorBuilder> {
        self.runtime_types.get(name).cloned().or_else(|| self.executor_kind(name))
    }

    /// All executor kinds, sorted.
    pub fn executor_kinds(&self) -> impl Iterator<Item = &str> + '_ {
        self.executors.keys().map(String::as_str)
    }

    /// All ready-made executors, sorted.
    pub fn presets(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.presets.keys().copied()
    }

    /// All names that a `runtime.type` can have, sorted.
    pub fn runtime_types(&self) -> impl Iterator<Item = &str> + '_ {
        let mut all: Vec<&str> = self.runtime_types.keys().copied().chain(self.executor_kinds()).collect();
        all.sort_unstable();
        all.into_iter()
    }
}

fn insert<T>(kinds: &mut BTreeMap<String, T>, kind: &str, new: T) -> Result<(), Duplicate> {
    match kinds.entry(kind.to_owned()) {
        Entry::Occupied(known) => Err(Duplicate(known.key().clone())),
        Entry::Vacant(place) => {
            place.insert(new);
            Ok(())
        }
    }
}
