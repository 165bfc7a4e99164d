//! MCP over streamable HTTP, by default on the loopback interface.
//!
//! `Guard` checks who may send requests: Host must name this server, which prevents DNS rebinding; an Origin, which only
//! browsers send, must be this server's own or allowed; and the bearer token must match. Responses to such a page carry
//! CORS headers. `validate_body` answers an invalid body like an invalid line on standard input, and ends the connection of
//! a body that does not arrive in time, and refuses a handshake while there are `MAX_SESSIONS` sessions, since each takes some
//! fifty kilobytes and a task. `adapt` makes an answer fit the client's revision of the protocol.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, ORIGIN, VARY,
    WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use axum::{Router, middleware};
use futures::{TryStreamExt as _, future};
use hyper_util::service::TowerToHyperService;
use quorate::ErrorKind;
use quorate::http::{TokenHash, accept, bearer_token, bind, is_for, single_header};
use quorate_diagnostics::{Body, codes};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use super::incoming::MAX_MESSAGE_BYTES;
use super::{Connection, ServerState};
use crate::incoming::{self, InvalidMessage};

pub use quorate::http::{Deadlines, Origin};

/// The path of the endpoint.
pub const PATH: &str = "/mcp";

/// How long an idle session is kept. Clients wait less for one call.
const SESSION_IDLE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The most sessions at once.
const MAX_SESSIONS: usize = 256;

/// The settings of the server.
#[derive(Debug, Clone)]
pub struct McpHttpOptions {
    /// Port 0 selects a free port.
    pub address: SocketAddr,
    /// The bearer token that clients must send.
    pub token: Option<String>,
    /// The origins of web pages that may send requests.
    pub origins: Vec<Origin>,
    pub deadlines: Deadlines,
}

/// A bound listener that does not answer yet.
pub struct McpListener {
    listener: TcpListener,
    address: SocketAddr,
    options: McpHttpOptions,
}

impl McpListener {
    /// Binds the address.
    ///
    /// # Errors
    /// When the address is unavailable, or is reachable from other machines without a token.
    pub async fn open(options: McpHttpOptions) -> Result<McpListener, quorate::Error> {
        if !options.address.ip().is_loopback() && options.token.is_none() {
            let message =
                format!("{} is reachable from other machines, which requires a token", options.address);
            let help = "name the variable of a token with `--token-env NAME`, or serve on 127.0.0.1";
            return Err(quorate::Error::new(
                ErrorKind::Configuration,
                codes::MCP_EXPOSED,
                Body::new(message).help(help),
            ));
        }
        let (listener, address) = bind(options.address, "name another with `--http ADDR:PORT`").await?;
        Ok(McpListener { listener, address, options })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until the future is dropped.
    pub async fn serve(self, served: &Arc<ServerState>) {
        self.serve_with(Connection(served.clone())).await;
    }

    pub(super) async fn serve_with(self, server: impl ServerHandler + Clone) {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(SESSION_IDLE_TIMEOUT);
        let mut config = StreamableHttpServerConfig::default();
        config.max_request_body_bytes = MAX_MESSAGE_BYTES;
        // Dropping this future also closes open connections.
        let _ends = config.cancellation_token.clone().drop_guard();
        // `Guard` checks Host and Origin more precisely than the library and decides alone.
        let config = config.disable_allowed_hosts();
        let sessions = Arc::new(sessions);
        let validated = (self.options.deadlines.body, sessions.clone());
        let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
        let token = self.options.token.as_deref().map(TokenHash::of);
        let guard = Arc::new(Guard { address: self.address, token, origins: self.options.origins });
        let router = Router::new()
            .route_service(PATH, service)
            .layer(middleware::from_fn_with_state(validated, validate_body))
            .layer(middleware::from_fn_with_state(guard, check_request));
        let service = TowerToHyperService::new(router);
        accept(self.listener, service, self.options.deadlines.headers).await;
    }
}

/// Request and response header for pages that access the local network; the library has no names for them.
const REQUEST_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Response headers that a page may read beyond the default ones.
const EXPOSED: &str = "mcp-session-id, mcp-protocol-version, www-authenticate";

struct Guard {
    address: SocketAddr,
    token: Option<TokenHash>,
    origins: Vec<Origin>,
}

impl Guard {
    /// The refusal of a request, if it is refused.
    fn refuse(&self, method: &Method, headers: &HeaderMap, uri: &Uri) -> Option<Response> {
        let forbidden = |text: &'static str| Some((StatusCode::FORBIDDEN, text).into_response());
        if !is_for(self.address, headers, uri) {
            return forbidden("Host is not this server's: ask for it by the address that it listens on\n");
        }
        // `Host` is this server's. A server without TLS has pages of the scheme `http` only.
        let own = single_header(headers, HOST).and_then(|host| format!("http://{host}").parse().ok());
        let foreign = |value: &HeaderValue| {
            let origin = value.to_str().ok().and_then(|text| text.parse::<Origin>().ok());
            origin.is_none_or(|origin| own.as_ref() != Some(&origin) && !self.origins.contains(&origin))
        };
        if headers.get_all(ORIGIN).iter().any(foreign) {
            return forbidden("Origin is not allowed: start the server with --allow-origin\n");
        }
        if let Some(answer) = preflight(method, headers) {
            return Some(answer);
        }
        if self.token.as_ref().is_some_and(|token| !token.matches(bearer_token(headers))) {
            let challenge = [(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
            let reason = match headers.contains_key(AUTHORIZATION) {
                true => "the bearer token is wrong\n",
                false => "the bearer token is missing: send `Authorization: Bearer ...`\n",
            };
            return Some((StatusCode::UNAUTHORIZED, challenge, reason).into_response());
        }
        None
    }
}

/// Passes permitted requests on.
async fn check_request(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(ORIGIN).cloned();
    let mut answer = match guard.refuse(request.method(), request.headers(), request.uri()) {
        Some(refusal) if refusal.status() == StatusCode::FORBIDDEN => return refusal,
        Some(refusal) => refusal,
        None => next.run(request).await,
    };
    if let Some(origin) = origin {
        let headers = answer.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }
    answer
}

/// The answer to a preflight request of an allowed origin. Browsers send no token with it.
fn preflight(method: &Method, headers: &HeaderMap) -> Option<Response> {
    let asks = method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    if !asks {
        return None;
    }
    let mut answer = StatusCode::NO_CONTENT.into_response();
    let headers_out = answer.headers_mut();
    headers_out.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    headers_out.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    headers_out.insert(VARY, HeaderValue::from_static("Access-Control-Request-Headers"));
    // An allowed page may send any header, since later versions of the protocol may define others.
    if let Some(names) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers_out.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    if headers.contains_key(REQUEST_PRIVATE_NETWORK) {
        headers_out.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }
    Some(answer)
}

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The revision of a request that names none: the header exists since 2025-06-18.
const UNNAMED_VERSION: &str = "2025-03-26";
/// Since this revision the first event of a stream may be empty, so that a client can resume the stream.
const PRIMING_VERSION: &str = "2025-11-25";

/// Whether there is no place for another session. One that was idle too long has ended.
async fn is_full(sessions: &LocalSessionManager) -> bool {
    sessions.sessions.read().await.len() >= MAX_SESSIONS
}

/// The deadline of a body, and the sessions.
type Validated = (Duration, Arc<LocalSessionManager>);

/// Passes valid messages on that arrive within the deadline.
async fn validate_body(
    State((deadline, sessions)): State<Validated>,
    request: Request,
    next: Next,
) -> Response {
    let named = single_header(request.headers(), PROTOCOL_VERSION).unwrap_or(UNNAMED_VERSION).to_owned();
    if request.method() != Method::POST {
        let ends = request.method() == Method::DELETE;
        let answer = adapt(next.run(request).await, &named);
        // The library answers the end of a session as it answers a notification.
        return match ends && answer.status() == StatusCode::ACCEPTED {
            true => StatusCode::OK.into_response(),
            false => answer,
        };
    }
    let (head, body) = request.into_parts();
    let bytes = match tokio::time::timeout(deadline, to_bytes(body, MAX_MESSAGE_BYTES)).await {
        Ok(Ok(bytes)) => bytes,
        // A client that disconnected does not read an answer, so the only reason is the length.
        Ok(Err(_)) => {
            return invalid_body_response(StatusCode::PAYLOAD_TOO_LARGE, &InvalidMessage::too_long());
        }
        Err(_) => {
            let mut response =
                invalid_body_response(StatusCode::REQUEST_TIMEOUT, &InvalidMessage::incomplete(deadline));
            // The rest of the request is not read.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            return response;
        }
    };
    match incoming::parse(&bytes) {
        Ok(Some(message)) => match (incoming::revision(&message, named), incoming::handshake(&message)) {
            (Err(refusal), _) => invalid_body_response(StatusCode::NOT_FOUND, &refusal),
            (Ok(_), Some(id)) if is_full(&sessions).await => {
                invalid_body_response(StatusCode::SERVICE_UNAVAILABLE, &InvalidMessage::no_place(id.clone()))
            }
            (Ok(revision), _) => {
                adapt(next.run(Request::from_parts(head, axum::body::Body::from(bytes))).await, &revision)
            }
        },
        Ok(None) if incoming::without_blanks(&bytes).is_empty() => {
            invalid_body_response(StatusCode::BAD_REQUEST, &InvalidMessage::empty())
        }
        Ok(None) => StatusCode::ACCEPTED.into_response(),
        Err(invalid) => invalid_body_response(StatusCode::BAD_REQUEST, &invalid),
    }
}

/// Makes an answer fit the client's revision: earlier clients take an event without a message for a broken one.
fn adapt(answer: Response, revision: &str) -> Response {
    let streams = answer.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
    if !streams || revision >= PRIMING_VERSION {
        return answer;
    }
    // A frame is one event.
    let keeps = |frame: &Bytes| future::ready(!frame.starts_with(b"data: \n"));
    answer.map(|body| axum::body::Body::from_stream(body.into_data_stream().try_filter(keeps)))
}

fn invalid_body_response(status: StatusCode, invalid: &InvalidMessage) -> Response {
    let text = invalid.answer().to_string();
    (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
}

#[cfg(test)]
mod tests {
    use quorate::Quorate;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::time::{Instant, timeout};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(200);

    /// What a server with a token answers to a part of a request before it closes the connection, and when it does.
    async fn answer_to(sent: &str, deadlines: Deadlines) -> (String, Duration) {
        let dir = tempfile::tempdir().unwrap();
        let quorate = Quorate::builder().workspace(dir.path()).build().unwrap();
        let (state, _) = ServerState::open(&quorate, &crate::McpServerOptions::default()).unwrap();
        let options = McpHttpOptions {
            address: "127.0.0.1:0".parse().unwrap(),
            token: Some("a token of a test".to_owned()),
            origins: Vec::new(),
            deadlines,
        };
        let listener = McpListener::open(options).await.unwrap();
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

#[cfg(test)]
mod guard_tests {
    use super::*;

    fn new_guard(address: SocketAddr, token: Option<&str>, origins: Vec<Origin>) -> Guard {
        Guard { address, token: token.map(TokenHash::of), origins }
    }

    fn status(guard: &Guard, headers: &[(HeaderName, &str)]) -> Option<u16> {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(name, HeaderValue::from_str(value).unwrap());
        }
        guard
            .refuse(&Method::POST, &all, &Uri::from_static("/mcp"))
            .map(|response| response.status().as_u16())
    }

    #[test]
    fn only_this_servers_host_is_served() {
        let loopback = new_guard("127.0.0.1:8000".parse().unwrap(), None, Vec::new());
        for good in ["127.0.0.1:8000", "localhost:8000", "LOCALHOST:8000", "[::1]:8000"] {
            assert_eq!(status(&loopback, &[(HOST, good)]), None, "{good}");
        }
        for bad in
            ["evil.example:8000", "127.0.0.1", "127.0.0.1:8001", "localhost.evil:8000", "10.0.0.1:8000", ""]
        {
            assert_eq!(status(&loopback, &[(HOST, bad)]), Some(403), "{bad}");
        }
        assert_eq!(status(&loopback, &[]), Some(403));
        assert_eq!(status(&loopback, &[(HOST, "localhost:8000"), (HOST, "evil:8000")]), Some(403));
        let everywhere = new_guard("0.0.0.0:8000".parse().unwrap(), Some("s"), Vec::new());
        assert_eq!(status(&everywhere, &[(HOST, "10.0.0.1:8000")]), Some(401));
        assert_eq!(status(&everywhere, &[(HOST, "evil.example:8000")]), Some(403));
    }

    #[test]
    fn an_origin_has_to_be_allowed() {
        let origins = ["https://app.example.com", "http://localhost:5173"];
        let origins = origins.map(|origin| origin.parse().unwrap()).into();
        let guard = new_guard("127.0.0.1:80".parse().unwrap(), None, origins);
        let with = |origin| status(&guard, &[(HOST, "localhost"), (ORIGIN, origin)]);
        assert_eq!(with("https://app.example.com"), None);
        assert_eq!(with("https://app.example.com:443"), None);
        assert_eq!(with("http://localhost:5173"), None);
        // A page of this server has the origin that `Host` names.
        assert_eq!(with("http://localhost"), None);
        for bad in [
            "http://app.example.com",
            "https://app.example.com:8443",
            "null",
            "https://localhost",
            "http://127.0.0.1",
            "x",
        ] {
            assert_eq!(with(bad), Some(403), "{bad}");
        }
    }

    #[test]
    fn a_token_has_to_be_known() {
        let guard = new_guard("127.0.0.1:80".parse().unwrap(), Some("secret"), Vec::new());
        let with = |authorization| status(&guard, &[(HOST, "localhost"), (AUTHORIZATION, authorization)]);
        assert_eq!(with("Bearer secret"), None);
        assert_eq!(with("bearer secret"), None);
        for bad in ["Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret", "secret"] {
            assert_eq!(with(bad), Some(401), "{bad}");
        }
        assert_eq!(status(&guard, &[(HOST, "localhost")]), Some(401));
    }

    #[tokio::test]
    async fn no_token_is_not_called_a_wrong_one() {
        let guard = new_guard("127.0.0.1:80".parse().unwrap(), Some("secret"), Vec::new());
        let said = async |headers: &[(HeaderName, &'static str)]| {
            let headers =
                headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
            let response = guard.refuse(&Method::POST, &headers, &Uri::from_static("/mcp")).unwrap();
            let body = axum::body::to_bytes(response.into_body(), 1_000).await.unwrap();
            String::from_utf8(body.to_vec()).unwrap()
        };
        assert!(said(&[(HOST, "localhost")]).await.contains("the bearer token is missing"));
        let wrong = said(&[(HOST, "localhost"), (AUTHORIZATION, "Bearer secre")]).await;
        assert!(wrong.contains("the bearer token is wrong"), "{wrong}");
    }
}

#[cfg(test)]
mod sessions_tests {
    use rmcp::transport::streamable_http_server::session::SessionManager as _;

    use super::*;

    #[tokio::test]
    async fn one_session_too_many_is_refused_until_another_one_ends() {
        let sessions = Arc::new(LocalSessionManager::default());
        // Dropping a transport would end the session's task.
        let mut open = Vec::new();
        for _ in 0..MAX_SESSIONS {
            assert!(!is_full(&sessions).await);
            open.push(sessions.create_session().await.unwrap());
        }
        assert!(is_full(&sessions).await);
        sessions.close_session(&open[0].0).await.unwrap();
        assert!(!is_full(&sessions).await);
    }
}
