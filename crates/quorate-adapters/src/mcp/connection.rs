//! The connection to a server: made when first used, made anew after it broke.

use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use quorate_protocol::Json;
use rmcp::model::{CallToolRequestParams, CallToolResponse, PaginatedRequestParams};
use rmcp::service::ServiceError;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout_at};

use super::Arguments;
use super::error::{CallError, error_chain, excerpt};
use super::server::Server;
use super::server_tools::ServerTools;
use super::tool_result::{self, ResultError};
use super::transport::{self, Session};

/// How often something is tried, and the pause before the second time, which grows fourfold.
const MAX_ATTEMPTS: u32 = 3;
const RETRY_DELAY: Duration = Duration::from_millis(150);

/// How long a session is kept to take a request back on it.
const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// How many pages of tools are read, and how many tools are kept.
const MAX_PAGES: usize = 64;
const MAX_TOOLS: usize = 4096;

/// Whether a call may be made a second time when it is not known what came of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// It changes nothing, or twice is the same as once.
    Safe,
    /// Twice is once too often.
    Never,
}

/// How long a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallDeadline {
    /// As long as the server's table says.
    Timeout,
    /// So much longer: the other side was asked to wait.
    TimeoutPlus(Duration),
    At(Instant),
}

/// The connection to one server.
pub(crate) struct Connection {
    server: Server,
    live_session: Mutex<Option<Arc<LiveSession>>>,
    /// What the server last said that it offers.
    offered: StdMutex<Option<Arc<ServerTools>>>,
}

/// A session that works, as far as is known.
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

    /// The server's name for good: the same after a restart, and without anything secret.
    pub(crate) fn stable_name(&self) -> String {
        self.server.stable_name()
    }

    /// How long a call may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.server.timeout
    }

    /// What the server offers, as far as it was ever connected.
    pub(crate) fn last_tools(&self) -> Option<Arc<ServerTools>> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the server offers.
    pub(crate) async fn tools(&self, until: CallDeadline) -> Result<Arc<ServerTools>, CallError> {
        let deadline = self.deadline(until);
        self.live_session_until(deadline).await.map(|line| Arc::clone(&line.tools))
    }

    /// Calls a tool and gives the value of its result. Dropping the future cancels the request.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Arguments,
        repeat: Retry,
        until: CallDeadline,
    ) -> Result<Json, CallError> {
        let deadline = self.deadline(until);
        let mut pause = RETRY_DELAY;
        let mut left = MAX_ATTEMPTS;
        loop {
            left -= 1;
            let trouble = match self.attempt(tool, &arguments, deadline, until).await {
                Ok(value) => return Ok(value),
                Err(trouble) => trouble,
            };
            let again = match repeat {
                Retry::Safe => trouble.is_connection_error(),
                Retry::Never => matches!(trouble, CallError::Unreachable { .. }),
            };
            if !again || left == 0 || Instant::now() + pause >= deadline {
                return Err(trouble);
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
        let called = self.with_deadline(deadline, tool, async {
            let called = live_session.session.service.peer().call_tool_once(request).await;
            called.map_err(|error| self.service_error(tool, &error))
        });
        let called = called.await;
        match &called {
            // A server that keeps silent may be another one after a restart; one that was cut short says nothing of it.
            Err(CallError::TimedOut { .. }) if !matches!(until, CallDeadline::At(_)) => {
                self.drop_session(&live_session).await;
                // The server still learns that nobody waits any more.
                let live_session = Arc::clone(&live_session);
                tokio::spawn(async move {
                    sleep(CANCEL_GRACE).await;
                    drop(live_session);
                });
            }
            Err(trouble) if trouble.is_connection_error() => self.drop_session(&live_session).await,
            Ok(_) | Err(_) => {}
        }
        let nonsense = |why: &str| CallError::MalformedResult {
            server: self.server.id.clone(),
            tool: tool.to_owned(),
            why: why.to_owned(),
        };
        match called? {
            CallToolResponse::Complete(result) => {
                tool_result::parse(result).map_err(|useless| match useless {
                    ResultError::Failed(message) => {
                        CallError::Failed { server: self.server.id.clone(), tool: tool.to_owned(), message }
                    }
                    ResultError::Malformed(why) => nonsense(&why),
                })
            }
            CallToolResponse::InputRequired(_) => {
                Err(nonsense("asks a person for input, and nobody is there"))
            }
            _ => Err(nonsense("is a task that would have to be waited for")),
        }
    }

    /// The session, if there is one in time.
    async fn live_session_until(&self, deadline: Instant) -> Result<Arc<LiveSession>, CallError> {
        let started = Instant::now();
        let deadline = deadline.min(started + self.server.timeout);
        timeout_at(deadline, self.live_session()).await.unwrap_or_else(|_| {
            let why = format!("no session within {:?}", to_whole_ms(started.elapsed()));
            Err(CallError::Unreachable { server: self.server.id.clone(), why })
        })
    }

    /// The session, opened if there is none that works.
    async fn live_session(&self) -> Result<Arc<LiveSession>, CallError> {
        let mut kept = self.live_session.lock().await;
        if let Some(line) = kept.as_ref().filter(|line| !line.session.service.peer().is_transport_closed()) {
            return Ok(Arc::clone(line));
        }
        *kept = None;
        let session = transport::open(&self.server).await?;
        let tools = Arc::new(self.list_tools(&session).await?);
        *self.offered.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&tools));
        let live_session = Arc::new(LiveSession { session, tools });
        *kept = Some(Arc::clone(&live_session));
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
                why: format!("it does not list its tools: {}", error_chain(&error)),
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

    /// Forgets a session, so that the next call opens another one. Calls that are under way on it go on.
    async fn drop_session(&self, line: &Arc<LiveSession>) {
        let mut kept = self.live_session.lock().await;
        if kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, line)) {
            *kept = None;
        }
    }

    fn deadline(&self, until: CallDeadline) -> Instant {
        match until {
            CallDeadline::Timeout => Instant::now() + self.server.timeout,
            CallDeadline::TimeoutPlus(more) => Instant::now() + self.server.timeout + more,
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
            // Its own text names types of the library.
            ServiceError::TransportSend(error) => CallError::Lost {
                server,
                tool,
                why: self.server.without_secrets(&transport::transport_cause(error)),
            },
            other => CallError::Lost { server, tool, why: error_chain(other) },
        }
    }
}

/// A time for a message: to the millisecond.
fn to_whole_ms(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
