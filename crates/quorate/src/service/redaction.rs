//! The caller's variables, and the redactions of a workspace (X10): strings in the form of a secret, matches of
//! configured patterns, and the values of secret variables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::record::RunOpened;
use quorate_kernel::redact::{Redactor, Secrets, VERSION, is_worth_redacting, names_a_secret};
use quorate_manifest::config::{Configuration, Redaction as Table};
use quorate_manifest::council::Council;
use quorate_protocol::Json;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, json};

use super::error::Error;

/// The maximum length of a text's name, in bytes: no path is longer, and lists and pages repeat the name.
const MAX_NAME_BYTES: usize = 4096;

/// A redactor and its settings.
#[derive(Debug, Clone, Default)]
pub struct Redaction {
    pub redactor: Redactor,
    settings: Json,
}

impl Redaction {
    /// The redaction of a configuration and a council.
    ///
    /// # Errors
    /// If the patterns cannot be combined.
    pub fn of(config: &Configuration, council: &Council, variables: &Variables) -> Result<Self, Error> {
        let Table { builtin, environment, patterns } = &config.redact;
        let patterns = [&patterns[..], &council.logging.redact_patterns[..]].concat();
        let passed = || forwarded_variables(config, council);
        let values = if *environment { variables.secrets(&passed()) } else { Vec::new() };
        let settings = json!({
            "patterns": patterns, "builtin": builtin.then_some(VERSION), "environment": environment,
        });
        let secrets = Secrets { builtin: *builtin, patterns, values };
        let redactor = Redactor::from_secrets(&secrets)
            .map_err(|error| Error::configuration(codes::PATTERN_INVALID, Body::new(error.to_string())))?;
        Ok(Redaction { redactor, settings })
    }

    /// Refuses members whose ids look like secrets. An id is part of records, prompts and outcomes, so it cannot be
    /// redacted. User patterns are not applied: they may match an id for other reasons.
    ///
    /// # Errors
    /// If an id looks like a secret; the error does not quote it.
    pub fn check_ids<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> Result<(), Error> {
        let redactor = self.redactor.without_patterns();
        match ids.into_iter().position(|id| redactor.redact(id).1 > 0) {
            None => Ok(()),
            Some(at) => {
                let body = Body::new(format!("cannot use member {}: its id looks like a secret", at + 1));
                Err(Error::configuration(codes::COUNCIL_INVALID, body.help("rename the member")))
            }
        }
    }

    /// The text of an artifact or a proposal with this name as members see it, and the number of secrets in it. If
    /// `lines`, each line is JSON.
    ///
    /// # Errors
    /// If the name is too long.
    pub async fn redact_subject(
        &self,
        name: &str,
        text: &Arc<str>,
        lines: bool,
    ) -> Result<(String, usize), Error> {
        if name.len() > MAX_NAME_BYTES {
            let body = Body::new(format!("the name of the text is over {MAX_NAME_BYTES} bytes"));
            return Err(Error::configuration(
                codes::ARTIFACT_UNREADABLE,
                body.help("give it a shorter name"),
            ));
        }
        let (text, bytes) = (text.clone(), text.len());
        let redact = move |redactor: &Redactor| match lines {
            true => redactor.redact_lines(&text),
            false => redactor.redact(&text),
        };
        Ok(self.redactor.run_blocking_if_large(bytes, redact).await)
    }

    /// The part of the run's fingerprint. It has no values: a run can be resumed after a key was rotated, and the hash
    /// of a secret must not be stored.
    pub fn settings(&self) -> &Json {
        &self.settings
    }

    /// Redacts the `run.opened` fields about the environment, and adds to its redaction count.
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
            self.redact(&mut opened.stand_ins),
            opened.executor.as_mut().map_or(0, |named| self.redact(named)),
        ];
        opened.redactions += found.into_iter().sum::<usize>() as u64;
    }

    /// Redacts the texts in a value, and returns the number of secrets.
    fn redact<T: Serialize + DeserializeOwned + Default>(&self, value: &mut T) -> usize {
        let (clean, found) = self.redactor.redact_json(json!(*value));
        // Redaction keeps the types of a value. If the result cannot be read back, the default replaces the value, so
        // no secret stays.
        *value = serde_json::from_value(clean).unwrap_or_default();
        found
    }
}

/// The variables that members and servers receive.
fn forwarded_variables(config: &Configuration, council: &Council) -> BTreeSet<String> {
    let executors = config.executors.values().chain(council.runtimes()).map(|table| &table.block.json);
    let servers = config.servers.values().map(|block| &block.json);
    let named = |block: &Map<String, Json>| {
        let list = block.get("env").and_then(Json::as_array).cloned().unwrap_or_default();
        let names = list.into_iter().chain(block.get("token").cloned());
        names.filter_map(|name| name.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    executors.chain(servers).flat_map(named).collect()
}

/// The redactor where no configuration is read: built-in forms, and the values of secret variables.
pub(crate) fn built_in_redactor(variables: &Variables) -> Redactor {
    let redaction =
        Redaction::of(&Configuration::default(), &quorate_manifest::council::built_in_council(), variables);
    redaction.map(|redaction| redaction.redactor).unwrap_or_default()
}

#[derive(Clone, Default)]
pub struct Variables(Arc<BTreeMap<String, String>>);

/// Shows names only: a value may be a secret.
impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl FromIterator<(String, String)> for Variables {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Variables(Arc::new(variables.into_iter().collect()))
    }
}

impl Variables {
    /// A variable's value; `None` if it is not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The values to redact: of variables whose name indicates a secret, and of those `forwarded` to members. Paths,
    /// words and short values are not redacted.
    pub fn secrets(&self, forwarded: &BTreeSet<String>) -> Vec<String> {
        let holds = |(name, value): (&String, &String)| {
            let named = names_a_secret(name);
            let is_secret = (named || forwarded.contains(name)) && is_worth_redacting(value, named);
            is_secret.then(|| value.clone())
        };
        self.0.iter().filter_map(holds).collect()
    }
}
