//! What the process around us gives: working directory, variables, clock.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use quorate_kernel::clock::{Clock, System};
use quorate_kernel::redact::{is_worth_redacting, names_a_secret};

use super::redaction::CurrentRedactor;
use super::trust::Trust;

/// The surroundings of a use case.
#[derive(Clone)]
pub struct Environment {
    /// Where relative paths start.
    pub directory: PathBuf,
    /// `QUORATE_LEDGER`.
    pub ledger: Option<PathBuf>,
    /// Where this user's programs keep what outlives a workspace: `quorate` below `XDG_STATE_HOME`, else below
    /// `~/.local/state`. `None` where neither is set.
    pub state_dir: Option<PathBuf>,
    /// The users whose files may configure us: the one that we run as, and who called `sudo`.
    pub users: Vec<u32>,
    /// What may be done that a file of a workspace names.
    pub trust: Trust,
    /// Who is at work: the account that the process runs under.
    pub user: String,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What is redacted.
    pub redactor: CurrentRedactor,
}

impl Environment {
    /// The surroundings of this process.
    #[expect(clippy::disallowed_methods, reason = "the one place where the environment is read")]
    pub fn from_process() -> Self {
        let name = std::env::var("USER")
            .or_else(|_| std::env::var("LOGNAME"))
            .or_else(|_| std::env::var("USERNAME"));
        Environment {
            directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            ledger: std::env::var_os("QUORATE_LEDGER").filter(|path| !path.is_empty()).map(PathBuf::from),
            state_dir: state_dir(),
            users: users(),
            trust: Trust::default(),
            user: name.unwrap_or_else(|_| "unknown".to_owned()),
            clock: Arc::new(System),
            redactor: CurrentRedactor::default(),
        }
    }
}

impl Environment {
    /// Whether files of this user may configure us.
    pub fn trusts_owner(&self, user: u32) -> bool {
        self.users.contains(&user)
    }
}

/// A relative path in `XDG_STATE_HOME` counts as unset, as its specification has it.
#[expect(clippy::disallowed_methods, reason = "the one place where the environment is read")]
fn state_dir() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    state.map(|state| state.join("quorate"))
}

#[cfg(unix)]
fn users() -> Vec<u32> {
    let own = rustix::process::geteuid();
    let caller = variable("SUDO_UID").filter(|_| own.is_root()).and_then(|user| user.parse().ok());
    std::iter::once(own.as_raw()).chain(caller).collect()
}

#[cfg(not(unix))]
fn users() -> Vec<u32> {
    Vec::new()
}

/// A variable that somebody named, if it is set and text.
#[expect(clippy::disallowed_methods, reason = "the one place where the environment is read")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The values of variables that hold a secret: by their names, or since they are `passed` on to members. Paths, words and
/// what is short are none.
#[expect(clippy::disallowed_methods, reason = "the one place where the environment is read")]
pub fn secrets(passed: &BTreeSet<String>) -> Vec<String> {
    let variables = std::env::vars_os();
    let texts =
        variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let holds = |(name, value): (String, String)| {
        let named = names_a_secret(&name);
        ((named || passed.contains(&name)) && is_worth_redacting(&value, named)).then_some(value)
    };
    texts.filter_map(holds).collect()
}
