//! The surroundings of a use case. The library reads none of them from the process: the caller supplies them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_kernel::clock::{Clock, System};

use super::commit_events::CommitEvents;
use super::error::ServiceError;
use super::host::Host;
use super::redaction::CurrentRedactor;
use super::trust::consent::Trust;
use super::trust::requests::Inventory;
use super::variables::Variables;

/// Lists the side effects that the files of the workspace around a directory would have.
pub type ListWorkspace = fn(&Environment, &Path) -> Result<Inventory, ServiceError>;

/// The surroundings of a use case.
#[derive(Clone)]
pub struct Environment {
    /// The directory that relative paths start from.
    pub directory: PathBuf,
    /// A ledger that overrides the workspace's; on the command line `QUORATE_LEDGER`.
    pub ledger: Option<PathBuf>,
    /// The NATS servers of remote conversations and participants; on the command line `QUORATE_NATS`.
    pub nats: Option<NatsServers>,
    /// The directory for data that outlives a workspace; on the command line `quorate` below `XDG_STATE_HOME`, else below
    /// `~/.local/state`. `None` keeps no such data.
    pub state_dir: Option<PathBuf>,
    /// The users whose files may configure this process.
    pub trusted_uids: Vec<u32>,
    /// The trusted side effects of workspace files.
    pub trust: Trust,
    /// Lists a workspace's side effects, to compare them with a hash that the caller trusts. `None` accepts no hash.
    pub inventory: Option<ListWorkspace>,
    /// The user name that records carry.
    pub user: String,
    /// The registries of this program: built-in adapters and extensions.
    pub host: Arc<Host>,
    pub clock: Arc<dyn Clock>,
    /// The variables that configurations may name; secret ones are redacted.
    pub variables: Variables,
    pub redactor: CurrentRedactor,
    /// The receivers of records that sessions of this environment commit.
    pub commit_events: CommitEvents,
    /// Whether ledgers outlive the process, so that runs can be resumed later.
    pub keeps_ledgers: bool,
    /// Whether appends and calls are measured (see [`super::metrics`]).
    pub is_metered: bool,
}

/// NATS servers of one cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsServers {
    /// `nats://host:4222` or `tls://host`; several are separated by commas. It may contain a password.
    pub urls: String,
    /// A `.creds` file.
    pub credentials: Option<PathBuf>,
    /// The prefix of reply subjects, for accounts that may not subscribe to `_INBOX.>`.
    pub inbox: Option<String>,
}

impl Environment {
    /// An environment for a directory and the user of the process, without variables, with the system's clock.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Environment {
            directory: directory.into(),
            ledger: None,
            nats: None,
            state_dir: None,
            trusted_uids: effective_user(),
            trust: Trust::default(),
            inventory: None,
            user: "unknown".to_owned(),
            host: Arc::new(Host::new()),
            clock: Arc::new(System),
            variables: Variables::default(),
            redactor: CurrentRedactor::default(),
            commit_events: CommitEvents::default(),
            keeps_ledgers: true,
            is_metered: false,
        }
    }

    /// Replaces the variables.
    #[must_use]
    pub fn with_variables(self, variables: Variables) -> Self {
        Environment { redactor: CurrentRedactor::new(variables.clone()), variables, ..self }
    }

    /// Whether files of this user may configure this process.
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
