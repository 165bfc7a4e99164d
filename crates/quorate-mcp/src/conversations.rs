//! The offered conversations: one for each manifest, found by the manifest's id, its substrate's name for the conversation,
//! or the id that the command line gives it.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate::jobs::{Progress, Waiter};
use quorate::view::layout::{one_line, truncate};
use quorate::{Conversation, Error, ErrorKind, Quorate};
use quorate_diagnostics::invisible::escape_invisible;
use quorate_diagnostics::{Body, Report, codes};
use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use rmcp::task_manager::TaskContext;

use super::McpServerOptions;
use super::failure::Failure;

pub(super) struct Conversations {
    all: Vec<Conversation>,
    /// By each of their ids.
    by_id: BTreeMap<String, usize>,
}

impl Conversations {
    /// Opens manifests. Substrates connect at first use.
    ///
    /// # Errors
    /// When a manifest is refused, or two share an id.
    pub(super) fn open(
        quorate: &Quorate,
        options: &McpServerOptions,
    ) -> Result<(Conversations, Report), Error> {
        let mut report = Report::new();
        let mut conversations = Conversations { all: Vec::new(), by_id: BTreeMap::new() };
        for manifest in &options.manifests {
            let conversation = quorate.conversation(&manifest.path)?;
            report.absorb(conversation.report().clone());
            let at = conversations.all.len();
            for id in conversation.ids().chain(manifest.id.clone()) {
                if conversations.by_id.insert(id.clone(), at).is_some_and(|earlier| earlier != at) {
                    let body = Body::new(format!("two manifests have the conversation `{id}`"));
                    let help = "a conversation's id is its manifest's, what its substrate calls it, or what \
                                `--manifest ID=PATH` says; serve one of them";
                    return Err(Error::new(ErrorKind::InvalidRequest, codes::USAGE, body.help(help)));
                }
            }
            conversations.all.push(conversation);
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

    pub(super) fn find(&self, id: &str) -> Result<&Conversation, Failure> {
        self.by_id.get(id).and_then(|at| self.all.get(*at)).ok_or_else(|| {
            let known: Vec<&str> = self.ids().collect();
            let body = Body::new(format!("unknown conversation `{id}`"));
            let help = format!("the conversations are {}", known.join(", "));
            Failure::new(codes::CONVERSATION_UNKNOWN, body.help(help))
        })
    }

    /// The conversation whose state is served: the first manifest's.
    pub(super) fn first(&self) -> Result<&Conversation, Failure> {
        self.all.first().ok_or_else(|| {
            Failure::usage("no conversation is offered", "start the server with `--manifest PATH`")
        })
    }
}

/// The longest shown name of a client, in characters.
const MAX_CLIENT_CHARS: usize = 60;
/// The longest wait for a progress notification. A client that does not read must not delay the result.
const NOTIFY_TIMEOUT: Duration = Duration::from_millis(250);

pub(super) enum Caller {
    Request(Box<RequestContext<RoleServer>>),
    /// The task that a request has started; the request has its answer.
    Task(TaskContext),
}

impl Caller {
    /// The client's name, on one line.
    pub(super) fn client(&self) -> String {
        let client = match self {
            Caller::Request(request) => request.client_info(),
            Caller::Task(_) => None,
        };
        let name = client.map_or_else(|| "a client without a name".to_owned(), |client| client.name);
        truncate(&escape_invisible(&one_line(&name)), MAX_CLIENT_CHARS)
    }
}

impl Waiter for Caller {
    async fn cancelled(&self) {
        match self {
            Caller::Request(request) => request.ct.cancelled().await,
            Caller::Task(task) => task.cancelled().await,
        }
    }

    /// Returns false too if the caller asked for no progress, or does not read.
    async fn report_progress(&self, progress: &Progress) -> bool {
        let request = match self {
            Caller::Request(request) => request,
            Caller::Task(task) => {
                progress.last.iter().for_each(|last| task.set_status_message(last));
                return true;
            }
        };
        let Some(token) = request.meta.get_progress_token() else { return false };
        let (steps, total) = progress.steps();
        let mut notification = ProgressNotificationParam::new(token, steps);
        notification.total = total;
        notification.message = progress.last.clone();
        let sent = tokio::time::timeout(NOTIFY_TIMEOUT, request.peer.notify_progress(notification)).await;
        matches!(sent, Ok(Ok(())))
    }
}
