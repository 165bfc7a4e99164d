//! Checks who may send requests: Host must name this server, which prevents DNS rebinding; an Origin, which only browsers
//! send, must be allowed; and the bearer token must match. Answers to an allowed page carry CORS headers, and preflight
//! requests are answered here.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, ORIGIN, VARY, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use quorate::service::http_guard::{Origin, TokenHash, bearer_token, is_for};

/// Request and response header for pages that access the local network; the library has no names for them.
const REQUEST_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Response headers that a page may read beyond the default ones.
const EXPOSED: &str = "mcp-session-id, mcp-protocol-version, www-authenticate";

pub(super) struct Guard {
    address: SocketAddr,
    token: Option<TokenHash>,
    origins: Vec<Origin>,
}

impl Guard {
    pub(super) fn new(address: SocketAddr, token: Option<&str>, origins: Vec<Origin>) -> Guard {
        Guard { address, token: token.map(TokenHash::of), origins }
    }

    /// The refusal of a request, if it is refused.
    fn refuse(&self, method: &Method, headers: &HeaderMap, uri: &Uri) -> Option<Response> {
        let forbidden = |text: &'static str| Some((StatusCode::FORBIDDEN, text).into_response());
        if !is_for(self.address, headers, uri) {
            return forbidden("Host is not this server's: ask for it by the address that it listens on\n");
        }
        let foreign = |value: &HeaderValue| {
            let origin = value.to_str().ok().and_then(|text| text.parse::<Origin>().ok());
            !origin.is_some_and(|origin| self.origins.contains(&origin))
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
pub(super) async fn check_request(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
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

#[cfg(test)]
mod tests {
    use axum::http::header::HOST;

    use super::*;

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
        let loopback = Guard::new("127.0.0.1:8000".parse().unwrap(), None, Vec::new());
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
        let everywhere = Guard::new("0.0.0.0:8000".parse().unwrap(), Some("s"), Vec::new());
        assert_eq!(status(&everywhere, &[(HOST, "10.0.0.1:8000")]), Some(401));
        assert_eq!(status(&everywhere, &[(HOST, "evil.example:8000")]), Some(403));
    }

    #[test]
    fn an_origin_has_to_be_allowed() {
        let origins = ["https://app.example.com", "http://localhost:5173"];
        let origins = origins.map(|origin| origin.parse().unwrap()).into();
        let guard = Guard::new("127.0.0.1:80".parse().unwrap(), None, origins);
        let with = |origin| status(&guard, &[(HOST, "localhost"), (ORIGIN, origin)]);
        assert_eq!(with("https://app.example.com"), None);
        assert_eq!(with("https://app.example.com:443"), None);
        assert_eq!(with("http://localhost:5173"), None);
        for bad in ["http://app.example.com", "https://app.example.com:8443", "null", "http://localhost", "x"]
        {
            assert_eq!(with(bad), Some(403), "{bad}");
        }
    }

    #[test]
    fn a_token_has_to_be_known() {
        let guard = Guard::new("127.0.0.1:80".parse().unwrap(), Some("secret"), Vec::new());
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
        let guard = Guard::new("127.0.0.1:80".parse().unwrap(), Some("secret"), Vec::new());
        let said = async |headers: &[(HeaderName, &'static str)]| {
            let headers =
                headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
            let response = guard.refuse(&Method::POST, &headers, &Uri::from_static("/mcp")).unwrap();
            let body = axum::body::to_bytes(response.into_body(), 1_000).await.unwrap();
            String::from_utf8(body.to_vec()).unwrap()
        };
        assert!(said(&[(HOST, "localhost")]).await.contains("there is no bearer token"));
        let wrong = said(&[(HOST, "localhost"), (AUTHORIZATION, "Bearer secre")]).await;
        assert!(wrong.contains("the bearer token is wrong"), "{wrong}");
    }
}
