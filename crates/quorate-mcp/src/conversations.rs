//! The offered conversations: one for each manifest, found by the manifest's id, its substrate's name for the conversation,
//! or the id that the command line gives it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::jobs::Progress;
use quorate::service::jobs::Waiter;
use quorate::service::registries::Registries;
use quorate::service::runtime::conversation::Conversation;
use quorate::service::runtime::{self, OpenRuntime, Runtime};
use quorate::service::workspace::PathOverrides;
use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::conversation::Participant;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};

use super::McpServerOptions;
use super::failure::Failure;

/// The `meta` key of a participant that names its operator, as in the `guilde-mcp` substrate.
const OPERATOR_ID_KEY: &str = "operatorId";

/// A runtime and its conversation.
pub(super) struct OfferedConversation {
    pub(super) runtime: Runtime,
    pub(super) conversation: Conversation,
    environment: Environment,
    request: runtime::RuntimeRequest,
}

impl OfferedConversation {
    /// The runtime by the manifest's current content, with the ledger open, for calls that ask members.
    pub(super) async fn reopen(&self) -> Result<OpenRuntime, ServiceError> {
        runtime::open(
            &self.environment,
            &PathOverrides::default(),
            &self.request,
            &self.environment.registries,
        )?
        .open_ledger()
        .await
    }

    /// The participant with this id or this operator.
    pub(super) fn participant(&self, id: &str) -> Option<&Participant> {
        let all = || self.runtime.participants.iter();
        all()
            .find(|participant| participant.meta_text(OPERATOR_ID_KEY) == Some(id))
            .or_else(|| all().find(|participant| *participant.id == *id))
    }
}

/// A participant's id for clients: its operator's id, if it has one.
pub(super) fn external_id(participant: &Participant) -> &str {
    participant.meta_text(OPERATOR_ID_KEY).unwrap_or(&participant.id)
}

pub(super) struct Conversations {
    all: Vec<Arc<OfferedConversation>>,
    /// By each of their ids.
    by_id: BTreeMap<String, usize>,
}

impl Conversations {
    /// Opens manifests. Substrates connect at first use.
    ///
    /// # Errors
    /// When a manifest is refused, or two share an id.
    pub(super) fn open(
        environment: &Environment,
        places: &PathOverrides,
        registries: &Registries,
        options: &McpServerOptions,
    ) -> Result<(Conversations, Report), ServiceError> {
        let mut report = Report::new();
        let mut conversations = Conversations { all: Vec::new(), by_id: BTreeMap::new() };
        for manifest in &options.manifests {
            let request =
                runtime::RuntimeRequest { path: manifest.path.clone(), ..runtime::RuntimeRequest::default() };
            let mut runtime = runtime::open(environment, places, &request, registries)?;
            report.absorb(std::mem::take(&mut runtime.report));
            let at = conversations.all.len();
            let names =
                [Some(runtime.id.clone()), runtime.substrate.about().conversation, manifest.id.clone()];
            for id in names.into_iter().flatten() {
                if conversations.by_id.insert(id.clone(), at).is_some_and(|earlier| earlier != at) {
                    let body = Body::new(format!("two manifests have the conversation `{id}`"));
                    let help = "a conversation's id is its manifest's, what its substrate calls it, or what \
                                `--manifest ID=PATH` says; serve one of them";
                    return Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body.help(help)));
                }
            }
            let conversation = Conversation::new(runtime.substrate.clone());
            let environment = environment.clone();
            conversations.all.push(Arc::new(OfferedConversation {
                runtime,
                conversation,
                environment,
                request,
            }));
        }
        Ok((conversations, report))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All ids of all conversations.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.by_id.keys().map(String::as_str)
    }

    pub(super) fn find(&self, id: &str) -> Result<&Arc<OfferedConversation>, Failure> {
        self.by_id.get(id).and_then(|at| self.all.get(*at)).ok_or_else(|| {
            let known: Vec<&str> = self.ids().collect();
            let body = Body::new(format!("unknown conversation `{id}`"));
            let help = format!("the conversations are {}", known.join(", "));
            Failure::new(codes::CONVERSATION_UNKNOWN, body.help(help))
        })
    }

    /// The conversation whose state is served: the first manifest's.
    pub(super) fn first(&self) -> Result<&Arc<OfferedConversation>, Failure> {
        self.all.first().ok_or_else(|| {
            Failure::usage("no conversation is offered", "start the server with `--manifest PATH`")
        })
    }
}

/// The longest wait for a progress notification. A client that does not read must not delay the result.
const NOTIFY_TIMEOUT: Duration = Duration::from_millis(250);

pub(super) struct Caller {
    request: Option<RequestContext<RoleServer>>,
    token: Option<ProgressToken>,
}

impl Caller {
    pub(super) fn of(request: RequestContext<RoleServer>) -> Caller {
        let token = request.meta.get_progress_token();
        Caller { request: Some(request), token }
    }

    fn peer(&self) -> Option<&Peer<RoleServer>> {
        self.request.as_ref().map(|request| &request.peer)
    }
}

impl Waiter for Caller {
    async fn cancelled(&self) {
        match &self.request {
            Some(request) => request.ct.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Returns false too if the caller asked for no progress, or does not read.
    async fn report_progress(&self, progress: &Progress) -> bool {
        let (Some(peer), Some(token)) = (self.peer(), &self.token) else { return false };
        let (steps, total) = progress.steps();
        let mut notification = ProgressNotificationParam::new(token.clone(), steps);
        notification.total = total;
        notification.message = progress.last.clone();
        matches!(tokio::time::timeout(NOTIFY_TIMEOUT, peer.notify_progress(notification)).await, Ok(Ok(())))
    }
}
