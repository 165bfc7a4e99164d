//! Reads the environment of the process: the working directory, variables, the user.

use std::ffi::OsString;
use std::path::PathBuf;

use quorate::{Builder, NatsServers, Quorate};
#[cfg(any(feature = "mcp", feature = "serve"))]
use quorate::{Error, ErrorKind};
#[cfg(any(feature = "mcp", feature = "serve"))]
use quorate_diagnostics::{Body, RefusalCode};

/// A workspace in the working directory, as the environment configures it.
#[expect(clippy::disallowed_methods, reason = "the one place where the working directory is read")]
pub(super) fn from_process() -> Builder {
    let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let mut builder = Quorate::builder().workspace(directory).variables(variables());
    if let Some(ledger) = path("QUORATE_LEDGER") {
        builder = builder.ledger(ledger);
    }
    if let Some(servers) = nats() {
        builder = builder.nats(servers);
    }
    if let Some(directory) = state_dir() {
        builder = builder.state_dir(directory);
    }
    let user = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(given);
    if let Some(user) = user {
        builder = builder.user(user);
    }
    sudo_caller().into_iter().fold(builder, Builder::owner)
}

/// A variable that is set and UTF-8.
#[expect(clippy::disallowed_methods, reason = "one of the places where the environment is read")]
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A variable that is set, UTF-8 and not empty.
fn given(name: &str) -> Option<String> {
    variable(name).filter(|text| !text.is_empty())
}

/// The NATS servers of `QUORATE_NATS`, with the credentials of `QUORATE_NATS_CREDS` and the prefix `QUORATE_NATS_INBOX`.
pub(super) fn nats() -> Option<NatsServers> {
    let urls = given("QUORATE_NATS")?;
    Some(NatsServers { urls, credentials: path("QUORATE_NATS_CREDS"), inbox: given("QUORATE_NATS_INBOX") })
}

/// The fewest characters of a token that a person chooses.
#[cfg(any(feature = "mcp", feature = "serve"))]
const MIN_TOKEN_CHARS: usize = 16;

/// The bearer token that a variable holds; `None` if no variable is named.
///
/// # Errors
/// `code` if the variable is unset, or its token is easy to guess.
#[cfg(any(feature = "mcp", feature = "serve"))]
pub(super) fn token(name: Option<&str>, code: RefusalCode) -> Result<Option<String>, Error> {
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
    Err(Error::new(ErrorKind::Configuration, code, Body::new(message).help(help)))
}

/// All variables that are UTF-8.
#[expect(clippy::disallowed_methods, reason = "one of the places where the environment is read")]
fn variables() -> impl Iterator<Item = (String, String)> {
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(text)
}

/// A variable with a path, which need not be UTF-8.
#[expect(clippy::disallowed_methods, reason = "one of the places where the environment is read")]
pub(super) fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The state directory. A relative `XDG_STATE_HOME` counts as unset, as its specification demands.
pub(super) fn state_dir() -> Option<PathBuf> {
    let absolute = |name: &str| path(name).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    state.map(|state| state.join("quorate"))
}

/// The user who called `sudo`, if this process runs as root: configuration that this user owns is trusted as well.
fn sudo_caller() -> Option<u32> {
    given("SUDO_UID").filter(|_| rustix::process::geteuid().is_root())?.parse().ok()
}
