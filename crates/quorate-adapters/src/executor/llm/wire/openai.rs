//! What the two wires of OpenAI share.

use quorate_protocol::Json;
use serde::Serialize;
use serde_json::json;

use super::request::{Cache, Request, Server};

/// How many marks a request may have.
const MAX_MARKS: usize = 4;

/// The content of a message.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<Json>),
}

/// The prompt as content, in blocks where its cuts are marked, and the options that go with the marks. Without marks it is
/// one text: some compatible servers join blocks with line breaks.
pub(super) fn content<'a>(request: &Request<'a>, kind: &str) -> (Content<'a>, Option<Json>) {
    let ttl = match (request.cache, request.server) {
        (Cache::Auto, _) | (_, Server::Compatible) => return (Content::Text(request.prompt), None),
        // Explicit marks turn the automatic one off, and there are none.
        (Cache::Off, _) => return (Content::Text(request.prompt), Some(json!({"mode": "explicit"}))),
        (Cache::Minutes, _) => "30m",
        (Cache::Hour, _) => "12h",
    };
    let mark = json!({"mode": "explicit"});
    let blocks = request.blocks(kind, Some(("prompt_cache_breakpoint", &mark)), MAX_MARKS);
    (Content::Blocks(blocks), Some(json!({"mode": "explicit", "ttl": ttl})))
}
