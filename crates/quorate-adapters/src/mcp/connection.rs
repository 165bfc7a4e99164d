//! The connection to a server: opened at first use, and reopened after it broke.

use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use quorate_protocol::Json;
use rmcp::model::{CallToolRequestParams, CallToolResponse, PaginatedRequestParams};
use rmcp::service::ServiceError;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout_at};

use super::Arguments;
use super::error::{CallError, error_text, excerpt};
use super::server::Server;
use super::server_tools::ServerTools;
use super::tool_result::{self, ResultError};
use super::transport::{self, Session};

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
        let outcome = self.with_deadline(deadline, tool, async {
            let outcome = live_session.session.service.peer().call_tool_once(request).await;
            outcome.map_err(|error| self.service_error(tool, &error))
        });
        let outcome = outcome.await;
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
        let malformed = |problem: &str| CallError::MalformedResult {
            server: self.server.id.clone(),
            tool: tool.to_owned(),
            why: problem.to_owned(),
        };
        match outcome? {
            CallToolResponse::Complete(result) => {
                tool_result::parse(result).map_err(|useless| match useless {
                    ResultError::Failed(message) => {
                        CallError::Failed { server: self.server.id.clone(), tool: tool.to_owned(), message }
                    }
                    ResultError::Malformed(problem) => malformed(&problem),
                })
            }
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
            let why = format!("no session within {:?}", to_whole_ms(started.elapsed()));
            Err(CallError::Unreachable { server: self.server.id.clone(), why })
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
        let session = transport::open(&self.server).await?;
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
            let listed = listed.map_err(|error| CallError::Unreachable {
                server: self.server.id.clone(),
                why: format!("it does not list its tools: {}", error_text(&error)),
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

    async fn with_deadline<T>(
        &self,
        deadline: Instant,
        tool: &str,
        work: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let started = Instant::now();
        timeout_at(deadline, work).await.unwrap_or_else(|_| {
            Err(CallError::TimedOut {
                server: self.server.id.clone(),
                tool: tool.to_owned(),
                limit: to_whole_ms(started.elapsed()),
            })
        })
    }

    fn service_error(&self, tool: &str, error: &ServiceError) -> CallError {
        let (server, tool) = (self.server.id.clone(), tool.to_owned());
        match error {
            ServiceError::McpError(error) => {
                CallError::Failed { server, tool, message: excerpt(&error.message) }
            }
            // The library's own text names its internal types.
            ServiceError::TransportSend(error) => CallError::Lost {
                server,
                tool,
                why: self.server.without_secrets(&transport::transport_cause(error)),
            },
            error => CallError::Lost { server, tool, why: error_text(error) },
        }
    }
}

/// A duration for a message, in whole milliseconds.
fn to_whole_ms(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
