//! MCP over streamable HTTP, by default on the loopback interface. `guard` checks each request before it is read.

mod body;
mod guard;
mod sessions;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware;
use quorate_diagnostics::{Body, codes};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use super::incoming::MAX_MESSAGE_BYTES;
use super::{Connection, ServerState};
use guard::Guard;
use quorate::service::error::{ExitClass, ServiceError};
pub use quorate::service::http_guard::Origin;
use sessions::Sessions;

/// The path of the endpoint.
pub const PATH: &str = "/mcp";

/// How long an idle session is kept. Clients wait less for one call.
const SESSION_IDLE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The settings of the server.
#[derive(Debug, Clone)]
pub struct Request {
    /// Port 0 selects a free port.
    pub address: SocketAddr,
    /// The bearer token that clients must send.
    pub token: Option<String>,
    /// The origins of web pages that may send requests.
    pub origins: Vec<Origin>,
}

/// A bound listener that does not answer yet.
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    request: Request,
}

impl Listener {
    /// Binds the address.
    ///
    /// # Errors
    /// When the address is unavailable, or is reachable from other machines without a token.
    pub async fn open(request: Request) -> Result<Listener, ServiceError> {
        if !request.address.ip().is_loopback() && request.token.is_none() {
            let message = format!("{} can be reached from elsewhere, and there is no token", request.address);
            let help = "name a variable that holds one with `--token-env NAME`, or serve on 127.0.0.1";
            return Err(ServiceError::new(
                ExitClass::Configuration,
                codes::MCP_EXPOSED,
                Body::new(message).help(help),
            ));
        }
        let cannot = |error: std::io::Error| {
            let body = Body::new(format!("cannot listen on {}: {error}", request.address));
            ServiceError::configuration(
                codes::ADDRESS_UNUSABLE,
                body.help("name another with `--http ADDR:PORT`"),
            )
        };
        let listener = TcpListener::bind(request.address).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        Ok(Listener { listener, address, request })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until the future is dropped.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(self, served: &Arc<ServerState>) -> Result<(), ServiceError> {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(SESSION_IDLE_TIMEOUT);
        let mut config = StreamableHttpServerConfig::default();
        config.max_request_body_bytes = MAX_MESSAGE_BYTES;
        // Dropping this future closes open connections, too.
        let ends = config.cancellation_token.clone().drop_guard();
        // `guard` checks Host more precisely than the library and decides alone; both check Origin.
        let config = config
            .disable_allowed_hosts()
            .with_allowed_origins(self.request.origins.iter().map(Origin::to_string))
            .enforce_origin_validation();
        let server = Connection(served.clone());
        let sessions = Arc::new(Sessions::new(sessions));
        let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
        let guard = Arc::new(Guard::new(self.address, self.request.token.as_deref(), self.request.origins));
        let router = Router::new()
            .route_service(PATH, service)
            .layer(middleware::from_fn(body::validate_body))
            .layer(middleware::from_fn_with_state(guard, guard::check_request));
        let ended = axum::serve(self.listener, router).await;
        drop(ends);
        ended.map_err(|error| {
            let body = Body::new(format!("cannot go on listening on {}: {error}", self.address));
            ServiceError::configuration(codes::ADDRESS_UNUSABLE, body)
        })
    }
}
