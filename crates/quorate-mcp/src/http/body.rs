//! Checks the body of a request. One that is too long or no message gets the same answer as over standard input, and one
//! that does not arrive in time ends its connection.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::incoming::{self, InvalidMessage, MAX_MESSAGE_BYTES};

/// Passes valid messages on that arrive within the deadline.
pub(super) async fn validate_body(
    State(deadline): State<Duration>,
    request: Request,
    next: Next,
) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    let bytes = match tokio::time::timeout(deadline, to_bytes(body, MAX_MESSAGE_BYTES)).await {
        Ok(Ok(bytes)) => bytes,
        // A client that disconnected does not read an answer, so the only reason is the length.
        Ok(Err(_)) => return answer(StatusCode::PAYLOAD_TOO_LARGE, &InvalidMessage::too_long(None)),
        Err(_) => {
            let mut response = answer(StatusCode::REQUEST_TIMEOUT, &InvalidMessage::incomplete(deadline));
            // The rest of the request is not read.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            return response;
        }
    };
    match incoming::parse(&bytes) {
        Ok(Some(_)) => next.run(Request::from_parts(head, Body::from(bytes))).await,
        Ok(None) if incoming::without_blanks(&bytes).is_empty() => {
            answer(StatusCode::BAD_REQUEST, &InvalidMessage::empty())
        }
        Ok(None) => StatusCode::ACCEPTED.into_response(),
        Err(invalid) => answer(StatusCode::BAD_REQUEST, &invalid),
    }
}

fn answer(status: StatusCode, invalid: &InvalidMessage) -> Response {
    let text = invalid.answer().to_string();
    (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
}
