//! The registries of a running program: built-in adapters, and the extensions of the embedding program.

use std::collections::BTreeSet;
use std::sync::Arc;

use quorate_adapters::default_registry;
use quorate_kernel::extensions::Extensions;
use quorate_kernel::meaning::Meaning;
use quorate_kernel::ports::extension::{Embedder, Gather, Rule};
use quorate_kernel::ports::telemetry::Lifecycle;
use quorate_kernel::registry::Registry;
use quorate_ledger::signing::{InvalidKey, PublicKey};
use quorate_manifest::assembly::MatchMode;
use quorate_manifest::capabilities::{PublicKeyError, RuleKind};
use quorate_protocol::gather;
use quorate_protocol::locks::{TraitReach, trait_reach};
use quorate_protocol::rules::{RegisterRuleError, Rules};
use regex::RegexBuilder;

/// The size limit of a compiled trait, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The registries of a running program.
#[derive(Clone)]
pub struct Registries {
    rules: Rules,
    gathers: BTreeSet<String>,
    extensions: Extensions,
    registry: Arc<Registry>,
    /// Lifecycles of the embedding program.
    pub(crate) lifecycles: Vec<Arc<dyn Lifecycle>>,
}

impl Default for Registries {
    /// The built-in adapters only.
    fn default() -> Self {
        Registries {
            rules: Rules::built_in(),
            gathers: gather::BUILT_IN.map(str::to_owned).into(),
            extensions: Extensions::default(),
            registry: Arc::new(built_in_registry()),
            lifecycles: Vec::new(),
        }
    }
}

impl Registries {
    /// Registers a kind of synthesis rule.
    ///
    /// # Errors
    /// If the kind exists, or its parameters' schema is invalid.
    pub(crate) fn add_rule(&mut self, name: &str, rule: Arc<dyn Rule>) -> Result<(), RegisterRuleError> {
        self.rules.register(name, rule.describe())?;
        self.extensions.rules.insert(name.to_owned(), rule);
        Ok(())
    }

    /// Registers a gather strategy; its name begins with `custom:`.
    ///
    /// # Errors
    /// If the strategy exists, or its name lacks the prefix.
    pub(crate) fn add_gather(&mut self, strategy: &str, gathers: Arc<dyn Gather>) -> Result<(), String> {
        if !strategy.starts_with(gather::CUSTOM_PREFIX) {
            return Err(format!("the gather strategy `{strategy}` must begin with `custom:`"));
        }
        if !self.gathers.insert(strategy.to_owned()) {
            return Err(format!("the gather strategy `{strategy}` is registered twice"));
        }
        self.extensions.gathers.insert(strategy.to_owned(), gathers);
        Ok(())
    }

    /// Sets the embedder that compares texts by meaning.
    pub(crate) fn set_embedder(&mut self, embedder: Arc<dyn Embedder>) {
        self.extensions.meaning = Some(Meaning::Embedder(embedder));
    }

    /// The adapters, to register more of them.
    pub(crate) fn registry_mut(&mut self) -> &mut Registry {
        Arc::make_mut(&mut self.registry)
    }

    /// The adapters, by port and kind.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
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
        self.extensions.meaning.is_some()
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

#[cfg(test)]
mod spec;
