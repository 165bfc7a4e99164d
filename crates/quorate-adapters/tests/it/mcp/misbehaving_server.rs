//! Servers that do not do what they say.

use quorate_kernel::ports::substrate::SubstrateError;
use quorate_protocol::Name;
use serde_json::{Value, json};

use crate::mcp::fake_server::{FakeServer, Fault, Style};
use crate::mcp::host::{TestHost, all};

fn say(fake: &FakeServer, count: usize) {
    for number in 1..=count {
        fake.say("u_1", &format!("line {number}"));
    }
}

fn ids(page: &quorate_kernel::ports::substrate::Page) -> Vec<&str> {
    page.turns.iter().map(|turn| &*turn.id).collect()
}

fn source(error: &SubstrateError) -> String {
    std::error::Error::source(error).map(ToString::to_string).unwrap_or_default()
}

#[tokio::test]
async fn repeated_messages_are_given_once() {
    fn twice(messages: &mut Vec<Value>) {
        messages.extend(messages.clone());
    }
    for style in [Style::full(), Style::public()] {
        let fake = FakeServer::new(style.clone());
        say(&fake, 7);
        let substrate = TestHost::connected_to(&fake).await.substrate();
        for since in [None, Some(Name::from("m1"))] {
            fake.fault("get_messages", Fault::Reordered(twice));
            let page = substrate.read(since.as_ref(), 100).await.unwrap();
            let from = usize::from(since.is_some());
            assert_eq!(ids(&page), &["m1", "m2", "m3", "m4", "m5", "m6", "m7"][from..], "{style:?}");
        }
    }
}

#[tokio::test]
async fn an_order_that_the_server_keeps_to_holds_against_its_clock() {
    let fake = FakeServer::new(Style::full());
    say(&fake, 4);
    // The clock was set back between the second and the third.
    fake.state.lock().unwrap().messages[2].at_ms -= 5_000;
    let substrate = TestHost::connected_to(&fake).await.substrate();
    let page = substrate.read(Some(&Name::from("m1")), 100).await.unwrap();
    assert_eq!(ids(&page), ["m2", "m3", "m4"]);
}

#[tokio::test]
async fn a_limit_that_is_ignored_is_kept_by_us_and_makes_no_window_all() {
    let fake = FakeServer::new(Style { always_gives: Some(20), says_more: false, ..Style::full() });
    say(&fake, 30);
    let substrate = TestHost::connected_to(&fake).await.substrate();
    let page = substrate.read(Some(&Name::from("m1")), 3).await.unwrap();
    assert_eq!(ids(&page), ["m2", "m3", "m4"]);

    let fake = FakeServer::new(Style { always_gives: Some(20), ..Style::public() });
    say(&fake, 30);
    let substrate = TestHost::connected_to(&fake).await.substrate();
    for since in [None, Some(Name::from("m2"))] {
        let error = substrate.read(since.as_ref(), 100).await.unwrap_err();
        assert!(matches!(error, SubstrateError::Unknown(_)), "{error}");
    }
}

#[tokio::test]
async fn a_window_that_slid_past_the_cursor_is_not_taken_for_a_new_conversation() {
    let fake = FakeServer::new(Style { max_messages: Some(20), ..Style::public() });
    say(&fake, 10);
    let substrate = TestHost::connected_to(&fake).await.substrate();
    all(&*substrate, 100).await;
    say(&fake, 40);
    // The server hides that it never gives more than 20, so that 20 look like all messages.
    let error = substrate.read(Some(&Name::from("m10")), 100).await.unwrap_err();
    assert!(matches!(error, SubstrateError::Unknown(_)), "{error}");
}

#[tokio::test]
async fn what_cannot_be_read_is_named() {
    let fake = FakeServer::new(Style::full());
    say(&fake, 2);
    let substrate = TestHost::connected_to(&fake).await.substrate();
    let at = "2026-05-18T18:23:11Z";
    let bad = [
        (
            json!({"messages": [{"id": "m 1", "authorId": "u", "content": "x", "timestamp": at}]}),
            "white space",
        ),
        (json!({"messages": [{"authorId": "u", "content": "x", "timestamp": at}]}), "message 1 has no id"),
        (json!({"messages": [{"id": "m1", "authorId": "u", "timestamp": at}]}), "no content"),
        (json!({"messages": "none"}), "no list `messages`"),
        (json!("<html>"), "is not JSON: <html>"),
    ];
    for (instead, named) in bad {
        for _ in 0..3 {
            fake.fault("get_messages", Fault::Replace(instead.clone()));
        }
        let error = substrate.read(Some(&Name::from("m1")), 5).await.unwrap_err();
        assert!(source(&error).contains(named), "{}", source(&error));
    }
    assert_eq!(ids(&substrate.read(Some(&Name::from("m1")), 5).await.unwrap()), ["m2"]);
}

#[tokio::test]
async fn a_result_beyond_the_cap_is_no_result_and_the_connection_is_good_again() {
    let fake = FakeServer::new(Style::full());
    say(&fake, 2);
    let substrate = TestHost::with_timeout(&fake, "5s").await.substrate();
    assert_eq!(ids(&substrate.read(Some(&Name::from("m1")), 5).await.unwrap()), ["m2"]);
    for _ in 0..3 {
        fake.fault("get_messages", Fault::Huge(40 << 20));
    }
    let error = substrate.read(Some(&Name::from("m1")), 5).await.unwrap_err();
    assert!(matches!(error, SubstrateError::Unavailable { .. }), "{error}");
    fake.state.lock().unwrap().faults.clear();
    assert_eq!(ids(&substrate.read(Some(&Name::from("m1")), 5).await.unwrap()), ["m2"]);
}
