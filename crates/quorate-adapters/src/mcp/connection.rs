//! The connection to a server: made when first used, made anew after it broke.

use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use quorate_protocol::Json;
use rmcp::model::{CallToolRequestParams, CallToolResponse, PaginatedRequestParams};
use rmcp::service::ServiceError;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout_at};

use super::Arguments;
use super::offer::Offer;
use super::outcome::{self, Useless};
use super::server::Server;
use super::transport::{self, Session};
use super::trouble::{Trouble, chain, excerpt};

/// How often something is tried, and the pause before the second time, which grows fourfold.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(150);

/// How long a session is kept to take a request back on it.
const FAREWELL: Duration = Duration::from_secs(1);

/// How many pages of tools are read, and how many tools are kept.
const PAGES: usize = 64;
const TOOLS: usize = 4096;

/// Whether a call may be made a second time when it is not known what came of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It changes nothing, or twice is the same as once.
    Harmless,
    /// Twice is once too often.
    Never,
}

/// How long a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// As long as the server's table says.
    Timeout,
    /// So much longer: the other side was asked to wait.
    TimeoutAnd(Duration),
    Deadline(Instant),
}

/// The connection to one server.
pub(crate) struct Connection {
    server: Server,
    line: Mutex<Option<Arc<Line>>>,
    /// What the server last said that it offers.
    offered: StdMutex<Option<Arc<Offer>>>,
}

/// A session that works, as far as is known.
struct Line {
    session: Session,
    offer: Arc<Offer>,
}

impl Connection {
    pub(super) fn new(server: Server) -> Self {
        Connection { server, line: Mutex::default(), offered: StdMutex::default() }
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// The server's name in `quorate.toml`.
    pub(crate) fn id(&self) -> &str {
        &self.server.id
    }

    /// The server's name for good: the same after a restart, and without anything secret.
    pub(crate) fn place(&self) -> String {
        self.server.place()
    }

    /// How long a call may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.server.timeout
    }

    /// What the server offers, as far as it was ever connected.
    pub(crate) fn offered(&self) -> Option<Arc<Offer>> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the server offers.
    pub(crate) async fn offer(&self, until: Until) -> Result<Arc<Offer>, Trouble> {
        let deadline = self.deadline(until);
        self.line_until(deadline).await.map(|line| Arc::clone(&line.offer))
    }

    /// Calls a tool and gives the value of its result. Dropping the future cancels the request.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Arguments,
        repeat: Repeat,
        until: Until,
    ) -> Result<Json, Trouble> {
        let deadline = self.deadline(until);
        let mut pause = PAUSE;
        let mut left = TRIES;
        loop {
            left -= 1;
            let trouble = match self.attempt(tool, &arguments, deadline, until).await {
                Ok(value) => return Ok(value),
                Err(trouble) => trouble,
            };
            let again = match repeat {
                Repeat::Harmless => trouble.is_of_the_connection(),
                Repeat::Never => matches!(trouble, Trouble::Unreachable { .. }),
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
        until: Until,
    ) -> Result<Json, Trouble> {
        let line = self.line_until(deadline).await?;
        line.offer.require(tool)?;
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
        let called = self.within(deadline, tool, async {
            let called = line.session.service.peer().call_tool_once(request).await;
            called.map_err(|error| self.broken(tool, &error))
        });
        let called = called.await;
        match &called {
            // A server that keeps silent may be another one after a restart; one that was cut short says nothing of it.
            Err(Trouble::Late { .. }) if !matches!(until, Until::Deadline(_)) => {
                self.hang_up(&line).await;
                // The server still learns that nobody waits any more.
                let line = Arc::clone(&line);
                tokio::spawn(async move {
                    sleep(FAREWELL).await;
                    drop(line);
                });
            }
            Err(trouble) if trouble.is_of_the_connection() => self.hang_up(&line).await,
            Ok(_) | Err(_) => {}
        }
        let nonsense = |why: &str| Trouble::Nonsense {
            server: self.server.id.clone(),
            tool: tool.to_owned(),
            why: why.to_owned(),
        };
        match called? {
            CallToolResponse::Complete(result) => outcome::read(result).map_err(|useless| match useless {
                Useless::Failed(said) => {
                    Trouble::Failed { server: self.server.id.clone(), tool: tool.to_owned(), said }
                }
                Useless::Nonsense(why) => nonsense(&why),
            }),
            CallToolResponse::InputRequired(_) => {
                Err(nonsense("asks a person for input, and nobody is there"))
            }
            _ => Err(nonsense("is a task that would have to be waited for")),
        }
    }

    /// The session, if there is one in time.
    async fn line_until(&self, deadline: Instant) -> Result<Arc<Line>, Trouble> {
        let started = Instant::now();
        let deadline = deadline.min(started + self.server.timeout);
        timeout_at(deadline, self.line()).await.unwrap_or_else(|_| {
            let why = format!("no session within {:?}", whole(started.elapsed()));
            Err(Trouble::Unreachable { server: self.server.id.clone(), why })
        })
    }

    /// The session, opened if there is none that works.
    async fn line(&self) -> Result<Arc<Line>, Trouble> {
        let mut kept = self.line.lock().await;
        if let Some(line) = kept.as_ref().filter(|line| !line.session.service.peer().is_transport_closed()) {
            return Ok(Arc::clone(line));
        }
        *kept = None;
        let session = transport::open(&self.server).await?;
        let offer = Arc::new(self.tools(&session).await?);
        *self.offered.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&offer));
        let line = Arc::new(Line { session, offer });
        *kept = Some(Arc::clone(&line));
        Ok(line)
    }

    async fn tools(&self, session: &Session) -> Result<Offer, Trouble> {
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let listed = session.service.peer().list_tools(Some(page)).await;
            let listed = listed.map_err(|error| Trouble::Unreachable {
                server: self.server.id.clone(),
                why: format!("it does not list its tools: {}", chain(&error)),
            })?;
            let schema = |tool: rmcp::model::Tool| (tool.name.into_owned(), (*tool.input_schema).clone());
            tools.extend(listed.tools.into_iter().map(schema));
            cursor = listed.next_cursor;
            if cursor.is_none() || tools.len() > TOOLS {
                break;
            }
        }
        Ok(Offer::new(&self.server.id, tools))
    }

    /// Forgets a session, so that the next call opens another one. Calls that are under way on it go on.
    async fn hang_up(&self, line: &Arc<Line>) {
        let mut kept = self.line.lock().await;
        if kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, line)) {
            *kept = None;
        }
    }

    fn deadline(&self, until: Until) -> Instant {
        match until {
            Until::Timeout => Instant::now() + self.server.timeout,
            Until::TimeoutAnd(more) => Instant::now() + self.server.timeout + more,
            Until::Deadline(deadline) => deadline,
        }
    }

    async fn within<T>(
        &self,
        deadline: Instant,
        tool: &str,
        work: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        let started = Instant::now();
        timeout_at(deadline, work).await.unwrap_or_else(|_| {
            Err(Trouble::Late {
                server: self.server.id.clone(),
                tool: tool.to_owned(),
                limit: whole(started.elapsed()),
            })
        })
    }

    fn broken(&self, tool: &str, error: &ServiceError) -> Trouble {
        let (server, tool) = (self.server.id.clone(), tool.to_owned());
        match error {
            ServiceError::McpError(error) => Trouble::Failed { server, tool, said: excerpt(&error.message) },
            // Its own text names types of the library.
            ServiceError::TransportSend(error) => {
                Trouble::Lost { server, tool, why: self.server.without_secrets(&transport::cause(error)) }
            }
            other => Trouble::Lost { server, tool, why: chain(other) },
        }
    }
}

/// A time for a message: to the millisecond.
fn whole(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
