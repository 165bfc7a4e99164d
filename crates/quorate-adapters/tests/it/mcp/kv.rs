//! State behind a server.

use serde_json::json;

use crate::mcp::fake_server::{FakeServer, Fault, Style};
use crate::mcp::host::{TestHost, object};

#[tokio::test]
async fn state_is_kept_whole_for_each_participant() {
    for style in [Style::full(), Style { text: true, ..Style::full() }] {
        let fake = FakeServer::new(style);
        let state = TestHost::connected_to(&fake).await.state(json!({}));
        assert!(state.read("reviewer").await.unwrap().is_empty());
        for id in ["reviewer", "Reviewer", "re/viewer", "é"] {
            state.write(id, &object(json!({"who": id, "old": 1}))).await.unwrap();
            state.write(id, &object(json!({"who": id}))).await.unwrap();
        }
        for id in ["reviewer", "Reviewer", "re/viewer", "é"] {
            assert_eq!(state.read(id).await.unwrap(), object(json!({"who": id})));
        }
        assert!(fake.state.lock().unwrap().entries.contains_key("quorate/swarm/reviewer"));
    }
}

#[tokio::test]
async fn prefix_and_tools_are_the_blocks_to_say() {
    let fake = FakeServer::new(Style::full());
    let state = TestHost::connected_to(&fake).await.state(json!({"prefix": "p:", "setTool": "kv_set"}));
    state.write("a", &object(json!({}))).await.unwrap();
    assert!(fake.state.lock().unwrap().entries.contains_key("p:a"));
}

#[tokio::test]
async fn what_is_no_state_is_never_taken_for_an_empty_one() {
    let fake = FakeServer::new(Style::full());
    let state = TestHost::connected_to(&fake).await.state(json!({}));
    for instead in [json!({}), json!({"value": 3}), json!({"value": "not json"}), json!("oops"), json!([])] {
        fake.fault("kv_get", Fault::Replace(instead.clone()));
        assert!(state.read("a").await.is_err(), "{instead}");
    }
    fake.fault("kv_get", Fault::CutBefore);
    fake.fault("kv_set", Fault::CutAfter);
    state.write("a", &object(json!({"n": 1}))).await.unwrap();
    assert_eq!(state.read("a").await.unwrap(), object(json!({"n": 1})));
}
