//! `POST /api/v1/reviews`: a council reviews a text.

use std::path::PathBuf;
use std::sync::Arc;

use axum::response::Response;
use quorate::service::artifact::{self, Artifact};
use quorate::service::jobs::progress::Reporter;
use quorate::service::review::{self, Request, ReviewOutcome, TierPolicy};
use quorate::service::run_options::RunOptions;
use quorate::service::whole::Whole;
use quorate_manifest::council::tiers::Tier;
use schemars::JsonSchema;
use serde::Deserialize;

use super::started::{self, Limits, Started};
use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

/// A review that is asked for. Who is asked is configured in quorate.toml and council.yaml.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {"required": ["path"], "properties": {"path": {"type": "string"}, "text": {"type": "null"}}},
    {"required": ["text"], "properties": {"text": {"type": "string"}, "path": {"type": "null"}}},
]))]
pub(crate) struct Body {
    /// The file, from the workspace's root; or `text`
    path: Option<PathBuf>,
    /// The text itself; or `path`
    text: Option<String>,
    /// The text's name; the extension, for example .md, determines the format. By default its first heading or line
    name: Option<String>,
    /// Its type, under which verdicts are remembered; by default from the tier rules
    #[serde(rename = "type")]
    artifact_type: Option<String>,
    /// Its tier, in place of the tier rules
    tier: Option<Whole<1, 3>>,
    #[serde(default)]
    budget: Limits,
}

impl Body {
    fn artifact(&self, server: &Server) -> Result<Artifact, Failure> {
        match (&self.path, &self.text) {
            (Some(path), None) => Ok(server.root.artifact(path)?),
            (None, Some(text)) => {
                let name = self.name.clone().unwrap_or_else(|| artifact::title_of(text));
                Ok(artifact::from_bytes(name, None, Ok(text.clone().into_bytes()))?)
            }
            (Some(_), Some(_)) => Err(Failure::usage("there are both `path` and `text`", "leave one out")),
            (None, None) => Err(Failure::usage("there is nothing to review", "send `path` or `text`")),
        }
    }

    fn tier(&self) -> Option<Tier> {
        self.tier.and_then(|number| Tier::from_number(number.get()))
    }
}

pub(crate) struct PostReviews;

impl Endpoint for PostReviews {
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/api/v1/reviews";
    const ABOUT: &'static str = "Has a council review a text: a job, whose result is the run's report";
    type Query = Nothing;
    type Body = Body;

    fn answer() -> Answer {
        Answer::accepted::<Started>("The job that reviews it")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let (artifact, tier, body) = (call.body.artifact(&server)?, call.body.tier(), call.body.clone());
        let within = server.clone();
        let work = |observer: Arc<Reporter<Failure>>| async move {
            let session = review::open_session(&within.environment, &within.places, &artifact).await?;
            let reviewed = match body.budget.caps(&session.workspace.host) {
                Ok(caps) => {
                    let request = Request {
                        artifact_type: body.artifact_type,
                        tier,
                        tier_policy: TierPolicy::Ignore,
                        policy: None,
                        options: RunOptions { caps, ..RunOptions::default() },
                    };
                    review::review(&session, artifact, &request, observer).await.map_err(Failure::from)
                }
                Err(failure) => Err(failure),
            };
            session.close().await;
            match reviewed? {
                ReviewOutcome::Judged(report) => Ok(report.json()),
                ReviewOutcome::Skipped { .. } => {
                    unreachable!("a text that is named is reviewed in any tier")
                }
            }
        };
        started::start(&server, &call, Self::PATH, work).await
    }
}
