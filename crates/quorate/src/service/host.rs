//! What this program knows, as manifests ask it: built from the registries, and from what a program that uses the
//! library adds to them.

use std::collections::BTreeSet;
use std::sync::Arc;

use quorate_kernel::hosted::Hosted;
use quorate_kernel::ports::embedder::Embedder;
use quorate_kernel::ports::gather::Gather;
use quorate_kernel::ports::rule::Rule;
use quorate_manifest::known::RuleKind;
use quorate_protocol::gather;
use quorate_protocol::rules::{Error, Rules};
use regex::RegexBuilder;

/// How large a compiled trait may get, in bytes.
const PATTERN_BYTES: usize = 1 << 20;

/// What this program knows and can do.
#[derive(Debug, Clone, Default)]
pub struct Host {
    rules: Rules,
    gathers: BTreeSet<String>,
    hosted: Hosted,
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
        Host { rules: Rules::built_in(), gathers, hosted: Hosted::default() }
    }

    /// Adds a kind of synthesis rule, and what it does.
    ///
    /// # Errors
    /// When there is one of that name, or its parameters' schema cannot be held.
    pub fn with_rule(mut self, name: &str, kind: RuleKind, rule: Arc<dyn Rule>) -> Result<Self, Error> {
        self.rules.register(name, kind)?;
        self.hosted.rules.insert(name.to_owned(), rule);
        Ok(self)
    }

    /// Adds a gather strategy; its name begins with `custom:`.
    ///
    /// # Errors
    /// When there is one of that name, or the name does not begin so.
    pub fn with_gather(mut self, strategy: &str, gathers: Arc<dyn Gather>) -> Result<Self, StrategyError> {
        if !strategy.starts_with(gather::CUSTOM) {
            return Err(StrategyError::Name(strategy.to_owned()));
        }
        if !self.gathers.insert(strategy.to_owned()) {
            return Err(StrategyError::Duplicate(strategy.to_owned()));
        }
        self.hosted.gathers.insert(strategy.to_owned(), gathers);
        Ok(self)
    }

    /// Compares by meaning with this embedder.
    #[must_use]
    pub fn with_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.hosted.embedder = Some(embedder);
        self
    }

    /// What only the host can do for a run.
    pub fn hosted(&self) -> Hosted {
        self.hosted.clone()
    }
}

impl quorate_manifest::Host for Host {
    fn rule(&self, kind: &str) -> Option<RuleKind> {
        self.rules.get(kind).cloned()
    }

    fn rules(&self) -> Vec<&str> {
        self.rules.names()
    }

    fn gathers(&self, strategy: &str) -> bool {
        self.gathers.contains(strategy)
    }

    fn strategies(&self) -> Vec<&str> {
        self.gathers.iter().map(String::as_str).collect()
    }

    fn pattern(&self, pattern: &str) -> Result<(), String> {
        let built = RegexBuilder::new(pattern).case_insensitive(true).size_limit(PATTERN_BYTES).build();
        built.map(|_| ()).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            error => {
                error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
            }
        })
    }

    fn embeds(&self) -> bool {
        self.hosted.embedder.is_some()
    }
}
