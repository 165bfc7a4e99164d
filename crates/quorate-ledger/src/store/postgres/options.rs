//! The options in a database address: accepted parameters, contradictions between them, and whether the server's
//! certificate is verified. The client itself ignores unknown parameters, so a misspelt `sslmode` would leave a
//! connection unprotected.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::str::FromStr as _;

use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use url::Url;

use crate::store::KNOWN_PARAMETERS;

/// The accepted values of `sslmode`. `allow` is missing, because the client would never use TLS with it.
const SSL_MODES: [&str; 5] = ["disable", "prefer", "require", "verify-ca", "verify-full"];

/// Why an address is refused, with the remedy. The text contains no parameter value except that of `sslmode`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct InvalidAddress {
    pub what: String,
    pub help: String,
}

fn refused<T>(what: impl Into<String>, help: impl Into<String>) -> Result<T, InvalidAddress> {
    Err(InvalidAddress { what: what.into(), help: help.into() })
}

/// The client's options for a database.
///
/// # Errors
/// If the address is malformed, or has parameters that are unknown or contradict each other.
pub(in crate::store) fn connect_options(address: &str) -> Result<PgConnectOptions, InvalidAddress> {
    let Ok(url) = Url::parse(address) else {
        return refused("it is not a URL", "write it as `postgres://user@host/database?sslmode=verify-full`");
    };
    let parameters = parameters(&url)?;
    check_contradictions(&parameters)?;
    let options = match PgConnectOptions::from_str(address) {
        Ok(options) => options.disable_statement_logging(),
        // The client's message may contain the value, which may be a password.
        Err(_) => return refused("a part of it cannot be parsed", "check its port, `port` and `hostaddr`"),
    };
    let options = match options.get_application_name() {
        None => options.application_name("quorate"),
        Some(_) => options,
    };
    require_tls(options, &parameters)
}

/// The parameters, each known and given once.
fn parameters(url: &Url) -> Result<BTreeMap<String, String>, InvalidAddress> {
    if url.fragment().is_some() {
        return refused("it has a `#`", "write a `#` that belongs to a name or password as `%23`");
    }
    let mut parameters = BTreeMap::new();
    for (key, value) in url.query_pairs() {
        let is_setting = key.strip_prefix("options[").is_some_and(|rest| rest.ends_with(']'));
        if !is_setting && !KNOWN_PARAMETERS.contains(&&*key) {
            let known = format!("known are {}, and `options[NAME]`", KNOWN_PARAMETERS.join(", "));
            return refused(format!("unknown parameter `{key}`"), known);
        }
        if parameters.insert(key.to_string(), value.to_string()).is_some() {
            return refused(format!("`{key}` is given twice"), "give it once");
        }
    }
    Ok(parameters)
}

/// Refuses contradictory parameters of the encryption.
fn check_contradictions(parameters: &BTreeMap<String, String>) -> Result<(), InvalidAddress> {
    let has = |key: &str| parameters.contains_key(key);
    if has("sslcert") != has("sslkey") {
        return refused("it has only one of `sslcert` and `sslkey`", "give the certificate and its key");
    }
    let Some(mode) = parameters.get("sslmode") else { return Ok(()) };
    if mode == "allow" {
        let help = "say `sslmode=disable` for a connection without TLS, `sslmode=prefer` for TLS where the server has it";
        return refused("`sslmode=allow` is not supported: it would never use TLS", help);
    }
    if !SSL_MODES.contains(&&**mode) {
        return refused(format!("unknown `sslmode={mode}`"), format!("use one of {}", SSL_MODES.join(", ")));
    }
    if has("sslrootcert") && !mode.starts_with("verify-") {
        let what = format!("`sslmode={mode}` does not verify the certificate that `sslrootcert` is for");
        return refused(what, "say `sslmode=verify-full`, or leave `sslrootcert` out");
    }
    if mode == "disable" && (has("sslcert") || has("sslkey")) {
        return refused("`sslmode=disable` uses no certificate", "leave `sslcert` and `sslkey` out");
    }
    Ok(())
}

/// Encrypts a connection that leaves this machine and verifies the server's certificate, unless the address or
/// `PGSSLMODE` sets another mode than `prefer`, which is the client's default.
fn require_tls(
    options: PgConnectOptions,
    parameters: &BTreeMap<String, String>,
) -> Result<PgConnectOptions, InvalidAddress> {
    let is_socket = options.get_socket().is_some() || options.get_host().starts_with('/');
    match parameters.get("sslmode").map(String::as_str) {
        Some(mode) if is_socket && !matches!(mode, "disable" | "prefer") => refused(
            format!("`sslmode={mode}` cannot hold for a Unix socket, which has no TLS"),
            "leave `sslmode` out, or name a host",
        ),
        Some(_) => Ok(options),
        None if is_socket || is_loopback(options.get_host()) => {
            match parameters.contains_key("sslrootcert") {
                true => Ok(options.ssl_mode(PgSslMode::VerifyFull)),
                false => Ok(options),
            }
        }
        None => Ok(match options.get_ssl_mode() {
            PgSslMode::Disable | PgSslMode::Require | PgSslMode::VerifyCa => options,
            _ => options.ssl_mode(PgSslMode::VerifyFull),
        }),
    }
}

/// Whether a host is this machine.
fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(address: &str) -> &'static str {
        match connect_options(address).expect(address).get_ssl_mode() {
            PgSslMode::Allow => "allow",
            PgSslMode::Disable => "disable",
            PgSslMode::Prefer => "prefer",
            PgSslMode::Require => "require",
            PgSslMode::VerifyCa => "verify-ca",
            PgSslMode::VerifyFull => "verify-full",
        }
    }

    #[test]
    fn a_connection_that_leaves_the_machine_is_verified_unless_the_address_says_otherwise() {
        for (address, expected) in [
            ("postgres://ada@db.example.org/q", "verify-full"),
            ("postgresql://ada@192.0.2.7/q", "verify-full"),
            ("postgres:///q?host=db.example.org", "verify-full"),
            ("postgres:///q?hostaddr=192.0.2.7", "verify-full"),
            ("postgres://localhost.example.org/q", "verify-full"),
            ("postgres://ada@db/q?sslmode=require", "require"),
            ("postgres://ada@db/q?sslmode=prefer", "prefer"),
            ("postgres://ada@db/q?sslmode=disable", "disable"),
            ("postgres://ada@db/q?sslmode=verify-ca&sslrootcert=/ca.pem", "verify-ca"),
            ("postgres://ada@db/q?sslrootcert=/ca.pem", "verify-full"),
            ("postgres://ada@localhost/q", "prefer"),
            ("postgres://ada@127.0.0.3:5433/q", "prefer"),
            ("postgres://ada@[::1]/q", "prefer"),
            ("postgres:///q?host=/run/postgresql", "prefer"),
            ("postgres://ada@localhost/q?sslrootcert=/ca.pem", "verify-full"),
        ] {
            assert_eq!(mode(address), expected, "{address}");
        }
    }

    #[test]
    fn what_an_address_may_not_say_is_refused_and_no_value_is_shown() {
        for (address, says) in [
            ("postgres://db/q?sslmod=verify-full", "unknown parameter `sslmod`"),
            ("postgres://db/q?ssl-mode=require", "unknown parameter `ssl-mode`"),
            ("postgres://db/q?passwrod=s3cret", "unknown parameter `passwrod`"),
            ("postgres://db/q?connect_timeout=3", "unknown parameter `connect_timeout`"),
            ("postgres://db/q?SSLMODE=require", "unknown parameter `SSLMODE`"),
            ("postgres://db/q?sslmode=verify_full", "unknown `sslmode=verify_full`"),
            ("postgres://db/q?sslmode=", "unknown `sslmode=`"),
            ("postgres://db/q?sslmode=allow", "never use TLS"),
            ("postgres://db/q?sslmode=require&sslmode=disable", "given twice"),
            ("postgres://db/q?sslmode=require&sslrootcert=/ca.pem", "does not verify"),
            ("postgres://db/q?sslmode=disable&sslcert=/a&sslkey=/b", "uses no certificate"),
            ("postgres://db/q?sslcert=/a", "one of `sslcert` and `sslkey`"),
            ("postgres:///q?host=/run/pg&sslmode=verify-full", "Unix socket"),
            ("postgres://db/q#s3cret", "it has a `#`"),
            ("postgres:///q?hostaddr=s3cret", "cannot be parsed"),
            ("postgres://db:s3cret", "not a URL"),
        ] {
            let error = connect_options(address).expect_err(address);
            assert!(error.what.contains(says), "{address}: {error}");
            assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
            assert!(!error.help.is_empty());
        }
    }
}
