//! What this program knows, as manifests ask it: built from the registries, and from what a program that uses the
//! library adds to them.

use std::collections::BTreeSet;

use quorate_manifest::known::RuleKind;
use quorate_protocol::gather;
use quorate_protocol::rules::{Error, Rules};
use regex::RegexBuilder;

/// How large a compiled trait may get, in bytes.
const PATTERN_BYTES: usize = 1 << 20;

/// What this program knows.
#[derive(Debug, Clone, Default)]
pub struct Host {
    rules: Rules,
    gathers: BTreeSet<String>,
}

impl Host {
    /// What is built in.
    pub fn new() -> Self {
        Host { rules: Rules::built_in(), gathers: gather::BUILT_IN.map(str::to_owned).into() }
    }

    /// Adds a kind of synthesis rule.
    ///
    /// # Errors
    /// When there is one of that name, or its parameters' schema cannot be held.
    pub fn with_rule(mut self, name: &str, kind: RuleKind) -> Result<Self, Error> {
        self.rules.register(name, kind)?;
        Ok(self)
    }

    /// Adds a gather strategy; its name begins with `custom:`.
    #[must_use]
    pub fn with_gather(mut self, strategy: &str) -> Self {
        self.gathers.insert(strategy.to_owned());
        self
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
        false
    }
}
