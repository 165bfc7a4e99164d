//! The surroundings of a use case: directory, variables, trust, registries, clock. The library reads none of them from
//! the process: the caller supplies them.
//!
//! The name of a person who decides is the given one, else Git's `user.name` and `user.email`. A checkout's Git
//! configuration is untrusted: `git config` runs no command that it names, its includes are not read, and its values
//! are cleaned.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorate_adapters::process;
use quorate_diagnostics::Body;
use quorate_diagnostics::invisible::{first_invisible, is_invisible};
use quorate_kernel::clock::{Clock, System};
use quorate_kernel::ports::ledger::Ledger;
use quorate_kernel::redact::Redactor;
use quorate_ledger::store::Store;
use tempfile::TempDir;

use super::commit_events::CommitEvents;
use super::error::Error;
use super::redaction::{Variables, built_in_redactor};
use super::registries::Registries;
use super::trust::requests::{Inventory, Trust};
#[cfg(feature = "cluster")]
use crate::cluster::metrics::MeteredLedger;

/// Lists the side effects that the files of the workspace around a directory would have.
pub(crate) type ListWorkspace = fn(&Environment, &Path) -> Result<Inventory, Error>;

/// The surroundings of a use case.
#[derive(Clone)]
pub struct Environment {
    /// The directory that relative paths start from.
    pub directory: PathBuf,
    /// A ledger that overrides the workspace's, and that a call's own overrides.
    pub ledger: Option<PathBuf>,
    /// The NATS servers of remote conversations and participants; on the command line `QUORATE_NATS`.
    pub nats: Option<NatsServers>,
    /// The directory for data that outlives a workspace; on the command line `quorate` below `XDG_STATE_HOME`, else
    /// below `~/.local/state`. `None` keeps no such data.
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
    pub registries: Arc<Registries>,
    /// The clock that gives the time of records.
    pub clock: Arc<dyn Clock>,
    /// The variables that configurations may name; secret ones are redacted.
    pub variables: Variables,
    /// The redactor of texts for display. It has no patterns of users: those were applied when a text was created, and could match
    /// across the quotes of JSON.
    pub redactor: Redactor,
    /// The receivers of records that sessions of this environment commit.
    pub commit_events: CommitEvents,
    /// The directory of a ledger in memory, which goes with its last user.
    pub memory: Option<Arc<TempDir>>,
    /// Whether ledgers outlive the process, so that runs can be resumed later.
    pub keeps_ledgers: bool,
    /// Whether appends and calls are measured (see `cluster::metrics`).
    #[cfg(feature = "cluster")]
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
            registries: Arc::new(Registries::default()),
            clock: Arc::new(System),
            variables: Variables::default(),
            redactor: built_in_redactor(&Variables::default()),
            commit_events: CommitEvents::default(),
            memory: None,
            keeps_ledgers: true,
            #[cfg(feature = "cluster")]
            is_metered: false,
        }
    }

    /// Replaces the variables, and with them the redactor.
    pub fn with_variables(self, variables: Variables) -> Self {
        Environment { redactor: built_in_redactor(&variables), variables, ..self }
    }

    /// The directory that keeps copies of checkpoints; a ledger in memory has none.
    pub fn checkpoint_dir(&self) -> Option<&Path> {
        self.state_dir.as_deref().filter(|_| self.memory.is_none())
    }

    /// The store as a [`Ledger`] port, whose appends are measured if the environment is metered.
    pub fn ledger_port(&self, store: &Arc<Store>) -> Arc<dyn Ledger> {
        #[cfg(feature = "cluster")]
        if self.is_metered {
            return Arc::new(MeteredLedger(store.clone()));
        }
        store.clone()
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

/// The maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 200;

/// The deadline of a Git call.
const GIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Git's scopes, nearest first. The user's own configuration may include files, for example for identities by
/// directory.
const SCOPES: [[&str; 2]; 3] =
    [["--local", "--no-includes"], ["--global", "--includes"], ["--system", "--includes"]];

/// The decider's name: `by`, else the Git identity.
///
/// # Errors
/// If there is neither, or `by` is not a valid name.
pub(crate) async fn decider(environment: &Environment, by: Option<&str>) -> Result<String, Error> {
    let refused = |message: &str, help: &str| Err(Error::usage(Body::new(message).help(help)));
    match by.map(str::trim) {
        Some("") => refused(
            "`--by` is empty",
            "pass the name of the person who decides, for example `--by \"Ada <ada@example.org>\"`",
        ),
        Some(by)
            if by.chars().count() > MAX_NAME_CHARS
                || by.chars().any(char::is_control)
                || first_invisible(by).is_some() =>
        {
            refused(
                &format!(
                    "`--by` is not a name: it has line breaks, invisible characters, or more than {MAX_NAME_CHARS}"
                ),
                "pass the name of the person who decides on one line",
            )
        }
        Some(by) => Ok(by.to_owned()),
        None => match git_identity(&environment.directory).await {
            Some(name) => Ok(name),
            None => refused(
                "cannot record a decision without a name: `--by` is missing, and Git has no `user.name` here",
                "pass `--by NAME`, or set it once with `git config --global user.name NAME`",
            ),
        },
    }
}

/// `user.name <user.email>` as Git knows it in a directory.
async fn git_identity(directory: &Path) -> Option<String> {
    let (mut name, mut email) = (None, None);
    for scope in SCOPES {
        let command =
            ["git", "config", scope[0], scope[1], "--null", "--get-regexp", "^user\\.(name|email)$"];
        let command: Vec<String> = command.map(str::to_owned).into();
        // No repository, no such file, or no Git: try the next scope.
        let Ok(said) = process::run_command(&command, directory, String::new(), GIT_TIMEOUT).await else {
            continue;
        };
        let last = |key: &str| {
            said.split('\0')
                .rev()
                .find_map(|entry| entry.strip_prefix(key)?.strip_prefix('\n'))
                .and_then(sanitize)
        };
        name = name.or_else(|| last("user.name"));
        email = email.or_else(|| last("user.email"));
    }
    let name = name?;
    Some(match email {
        Some(email) => format!("{name} <{email}>"),
        None => name,
    })
}

/// A configuration value as one line without invisible characters or angle brackets, which delimit the address; `None`
/// if nothing remains.
fn sanitize(value: &str) -> Option<String> {
    let visible: String = value.chars().filter(|c| !is_invisible(*c) && !matches!(c, '<' | '>')).collect();
    let words: Vec<&str> = visible.split_whitespace().collect();
    let line: String = words.join(" ").chars().take(MAX_NAME_CHARS / 2).collect();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_a_checkout_becomes_one_line_that_is_seen() {
        assert_eq!(sanitize("Ada\u{200b} \u{1b}[2JLovelace\n<x>"), Some("Ada [2JLovelace x".to_owned()));
        assert_eq!(sanitize("\u{e0041}\u{202e} \t"), None);
        assert_eq!(sanitize(&"a".repeat(1000)).map(|line| line.len()), Some(MAX_NAME_CHARS / 2));
    }
}
