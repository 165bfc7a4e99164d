//! `POST /api/v1/convenings`: an assembly decides.

use std::path::PathBuf;
use std::sync::Arc;

use axum::response::Response;
use quorate::service::artifact;
use quorate::service::convene::inputs::Inputs;
use quorate::service::convene::{self, ConveneInput, Request, spec};
use quorate::service::jobs::progress::Reporter;
use quorate::service::open_session;
use quorate::service::run_options::RunOptions;
use quorate::service::whole::Whole;
use quorate::service::workspace::Workspace;
use schemars::JsonSchema;
use serde::Deserialize;

use super::started::{self, Limits, Started};
use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

/// What an assembly is asked for. Who its members are, and who answers for them, is configured in its files.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
    /// The ASSEMBLY.md, or the directory that holds it, from the workspace's root
    assembly: PathBuf,
    /// Advisory: the conversation, as .jsonl or .md
    conversation: Option<Subject>,
    /// Advisory: which members to ask, by phase; default session
    phase: Option<String>,
    /// Voting: the proposal
    proposal: Option<Subject>,
    /// Voting: the proposal's class; without it only members without classes vote
    class: Option<String>,
    /// Peer: the topic
    topic: Option<Subject>,
    /// Peer: the most rounds, in place of the manifest's
    rounds: Option<Whole<1, 100>>,
    /// Hierarchy: the matter to assess
    request: Option<Subject>,
    #[serde(default)]
    budget: Limits,
}

/// What an assembly decides about: a file, by its path from the workspace's root, or a text
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a path, or an object {text, name}")]
enum Subject {
    Path(PathBuf),
    Text {
        /// The text
        text: String,
        /// Its name; the extension, for example .jsonl, determines the format. By default its first heading or line
        name: Option<String>,
    },
}

impl Subject {
    fn name(&self) -> PathBuf {
        match self {
            Subject::Path(path) => path.clone(),
            Subject::Text { text, name } => name.clone().unwrap_or_else(|| artifact::title_of(text)).into(),
        }
    }
}

impl Body {
    /// Reads the manifest and the subject from below the root.
    fn input(self, server: &Server) -> Result<(ConveneInput, Workspace, RunOptions), Failure> {
        let (path, root) = server.root.manifest(&server.environment, &self.assembly)?;
        let name_of = |subject: &Option<Subject>| subject.as_ref().map(Subject::name);
        let inputs = Inputs {
            conversation: name_of(&self.conversation),
            phase: self.phase.clone(),
            trigger: None,
            sentinel_first: false,
            proposal: name_of(&self.proposal),
            class: self.class.clone(),
            topic: name_of(&self.topic),
            rounds: self.rounds.and_then(|rounds| rounds.get().try_into().ok()),
            request: name_of(&self.request),
        };
        let subjects = [&self.conversation, &self.proposal, &self.topic, &self.request];
        let inline = subjects.into_iter().flatten().find_map(|subject| match subject {
            Subject::Text { text, .. } => Some(text.clone()),
            Subject::Path(_) => None,
        });
        let read = |subject: &artifact::Subject| match (inline, subject) {
            // An assembly has one subject, so the given text is it.
            (Some(text), artifact::Subject::File(name)) => {
                artifact::from_bytes(name.display().to_string(), None, Ok(text.into_bytes()))
            }
            (Some(text), artifact::Subject::Stdin) => {
                artifact::from_bytes("-".to_owned(), None, Ok(text.into_bytes()))
            }
            (None, artifact::Subject::File(path)) => server.root.artifact(path),
            (None, artifact::Subject::Stdin) => server.root.artifact("-".as_ref()),
        };
        let request = Request { path, root: Some(root), inputs, options: RunOptions::default() };
        let (input, workspace) =
            convene::prepare_with(&server.environment, &server.places, &request, &server.host, read)?;
        let caps = self.budget.caps(&workspace.host)?;
        Ok((input, workspace, RunOptions { caps, ..request.options }))
    }
}

pub(crate) struct PostConvenings;

impl Endpoint for PostConvenings {
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/api/v1/convenings";
    const ABOUT: &'static str = "Convenes an assembly: a job, whose result is the run's report";
    type Query = Nothing;
    type Body = Body;

    fn answer() -> Answer {
        Answer::accepted::<Started>("The job that convenes it")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let (within, body) = (server.clone(), call.body.clone());
        let work = |observer: Arc<Reporter<Failure>>| async move {
            let (input, workspace, options) = body.input(&within)?;
            let spec = spec::build(&within.environment, &workspace, &input, &options)?;
            let session = open_session::open(within.environment.clone(), workspace).await?;
            let convened = convene::convene(&session, &input, &spec, observer).await;
            session.close().await;
            Ok(convened?.json())
        };
        started::start(&server, &call, Self::PATH, work).await
    }
}
