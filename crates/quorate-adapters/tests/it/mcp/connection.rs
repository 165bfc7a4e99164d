//! The connection: made when used, reopened when it broke, one for all.

use std::time::{Duration, Instant};

use quorate_kernel::ports::substrate::SubstrateError;
use quorate_protocol::Name;
use serde_json::json;

use crate::mcp::fake_server::{FakeServer, Fault, Style};
use crate::mcp::host::TestHost;

fn source(error: &SubstrateError) -> String {
    std::error::Error::source(error).map(ToString::to_string).unwrap_or_default()
}

#[tokio::test]
async fn a_line_that_is_cut_is_mended_and_reading_goes_on() {
    let fake = FakeServer::new(Style::full());
    fake.say("u_1", "one");
    fake.say("u_1", "two");
    let substrate = TestHost::connected_to(&fake).await.substrate();
    for _ in 0..3 {
        fake.fault("get_messages", Fault::CutAfter);
        let page = substrate.read(Some(&Name::from("m1")), 5).await.unwrap();
        assert_eq!(page.turns.len(), 1);
    }
    fake.cut.notify_waiters();
    assert_eq!(substrate.read(Some(&Name::from("m1")), 5).await.unwrap().turns.len(), 1);
}

#[tokio::test]
async fn a_line_that_is_always_cut_is_given_up() {
    let fake = FakeServer::new(Style::full());
    let substrate = TestHost::connected_to(&fake).await.substrate();
    for _ in 0..10 {
        fake.fault("get_messages", Fault::CutBefore);
    }
    let error = substrate.read(Some(&Name::from("m1")), 5).await.unwrap_err();
    assert!(source(&error).contains("the connection broke"), "{}", source(&error));
    assert!(fake.calls("get_messages").len() <= 3);
}

#[tokio::test]
async fn adapters_share_one_session() {
    let fake = FakeServer::new(Style::full());
    let host = TestHost::connected_to(&fake).await;
    let (one, other, state) = (host.substrate(), host.substrate(), host.state(json!({})));
    one.read(None, 5).await.unwrap();
    other.read(None, 5).await.unwrap();
    state.read("reviewer").await.unwrap();
    let sessions = fake.sessions();
    one.read(None, 5).await.unwrap();
    state.read("scribe").await.unwrap();
    assert_eq!(fake.sessions(), sessions);
    let alone = host.substrate();
    drop((one, other, state));
    alone.read(None, 5).await.unwrap();
    assert_eq!(fake.sessions(), sessions);
}

#[tokio::test]
async fn a_slow_server_is_waited_for_as_long_as_its_table_says() {
    let fake = FakeServer::new(Style::full());
    let substrate = TestHost::with_timeout(&fake, "1s").await.substrate();
    substrate.read(None, 5).await.unwrap();
    fake.fault("get_messages", Fault::Slow(Duration::from_secs(60)));
    let started = Instant::now();
    let error = substrate.read(Some(&Name::from("m1")), 5).await.unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(10));
    assert!(source(&error).contains("no answer within"), "{}", source(&error));
    fake.cancelled(1).await;
    substrate.read(None, 5).await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_what_to_do() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let host = TestHost::from_table(json!({"url": format!("http://127.0.0.1:{port}/mcp")}));
    let error = host.substrate().read(None, 5).await.unwrap_err();
    assert!(source(&error).contains("MCP server `guilde`: no session"), "{}", source(&error));

    let url = format!("http://127.0.0.1:{port}/mcp");
    let host = TestHost::from_table(json!({"url": url, "token": "QUORATE_TEST_NO_SUCH_TOKEN"}));
    let error = host.substrate().read(None, 5).await.unwrap_err();
    assert!(source(&error).contains("`QUORATE_TEST_NO_SUCH_TOKEN`"), "{}", source(&error));

    let host = TestHost::from_table(json!({"command": "quorate-no-such-server"}));
    let error = host.substrate().read(None, 5).await.unwrap_err();
    assert!(source(&error).contains("was not found on PATH"), "{}", source(&error));
}

#[tokio::test]
async fn a_server_without_the_tool_is_probably_another_one() {
    let fake = FakeServer::new(Style::full());
    let state = TestHost::connected_to(&fake).await.state(json!({"getTool": "kv_gett"}));
    let error = state.read("reviewer").await.unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(why.contains("no tool `kv_gett`; it has `kv_get`"), "{why}");
}

#[tokio::test]
async fn https_is_spoken_and_an_unknown_certificate_is_refused() {
    // A server that answers a TLS greeting with plain text does not speak TLS; that the failure is one of TLS shows that a
    // provider is there.
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut line, _)) = listener.accept().await {
            use tokio::io::AsyncWriteExt as _;
            let _ = line.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let host = TestHost::from_table(json!({"url": format!("https://{address}/mcp")}));
    let error = host.substrate().read(None, 5).await.unwrap_err();
    let why = source(&error);
    assert!(why.contains("corrupt message") || why.contains("InvalidContentType"), "{why}");
}
