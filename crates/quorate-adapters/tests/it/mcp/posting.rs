//! Posting: each turn once, whatever happens on the way.

use quorate_kernel::ports::substrate::SubstrateError;
use serde_json::json;

use crate::mcp::fake_server::{Clocks, FakeServer, Fault, Style};
use crate::mcp::host::{TestHost, all, answer, turn};

#[tokio::test]
async fn a_key_is_taken_once_also_from_another_process() {
    for style in [
        Style::full(),
        Style::full().without("idempotencyKey"),
        Style::full().without("after").without("idempotencyKey"),
    ] {
        let fake = FakeServer::new(style.clone());
        let trigger = fake.say("u_1", "@reviewer look");
        let host = TestHost::connected_to(&fake).await;
        let first = host.substrate().append(answer("fine", &trigger)).await.unwrap();
        assert!(first.fresh, "{style:?}");
        let second = host.substrate().append(answer("fine, too", &trigger)).await.unwrap();
        assert_eq!((second.fresh, &second.turn), (false, &first.turn), "{style:?}");
        assert_eq!(fake.contents(), ["@reviewer look", "fine"], "{style:?}");
    }
}

#[tokio::test]
async fn equal_turns_without_a_key_are_two_turns() {
    for style in [Style::full(), Style::public()] {
        let fake = FakeServer::new(style);
        let substrate = TestHost::connected_to(&fake).await.substrate();
        let one = substrate.append(turn("again")).await.unwrap();
        let other = substrate.append(turn("again")).await.unwrap();
        assert!(one.fresh && other.fresh && one.turn.id != other.turn.id);
        assert_eq!(fake.contents(), ["again", "again"]);
    }
}

#[tokio::test]
async fn a_line_that_is_cut_posts_neither_twice_nor_never() {
    let styles = [Style::full(), Style::full().without("idempotencyKey"), Style::public()];
    for style in styles {
        for fault in [Fault::CutAfter, Fault::CutBefore] {
            for stamped in [true, false] {
                let fake = FakeServer::new(style.clone());
                let trigger = fake.say("u_1", "@reviewer look");
                let substrate = TestHost::connected_to(&fake).await.substrate();
                all(&*substrate, 10).await;
                fake.fault("post_message", fault.clone());
                let new = if stamped { answer("fine", &trigger) } else { turn("fine") };
                // Repeats a failed post, as the runtime does.
                let appended = match substrate.append(new.clone()).await {
                    Ok(appended) => appended,
                    Err(SubstrateError::Unavailable { .. }) => substrate.append(new).await.unwrap(),
                    Err(error) => panic!("{error}"),
                };
                let case = format!("{style:?} {fault:?} {stamped}");
                assert_eq!(fake.contents(), ["@reviewer look", "fine"], "{case}");
                assert_eq!((&*appended.turn.id, &*appended.turn.participant), ("m2", "reviewer"), "{case}");
                assert!(appended.fresh, "{case}");
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_does_not_say_what_it_made_of_the_turn_is_asked() {
    for style in [Style::full(), Style::public()] {
        let fake = FakeServer::new(style.clone());
        let trigger = fake.say("u_1", "@reviewer look");
        let substrate = TestHost::connected_to(&fake).await.substrate();
        all(&*substrate, 10).await;
        fake.fault("post_message", Fault::Replace(json!("Message posted.")));
        let appended = substrate.append(answer("fine", &trigger)).await.unwrap();
        assert_eq!((&*appended.turn.id, appended.fresh), ("m2", true), "{style:?}");
        fake.fault("post_message", Fault::Replace(json!({"ok": true})));
        let appended = substrate.append(turn("and more")).await.unwrap();
        assert_eq!(&*appended.turn.id, "m3", "{style:?}");
    }
}

#[tokio::test]
async fn arguments_are_passed_where_the_server_takes_them() {
    let fake = FakeServer::new(Style::full());
    let trigger = fake.say("u_1", "@reviewer look");
    TestHost::connected_to(&fake).await.substrate().append(answer("fine", &trigger)).await.unwrap();
    let posted = fake.calls("post_message").remove(0);
    assert_eq!(posted["asOperatorId"], "op_r");
    assert_eq!(posted["idempotencyKey"], "turn/m1/reviewer");
    assert_eq!(posted["disableAutoOrchestration"], true);
    assert_eq!(posted["metadata"]["quorate"]["stamp"]["trigger"], "m1");

    let fake = FakeServer::new(Style::public());
    let mut new = turn("hello");
    new.participant = "scribe".into();
    TestHost::connected_to(&fake).await.substrate().append(new).await.unwrap();
    let posted = fake.calls("post_message").remove(0);
    assert_eq!(posted["asOperatorId"], "op_bot");
    let names: Vec<&String> = posted.keys().collect();
    assert_eq!(names, ["asOperatorId", "content", "conversationId"]);
}

#[tokio::test]
async fn a_refusal_quotes_the_server_and_posts_nothing_twice() {
    for style in [Style::full(), Style::public()] {
        let fake = FakeServer::new(style);
        // The same text of the same author, before anything is posted from here.
        fake.say("op_r", "hello");
        let substrate = TestHost::connected_to(&fake).await.substrate();
        fake.fault("post_message", Fault::Refuses("the conversation is archived"));
        let error = substrate.append(turn("hello")).await.unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("archived") && error.to_string().contains("`c1`"), "{error}: {source}");
        assert_eq!(fake.calls("post_message").len(), 1);
        // It is posted when it is tried again.
        let posted = substrate.append(turn("hello")).await.unwrap();
        assert_eq!((&*posted.turn.id, posted.fresh), ("m2", true));
        assert_eq!(fake.contents(), ["hello", "hello"]);
    }
}

#[tokio::test]
async fn a_post_that_was_stored_and_reported_as_failed_is_not_posted_again() {
    // K17
    let styles = [
        Style::full(),
        Style::full().without("idempotencyKey"),
        Style::full().without("idempotencyKey").without("metadata"),
        Style { hides_authors: true, ..Style::full().without("idempotencyKey") },
        Style::public(),
        Style { newest_first: false, ..Style::public() },
        Style { hides_authors: true, ..Style::public() },
    ];
    let mut tried = tokio::task::JoinSet::new();
    for style in styles {
        for clocks in [Clocks::Right, Clocks::Still, Clocks::Backwards] {
            for (has_read, stamped) in [(true, true), (true, false), (false, true), (false, false)] {
                tried.spawn(stored_and_failed(Style { clocks, ..style.clone() }, has_read, stamped));
            }
        }
    }
    tried.join_all().await;
}

async fn stored_and_failed(style: Style, has_read: bool, stamped: bool) {
    let case = format!("{style:?} {has_read} {stamped}");
    let fake = FakeServer::new(style);
    let trigger = fake.say("u_1", "@reviewer look");
    let substrate = TestHost::connected_to(&fake).await.substrate();
    if has_read {
        all(&*substrate, 10).await;
    }
    fake.fault("post_message", Fault::Fails("cannot notify the others"));
    // Every attempt to look it up fails as well.
    for _ in 0..3 {
        fake.fault("get_messages", Fault::Refuses("busy"));
    }
    let new = if stamped { answer("fine", &trigger) } else { turn("fine") };
    let mut appended = substrate.append(new.clone()).await;
    for _ in 0..2 {
        if let Err(SubstrateError::Unavailable { .. }) = appended {
            appended = substrate.append(new.clone()).await;
        }
    }
    let appended = appended.expect(&case);
    assert_eq!(fake.contents(), ["@reviewer look", "fine"], "{case}");
    assert_eq!((&*appended.turn.id, &*appended.turn.participant), ("m2", "reviewer"), "{case}");
}
