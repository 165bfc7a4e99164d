//! What this program knows, as manifests ask it: built from the registries, and from what a program that uses the
//! library adds to them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use quorate_adapters::default_registry;
use quorate_kernel::extensions::Extensions;
use quorate_kernel::ports::dispatcher::Dispatcher;
use quorate_kernel::ports::embedder::Embedder;
use quorate_kernel::ports::executor::{ConfigError, Executor, Settings};
use quorate_kernel::ports::gather::Gather;
use quorate_kernel::ports::lifecycle::Lifecycle;
use quorate_kernel::ports::rule::Rule;
use quorate_kernel::ports::state::State;
use quorate_kernel::ports::substrate::Substrate;
use quorate_kernel::registry::{BuildContext, Duplicate, Registry};
use quorate_ledger::signing::{InvalidKey, PublicKey};
use quorate_manifest::capabilities::{PublicKeyError, RuleKind};
use quorate_protocol::gather;
use quorate_protocol::rules::{Error, Rules};
use regex::RegexBuilder;

/// How large a compiled trait may get, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// What this program knows and can do.
#[derive(Debug, Clone, Default)]
pub struct Host {
    rules: Rules,
    gathers: BTreeSet<String>,
    extensions: Extensions,
    registry: Arc<Registry>,
    lifecycles: Lifecycles,
}

/// Lifecycles of a program that uses the library.
#[derive(Clone, Default)]
struct Lifecycles(Vec<Arc<dyn Lifecycle>>);

impl fmt::Debug for Lifecycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|extension| extension.kind())).finish()
    }
}

/// A gather strategy that cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// Its name does not begin as those of hosts do.
    #[error("the gather strategy `{0}` has to begin with `custom:`")]
    Name(String),
    /// There is one of that name.
    #[error("the gather strategy `{0}` is registered twice")]
    Duplicate(String),
}

impl Host {
    /// What is built in.
    pub fn new() -> Self {
        let gathers = gather::BUILT_IN.map(str::to_owned).into();
        Host {
            rules: Rules::built_in(),
            gathers,
            extensions: Extensions::default(),
            registry: Arc::new(built_in_registry()),
            lifecycles: Lifecycles::default(),
        }
    }

    /// Adds a kind of synthesis rule, and what it does.
    ///
    /// # Errors
    /// When there is one of that name, or its parameters' schema cannot be held.
    pub fn with_rule(mut self, name: &str, kind: RuleKind, rule: Arc<dyn Rule>) -> Result<Self, Error> {
        self.rules.register(name, kind)?;
        self.extensions.rules.insert(name.to_owned(), rule);
        Ok(self)
    }

    /// Adds a gather strategy; its name begins with `custom:`.
    ///
    /// # Errors
    /// When there is one of that name, or the name does not begin so.
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

    /// Compares by meaning with this embedder.
    #[must_use]
    pub fn with_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.extensions.embedder = Some(embedder);
        self
    }

    /// Adds a kind of executor, for participants of a runtime.
    ///
    /// # Errors
    /// When there is one of that kind.
    pub fn with_executor(
        mut self,
        kind: &str,
        new: impl Fn(&Settings) -> Result<Arc<dyn Executor>, ConfigError> + Send + Sync + 'static,
    ) -> Result<Self, Duplicate> {
        Arc::make_mut(&mut self.registry).executor(kind, new)?;
        Ok(self)
    }

    /// Adds a kind of substrate.
    ///
    /// # Errors
    /// When there is one of that kind.
    pub fn with_substrate(
        mut self,
        kind: &str,
        new: impl Fn(&BuildContext<'_>) -> Result<Arc<dyn Substrate>, ConfigError> + Send + Sync + 'static,
    ) -> Result<Self, Duplicate> {
        Arc::make_mut(&mut self.registry).substrate(kind, new)?;
        Ok(self)
    }

    /// Adds a kind of dispatcher.
    ///
    /// # Errors
    /// When there is one of that kind.
    pub fn with_dispatcher(
        mut self,
        kind: &str,
        new: impl Fn(&BuildContext<'_>) -> Result<Arc<dyn Dispatcher>, ConfigError> + Send + Sync + 'static,
    ) -> Result<Self, Duplicate> {
        Arc::make_mut(&mut self.registry).dispatcher(kind, new)?;
        Ok(self)
    }

    /// Adds a kind of store for what participants remember.
    ///
    /// # Errors
    /// When there is one of that kind.
    pub fn with_state(
        mut self,
        kind: &str,
        new: impl Fn(&BuildContext<'_>) -> Result<Arc<dyn State>, ConfigError> + Send + Sync + 'static,
    ) -> Result<Self, Duplicate> {
        Arc::make_mut(&mut self.registry).state(kind, new)?;
        Ok(self)
    }

    /// Tells somebody what happens in the conversations of runtimes, beside the hooks of their manifests.
    #[must_use]
    pub fn with_lifecycle(mut self, lifecycle: Arc<dyn Lifecycle>) -> Self {
        self.lifecycles.0.push(lifecycle);
        self
    }

    /// The adapters, by port and kind.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Whoever is told what happens.
    pub fn lifecycles(&self) -> &[Arc<dyn Lifecycle>] {
        &self.lifecycles.0
    }

    /// What only the host can do for a run.
    pub fn extensions(&self) -> Extensions {
        self.extensions.clone()
    }
}

impl quorate_manifest::Capabilities for Host {
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

/// All adapters that ship.
///
/// # Panics
/// When two of them claim one kind; a test of that crate rules it out.
fn built_in_registry() -> Registry {
    default_registry().expect("the shipped adapters have kinds of their own")
}
