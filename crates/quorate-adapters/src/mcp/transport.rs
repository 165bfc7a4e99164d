//! Connects to a server over HTTP, or over the pipes of a program that this process starts.

use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::SseRetryPolicy;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rmcp::{RoleClient, ServiceExt};
use tokio::process::{ChildStdin, ChildStdout};

use super::error::{CallError, error_text};
use super::server::{Endpoint, Server};
use crate::executor::agent_cli::sidecar::{Program, Sidecar};
use crate::http::{self, Redirects};

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
    let unusable = |problem: String| CallError::Unusable { server: server.id.clone(), why: problem };
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
    let unusable = |problem: String| CallError::Unusable { server: server.id.clone(), why: problem };
    let (mut sidecar, ends) = program.start().await.map_err(unusable)?;
    let broken = |error: std::io::Error| CallError::Unreachable {
        server: server.id.clone(),
        why: format!("its pipes cannot be used: {error}"),
    };
    let stdout = ChildStdout::from_std(ends.stdout).map_err(broken)?;
    let stdin = ChildStdin::from_std(ends.stdin).map_err(broken)?;
    let transport = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(MAX_MESSAGE_BYTES);
    match ().serve(transport).await {
        Ok(service) => Ok(Session { service, _sidecar: Some(sidecar) }),
        Err(error) => Err(match sidecar.stderr_tail(STDERR_TIMEOUT).await {
            Some(words) => CallError::Unreachable {
                server: server.id.clone(),
                why: format!("it ended: {}", super::error::excerpt(&words)),
            },
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
    CallError::Unreachable {
        server: server.id.clone(),
        why: format!("no session: {}", server.without_secrets(&cause)),
    }
}

/// The cause of a failed message, in words. The library's errors do not name their sources.
pub(super) fn transport_cause(error: &DynamicTransportError) -> String {
    match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => error_text(error),
        _ => error_text(&*error.error),
    }
}
