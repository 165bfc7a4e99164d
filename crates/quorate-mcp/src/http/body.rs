//! The body of a request, before it is a message. What is too long or no message is answered as over standard input.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::incoming::{self, InvalidMessage, MAX_MESSAGE_BYTES};

/// Lets through what is a message.
pub(super) async fn validate_body(request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    // Who breaks off does not read an answer, so that there is one reason.
    let Ok(bytes) = to_bytes(body, MAX_MESSAGE_BYTES).await else {
        return answer(StatusCode::PAYLOAD_TOO_LARGE, &InvalidMessage::too_long(None));
    };
    match incoming::parse(&bytes) {
        Ok(Some(_)) => next.run(Request::from_parts(head, Body::from(bytes))).await,
        Ok(None) if incoming::without_blanks(&bytes).is_empty() => {
            answer(StatusCode::BAD_REQUEST, &InvalidMessage::empty())
        }
        Ok(None) => StatusCode::ACCEPTED.into_response(),
        Err(refused) => answer(StatusCode::BAD_REQUEST, &refused),
    }
}

fn answer(status: StatusCode, refused: &InvalidMessage) -> Response {
    let text = refused.answer().to_string();
    (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
}
