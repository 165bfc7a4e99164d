//! Arguments that several tools share, with the meaning of the command line's options.

use std::time::Duration;

use quorate_kernel::budget::Caps;
use quorate_manifest::config::parse_money;
use quorate_protocol::policy::Policy;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{MaxCalls, MaxTokens};
use crate::failure::Failure;

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum PolicyName {
    Seed,
    Strict,
}

impl From<PolicyName> for Policy {
    fn from(name: PolicyName) -> Policy {
        match name {
            PolicyName::Seed => Policy::Seed,
            PolicyName::Strict => Policy::Strict,
        }
    }
}

/// The limits of a run.
pub(super) fn caps(
    calls: Option<MaxCalls>,
    tokens: Option<MaxTokens>,
    money: Option<&str>,
) -> Result<Caps, Failure> {
    let money = money.map(|text| {
        parse_money(text)
            .map_err(|why| Failure::usage(format!("`max_money`: {why}"), "write 5 USD or 0.50 USD"))
    });
    Ok(Caps {
        calls: calls.map(|calls| calls.get() as u32),
        tokens: tokens.map(MaxTokens::get),
        usd_nanos: money.transpose()?,
    })
}

/// The executor that a client names: a table or a preset, whose address the user knows. An address of the client's own would
/// get any file of the root; the client may follow what it has read.
pub(super) fn executor(name: Option<String>) -> Result<Option<String>, Failure> {
    match name.as_deref().is_some_and(|name| name.contains("://")) {
        true => Err(Failure::usage(
            "`executor` is an address",
            "name a table of quorate.toml or a preset: an address that texts are sent to stands in quorate.toml",
        )),
        false => Ok(name),
    }
}

/// Parses a timeout, as in `quorate.toml`.
pub(super) fn timeout(text: Option<&str>) -> Result<Option<Duration>, Failure> {
    let Some(text) = text else { return Ok(None) };
    match quorate_manifest::duration::parse(text) {
        Ok(long) if !long.is_zero() => Ok(Some(long)),
        Ok(_) => Err(Failure::usage("`timeout` is nothing", "write 90s or 5m")),
        Err(error) => Err(Failure::usage(format!("`timeout`: {error}"), "write 90s or 5m")),
    }
}

/// Parses a time in the past, as `--since` does.
pub(super) fn since(text: &str, now_ms: i64) -> Result<Option<i64>, Failure> {
    quorate::service::since::parse(text, now_ms)
        .map_err(|error| Failure::usage(format!("`since`: {error}"), "write 24h, 7d, a date, or all"))
}
