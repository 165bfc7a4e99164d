//! The connection to a server: opened at first use, and reopened after it broke.
//! It connects over HTTP, or over the pipes of a program that this process starts. A result is `structuredContent`, or one
//! block of text that is JSON.

use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use quorate_diagnostics::text::{one_line, shortened};
use quorate_protocol::Json;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, PaginatedRequestParams,
};
use rmcp::service::{ClientInitializeError, RunningService, ServiceError};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::SseRetryPolicy;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rmcp::transport::{DynamicTransportError, StreamableHttpClientTransport};
use rmcp::{RoleClient, ServiceExt};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout_at};

use super::{Arguments, Endpoint, Server, ServerTools};
use crate::executor::agent_cli::command::Program;
use crate::executor::agent_cli::running_process::sidecar::Sidecar;
use crate::http::{self, Redirects, error_chain};

/// How often a call is attempted, and the pause before the second attempt, which grows fourfold.
const MAX_ATTEMPTS: u32 = 3;
const RETRY_DELAY: Duration = Duration::from_millis(150);

/// How long a session stays open to cancel a request on it.
const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// How many pages of tools are read, and how many tools are kept.
const MAX_PAGES: usize = 64;
const MAX_TOOLS: usize = 4096;

/// Whether a call may be repeated if the outcome of the first is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// The call changes nothing, or is idempotent.
    Safe,
    /// A second call would have a second effect.
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallDeadline {
    /// The timeout of the server's table.
    Timeout,
    /// The timeout and this duration: the server was asked to wait.
    TimeoutPlus(Duration),
    At(Instant),
}

pub(crate) struct Connection {
    server: Server,
    live_session: Mutex<Option<Arc<LiveSession>>>,
    /// The tools that the server listed last.
    offered: StdMutex<Option<Arc<ServerTools>>>,
}

/// A session without a known failure.
struct LiveSession {
    session: Session,
    tools: Arc<ServerTools>,
}

impl Connection {
    pub(super) fn new(server: Server) -> Self {
        Connection { server, live_session: Mutex::default(), offered: StdMutex::default() }
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// The server's name in `quorate.toml`.
    pub(crate) fn id(&self) -> &str {
        &self.server.id
    }

    /// A name that stays the same after a restart and holds no secret.
    pub(crate) fn stable_name(&self) -> String {
        self.server.stable_name()
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.server.timeout
    }

    /// The tools of the last session, if there was one.
    pub(crate) fn last_tools(&self) -> Option<Arc<ServerTools>> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The server's tools; connects if necessary.
    pub(crate) async fn tools(&self, until: CallDeadline) -> Result<Arc<ServerTools>, CallError> {
        let deadline = self.deadline(until);
        self.live_session_until(deadline).await.map(|line| Arc::clone(&line.tools))
    }

    /// Calls a tool and returns the value of its result. Dropping the future cancels the request.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Arguments,
        repeat: Retry,
        until: CallDeadline,
    ) -> Result<Json, CallError> {
        let deadline = self.deadline(until);
        let mut pause = RETRY_DELAY;
        let mut attempts_left = MAX_ATTEMPTS;
        loop {
            attempts_left -= 1;
            let error = match self.attempt(tool, &arguments, deadline, until).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let may_repeat = match repeat {
                Retry::Safe => error.is_connection_error(),
                Retry::Never => matches!(error, CallError::Unreachable { .. }),
            };
            if !may_repeat || attempts_left == 0 || Instant::now() + pause >= deadline {
                return Err(error);
            }
            sleep(pause).await;
            pause *= 4;
        }
    }

    async fn attempt(
        &self,
        tool: &str,
        arguments: &Arguments,
        deadline: Instant,
        until: CallDeadline,
    ) -> Result<Json, CallError> {
        let live_session = self.live_session_until(deadline).await?;
        live_session.tools.require_tool(tool)?;
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
        let started = Instant::now();
        let asked = live_session.session.service.peer().call_tool_once(request);
        let outcome = match timeout_at(deadline, asked).await {
            Ok(outcome) => outcome.map_err(|error| self.service_error(tool, &error)),
            Err(_) => Err(CallError::TimedOut {
                server: self.server.id.clone(),
                tool: tool.to_owned(),
                limit: to_whole_ms(started.elapsed()),
            }),
        };
        match &outcome {
            // A silent server may answer after a restart; a shorter deadline of the caller says nothing about the server.
            Err(CallError::TimedOut { .. }) if !matches!(until, CallDeadline::At(_)) => {
                self.drop_session(&live_session).await;
                // The server must still receive the cancellation.
                let live_session = Arc::clone(&live_session);
                tokio::spawn(async move {
                    sleep(CANCEL_GRACE).await;
                    drop(live_session);
                });
            }
            Err(error) if error.is_connection_error() => self.drop_session(&live_session).await,
            Ok(_) | Err(_) => {}
        }
        let malformed = |why: &str| CallError::MalformedResult {
            server: self.server.id.clone(),
            tool: tool.to_owned(),
            why: why.to_owned(),
        };
        match outcome? {
            CallToolResponse::Complete(result) => parse_result(&self.server.id, tool, result),
            CallToolResponse::InputRequired(_) => {
                Err(malformed("asks a person for input, which is unavailable here"))
            }
            _ => Err(malformed("is a task that would have to be waited for")),
        }
    }

    /// The session, if it opens in time.
    async fn live_session_until(&self, deadline: Instant) -> Result<Arc<LiveSession>, CallError> {
        let started = Instant::now();
        let deadline = deadline.min(started + self.server.timeout);
        timeout_at(deadline, self.live_session()).await.unwrap_or_else(|_| {
            Err(self.server.unreachable(format!("no session within {:?}", to_whole_ms(started.elapsed()))))
        })
    }

    /// The session, opened if necessary.
    async fn live_session(&self) -> Result<Arc<LiveSession>, CallError> {
        let mut current = self.live_session.lock().await;
        if let Some(live) = current.as_ref().filter(|live| !live.session.service.peer().is_transport_closed())
        {
            return Ok(Arc::clone(live));
        }
        *current = None;
        let session = open(&self.server).await?;
        let tools = Arc::new(self.list_tools(&session).await?);
        *self.offered.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&tools));
        let live_session = Arc::new(LiveSession { session, tools });
        *current = Some(Arc::clone(&live_session));
        Ok(live_session)
    }

    async fn list_tools(&self, session: &Session) -> Result<ServerTools, CallError> {
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let listed = session.service.peer().list_tools(Some(page)).await;
            let listed = listed.map_err(|error| {
                self.server.unreachable(format!("it does not list its tools: {}", error_text(&error)))
            })?;
            let schema = |tool: rmcp::model::Tool| (tool.name.into_owned(), (*tool.input_schema).clone());
            tools.extend(listed.tools.into_iter().map(schema));
            cursor = listed.next_cursor;
            if cursor.is_none() || tools.len() > MAX_TOOLS {
                break;
            }
        }
        Ok(ServerTools::new(&self.server.id, tools))
    }

    /// Forgets a session, so that the next call opens another one. Pending calls on it continue.
    async fn drop_session(&self, failed: &Arc<LiveSession>) {
        let mut current = self.live_session.lock().await;
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, failed)) {
            *current = None;
        }
    }

    fn deadline(&self, until: CallDeadline) -> Instant {
        match until {
            CallDeadline::Timeout => Instant::now() + self.server.timeout,
            CallDeadline::TimeoutPlus(extra) => Instant::now() + self.server.timeout + extra,
            CallDeadline::At(deadline) => deadline,
        }
    }

    fn service_error(&self, tool: &str, error: &ServiceError) -> CallError {
        let (server, tool) = (self.server.id.clone(), tool.to_owned());
        match error {
            ServiceError::McpError(error) => {
                CallError::Failed { server, tool, message: excerpt(&error.message) }
            }
            // The library's own text names its internal types.
            ServiceError::TransportSend(error) => {
                CallError::Lost { server, tool, why: self.server.without_secrets(&transport_cause(error)) }
            }
            error => CallError::Lost { server, tool, why: error_text(error) },
        }
    }
}

/// A duration for a message, in whole milliseconds.
fn to_whole_ms(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// The largest message of a server, in bytes.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// How long to wait for the stderr of a program that closed its output.
const STDERR_TIMEOUT: Duration = Duration::from_millis(500);

pub(super) struct Session {
    pub(super) service: RunningService<RoleClient, ()>,
    /// The server's process, if this process started it.
    pub(super) _sidecar: Option<Sidecar>,
}

/// A broken stream is not resumed.
#[derive(Debug)]
struct NoSseRetry;

impl SseRetryPolicy for NoSseRetry {
    fn retry(&self, _times: usize) -> Option<Duration> {
        None
    }
}

pub(super) async fn open(server: &Server) -> Result<Session, CallError> {
    match &server.endpoint {
        Endpoint::Http { url, token } => over_http(server, url, token.as_deref()).await,
        Endpoint::Process(program) => over_pipes(server, program).await,
    }
}

async fn over_http(server: &Server, url: &str, token: Option<&str>) -> Result<Session, CallError> {
    let unusable = |why: String| server.unusable(why);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url).max_sse_event_size(MAX_MESSAGE_BYTES);
    // The caller repeats a response that breaks off; the library does not know which requests may be repeated.
    config.retry_config = Arc::new(NoSseRetry);
    if let Some(name) = token {
        let value = http::read_variable(name).ok_or_else(|| {
            unusable(format!("the environment variable `{name}`, which its `token` names, is not set"))
        })?;
        config = config.auth_header(value.trim());
    }
    let address = url::Url::parse(url).map_err(|error| unusable(error.to_string()))?;
    let client = http::client(&address, None, Redirects::SameHost).map_err(unusable)?;
    let transport = StreamableHttpClientTransport::with_client(client, config);
    let service = ().serve(transport).await.map_err(|error| match error.is_authorization_required() {
        true if token.is_some() => unusable("it does not accept the token".to_owned()),
        true => unusable(format!(
            "it wants a token; put one into an environment variable, and the variable's name into `token` of \
             `[mcp.{}]`",
            server.id
        )),
        false => session_error(server, &error),
    })?;
    Ok(Session { service, _sidecar: None })
}

async fn over_pipes(server: &Server, program: &Program) -> Result<Session, CallError> {
    let (mut sidecar, ends) = program.start().await.map_err(|why| server.unusable(why))?;
    let transport =
        AsyncRwTransport::new_client(ends.stdout, ends.stdin).with_max_line_length(MAX_MESSAGE_BYTES);
    match ().serve(transport).await {
        Ok(service) => Ok(Session { service, _sidecar: Some(sidecar) }),
        Err(error) => Err(match sidecar.stderr_tail(STDERR_TIMEOUT).await {
            Some(words) => server.unreachable(format!("it ended: {}", excerpt(&words))),
            None => session_error(server, &error),
        }),
    }
}

fn session_error(server: &Server, error: &ClientInitializeError) -> CallError {
    let cause = match error {
        // The library's own text names its internal types.
        ClientInitializeError::TransportError { error, .. } => transport_cause(error),
        error => error_text(error),
    };
    server.unreachable(format!("no session: {}", server.without_secrets(&cause)))
}

impl Server {
    fn unreachable(&self, why: String) -> CallError {
        CallError::Unreachable { server: self.id.clone(), why }
    }

    fn unusable(&self, why: String) -> CallError {
        CallError::Unusable { server: self.id.clone(), why }
    }
}

/// The cause of a failed message, in words. The library's errors do not name their sources.
pub(super) fn transport_cause(error: &DynamicTransportError) -> String {
    match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => error_text(error),
        _ => error_text(&*error.error),
    }
}

/// The longest excerpt of the server's text, in characters.
const MAX_EXCERPT_CHARS: usize = 600;

/// Why a call failed. The message names the server, and a remedy if the client knows it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// Cannot connect; no request was sent.
    #[error("MCP server `{server}`: {why}")]
    Unreachable { server: String, why: String },
    /// The configuration cannot work; a retry does not help.
    #[error("MCP server `{server}`: {why}")]
    Unusable {
        server: String,
        /// The problem and its remedy.
        why: String,
    },
    /// The server answers with an error.
    #[error("MCP server `{server}`: `{tool}` failed: {message}")]
    Failed {
        server: String,
        tool: String,
        /// The server's text, capped.
        message: String,
    },
    /// The connection broke after the request was sent; the server may have carried it out.
    #[error("MCP server `{server}`: the connection broke while `{tool}` was under way: {why}")]
    Lost { server: String, tool: String, why: String },
    /// No answer in time; the server may have carried it out, or may do so later.
    #[error("MCP server `{server}`: `{tool}` gave no answer within {limit:?}")]
    TimedOut { server: String, tool: String, limit: Duration },
    /// The answer does not have the tool's format.
    #[error("MCP server `{server}`: the result of `{tool}` {why}")]
    MalformedResult {
        server: String,
        tool: String,
        /// The problem, as a predicate: `is no JSON`.
        why: String,
    },
}

impl CallError {
    /// Whether the server may have carried out the request nevertheless.
    pub(crate) fn may_have_run(&self) -> bool {
        match self {
            // Servers store a message and fail afterwards, for example when they notify others.
            CallError::Lost { .. }
            | CallError::TimedOut { .. }
            | CallError::MalformedResult { .. }
            | CallError::Failed { .. } => true,
            CallError::Unreachable { .. } | CallError::Unusable { .. } => false,
        }
    }

    /// Whether the connection failed, so that another one may help.
    pub(super) fn is_connection_error(&self) -> bool {
        matches!(self, CallError::Unreachable { .. } | CallError::Lost { .. })
    }
}

/// An excerpt of the server's text for a message: one line, capped.
pub(crate) fn excerpt(text: &str) -> String {
    shortened(&one_line(text), MAX_EXCERPT_CHARS)
}

/// An error with all of its causes, in one line.
pub(super) fn error_text(error: &dyn std::error::Error) -> String {
    excerpt(&error_chain(error))
}

/// The value of a result.
///
/// # Errors
/// When the tool reports an error, or the result has no value.
fn parse_result(server: &str, tool: &str, result: CallToolResult) -> Result<Json, CallError> {
    let (server, tool) = (server.to_owned(), tool.to_owned());
    let texts: Vec<&str> = result.content.iter().filter_map(text_of).collect();
    if result.is_error == Some(true) {
        let message = match (texts.is_empty(), &result.structured_content) {
            (true, Some(structured)) => structured.to_string(),
            (true, None) => "it does not say why".to_owned(),
            (false, _) => texts.join(" "),
        };
        return Err(CallError::Failed { server, tool, message: excerpt(&message) });
    }
    let why = match (result.structured_content.filter(|value| !value.is_null()), &texts[..]) {
        (Some(value), _) => return Ok(value),
        (None, [text]) => match serde_json::from_str(text) {
            Ok(value) => return Ok(value),
            Err(_) => format!("is not JSON: {}", excerpt(text)),
        },
        (None, []) => "is empty".to_owned(),
        (None, many) => format!("is {} texts where one was expected", many.len()),
    };
    Err(CallError::MalformedResult { server, tool, why })
}

fn text_of(block: &ContentBlock) -> Option<&str> {
    block.as_text().map(|text| text.text.as_str())
}

#[cfg(test)]
mod tests {
    use super::{MAX_EXCERPT_CHARS, excerpt};

    #[test]
    fn what_the_other_side_says_is_one_line_and_capped() {
        assert_eq!(excerpt(" no\nsuch\tthing "), "no such thing");
        let long = excerpt(&"é".repeat(10_000));
        assert_eq!(long.chars().count(), MAX_EXCERPT_CHARS + 1);
    }
}

#[cfg(test)]
mod tool_result_tests {
    use rmcp::model::{CallToolResult, ContentBlock};
    use serde_json::json;

    use super::{CallError, parse_result};

    #[test]
    fn structured_content_and_one_text_of_json_are_read_alike() {
        let value = json!({"id": "m1"});
        let parse = |result| parse_result("s", "t", result);
        assert_eq!(parse(CallToolResult::structured(value.clone())), Ok(value.clone()));
        let text = ContentBlock::text(value.to_string());
        assert_eq!(parse(CallToolResult::success(vec![text])), Ok(value));
    }

    #[test]
    fn failures_and_nonsense_are_distinguished() {
        let outcome = |result| match parse_result("s", "t", result) {
            Err(CallError::Failed { message, .. }) => format!("failed {message}"),
            Err(CallError::MalformedResult { why, .. }) => format!("nonsense {why}"),
            other => format!("{other:?}"),
        };
        assert_eq!(outcome(CallToolResult::error(vec![ContentBlock::text("no\nroom")])), "failed no room");
        assert_eq!(outcome(CallToolResult::error(vec![])), "failed it does not say why");
        assert_eq!(
            outcome(CallToolResult::success(vec![ContentBlock::text("Posted!")])),
            "nonsense is not JSON: Posted!"
        );
        assert_eq!(outcome(CallToolResult::success(vec![])), "nonsense is empty");
    }
}
