//! The surroundings of a use case. The library reads none of them from the process: whoever calls it says what they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use quorate_kernel::clock::{Clock, System};
use quorate_kernel::redact::{is_worth_redacting, names_a_secret};

use super::host::Host;
use super::redaction::CurrentRedactor;
use super::trust::Trust;

/// Where a use case happens, for whom, and what it may do.
#[derive(Clone)]
pub struct Environment {
    /// Where relative paths start.
    pub directory: PathBuf,
    /// The ledger that the caller names, before what the workspace says: on the command line `QUORATE_LEDGER`.
    pub ledger: Option<PathBuf>,
    /// Where this user's programs keep what outlives a workspace: on the command line `quorate` below `XDG_STATE_HOME`,
    /// else below `~/.local/state`. `None` keeps nothing there.
    pub state_dir: Option<PathBuf>,
    /// The users whose files may configure us.
    pub trusted_uids: Vec<u32>,
    /// What may be done that a file of a workspace names.
    pub trust: Trust,
    /// Who is at work, as records name them.
    pub user: String,
    /// What this program knows and can do: what is built in, and what it was given besides.
    pub host: Arc<Host>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// The variables that configurations may name, and whose secrets are redacted.
    pub variables: Variables,
    /// What is redacted.
    pub redactor: CurrentRedactor,
}

impl Environment {
    /// Work in a directory, on files of the user that the process runs as, with no variables and with the system's clock.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Environment {
            directory: directory.into(),
            ledger: None,
            state_dir: None,
            trusted_uids: effective_user(),
            trust: Trust::default(),
            user: "unknown".to_owned(),
            host: Arc::new(Host::new()),
            clock: Arc::new(System),
            variables: Variables::default(),
            redactor: CurrentRedactor::default(),
        }
    }

    /// The same with these variables.
    #[must_use]
    pub fn with_variables(self, variables: Variables) -> Self {
        Environment { redactor: CurrentRedactor::new(variables.clone()), variables, ..self }
    }

    /// Whether files of this user may configure us.
    pub fn trusts_owner(&self, user: u32) -> bool {
        self.trusted_uids.contains(&user)
    }
}

#[cfg(unix)]
fn effective_user() -> Vec<u32> {
    vec![rustix::process::geteuid().as_raw()]
}

#[cfg(not(unix))]
fn effective_user() -> Vec<u32> {
    Vec::new()
}

#[derive(Clone, Default)]
pub struct Variables(Arc<BTreeMap<String, String>>);

/// The names alone: a value may be a secret.
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
    /// The value of one; `None` where it is not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The values of those that hold a secret: by their names, or since they are `forwarded` to members. Paths, words and
    /// what is short are none.
    pub fn secrets(&self, forwarded: &BTreeSet<String>) -> Vec<String> {
        let holds = |(name, value): (&String, &String)| {
            let named = names_a_secret(name);
            let is_secret = (named || forwarded.contains(name)) && is_worth_redacting(value, named);
            is_secret.then(|| value.clone())
        };
        self.0.iter().filter_map(holds).collect()
    }
}
