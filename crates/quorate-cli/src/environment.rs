//! Reads the environment of the process: the working directory, variables, the user.

use std::path::PathBuf;

use quorate::service::environment::{Environment, NatsServers};
#[cfg(any(feature = "mcp", feature = "serve"))]
use quorate::service::error::ServiceError;
use quorate::service::redaction::Variables;
use quorate::service::trust;
#[cfg(any(feature = "mcp", feature = "serve"))]
use quorate_diagnostics::{Body, RefusalCode};

#[expect(clippy::disallowed_methods, reason = "the one place where the working directory is read")]
pub(super) fn from_process() -> Environment {
    let variables = variables();
    let get = |name: &str| variables.get(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let user = get("USER").or_else(|| get("LOGNAME")).or_else(|| get("USERNAME"));
    let mut environment = Environment::new(std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")));
    environment.ledger = path("QUORATE_LEDGER");
    environment.nats = nats();
    environment.state_dir = state_dir();
    environment.inventory = Some(trust::decide::inventory_of_workspace);
    environment.user = user.unwrap_or(environment.user);
    if let Some(caller) = sudo_caller(&environment.trusted_uids, get("SUDO_UID")) {
        environment.trusted_uids.push(caller);
    }
    environment.with_variables(variables)
}

/// A variable that is set and UTF-8.
#[expect(clippy::disallowed_methods, reason = "one of the places where the environment is read")]
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The NATS servers of `QUORATE_NATS`, with the credentials of `QUORATE_NATS_CREDS` and the prefix `QUORATE_NATS_INBOX`.
pub(super) fn nats() -> Option<NatsServers> {
    let urls = variable("QUORATE_NATS").filter(|urls| !urls.is_empty())?;
    let inbox = variable("QUORATE_NATS_INBOX").filter(|inbox| !inbox.is_empty());
    Some(NatsServers { urls, credentials: path("QUORATE_NATS_CREDS"), inbox })
}

/// The fewest characters of a token that a person chooses.
#[cfg(any(feature = "mcp", feature = "serve"))]
const MIN_TOKEN_CHARS: usize = 16;

/// The bearer token that a variable holds; `None` if no variable is named.
///
/// # Errors
/// `code` if the variable is unset, or its token is easy to guess.
#[cfg(any(feature = "mcp", feature = "serve"))]
pub(super) fn token(name: Option<&str>, code: RefusalCode) -> Result<Option<String>, ServiceError> {
    let Some(name) = name else { return Ok(None) };
    let token = variable(name).map(|token| token.trim().to_owned()).unwrap_or_default();
    let message = match token.chars().count() {
        0 => format!("the variable {name} holds no token"),
        1..MIN_TOKEN_CHARS => format!("the token in the variable {name} is too short: it can be guessed"),
        _ => return Ok(Some(token)),
    };
    let help = format!(
        "set it to a random text of {MIN_TOKEN_CHARS} characters or more, for example of `openssl rand -hex 32`"
    );
    Err(ServiceError::configuration(code, Body::new(message).help(help)))
}

/// All variables that are UTF-8.
#[expect(clippy::disallowed_methods, reason = "one of the places where the environment is read")]
pub(super) fn variables() -> Variables {
    let variables = std::env::vars_os();
    variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// A variable with a path, which need not be UTF-8.
#[expect(clippy::disallowed_methods, reason = "one of the places where the environment is read")]
pub(super) fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The state directory. A relative `XDG_STATE_HOME` counts as unset, as its specification demands.
fn state_dir() -> Option<PathBuf> {
    let absolute = |name: &str| path(name).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    state.map(|state| state.join("quorate"))
}

/// The user who called `sudo`, if this process runs as root: configuration that this user owns is trusted as well.
fn sudo_caller(trusted_uids: &[u32], caller: Option<String>) -> Option<u32> {
    caller.filter(|_| trusted_uids == [0])?.parse().ok()
}
