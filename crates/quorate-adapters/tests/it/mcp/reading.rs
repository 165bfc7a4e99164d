//! Reading a conversation, from servers that can much and from the public one.

use std::time::Duration;

use quorate_kernel::ports::substrate::{Keeps, SubstrateError};
use quorate_protocol::Name;
use serde_json::json;

use crate::mcp::fake_server::{Clocks, FakeServer, Fault, Style};
use crate::mcp::host::{TestHost, all, answer};

fn say(fake: &FakeServer, count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("line {number}")).inspect(|line| drop(fake.say("u_1", line))).collect()
}

fn styles() -> Vec<Style> {
    let window = Style { newest_first: false, ..Style::public() };
    vec![
        Style::full(),
        Style { newest_first: true, ..Style::full() },
        Style { text: true, ..Style::full() },
        Style { max_messages: Some(7), ..Style::full() },
        Style::full().without("after"),
        Style::full().without("before"),
        Style::public(),
        window,
    ]
}

#[tokio::test]
async fn every_turn_is_given_once_in_order_whatever_the_server_can() {
    for style in styles() {
        let fake = FakeServer::new(style.clone());
        let lines = say(&fake, 23);
        let host = TestHost::connected_to(&fake).await;
        let substrate = host.substrate_with(json!({"fetchLimit": 4}));
        assert_eq!(all(&*substrate, 5).await, lines, "{style:?}");
        // A second reader, and a reader that comes back.
        assert_eq!(all(&*substrate, 100).await, lines, "{style:?}");
        fake.say("u_1", "new");
        let page = substrate.read(Some(&Name::from("m23")), 10).await.unwrap();
        let new: Vec<&str> = page.turns.iter().map(|turn| &*turn.content).collect();
        assert_eq!((new, page.known), (vec!["new"], true), "{style:?}");
    }
}

#[tokio::test]
async fn the_servers_order_holds_whatever_its_clocks_say() {
    // K17
    for clocks in Clocks::ALL {
        for style in styles().into_iter().map(|style| Style { clocks, ..style }) {
            let fake = FakeServer::new(style.clone());
            let lines = say(&fake, 9);
            let host = TestHost::connected_to(&fake).await;
            assert_eq!(all(&*host.substrate(), 4).await, lines, "{style:?}");
            // A process of its own, which has read nothing before its cursor.
            let substrate = host.substrate();
            let page = substrate.read(Some(&Name::from("m5")), 10).await.unwrap();
            let new: Vec<&str> = page.turns.iter().map(|turn| &*turn.id).collect();
            assert_eq!(new, ["m6", "m7", "m8", "m9"], "{style:?}");
            let window = substrate.window(&"m4".into(), 3).await.unwrap();
            let window: Vec<&str> = window.iter().map(|turn| &*turn.id).collect();
            assert_eq!(window, ["m2", "m3", "m4"], "{style:?}");
            // A new message follows those that were read, and a post follows it.
            fake.say("u_1", "new");
            let trigger = Name::from("m10");
            let posted = substrate.append(answer("fine", &trigger)).await.unwrap().turn;
            let page = substrate.read(Some(&Name::from("m9")), 10).await.unwrap();
            let new: Vec<&str> = page.turns.iter().map(|turn| &*turn.id).collect();
            assert_eq!(new, ["m10", &*posted.id], "{style:?}");
        }
    }
}

#[tokio::test]
async fn a_message_without_an_author_is_of_the_system() {
    // K17
    for style in styles().into_iter().map(|style| Style { hides_authors: true, ..style }) {
        let fake = FakeServer::new(style.clone());
        say(&fake, 2);
        let host = TestHost::connected_to(&fake).await;
        let substrate = host.substrate();
        let posted = substrate.append(answer("fine", "m2")).await.unwrap().turn;
        let turns = substrate.read(None, 10).await.unwrap().turns;
        let authors: Vec<&str> = turns.iter().map(|turn| &*turn.participant).collect();
        assert_eq!(authors, ["system", "system", "reviewer"], "this process posted the last one: {style:?}");
        // Metadata alone makes no author.
        let turns = host.substrate().read(None, 10).await.unwrap().turns;
        assert_eq!((&*turns[2].id, &*turns[2].participant), (&*posted.id, "system"), "{style:?}");
    }
    let mut host = TestHost::from_table(json!({"url": "http://127.0.0.1:1/mcp"}));
    host.participants[1].id = "system".into();
    let refused = host.try_substrate(json!({"conversationId": "c1"})).err().unwrap();
    assert!(refused.message.contains("`system`"), "{}", refused.message);
}

#[tokio::test]
async fn a_failed_read_is_repeated() {
    // K17
    let fake = FakeServer::new(Style::full());
    say(&fake, 2);
    let substrate = TestHost::connected_to(&fake).await.substrate();
    fake.fault("get_messages", Fault::Refuses("busy"));
    fake.fault("get_messages", Fault::Replace(json!("<html>")));
    assert_eq!(substrate.read(None, 5).await.unwrap().turns.len(), 2);
}

#[tokio::test]
async fn a_restart_with_a_cursor_reads_what_is_newer_alone() {
    for style in styles() {
        let fake = FakeServer::new(style.clone());
        say(&fake, 60);
        let host = TestHost::connected_to(&fake).await;
        let substrate = host.substrate_with(json!({"fetchLimit": 10}));
        let page = substrate.read(Some(&Name::from("m40")), 5).await.unwrap();
        let new: Vec<&str> = page.turns.iter().map(|turn| &*turn.content).collect();
        assert_eq!(new, ["line 41", "line 42", "line 43", "line 44", "line 45"], "{style:?}");
        let window = substrate.window(&"m40".into(), 3).await.unwrap();
        let window: Vec<&str> = window.iter().map(|turn| &*turn.id).collect();
        assert_eq!(window, ["m38", "m39", "m40"], "{style:?}");
        let first = substrate.window(&"m1".into(), 3).await.unwrap();
        assert_eq!(first.len(), 1, "{style:?}");
        assert!(substrate.window(&"nowhere".into(), 3).await.unwrap().is_empty(), "{style:?}");
    }
}

#[tokio::test]
async fn a_cursor_that_is_gone_gives_everything_and_says_so() {
    for style in styles() {
        let fake = FakeServer::new(style.clone());
        let lines = say(&fake, 6);
        let substrate = TestHost::connected_to(&fake).await.substrate();
        let page = substrate.read(Some(&Name::from("gone")), 100).await.unwrap();
        let given: Vec<&str> = page.turns.iter().map(|turn| &*turn.content).collect();
        assert_eq!((given, page.known), (lines.iter().map(String::as_str).collect(), false), "{style:?}");
        assert_eq!(substrate.read(Some(&Name::from("m6")), 9).await.unwrap().turns, [], "{style:?}");
    }
}

#[tokio::test]
async fn a_window_that_does_not_reach_back_is_refused_and_never_taken_for_all() {
    let fake = FakeServer::new(Style::public());
    say(&fake, 510);
    let substrate = TestHost::connected_to(&fake).await.substrate();
    for since in [None, Some(Name::from("m5"))] {
        let error = substrate.read(since.as_ref(), 10).await.unwrap_err();
        assert!(matches!(&error, SubstrateError::Unknown(why) if why.contains("fetchLimit")), "{error}");
    }
    let page = substrate.read(Some(&Name::from("m11")), 1000).await.unwrap();
    assert_eq!(page.turns.len(), 499);
    // Before, the cursor was in sight; after so many more it is not, and the server still gives what it can.
    let limits: Vec<u64> =
        fake.calls("get_messages").iter().filter_map(|call| call["limit"].as_u64()).collect();
    assert!(limits.iter().all(|limit| *limit <= 500) && limits.contains(&500), "{limits:?}");
}

#[tokio::test]
async fn a_server_that_takes_no_limit_gives_all_that_it_has() {
    let style = Style { has_no_limit_argument: true, always_gives: Some(1_000), ..Style::public() };
    // Nothing that such a server answers tells its order, so the manifest has to (K17).
    let declared = json!({"order": "newest-first"});
    let fake = FakeServer::new(style.clone());
    say(&fake, 2);
    let error = TestHost::connected_to(&fake).await.substrate().read(None, 10).await.unwrap_err();
    assert!(
        matches!(&error, SubstrateError::Unknown(why) if why.contains("`order: newest-first`")),
        "{error}"
    );
    for count in [2, 600] {
        let fake = FakeServer::new(style.clone());
        let lines = say(&fake, count);
        let substrate = TestHost::connected_to(&fake).await.substrate_with(declared.clone());
        assert_eq!(all(&*substrate, 1_000).await, lines);
        // Once for each page, of which the last has nothing.
        assert_eq!(fake.calls("get_messages").len(), 2);
    }
    let fake = FakeServer::new(style);
    say(&fake, 2);
    let substrate = TestHost::connected_to(&fake).await.substrate_with(declared);
    all(&*substrate, 10).await;
    assert!(fake.calls("get_messages").iter().all(|call| !call.contains_key("limit")));
    // The server may no longer return the missing message, and a larger limit does not help.
    let error = substrate.read(Some(&Name::from("gone")), 10).await.unwrap_err();
    let explains = |why: &str| why.contains("takes no `limit`") && !why.contains("fetchLimit");
    assert!(matches!(&error, SubstrateError::Unknown(why) if explains(why)), "{error}");
}

#[tokio::test]
async fn authors_are_participants_and_what_was_written_comes_back() {
    let fake = FakeServer::new(Style::full());
    let trigger = fake.say("u_1", "@reviewer look");
    fake.say("op_r", "by hand");
    fake.say("op_bot", "for the scribe");
    let substrate = TestHost::connected_to(&fake).await.substrate();
    assert_eq!(substrate.about().keeps, Keeps::Turns);
    let appended = substrate.append(answer("fine", &trigger)).await.unwrap();
    assert_eq!(substrate.about().keeps, Keeps::Stamps);
    let turns = substrate.read(None, 10).await.unwrap().turns;
    let authors: Vec<&str> = turns.iter().map(|turn| &*turn.participant).collect();
    assert_eq!(authors, ["u_1", "reviewer", "scribe", "reviewer"]);
    assert_eq!(turns[3], appended.turn);
    assert_eq!(turns[3].stamp, answer("fine", &trigger).stamp);
    assert_eq!(turns[3].meta, answer("fine", &trigger).meta);
    assert!(substrate.about().place.ends_with("/mcp#c1"), "{}", substrate.about().place);
}

#[tokio::test]
async fn news_is_waited_for_by_the_server_or_by_us() {
    for style in [Style::full(), Style::full().without("waitMs"), Style::public()] {
        let fake = FakeServer::new(style.clone());
        say(&fake, 12);
        let substrate = TestHost::connected_to(&fake).await.substrate();
        // Nothing was read yet.
        substrate.changed().await.unwrap();
        all(&*substrate, 100).await;
        let waiting = tokio::spawn({
            let substrate = std::sync::Arc::clone(&substrate);
            async move { substrate.changed().await }
        });
        let silent = tokio::time::timeout(Duration::from_millis(300), waiting);
        let mut waiting = Box::pin(silent);
        assert!((&mut waiting).await.is_err(), "the wait returned early: {style:?}");
        drop(waiting);
        let waiting = tokio::spawn({
            let substrate = std::sync::Arc::clone(&substrate);
            async move { substrate.changed().await }
        });
        fake.say("u_1", "new");
        tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap().unwrap();
        let page = substrate.read(Some(&Name::from("m12")), 5).await.unwrap();
        assert_eq!(page.turns.len(), 1);
    }
}

#[tokio::test]
async fn blocks_are_refused_by_key() {
    let host = TestHost::from_table(json!({"url": "http://127.0.0.1:1/mcp"}));
    let key =
        |block| host.try_substrate(block).err().map(|refused| (refused.key.unwrap(), refused.help.unwrap()));
    assert_eq!(key(json!({})).unwrap().0, "conversationId");
    assert_eq!(key(json!({"conversationId": "c", "fetchLimit": 501})).unwrap().0, "fetchLimit");
    assert_eq!(
        key(json!({"conversationId": "c", "asOperator": "x"})).unwrap().1,
        "did you mean `asOperatorId`?"
    );
    assert_eq!(key(json!({"conversationId": "c", "order": "newest"})).unwrap().0, "order");
    let (at, help) = key(json!({"conversationId": "c", "server": "gilde"})).unwrap();
    assert_eq!(at, "server");
    assert!(help.starts_with("did you mean `guilde`"), "{help}");
    assert!(key(json!({"conversationId": "c"})).is_none());
    let host = TestHost::from_table(json!({"url": "gopher://x"}));
    assert_eq!(
        host.try_substrate(json!({"conversationId": "c"})).err().unwrap().key.unwrap(),
        "mcp.guilde.url"
    );
}
