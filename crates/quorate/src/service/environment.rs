//! The surroundings of a use case. The library reads none of them from the process: whoever calls it says what they are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_kernel::clock::{Clock, System};

use super::error::ServiceError;
use super::host::Host;
use super::redaction::CurrentRedactor;
use super::trust::consent::Trust;
use super::trust::requests::Inventory;
use super::variables::Variables;

/// Lists what the files of the workspace around a directory would do.
pub type ListWorkspace = fn(&Environment, &Path) -> Result<Inventory, ServiceError>;

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
    /// Lists what a workspace names, to compare it with a hash that the caller trusts. Without it no hash is accepted.
    pub inventory: Option<ListWorkspace>,
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
            inventory: None,
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
