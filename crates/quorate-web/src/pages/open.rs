//! `/open?t=…`: the link that begins a session. It works once.

use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use quorate_diagnostics::codes;
use serde::Deserialize;
use tokio::sync::mpsc::UnboundedSender;

use super::refused;
use crate::failure::Failure;
use crate::guard::{Guard, secret_text};

#[derive(Deserialize)]
struct Query {
    #[serde(default)]
    t: String,
}

/// Begins a session, if the secret is right, and leads to the runs. `used` is told the secret of the next link.
pub(crate) fn begin(guard: &Guard, used: &UnboundedSender<String>, query: &str) -> Response {
    let query = serde_urlencoded::from_str(query).unwrap_or(Query { t: String::new() });
    let next = secret_text();
    let Some(cookie) = guard.begin_session(&query.t, &next) else {
        return refused(&Failure::new(
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
