//! MCP over streamable HTTP, by default on the loopback interface. `guard` checks each request before it is read.

mod body;
mod guard;
mod sessions;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware;
use hyper_util::service::TowerToHyperService;
use quorate_diagnostics::{Body, codes};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use super::incoming::MAX_MESSAGE_BYTES;
use super::{Connection, ServerState};
use guard::Guard;
use quorate::service::error::{ExitClass, ServiceError};
pub use quorate::service::http_guard::Origin;
use quorate::service::http_server;
pub use quorate::service::http_server::Deadlines;
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
    pub deadlines: Deadlines,
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
            let message = format!("{} is reachable from other machines, which requires a token", request.address);
            let help = "name the variable of a token with `--token-env NAME`, or serve on 127.0.0.1";
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
    pub async fn serve(self, served: &Arc<ServerState>) {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(SESSION_IDLE_TIMEOUT);
        let mut config = StreamableHttpServerConfig::default();
        config.max_request_body_bytes = MAX_MESSAGE_BYTES;
        // Dropping this future also closes open connections.
        let _ends = config.cancellation_token.clone().drop_guard();
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
            .layer(middleware::from_fn_with_state(self.request.deadlines.body, body::validate_body))
            .layer(middleware::from_fn_with_state(guard, guard::check_request));
        let service = TowerToHyperService::new(router);
        http_server::accept(self.listener, service, self.request.deadlines.headers).await;
    }
}

#[cfg(test)]
mod tests {
    use quorate::service::environment::Environment;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::time::{Instant, timeout};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(200);

    /// What a server with a token answers to a part of a request before it closes the connection, and when it does.
    async fn answer_to(sent: &str, deadlines: Deadlines) -> (String, Duration) {
        let dir = tempfile::tempdir().unwrap();
        let environment = Environment::new(dir.path());
        let (state, _) = ServerState::open(&environment, &crate::Request::default()).await.unwrap();
        let request = Request {
            address: "127.0.0.1:0".parse().unwrap(),
            token: Some("a token of a test".to_owned()),
            origins: Vec::new(),
            deadlines,
        };
        let listener = Listener::open(request).await.unwrap();
        let address = listener.address();
        let sent = sent.replace('\n', "\r\n").replace("HOST", &format!("Host: {address}"));
        let client = async {
            let began = Instant::now();
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(sent.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            (String::from_utf8(answer).unwrap(), began.elapsed())
        };
        tokio::select! {
            () = listener.serve(&state) => unreachable!("it serves"),
            answer = timeout(Duration::from_secs(20), client) => answer.expect("the server closes the connection"),
        }
    }

    #[tokio::test]
    async fn a_request_whose_headers_never_end_is_dropped_whatever_its_token() {
        let deadlines = Deadlines { headers: SHORT, body: LONG };
        for sent in [
            "",
            "POST /mcp HTTP/1.1\n",
            "POST /mcp HTTP/1.1\nHOST\n",
            "POST /mcp HTTP/1.1\nHOST\nAuthorization: Bearer a token of a test\nX-More: 1\n",
        ] {
            let (answer, took) = answer_to(sent, deadlines).await;
            assert!(!answer.contains("200 OK"), "{sent}: {answer}");
            assert!(took >= SHORT, "{sent}: {took:?}");
        }
    }

    #[tokio::test]
    async fn a_request_whose_body_never_ends_is_answered_and_dropped() {
        let head = "POST /mcp HTTP/1.1\nHOST\nContent-Type: application/json\nContent-Length: 1000\n";
        let deadlines = Deadlines { headers: LONG, body: SHORT };
        let known = format!("{head}Authorization: Bearer a token of a test\n\n{{");
        let (answer, took) = answer_to(&known, deadlines).await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(answer.contains("the body did not arrive within 0.2 s"), "{answer}");
        assert!(took >= SHORT, "{took:?}");
        // Without the token the server waits for no body.
        let (answer, _) = answer_to(&format!("{head}\n{{"), Deadlines { headers: LONG, body: LONG }).await;
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    }

    #[test]
    fn requests_have_the_deadlines_of_serve() {
        let Deadlines { headers, body } = Deadlines::default();
        assert_eq!((headers.as_secs(), body.as_secs()), (10, 30));
    }
}
