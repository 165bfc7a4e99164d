//! `quorate mcp --http`: who may ask, and that it serves several clients.
#![cfg(feature = "mcp")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::support;
use crate::support::mcp as client;
use client::{Client, Http};
use serde_json::{Value, json};
use support::TestDir;

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

fn draft() -> TestDir {
    TestDir::with("draft.md", support::REVISED)
}

/// What is answered to a request: the status, and the head in lower case with the body where its length is given.
fn asked(server: &Http, method: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(server.authority()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let host = (!headers.iter().any(|(name, _)| *name == "Host")).then(|| ("Host", server.authority()));
    let mut request = format!("{method} /mcp HTTP/1.1\r\n");
    for (name, value) in host.iter().chain(headers) {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!(
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ));
    stream.write_all(request.as_bytes()).unwrap();
    // The server may close the connection after it refuses the length.
    let _ = stream.write_all(body);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head + &String::from_utf8(body).unwrap())
}

/// The status of an `initialize` with these headers.
fn status(server: &Http, headers: &[(&str, &str)]) -> u16 {
    asked(server, "POST", headers, HELLO.as_bytes()).0
}

#[test]
fn a_page_that_is_allowed_may_ask_from_a_browser() {
    let place = draft();
    let server =
        Http::start(&place, &["--allow-origin", "https://app.example.com"], Some("open sesame, please"));
    let preflight = |origin| {
        let headers = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "POST"),
            ("Access-Control-Request-Headers", "authorization,content-type,mcp-protocol-version"),
        ];
        asked(&server, "OPTIONS", &headers, b"")
    };
    // A browser asks without a token whether it may ask with one.
    let (status, head) = preflight("https://app.example.com");
    assert_eq!(status, 204, "{head}");
    for line in [
        "access-control-allow-origin: https://app.example.com\r\n",
        "access-control-allow-methods: get, post, delete\r\n",
        "access-control-allow-headers: authorization,content-type,mcp-protocol-version\r\n",
    ] {
        assert!(head.contains(line), "{line} in {head}");
    }
    let (status, head) = preflight("https://evil.example");
    assert_eq!((status, head.contains("access-control")), (403, false), "{head}");
    // Browsers can read the later answers, including refusals.
    for (token, expected) in [("Bearer open sesame, please", 200), ("Bearer x", 401)] {
        let headers = [("Origin", "https://app.example.com"), ("Authorization", token)];
        let (status, head) = asked(&server, "POST", &headers, HELLO.as_bytes());
        assert_eq!(status, expected);
        assert!(head.contains("access-control-allow-origin: https://app.example.com\r\n"), "{head}");
        assert!(head.contains("access-control-expose-headers: mcp-session-id"), "{head}");
    }
    let (_, head) =
        asked(&server, "POST", &[("Authorization", "Bearer open sesame, please")], HELLO.as_bytes());
    assert!(!head.contains("access-control"), "{head}");
    // OPTIONS without an origin is not a preflight.
    assert_eq!(asked(&server, "OPTIONS", &[("Authorization", "Bearer open sesame, please")], b"").0, 405);
}

#[test]
fn a_body_that_is_no_message_is_answered() {
    let place = draft();
    let server = Http::start(&place, &[], None);
    let deep = [b"[".repeat(9_000), b"]".repeat(9_000)].concat();
    for (body, expected, code) in [
        (b"nonsense".to_vec(), 400, -32700),
        (Vec::new(), 400, -32700),
        (b" \r\n".to_vec(), 400, -32700),
        (deep, 400, -32600),
        (vec![b' '; (16 << 20) + 1], 413, -32600),
    ] {
        let (status, answer) = asked(&server, "POST", &[], &body);
        assert_eq!(status, expected, "{answer}");
        assert!(answer.contains("content-type: application/json"), "{answer}");
        let said: Value = serde_json::from_str(answer.split("\r\n\r\n").last().unwrap()).unwrap();
        assert_eq!((said.get("id"), &said["error"]["code"]), (Some(&Value::Null), &json!(code)), "{answer}");
    }
    // A notification that is not known asks for no answer.
    assert_eq!(asked(&server, "POST", &[], br#"{"method":"window/logMessage","params":{}}"#).0, 202);
    assert_eq!(status(&server, &[]), 200);
}

#[tokio::test]
async fn it_serves_several_clients_and_ends_when_it_is_interrupted() {
    let place = draft();
    let server = Http::start(&place, &[], None);
    assert!(server.authority().starts_with("127.0.0.1:"), "{}", server.url);
    let (one, other) =
        (Client::http(&server, None).await.unwrap(), Client::http(&server, None).await.unwrap());
    let reviewed = one.call("council_review", json!({"path": "draft.md"})).await;
    assert_eq!(reviewed["result"]["verdict"], "REVISE");
    // A job is known by its id, not by the connection.
    let job = reviewed["job"].as_str().unwrap();
    assert_eq!(other.call("job_poll", json!({"job": job})).await["result"], reviewed["result"]);
    // Also while a session is open.
    assert_eq!(server.interrupt(), Some(0));
}

#[test]
fn host_and_origin_are_looked_at() {
    let place = draft();
    let server = Http::start(&place, &["--allow-origin", "https://app.example.com"], None);
    let port = server.authority().rsplit(':').next().unwrap();
    assert_eq!(status(&server, &[]), 200);
    assert_eq!(status(&server, &[("Host", &format!("localhost:{port}"))]), 200);
    assert_eq!(status(&server, &[("Host", &format!("evil.example:{port}"))]), 403);
    assert_eq!(status(&server, &[("Host", "localhost")]), 403);
    assert_eq!(status(&server, &[("Origin", "https://app.example.com")]), 200);
    assert_eq!(status(&server, &[("Origin", "https://evil.example")]), 403);
    assert_eq!(status(&server, &[("Origin", "null")]), 403);
    assert_eq!(status(&server, &[("Origin", &format!("http://{}", server.authority()))]), 403);
    let closed = Http::start(&place, &[], None);
    assert_eq!(status(&closed, &[]), 200);
    assert_eq!(status(&closed, &[("Origin", "https://app.example.com")]), 403);
}

#[tokio::test]
async fn a_token_is_asked_for() {
    let place = draft();
    let server = Http::start(&place, &[], Some("open sesame, please"));
    assert_eq!(status(&server, &[]), 401);
    assert_eq!(status(&server, &[("Authorization", "Bearer open sesam")]), 401);
    assert_eq!(status(&server, &[("Authorization", "Bearer open sesame, please")]), 200);
    assert!(Client::http(&server, Some("wrong")).await.is_err());
    let client = Client::http(&server, Some("open sesame, please")).await.unwrap();
    assert!(client.tools().await.contains(&"council_review".to_owned()));
}

#[test]
fn it_does_not_answer_everybody() {
    let place = draft();
    let refused = place.run(&["mcp", "--http", "0.0.0.0:0"]).assert_code(5);
    refused.assert_stderr_contains("quorate:mcp_exposed");
    assert_eq!(refused.stdout, "");
    place.run(&["mcp", "--http", "[::]:0"]).assert_code(5).assert_stderr_contains("quorate:mcp_exposed");
    place
        .run(&["mcp", "--http", "--token-env", "TOKEN"])
        .assert_code(5)
        .assert_stderr_contains("quorate:mcp_exposed");
    let server = Http::start(&place, &[], None);
    place
        .run(&["mcp", "--http", server.authority()])
        .assert_code(5)
        .assert_stderr_contains("quorate:address_unusable");
}
