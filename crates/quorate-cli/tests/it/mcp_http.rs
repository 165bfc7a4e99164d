//! `quorate mcp --http`: who may ask, and that it serves several clients.
#![cfg(feature = "mcp")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::mcp::{hanging, running};
use crate::support;
use crate::support::mcp as client;
use client::{Client, Http};
use serde_json::{Value, json};
use support::{TestDir, wait_until};

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

fn draft() -> TestDir {
    TestDir::with("draft.md", support::REVISED)
}

/// Sends a request.
fn open(server: &Http, method: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
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
    stream
}

/// What is answered to a request: the status, and the head in lower case with the body where its length is given.
fn asked(server: &Http, method: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
    let mut stream = open(server, method, headers, body);
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

/// An `initialize` that offers a revision, with this header.
fn hello(server: &Http, offered: &str, header: Option<&str>) -> (u16, String) {
    let headers: Vec<(&str, &str)> =
        header.map(|revision| ("MCP-Protocol-Version", revision)).into_iter().collect();
    asked(server, "POST", &headers, HELLO.replace("2025-06-18", offered).as_bytes())
}

/// The first event of an answer: what follows the head of a stream.
fn first_event(server: &Http, method: &str, headers: &[(&str, &str)], body: &[u8]) -> String {
    let mut stream = open(server, method, headers, body);
    let mut answer = Vec::new();
    loop {
        let read = String::from_utf8_lossy(&answer).into_owned();
        if let Some((_, events)) = read.split_once("\r\n\r\n")
            && events.contains("\n\n")
        {
            return events.to_owned();
        }
        let mut part = [0; 1024];
        let length = stream.read(&mut part).unwrap();
        assert_ne!(length, 0, "{read}");
        answer.extend_from_slice(&part[..length]);
    }
}

#[test]
fn each_revision_gets_what_it_knows() {
    let place = draft();
    let server = Http::start(&place, &[], None);
    // The handshake is gone since 2026-07-28, for a request of that revision. Its answer never names that revision.
    let (status, answer) = hello(&server, "2026-07-28", Some("2026-07-28"));
    assert_eq!(status, 404, "{answer}");
    let said: Value = serde_json::from_str(answer.split("\r\n\r\n").last().unwrap()).unwrap();
    assert_eq!((&said["id"], &said["error"]["code"]), (&json!(1), &json!(-32601)), "{answer}");
    assert_eq!(hello(&server, "2025-06-18", Some("2026-07-28")).0, 404);
    assert_eq!(hello(&server, "2026-07-28", None).0, 200);
    // Clients before 2025-11-25 take an event without a message for a broken one.
    let (list, accept) = (br#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#, "MCP-Protocol-Version");
    for (offered, primed) in [("2025-03-26", false), ("2025-06-18", false), ("2025-11-25", true)] {
        let first = first_event(&server, "POST", &[], HELLO.replace("2025-06-18", offered).as_bytes());
        assert_eq!(first.contains("data: \n"), primed, "{offered}: {first}");
        let (_, head) = hello(&server, offered, None);
        let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
        let headers = [("Mcp-Session-Id", session), (accept, offered)];
        for method in ["POST", "GET"] {
            if method == "POST" || primed {
                let first = first_event(&server, method, &headers, list);
                assert_eq!(first.contains("data: \n"), primed, "{offered}: {first}");
            }
        }
        assert_eq!(asked(&server, "DELETE", &headers, b"").0, 200);
        assert_eq!(asked(&server, "POST", &headers, list).0, 404);
    }
}

/// What a request of revision 2026-07-28 comes to: the status, and the message.
fn stateless(server: &Http, method: &str, mut params: Value, extensions: Value) -> (u16, Value) {
    let name = ["name", "taskId"].iter().find_map(|key| params[key].as_str()).map(str::to_owned);
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": extensions},
    });
    let mut headers =
        vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method), ("Connection", "close")];
    headers.extend(name.as_deref().map(|name| ("Mcp-Name", name)));
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
    let mut answer = String::new();
    open(server, "POST", &headers, body.as_bytes()).read_to_string(&mut answer).unwrap();
    let message =
        |line: &str| serde_json::from_str(line.trim_start_matches("data: ")).ok().filter(Value::is_object);
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.lines().find_map(message).unwrap_or_else(|| panic!("no message in {answer}")))
}

/// A task, once it has ended.
fn ended(server: &Http, task: &str) -> Value {
    let mut last = Value::Null;
    wait_until(Duration::from_secs(30), "an end of the task", || {
        last = stateless(server, "tasks/get", json!({"taskId": task}), tasks()).1["result"].take();
        last["status"] != "working"
    });
    last
}

fn tasks() -> Value {
    json!({"io.modelcontextprotocol/tasks": {}})
}

#[test]
fn a_long_call_is_a_task_for_a_client_that_knows_tasks() {
    let place = draft();
    let server = Http::start(&place, &[], None);
    let discovered = stateless(&server, "server/discover", json!({}), json!({})).1;
    assert_eq!(discovered["result"]["capabilities"]["extensions"], tasks());
    let review = |path: &str, extensions| {
        let params = json!({"name": "council_review", "arguments": {"path": path}});
        stateless(&server, "tools/call", params, extensions).1["result"].take()
    };
    let started = review("draft.md", tasks());
    assert_eq!(
        (&started["resultType"], &started["status"]),
        (&json!("task"), &json!("working")),
        "{started}"
    );
    let task = started["taskId"].as_str().unwrap();
    let done = ended(&server, task);
    let result = &done["result"]["structuredContent"];
    assert_eq!((&done["status"], &done["resultType"]), (&json!("completed"), &json!("complete")), "{done}");
    assert_eq!((&result["done"], &result["result"]["verdict"]), (&json!(true), &json!("REVISE")), "{done}");
    // A tool that fails has a result; a call that does not fit the tool has an error.
    let failed = ended(&server, review("no.md", tasks())["taskId"].as_str().unwrap());
    assert_eq!(
        (&failed["status"], &failed["result"]["isError"]),
        (&json!("completed"), &json!(true)),
        "{failed}"
    );
    let params = json!({"name": "council_review", "arguments": {"pth": "draft.md"}});
    let started = stateless(&server, "tools/call", params, tasks()).1;
    let malformed = ended(&server, started["result"]["taskId"].as_str().unwrap());
    assert_eq!(
        (&malformed["status"], &malformed["error"]["code"]),
        (&json!("failed"), &json!(-32602)),
        "{malformed}"
    );
    // Other clients wait for the job, and have no tasks.
    assert_eq!(review("draft.md", json!({}))["structuredContent"]["done"], true);
    for (params, extensions, status, code) in [
        (json!({"taskId": task}), json!({}), 400, -32021),
        (json!({"taskId": "none"}), tasks(), 200, -32602),
        (json!({}), tasks(), 200, -32602),
    ] {
        let (got, said) = stateless(&server, "tasks/get", params, extensions);
        assert_eq!((got, &said["error"]["code"]), (status, &json!(code)), "{said}");
    }
    assert_eq!(stateless(&server, "tasks/list", json!({}), tasks()).1["error"]["code"], -32601);
}

#[test]
fn a_task_that_is_cancelled_leaves_nothing_running() {
    let (place, word) = hanging();
    let server = Http::start(&place, &[], None);
    let params = json!({"name": "council_review", "arguments": {"path": "draft.md"}});
    let started = stateless(&server, "tools/call", params, tasks()).1;
    let task = started["result"]["taskId"].as_str().unwrap();
    wait_until(Duration::from_secs(30), "members at work", || running(&word) > 0);
    let acknowledged = stateless(&server, "tasks/cancel", json!({"taskId": task}), tasks()).1;
    assert_eq!(acknowledged["result"]["resultType"], "complete", "{acknowledged}");
    assert_eq!(ended(&server, task)["status"], "cancelled");
    wait_until(Duration::from_secs(10), "an end of all members", || running(&word) == 0);
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
    assert_eq!(status(&server, &[("Origin", &format!("https://{}", server.authority()))]), 403);
    let closed = Http::start(&place, &[], None);
    assert_eq!(status(&closed, &[]), 200);
    assert_eq!(status(&closed, &[("Origin", &format!("http://{}", closed.authority()))]), 200);
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
