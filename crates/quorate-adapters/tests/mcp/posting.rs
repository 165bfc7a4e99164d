//! Posting: each turn once, whatever happens on the way.

use quorate_kernel::ports::substrate::Error;
use serde_json::json;

use crate::fake::{Fake, Fault, Style};
use crate::host::{Host, all, answer, turn};

#[tokio::test]
async fn a_key_is_taken_once_also_from_another_process() {
    for style in [
        Style::full(),
        Style::full().without("idempotencyKey"),
        Style::full().without("after").without("idempotencyKey"),
    ] {
        let fake = Fake::new(style.clone());
        let trigger = fake.say("u_1", "@reviewer look");
        let host = Host::of(&fake).await;
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
        let fake = Fake::new(style);
        let substrate = Host::of(&fake).await.substrate();
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
                let fake = Fake::new(style.clone());
                let trigger = fake.say("u_1", "@reviewer look");
                let substrate = Host::of(&fake).await.substrate();
                all(&*substrate, 10).await;
                fake.fault("post_message", fault.clone());
                let new = if stamped { answer("fine", &trigger) } else { turn("fine") };
                // What failed is tried again, as the runtime does.
                let appended = match substrate.append(new.clone()).await {
                    Ok(appended) => appended,
                    Err(Error::Unavailable { .. }) => substrate.append(new).await.unwrap(),
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
        let fake = Fake::new(style.clone());
        let trigger = fake.say("u_1", "@reviewer look");
        let substrate = Host::of(&fake).await.substrate();
        all(&*substrate, 10).await;
        fake.fault("post_message", Fault::Instead(json!("Message posted.")));
        let appended = substrate.append(answer("fine", &trigger)).await.unwrap();
        assert_eq!((&*appended.turn.id, appended.fresh), ("m2", true), "{style:?}");
        fake.fault("post_message", Fault::Instead(json!({"ok": true})));
        let appended = substrate.append(turn("and more")).await.unwrap();
        assert_eq!(&*appended.turn.id, "m3", "{style:?}");
    }
}

#[tokio::test]
async fn arguments_are_passed_where_the_server_takes_them() {
    let fake = Fake::new(Style::full());
    let trigger = fake.say("u_1", "@reviewer look");
    Host::of(&fake).await.substrate().append(answer("fine", &trigger)).await.unwrap();
    let posted = fake.calls("post_message").remove(0);
    assert_eq!(posted["asOperatorId"], "op_r");
    assert_eq!(posted["idempotencyKey"], "turn/m1/reviewer");
    assert_eq!(posted["disableAutoOrchestration"], true);
    assert_eq!(posted["metadata"]["quorate"]["stamp"]["trigger"], "m1");

    let fake = Fake::new(Style::public());
    let mut new = turn("hello");
    new.participant = "scribe".into();
    Host::of(&fake).await.substrate().append(new).await.unwrap();
    let posted = fake.calls("post_message").remove(0);
    assert_eq!(posted["asOperatorId"], "op_bot");
    let names: Vec<&String> = posted.keys().collect();
    assert_eq!(names, ["asOperatorId", "content", "conversationId"]);
}

#[tokio::test]
async fn a_refusal_is_told_with_the_servers_words_and_posts_nothing_twice() {
    let fake = Fake::new(Style::public());
    let substrate = Host::of(&fake).await.substrate();
    fake.fault("post_message", Fault::Fails("the conversation is archived"));
    let error = substrate.append(turn("hello")).await.unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("archived") && error.to_string().contains("`c1`"), "{error}: {source}");
    assert_eq!(fake.calls("post_message").len(), 1);
}
