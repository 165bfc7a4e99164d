//! The registry: maps the kinds that manifests name to constructors. The kernel itself matches on no kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ports::executor::{Executor, Refused, Settings};

/// Builds an executor from its settings.
pub type Constructor = fn(&Settings) -> Result<Arc<dyn Executor>, Refused>;

/// All kinds that this program knows.
#[derive(Debug, Default, Clone)]
pub struct Registry {
    executors: BTreeMap<&'static str, Constructor>,
    presets: BTreeMap<&'static str, &'static str>,
    runtimes: BTreeMap<&'static str, Constructor>,
    command: Option<&'static str>,
    fallback: Option<&'static str>,
}

/// A kind was registered twice.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the executor kind `{0}` is registered twice")]
pub struct Duplicate(pub &'static str);

impl Registry {
    /// Nothing registered.
    pub fn new() -> Self {
        Registry::default()
    }

    /// Adds an executor kind.
    ///
    /// # Errors
    /// When the kind is there already.
    pub fn executor(&mut self, kind: &'static str, new: Constructor) -> Result<(), Duplicate> {
        match self.executors.insert(kind, new) {
            None => Ok(()),
            Some(_) => Err(Duplicate(kind)),
        }
    }

    /// Adds a ready-made executor that can be named without a table in `quorate.toml`: the block of `kind` is then
    /// just `{"preset": name}`.
    pub fn preset(&mut self, name: &'static str, kind: &'static str) {
        self.presets.insert(name, kind);
    }

    /// Says which kind a table means that names a `command` and no kind.
    pub fn command(&mut self, kind: &'static str) {
        self.command = Some(kind);
    }

    /// Says which kind answers where nobody says another; it needs no settings.
    pub fn fallback(&mut self, kind: &'static str) {
        self.fallback = Some(kind);
    }

    /// Adds a `runtime.type` of the public `council.yaml`, whose block has other keys than ours.
    pub fn runtime_type(&mut self, name: &'static str, new: Constructor) {
        self.runtimes.insert(name, new);
    }

    /// The constructor of an executor kind.
    pub fn executor_kind(&self, kind: &str) -> Option<Constructor> {
        self.executors.get(kind).copied()
    }

    /// The kind behind a ready-made executor.
    pub fn preset_kind(&self, name: &str) -> Option<&'static str> {
        self.presets.get(name).copied()
    }

    /// The kind that a table means which names a `command` and no kind.
    pub fn command_kind(&self) -> Option<&'static str> {
        self.command
    }

    /// The kind that answers where nobody says another.
    pub fn fallback_kind(&self) -> Option<&'static str> {
        self.fallback
    }

    /// The constructor of a public runtime type; the executor kinds serve as runtime types too.
    pub fn runtime(&self, name: &str) -> Option<Constructor> {
        self.runtimes.get(name).copied().or_else(|| self.executor_kind(name))
    }

    /// All executor kinds, sorted.
    pub fn executor_kinds(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.executors.keys().copied()
    }

    /// All ready-made executors, sorted.
    pub fn presets(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.presets.keys().copied()
    }

    /// All names that a `runtime.type` can have, sorted.
    pub fn runtime_types(&self) -> impl Iterator<Item = &'static str> + '_ {
        let mut all: Vec<_> = self.runtimes.keys().chain(self.executors.keys()).copied().collect();
        all.sort_unstable();
        all.into_iter()
    }
}
