//! What is redacted in a workspace (X10): what has the shape of a secret, what the configuration's patterns match, and the
//! values of variables that hold one.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use quorate_diagnostics::{Body, codes};
use quorate_kernel::record::RunOpened;
use quorate_kernel::redact::{Redactor, Secrets, VERSION};
use quorate_manifest::config::{Configuration, Redaction as Table};
use quorate_manifest::council::Council;
use quorate_protocol::Json;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, json};

use super::error::ServiceError;
use super::variables::Variables;

/// What is redacted, and by what settings.
#[derive(Debug, Clone, Default)]
pub struct Redaction {
    pub redactor: Redactor,
    settings: Json,
}

impl Redaction {
    /// What holds for a configuration and a council.
    ///
    /// # Errors
    /// When the patterns cannot be used together.
    pub fn of(host: &Configuration, council: &Council, variables: &Variables) -> Result<Self, ServiceError> {
        let Table { builtin, environment, patterns } = &host.redact;
        let patterns = [&patterns[..], &council.logging.redact_patterns[..]].concat();
        let passed = || forwarded_variables(host, council);
        let values = if *environment { variables.secrets(&passed()) } else { Vec::new() };
        let settings = json!({
            "patterns": patterns, "builtin": builtin.then_some(VERSION), "environment": environment,
        });
        let secrets = Secrets { builtin: *builtin, patterns, values };
        let redactor = Redactor::from_secrets(&secrets).map_err(|error| {
            ServiceError::configuration(codes::PATTERN_INVALID, Body::new(error.to_string()))
        })?;
        Ok(Redaction { redactor, settings })
    }

    /// Refuses members whose ids look like secrets. An id names records, prompts and outcomes, so it cannot be replaced. A
    /// pattern of the user's may match an id for other reasons.
    ///
    /// # Errors
    /// When there is one; it does not quote it.
    pub fn check_ids<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> Result<(), ServiceError> {
        let redactor = self.redactor.without_patterns();
        match ids.into_iter().position(|id| redactor.redact(id).1 > 0) {
            None => Ok(()),
            Some(at) => {
                let body = Body::new(format!("cannot seat member {}: its id looks like a secret", at + 1));
                Err(ServiceError::configuration(codes::COUNCIL_INVALID, body.help("rename the member")))
            }
        }
    }

    /// What the fingerprint of a run has of it. Values are left out: a run goes on after a key was rotated, and the hash
    /// of a secret is nothing to keep.
    pub fn settings(&self) -> &Json {
        &self.settings
    }

    /// Cleans what `run.opened` says of surroundings, and adds to its count of redactions.
    pub fn redact_run_opened(&self, opened: &mut RunOpened) {
        let found = [
            self.redact(&mut opened.title),
            self.redact(&mut opened.producer),
            self.redact(&mut opened.files),
            self.redact(&mut opened.manifest),
            self.redact(&mut opened.root),
            self.redact(&mut opened.config),
            self.redact(&mut opened.host),
            self.redact(&mut opened.log_path),
            self.redact(&mut opened.executors),
            opened.executor.as_mut().map_or(0, |named| self.redact(named)),
        ];
        opened.redactions += found.into_iter().sum::<usize>() as u64;
    }

    /// Redacts the texts in a value, and says how many secrets it had.
    fn redact<T: Serialize + DeserializeOwned + Default>(&self, value: &mut T) -> usize {
        let (clean, found) = self.redactor.redact_json(json!(*value));
        // A text stays a text. What could not be read again would be left out, and not left as it was.
        *value = serde_json::from_value(clean).unwrap_or_default();
        found
    }
}

/// The names of the variables that members and servers are given.
fn forwarded_variables(host: &Configuration, council: &Council) -> BTreeSet<String> {
    let executors = host.executors.values().chain(&council.runtime).map(|table| &table.block.json);
    let servers = host.servers.values().map(|block| &block.json);
    let named = |block: &Map<String, Json>| {
        let list = block.get("env").and_then(Json::as_array).cloned().unwrap_or_default();
        let names = list.into_iter().chain(block.get("token").cloned());
        names.filter_map(|name| name.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    executors.chain(servers).flat_map(named).collect()
}

/// What is redacted in this process, by whatever configuration was read last.
#[derive(Clone, Default)]
pub struct CurrentRedactor {
    variables: Variables,
    set: Arc<RwLock<Option<Redactor>>>,
}

/// Without what is redacted.
impl std::fmt::Debug for CurrentRedactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CurrentRedactor").finish_non_exhaustive()
    }
}

impl CurrentRedactor {
    /// Redacts the secrets of these variables, until a configuration says more.
    pub fn new(variables: Variables) -> Self {
        CurrentRedactor { variables, set: Arc::default() }
    }

    /// From now on this is redacted.
    pub fn set(&self, redactor: Redactor) {
        *self.set.write().unwrap_or_else(PoisonError::into_inner) = Some(redactor);
    }

    /// What redacts; before a configuration was read, whatever is redacted without one.
    pub fn redactor(&self) -> Redactor {
        let set = self.set.read().unwrap_or_else(PoisonError::into_inner).clone();
        set.unwrap_or_else(|| {
            let without = Redaction::of(
                &Configuration::default(),
                &quorate_manifest::council::built_in(),
                &self.variables,
            );
            let redactor = without.map(|redaction| redaction.redactor).unwrap_or_default();
            self.set(redactor.clone());
            redactor
        })
    }

    /// A text as it may be shown, JSON or not. Patterns of somebody's own have been applied where the text was made: here
    /// they could tear what stands around a match.
    pub fn redact_text(&self, text: &str) -> String {
        self.redactor().without_patterns().redact(text).0
    }

    /// A value as it may be shown.
    pub fn redact_json(&self, value: Json) -> Json {
        self.redactor().without_patterns().redact_json(value).0
    }
}
