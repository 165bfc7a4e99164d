//! Parses incoming messages. An invalid line or body gets an error answer, with the request's id if the id is readable.

use std::time::Duration;

use rmcp::model::{ClientRequest, ErrorCode, ErrorData, GetMeta as _, ProtocolVersion, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// The longest message, in bytes: a line, or the body of a request.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

pub(super) type Message = RxJsonRpcMessage<RoleServer>;

/// Why input is not a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct InvalidMessage {
    error: ErrorData,
    id: Option<RequestId>,
}

impl InvalidMessage {
    /// It is longer than [`MAX_MESSAGE_BYTES`].
    pub(super) fn too_long() -> InvalidMessage {
        let message = format!("the message is longer than {MAX_MESSAGE_BYTES} bytes");
        InvalidMessage::of_request(&message, None)
    }

    /// Its body did not arrive in time.
    pub(super) fn incomplete(deadline: Duration) -> InvalidMessage {
        let message = format!("the body did not arrive within {} s", deadline.as_secs_f64());
        InvalidMessage::of_request(&message, None)
    }

    pub(super) fn empty() -> InvalidMessage {
        let message = "Parse error: the body is empty; it has to be one JSON-RPC 2.0 message";
        InvalidMessage { error: ErrorData::parse_error(message, None), id: None }
    }

    fn no_handshake(id: RequestId) -> InvalidMessage {
        let message = "Method not found: this revision has no `initialize`; send requests with its `_meta`, or name an \
                       earlier revision";
        InvalidMessage { error: ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None), id: Some(id) }
    }

    /// There is no place for another session.
    pub(super) fn no_place(id: RequestId) -> InvalidMessage {
        let message =
            "the server has as many sessions as it can have: end one with DELETE, or try again later";
        InvalidMessage { error: ErrorData::internal_error(message, None), id: Some(id) }
    }

    fn of_request(message: &str, id: Option<RequestId>) -> InvalidMessage {
        let message = format!("Invalid Request: {message}");
        InvalidMessage { error: ErrorData::invalid_request(message, None), id }
    }

    /// The answer. An unreadable id is null, as JSON-RPC requires; the library would omit it.
    pub(super) fn answer(&self) -> Value {
        json!({"jsonrpc": "2.0", "id": self.id, "error": self.error})
    }
}

/// The members that identify a message, however deep the rest is nested.
#[derive(Deserialize)]
struct Outline {
    /// `Some(Value::Null)` where the message has `id: null`, which makes it no notification.
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    method: Option<String>,
}

fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

impl Outline {
    /// Whether it asks something under `id: null`. JSON-RPC answers under that id, and MCP forbids it.
    fn has_null_id(&self) -> bool {
        self.id == Some(Value::Null) && self.method.is_some()
    }
}

/// The parser's texts for a number that does not fit, and for too many levels; it has no error kinds for them.
const OUT_OF_RANGE: &str = "number out of range";
const TOO_DEEP: &str = "recursion limit exceeded";
const NUMBER_TOO_LARGE: &str = "a number is out of range: it does not fit in 64 bits";
const NULL_ID: &str = "its id is null: use a string or an integer";

/// A message without byte order mark and surrounding white space.
pub(super) fn without_blanks(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes).trim_ascii()
}

/// Reads a message. `None` for input without an answer: white space, and unknown notifications.
///
/// # Errors
/// The answer to invalid input.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<Message>, InvalidMessage> {
    let bytes = without_blanks(bytes);
    if bytes.is_empty() {
        return Ok(None);
    }
    let error = match serde_json::from_slice::<Message>(bytes) {
        Ok(Message::Notification(message)) => {
            // The library takes a request with `id: null` for a notification.
            let outline = serde_json::from_slice::<Outline>(bytes);
            return match outline.is_ok_and(|outline| outline.has_null_id()) {
                true => Err(InvalidMessage::of_request(NULL_ID, None)),
                false => Ok(Some(Message::Notification(message))),
            };
        }
        Ok(message) => return Ok(Some(message)),
        Err(error) => error,
    };
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(bytes) {
        let error = ErrorData::parse_error(format!("Parse error: {error}"), None);
        return Err(InvalidMessage { error, id: None });
    }
    let outline = serde_json::from_slice::<Outline>(bytes).ok();
    let written = outline.as_ref().and_then(|outline| outline.id.as_ref());
    let id = written.and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    let why = error.to_string();
    let message = match (error.is_syntax(), bytes.first(), &outline) {
        (true, _, Some(_)) if why.starts_with(OUT_OF_RANGE) => {
            let message = format!("Invalid params: {NUMBER_TOO_LARGE}");
            return Err(InvalidMessage { error: ErrorData::invalid_params(message, None), id });
        }
        (true, ..) if why.starts_with(OUT_OF_RANGE) => NUMBER_TOO_LARGE.to_owned(),
        (true, ..) if why.starts_with(TOO_DEEP) => "it is nested too deeply: 128 levels at most".to_owned(),
        (true, ..) => why,
        (false, Some(b'['), _) => "batches are not served: send one message at a time".to_owned(),
        (false, _, Some(Outline { id: None, method: Some(_) })) => return Ok(None),
        (false, _, Some(outline)) if outline.has_null_id() => NULL_ID.to_owned(),
        (false, _, Some(Outline { id: Some(Value::Number(number)), .. })) if id.is_none() => {
            format!("its id {number} is not an integer of 64 bits")
        }
        _ => "it is not a JSON-RPC 2.0 message".to_owned(),
    };
    Err(InvalidMessage::of_request(&message, id))
}

/// The revision of the protocol of a message: the one that its header names, or that its handshake offers.
///
/// # Errors
/// `initialize` under a revision without it, which the header or the request's `_meta` names. A handshake may offer such a
/// revision, since the answer names an earlier one.
pub(super) fn revision(message: &Message, header: String) -> Result<String, InvalidMessage> {
    let Message::Request(request) = message else { return Ok(header) };
    let stated = request.request.get_meta().protocol_version();
    let named = |version: &ProtocolVersion| version.as_str() == header || stated.as_ref() == Some(version);
    let mut stateless = ProtocolVersion::KNOWN_VERSIONS.iter().filter(|version| !version.has_initialize());
    if handshake(message).is_some() && stateless.any(named) {
        return Err(InvalidMessage::no_handshake(request.id.clone()));
    }
    Ok(match &request.request {
        ClientRequest::InitializeRequest(handshake) => handshake.params.protocol_version.to_string(),
        _ => header,
    })
}

/// The id of a request that begins a session.
pub(super) fn handshake(message: &Message) -> Option<&RequestId> {
    match message {
        Message::Request(request) if request.request.method() == "initialize" => Some(&request.id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(text: &str) -> Value {
        parse(text.as_bytes()).unwrap_err().answer()
    }

    #[test]
    fn what_is_no_message_is_answered() {
        let deep = |id: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"ping","params":{}1{}{id}}}"#,
                "[".repeat(5000),
                "]".repeat(5000)
            )
        };
        let with_id = deep(r#","id":"a""#);
        for (text, code, id) in [
            ("nonsense", -32700, Value::Null),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping""#, -32700, Value::Null),
            ("\"\u{0}\"", -32700, Value::Null),
            (&"[".repeat(100_000), -32700, Value::Null),
            (&with_id, -32600, json!("a")),
            (r#"{"id":7,"method":"ping"}"#, -32600, json!(7)),
            (r#"{"jsonrpc":"2.0","id":7}"#, -32600, json!(7)),
            (r#"{"jsonrpc":"2.0","id":[7],"method":"ping"}"#, -32600, Value::Null),
            (r#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#, -32600, Value::Null),
            ("7", -32600, Value::Null),
            ("{}", -32600, Value::Null),
            (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":1e400}}"#, -32602, json!(7)),
            (r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#, -32600, Value::Null),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, Value::Null),
            (r#"{"jsonrpc":"2.0","id":null,"method":"notifications/initialized"}"#, -32600, Value::Null),
            (r#"{"jsonrpc":"2.0","id":null,"method":"no/such","params":{}}"#, -32600, Value::Null),
            (r#"{"id":null,"method":"ping"}"#, -32600, Value::Null),
        ] {
            let said = said(text);
            let short: String = text.chars().take(60).collect();
            // The id is present even if it is null.
            assert_eq!(
                (&said["error"]["code"], said.get("id")),
                (&json!(code), Some(&id)),
                "{short}: {said}"
            );
        }
        for (text, message) in [
            (r#"{"jsonrpc":"2.0","id":7,"a":-1e999}"#, "a number is out of range"),
            (r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#, "a number is out of range"),
            ("[1e400]", "a number is out of range"),
            (
                r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}"#,
                "not an integer of 64 bits",
            ),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "its id is null"),
            (&with_id, "nested too deeply"),
        ] {
            let said = said(text)["error"]["message"].to_string();
            assert!(said.contains(message), "{text:.60}: {said}");
        }
    }

    #[test]
    fn messages_are_read_and_what_asks_for_no_answer_gets_none() {
        assert!(
            parse(b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\r\n").unwrap().is_some()
        );
        assert!(parse(b" \r\n").unwrap().is_none());
        assert!(parse(br#"{"method":"window/logMessage","params":{}}"#).unwrap().is_none());
    }
}
