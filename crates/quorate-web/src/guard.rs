//! Checks every request before any route sees it, begins sessions, and gives every response its security headers.
//!
//! Host must name this server, which prevents DNS rebinding. Everything needs the session's cookie or the bearer token,
//! except the link that begins a session. A request that changes something must come from a page of this server or bring the
//! bearer token, since browsers send cookies to every port of a host. No response carries CORS headers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use quorate::http::{Origin, TokenHash, bearer_token, is_for, new_secret, single_header};
use quorate_diagnostics::codes;
use serde::Deserialize;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::pages;

/// The path of the link that begins a session.
pub(crate) const OPEN: &str = "/open";

/// How long a session lasts. Cookies ignore ports, so another server of this machine could use one.
const SESSION_LIFETIME: Duration = Duration::from_secs(12 * 3600);

/// The most sessions; the oldest ends when another begins.
const MAX_SESSIONS: usize = 64;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The security headers of every response.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("x-frame-options"), "DENY"),
];

/// Who may send requests.
pub(crate) struct Guard {
    address: SocketAddr,
    /// The secret of programs.
    bearer: TokenHash,
    /// The secret of the next link that begins a session. It works once.
    link: Mutex<TokenHash>,
    /// The secrets of browsers, each with its end, by age.
    sessions: Mutex<BTreeMap<u64, (TokenHash, Instant)>>,
}

/// Why a request is refused.
enum Refusal {
    /// It is not for this server, or comes from another site.
    Foreign(&'static str),
    /// It brings no secret, or a wrong one.
    Unknown,
}

impl Guard {
    pub(crate) fn new(address: SocketAddr, bearer: &str, link: &str) -> Guard {
        Guard {
            address,
            bearer: TokenHash::of(bearer),
            link: Mutex::new(TokenHash::of(link)),
            sessions: Mutex::default(),
        }
    }

    /// Begins a session if this is the link's secret, and returns the cookie; the link works no more. `next` is the secret of
    /// the next link.
    pub(crate) fn begin_session(&self, secret: &str, next: &str) -> Option<String> {
        let mut link = lock(&self.link);
        if !link.matches(secret) {
            return None;
        }
        *link = TokenHash::of(next);
        let session = new_secret();
        let mut sessions = lock(&self.sessions);
        let at = sessions.keys().next_back().map_or(0, |last| last + 1);
        sessions.insert(at, (TokenHash::of(&session), Instant::now() + SESSION_LIFETIME));
        while sessions.len() > MAX_SESSIONS {
            sessions.pop_first();
        }
        let (name, age) = (self.cookie_name(), SESSION_LIFETIME.as_secs());
        Some(format!("{name}={session}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict"))
    }

    /// Servers on other ports of this host have cookies of their own.
    fn cookie_name(&self) -> String {
        format!("quorate_{}", self.address.port())
    }

    fn check(&self, method: &Method, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        if !is_for(self.address, headers, uri) {
            return Err(Refusal::Foreign(
                "Host is not this server's: ask for it by the address that it listens on",
            ));
        }
        if self.bearer.matches(bearer_token(headers)) {
            return Ok(());
        }
        if uri.path() != OPEN && !self.has_session(headers) {
            return Err(Refusal::Unknown);
        }
        match method.is_safe() || self.is_from_here(headers) {
            true => Ok(()),
            false => {
                Err(Refusal::Foreign("it must come from a page of this server, or bring the bearer token"))
            }
        }
    }

    /// Whether a page of this server sent the request.
    fn is_from_here(&self, headers: &HeaderMap) -> bool {
        if headers.contains_key(SEC_FETCH_SITE) {
            return single_header(headers, SEC_FETCH_SITE) == Some("same-origin");
        }
        let origin = single_header(headers, ORIGIN).and_then(|text| text.parse::<Origin>().ok());
        let Some(origin) = origin else { return false };
        ["localhost", "127.0.0.1", "[::1]"]
            .iter()
            .any(|host| format!("http://{host}:{}", self.address.port()).parse() == Ok(origin.clone()))
    }

    fn has_session(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let given: Vec<&str> = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).collect();
        let now = Instant::now();
        let mut sessions = lock(&self.sessions);
        sessions.retain(|_, (_, end)| *end > now);
        given.iter().any(|value| sessions.values().any(|(session, _)| session.matches(value)))
    }
}

/// Passes permitted requests on, and adds the headers to every response.
pub(crate) async fn check_request(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let is_api = request.uri().path().starts_with("/api/");
    let mut response = match guard.check(request.method(), request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.response(is_api),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

impl Refusal {
    fn response(self, is_api: bool) -> Response {
        let failure = match self {
            Refusal::Foreign(why) => Failure::new(
                StatusCode::FORBIDDEN,
                codes::REQUEST_REFUSED,
                why,
                "`quorate serve` prints the address and the token",
            ),
            Refusal::Unknown => Failure::new(
                StatusCode::UNAUTHORIZED,
                codes::REQUEST_REFUSED,
                "this server does not know you",
                "open the link that `quorate serve` prints; it works once. Programs send `Authorization: Bearer …`",
            ),
        };
        match is_api {
            true => failure.into_response(),
            false => pages::refused(&failure),
        }
    }
}

#[derive(Deserialize)]
struct OpenQuery {
    #[serde(default)]
    t: String,
}

/// Begins a session, if the secret is right, and leads to the runs. `used` is told the secret of the next link.
pub(crate) fn begin_session(guard: &Guard, used: &UnboundedSender<String>, query: &str) -> Response {
    let query = serde_urlencoded::from_str(query).unwrap_or(OpenQuery { t: String::new() });
    let next = new_secret();
    let Some(cookie) = guard.begin_session(&query.t, &next) else {
        return pages::refused(&Failure::new(
            StatusCode::UNAUTHORIZED,
            codes::REQUEST_REFUSED,
            "this link was used, or is not of this server",
            "each link works once: the terminal of `quorate serve` shows the next one",
        ));
    };
    // The receiver lives as long as the server.
    let _ = used.send(next);
    let Ok(cookie) = HeaderValue::from_str(&cookie) else {
        unreachable!("a name, digits and a secret of hexadecimal digits")
    };
    let headers = HeaderMap::from_iter([(SET_COOKIE, cookie), (LOCATION, HeaderValue::from_static("/"))]);
    (StatusCode::SEE_OTHER, headers).into_response()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use axum::http::header::{AUTHORIZATION, HOST};

    use super::*;

    fn guard() -> Guard {
        Guard::new("127.0.0.1:8000".parse().unwrap(), "program", "link")
    }

    fn status(guard: &Guard, method: Method, headers: &[(HeaderName, &str)]) -> u16 {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(name, HeaderValue::from_str(value).unwrap());
        }
        if !all.contains_key(HOST) {
            all.insert(HOST, HeaderValue::from_static("127.0.0.1:8000"));
        }
        match guard.check(&method, &all, &Uri::from_static("/")) {
            Ok(()) => 200,
            Err(Refusal::Foreign(_)) => 403,
            Err(Refusal::Unknown) => 401,
        }
    }

    #[tokio::test]
    async fn a_link_begins_one_session() {
        let guard = guard();
        assert_eq!(guard.begin_session("lin", "next"), None);
        let cookie = guard.begin_session("link", "next").unwrap();
        assert_eq!(guard.begin_session("link", "other"), None, "it was used");
        assert!(guard.begin_session("next", "other").is_some(), "the next one works");
        let pair = cookie.split(';').next().unwrap();
        assert!(pair.starts_with("quorate_8000="), "{cookie}");
        assert_eq!(status(&guard, Method::GET, &[(COOKIE, pair)]), 200);
        assert_eq!(status(&guard, Method::GET, &[(COOKIE, &format!("a=b; {pair}"))]), 200);
        assert_eq!(status(&guard, Method::GET, &[(COOKIE, &pair.replace("8000", "8001"))]), 401);
        assert_eq!(status(&guard, Method::GET, &[(COOKIE, "quorate_8000=")]), 401);
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends() {
        let guard = guard();
        let cookie = guard.begin_session("link", "next").unwrap();
        let pair = cookie.split(';').next().unwrap();
        tokio::time::advance(SESSION_LIFETIME - Duration::from_secs(1)).await;
        assert_eq!(status(&guard, Method::GET, &[(COOKIE, pair)]), 200);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(status(&guard, Method::GET, &[(COOKIE, pair)]), 401);
    }

    #[tokio::test]
    async fn changes_come_from_a_page_of_this_server_or_bring_the_token() {
        let guard = guard();
        let cookie = guard.begin_session("link", "next").unwrap();
        let cookie = cookie.split(';').next().unwrap();
        let post = |headers: &[(HeaderName, &str)]| {
            status(&guard, Method::POST, &[&[(COOKIE, cookie)], headers].concat())
        };
        assert_eq!(post(&[]), 403);
        assert_eq!(post(&[(SEC_FETCH_SITE, "same-origin")]), 200);
        for foreign in ["same-site", "cross-site", "none"] {
            // A browser that says both is judged by the stricter one.
            let said = [(SEC_FETCH_SITE, foreign), (ORIGIN, "http://127.0.0.1:8000")];
            assert_eq!(post(&said), 403, "{foreign}");
        }
        assert_eq!(post(&[(ORIGIN, "http://localhost:8000")]), 200);
        for foreign in ["http://localhost:8001", "https://localhost:8000", "http://evil.example:8000", "null"]
        {
            assert_eq!(post(&[(ORIGIN, foreign)]), 403, "{foreign}");
        }
        assert_eq!(status(&guard, Method::POST, &[(AUTHORIZATION, "Bearer program")]), 200);
        assert_eq!(status(&guard, Method::POST, &[(AUTHORIZATION, "Bearer link")]), 401);
        assert_eq!(status(&guard, Method::POST, &[(SEC_FETCH_SITE, "same-origin")]), 401);
    }

    #[test]
    fn another_host_is_refused_whatever_it_brings() {
        let guard = guard();
        let token = (AUTHORIZATION, "Bearer program");
        assert_eq!(status(&guard, Method::GET, std::slice::from_ref(&token)), 200);
        for host in ["evil.example:8000", "127.0.0.1:8001", "localhost", ""] {
            assert_eq!(status(&guard, Method::GET, &[token.clone(), (HOST, host)]), 403, "{host}");
        }
    }
}
