//! Work that a request starts: a job, and its run as soon as that is recorded.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use quorate::service::budget;
use quorate::service::jobs::progress::Reporter;
use quorate::service::jobs::{Patient, Residue};
use quorate::service::whole::Whole;
use quorate_kernel::budget::Caps;
use quorate_manifest::config::{Configuration, parse_money};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Server;
use crate::endpoint::{Call, Endpoint};
use crate::failure::Failure;

/// How long an answer waits for the run to be recorded.
const RUN_TIMEOUT: Duration = Duration::from_secs(5);

/// How often it looks.
const INTERVAL: Duration = Duration::from_millis(20);

/// The most calls of work that neither the request nor `quorate.toml` bounds.
const DEFAULT_CALLS: u32 = 50;

/// A job that was started.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Started {
    /// The job, for `GET /api/v1/jobs/{job}`
    job: String,
    /// The run, if it is recorded already
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
}

/// The most that the work may take. Without any of them and without `[budget]` in quorate.toml it is 50 calls
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    /// The most calls
    calls: Option<Whole<1, { u32::MAX as u64 }>>,
    /// The most tokens, prompts and answers
    tokens: Option<Whole<1, { u64::MAX }>>,
    /// The most money, for example "5 USD"
    #[schemars(regex(pattern = "^([1-9][0-9]{0,8}(\\.[0-9]{1,9})?|0\\.[0-9]{0,4}[1-9][0-9]{0,4}) USD$"))]
    money: Option<String>,
}

impl Limits {
    /// These limits; those of `host` where it has some; else a number of calls.
    pub(crate) fn caps(&self, host: &Configuration) -> Result<Caps, Failure> {
        self.caps_within(budget::configured(host))
    }

    /// These limits; those that are configured where there are some; else a number of calls.
    pub(crate) fn caps_within(&self, configured: Caps) -> Result<Caps, Failure> {
        let money = self.money.as_deref().map(parse_money).transpose();
        let usd_nanos = money.map_err(|error| {
            Failure::usage(format!("`budget.money`: {error}"), "write an amount and USD, for example 5 USD")
        })?;
        let calls = self.calls.and_then(|calls| calls.get().try_into().ok());
        let caps = Caps { calls, tokens: self.tokens.map(Whole::get), usd_nanos };
        let bounded = caps != Caps::default() || configured != Caps::default();
        Ok(if bounded { caps } else { Caps { calls: Some(DEFAULT_CALLS), ..caps } })
    }
}

/// Starts work, unless a request with the same key has started it before.
pub(crate) async fn start<E: Endpoint, W>(
    server: &Arc<Server>,
    call: &Call<E>,
    path: &str,
    work: impl FnOnce(Arc<Reporter<Failure>>) -> W,
) -> Result<Response, Failure>
where
    W: Future<Output = Result<Value, Failure>> + Send + 'static,
{
    let started = async {
        let mut status = server.jobs.start(Duration::ZERO, &Patient, Residue::Runs, work).await?;
        let until = tokio::time::Instant::now() + RUN_TIMEOUT;
        let mut run = None;
        while run.is_none() && !status.done && tokio::time::Instant::now() < until {
            run = status.progress.as_ref().and_then(|progress| progress.run.clone());
            tokio::time::sleep(INTERVAL).await;
            // A job that failed before its run was recorded fails the request.
            status = match server.jobs.poll(&status.job, Duration::ZERO, &Patient).await {
                Err(failure) if run.is_none() => return Err(failure),
                Err(_) => break,
                Ok(status) => status,
            };
        }
        let of_result = || status.result.as_ref()?["run"].as_str().map(str::to_owned);
        let started = Started { job: status.job.clone(), run: run.or_else(of_result) };
        Ok((StatusCode::ACCEPTED, json!(started)))
    };
    let route = format!("{} {path}", E::METHOD.word());
    let (status, started) = server.answered.once(&route, &call.headers, &call.bytes, started).await?;
    Ok((status, Json(started)).into_response())
}
