//! A server that plays the models of three vendors: it answers everything with one answer that fits every form of a
//! council, and keeps what it was asked. It speaks as much of HTTP as the vendors' CLIs need.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

/// With these words before a path the model writes a file there.
pub(crate) const ASKS_TO_WRITE: &str = "Write the draft ";

/// One request for an answer.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) body: Value,
    /// The body as it came.
    pub(crate) text: String,
}

/// The server; it listens for as long as the process lives.
pub(crate) struct Model {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Model {
    pub(crate) fn start() -> Model {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback is up");
        let port = listener.local_addr().expect("an address").port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || {
                    // A CLI that leaves early has what it wanted.
                    let _ = serve(stream, &kept);
                });
            }
        });
        Model { port, asked }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What was asked since the last time.
    pub(crate) fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn serve(stream: TcpStream, kept: &Mutex<Vec<Asked>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut words = line.split_whitespace().map(str::to_owned);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (mut length, mut chunked, mut upgrade) = (0, false, false);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim().split_once(':') else { break };
            match name.to_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap_or(0),
                "transfer-encoding" => chunked = value.to_lowercase().contains("chunked"),
                "upgrade" => upgrade = true,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        while chunked {
            let mut size = String::new();
            reader.read_line(&mut size)?;
            let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk)?;
            body.extend_from_slice(&chunk[..size]);
            chunked = size > 0;
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        let answer = match method.as_str() {
            "POST" => {
                let body = serde_json::from_str(&text).unwrap_or_default();
                let answer = answer(&path, &body);
                let asked = Asked { path, body, text };
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
                answer
            }
            // One CLI prefers a web socket, and falls back if its setting allows it.
            _ if upgrade => (426, "application/json", "{}".to_owned()),
            _ => (404, "application/json", "{}".to_owned()),
        };
        let (status, kind, text) = answer;
        let head =
            format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", text.len());
        stream.write_all(head.as_bytes())?;
        if method != "HEAD" {
            stream.write_all(text.as_bytes())?;
        }
        stream.flush()?;
    }
}

/// Fits every form of a council.
fn fitting() -> Value {
    json!({"would_block": false, "irreducible": false, "final_verdict": "SHIP", "reasoning": "It reads well."})
}

fn answer(path: &str, asked: &Value) -> (u16, &'static str, String) {
    const STREAM: &str = "text/event-stream";
    let named = |events: &[Value]| -> String {
        events
            .iter()
            .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("")))
            .collect()
    };
    if path.starts_with("/v1/messages/count_tokens") {
        return (200, "application/json", json!({"input_tokens": 9}).to_string());
    }
    if path.starts_with("/v1/messages") {
        return (200, STREAM, named(&messages(asked)));
    }
    if path.starts_with("/v1/responses") {
        return (200, STREAM, named(&responses()));
    }
    let candidate = json!({
        "candidates": [{"content": {"role": "model", "parts": [{"text": fitting().to_string()}]},
                        "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12},
        "modelVersion": "m"
    });
    match path {
        _ if path.contains(":streamGenerateContent") => (200, STREAM, format!("data: {candidate}\n\n")),
        _ if path.contains(":generateContent") => (200, "application/json", candidate.to_string()),
        _ => (404, "application/json", "{}".to_owned()),
    }
}

/// The file that the model is asked to write; `None` once it has.
fn to_write(messages: &str) -> Option<Value> {
    let path = messages.split(ASKS_TO_WRITE).nth(1)?.split(['"', '\\']).next()?;
    let text = crate::support::REVISED;
    (!messages.contains("tool_result")).then(|| json!({"file_path": path, "content": text}))
}

fn messages(asked: &Value) -> Vec<Value> {
    let offers =
        |name: &str| asked["tools"].as_array().into_iter().flatten().any(|tool| tool["name"] == name);
    let uses = |name: &str, input: String| {
        (
            json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": input}),
            "tool_use",
        )
    };
    let answer = fitting().to_string();
    let to_write = to_write(&asked["messages"].to_string()).filter(|_| offers("Write"));
    let (block, delta, stop) = match to_write {
        Some(input) => uses("Write", input.to_string()),
        None if offers("StructuredOutput") => uses("StructuredOutput", answer),
        None => {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": answer}), "end_turn")
        }
    };
    let usage = json!({"input_tokens": 9, "output_tokens": 3});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"], "content": [],
                         "stop_reason": null, "stop_sequence": null, "usage": usage});
    vec![
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop"}),
    ]
}

fn responses() -> Vec<Value> {
    let item = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                      "content": [{"type": "output_text", "text": fitting().to_string(), "annotations": []}]});
    let usage = json!({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 3,
                       "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 12});
    let response = json!({"id": "resp_1", "object": "response", "status": "completed", "output": [item], "usage": usage});
    vec![
        json!({"type": "response.created", "response": {"id": "resp_1"}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response}),
    ]
}
