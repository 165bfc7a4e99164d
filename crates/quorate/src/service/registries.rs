//! The registries of a running program: built-in adapters, and the extensions of the embedding program.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use quorate_adapters::default_registry;
use quorate_kernel::extensions::Extensions;
use quorate_kernel::ports::dispatcher::{Dispatcher, State};
use quorate_kernel::ports::executor::{ConfigError, Executor, Settings};
use quorate_kernel::ports::extension::{Embedder, Gather, Rule};
use quorate_kernel::ports::substrate::Substrate;
use quorate_kernel::ports::telemetry::Lifecycle;
use quorate_kernel::registry::{BuildContext, Duplicate, Registry};
use quorate_ledger::signing::{InvalidKey, PublicKey};
use quorate_manifest::assembly::MatchMode;
use quorate_manifest::capabilities::{PublicKeyError, RuleKind, TraitReach};
use quorate_protocol::gather;
use quorate_protocol::locks::trait_reach;
use quorate_protocol::rules::{RegisterRuleError, Rules};
use regex::RegexBuilder;

/// The size limit of a compiled trait, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The registries of a running program.
#[derive(Debug, Clone, Default)]
pub struct Registries {
    rules: Rules,
    gathers: BTreeSet<String>,
    extensions: Extensions,
    registry: Arc<Registry>,
    lifecycles: Lifecycles,
}

/// Lifecycles of the embedding program.
#[derive(Clone, Default)]
struct Lifecycles(Vec<Arc<dyn Lifecycle>>);

impl fmt::Debug for Lifecycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|extension| extension.kind())).finish()
    }
}

/// Why a gather strategy cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// Its name does not begin with `custom:`.
    #[error("the gather strategy `{0}` must begin with `custom:`")]
    Name(String),
    /// The name is taken.
    #[error("the gather strategy `{0}` is registered twice")]
    Duplicate(String),
}

impl Registries {
    /// The built-in adapters only.
    pub fn new() -> Self {
        let gathers = gather::BUILT_IN.map(str::to_owned).into();
        Registries {
            rules: Rules::built_in(),
            gathers,
            extensions: Extensions::default(),
            registry: Arc::new(built_in_registry()),
            lifecycles: Lifecycles::default(),
        }
    }

    /// Registers a kind of synthesis rule.
    ///
    /// # Errors
    /// If the kind exists, or its parameters' schema is invalid.
    pub fn with_rule(
        mut self,
        name: &str,
        kind: RuleKind,
        rule: Arc<dyn Rule>,
    ) -> Result<Self, RegisterRuleError> {
        self.rules.register(name, kind)?;
        self.extensions.rules.insert(name.to_owned(), rule);
        Ok(self)
    }

    /// Registers a gather strategy; its name begins with `custom:`.
    ///
    /// # Errors
    /// If the strategy exists, or its name lacks the prefix.
    pub fn with_gather(mut self, strategy: &str, gathers: Arc<dyn Gather>) -> Result<Self, StrategyError> {
        if !strategy.starts_with(gather::CUSTOM_PREFIX) {
            return Err(StrategyError::Name(strategy.to_owned()));
        }
        if !self.gathers.insert(strategy.to_owned()) {
            return Err(StrategyError::Duplicate(strategy.to_owned()));
        }
        self.extensions.gathers.insert(strategy.to_owned(), gathers);
        Ok(self)
    }

    /// Sets the embedder that compares texts by meaning.
    #[must_use]
    pub fn with_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.extensions.embedder = Some(embedder);
        self
    }

    /// Registers a kind of executor.
    ///
    /// # Errors
    /// If the kind exists.
    pub fn with_executor(
        mut self,
        kind: &str,
        new: impl Fn(&Settings) -> Result<Arc<dyn Executor>, ConfigError> + Send + Sync + 'static,
    ) -> Result<Self, Duplicate> {
        Arc::make_mut(&mut self.registry).executor(kind, new)?;
        Ok(self)
    }

    /// Registers a kind of substrate.
    ///
    /// # Errors
    /// If the kind exists.
    pub fn with_substrate(
        mut self,
        kind: &str,
        new: impl Fn(&BuildContext<'_>) -> Result<Arc<dyn Substrate>, ConfigError> + Send + Sync + 'static,
    ) -> Result<Self, Duplicate> {
        Arc::make_mut(&mut self.registry).substrate(kind, new)?;
        Ok(self)
    }

    /// Registers a kind of dispatcher.
    ///
    /// # Errors
    /// If the kind exists.
    pub fn with_dispatcher(
        mut self,
        kind: &str,
        new: impl Fn(&BuildContext<'_>) -> Result<Arc<dyn Dispatcher>, ConfigError> + Send + Sync + 'static,
    ) -> Result<Self, Duplicate> {
        Arc::make_mut(&mut self.registry).dispatcher(kind, new)?;
        Ok(self)
    }

    /// Registers a kind of store for participants' memory.
    ///
    /// # Errors
    /// If the kind exists.
    pub fn with_state(
        mut self,
        kind: &str,
        new: impl Fn(&BuildContext<'_>) -> Result<Arc<dyn State>, ConfigError> + Send + Sync + 'static,
    ) -> Result<Self, Duplicate> {
        Arc::make_mut(&mut self.registry).state(kind, new)?;
        Ok(self)
    }

    /// Adds a lifecycle listener, which receives events after the hooks of the manifests.
    #[must_use]
    pub fn with_lifecycle(mut self, lifecycle: Arc<dyn Lifecycle>) -> Self {
        self.lifecycles.0.push(lifecycle);
        self
    }

    /// The adapters, by port and kind.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The lifecycle listeners.
    pub fn lifecycles(&self) -> &[Arc<dyn Lifecycle>] {
        &self.lifecycles.0
    }

    /// The extensions that a run may call.
    pub fn extensions(&self) -> Extensions {
        self.extensions.clone()
    }
}

impl quorate_manifest::Capabilities for Registries {
    fn rule_kind(&self, kind: &str) -> Option<RuleKind> {
        self.rules.get(kind).cloned()
    }

    fn rule_kinds(&self) -> Vec<&str> {
        self.rules.names()
    }

    fn has_gather_strategy(&self, strategy: &str) -> bool {
        self.gathers.contains(strategy)
    }

    fn gather_strategies(&self) -> Vec<&str> {
        self.gathers.iter().map(String::as_str).collect()
    }

    fn gather_params_schema(&self, strategy: &str) -> Option<serde_json::Value> {
        gather::params_schema(strategy)
    }

    fn check_pattern(&self, pattern: &str) -> Result<(), String> {
        let built = RegexBuilder::new(pattern).case_insensitive(true).size_limit(MAX_PATTERN_BYTES).build();
        built.map(|_| ()).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            error => {
                error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
            }
        })
    }

    fn trait_reach(&self, text: &str, declared: MatchMode) -> Option<TraitReach> {
        trait_reach(text, declared)
    }

    fn has_embedder(&self) -> bool {
        self.extensions.embedder.is_some()
    }

    fn check_public_key(&self, text: &str) -> Result<(), PublicKeyError> {
        PublicKey::from_text(text).map(|_| ()).map_err(|error| match error {
            InvalidKey::Prefix { .. } if !text.starts_with("quorate:") => PublicKeyError::Foreign,
            error => PublicKeyError::Malformed(error.to_string()),
        })
    }
}

/// All adapters that ship with Quorate.
///
/// # Panics
/// If two of them claim one kind, which a test of `quorate-adapters` rules out.
fn built_in_registry() -> Registry {
    default_registry().expect("the shipped adapters have kinds of their own")
}
