//! The conversation tools of `quorate mcp`, over a journal in a file: order, keys, paging, waiting, and a participant that
//! answers.
#![cfg(feature = "mcp")]

use std::time::Duration;

use crate::support;
use crate::support::mcp as client;
use client::{Client, Http};
use serde_json::{Value, json};
use support::{TestDir, finish};

const SWARM: &str = "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: talk
participants:
  - {id: ada, executor: script, displayName: Ada, config: {path: answers.json}, meta: {operatorId: op_ada}}
  - {id: bo, executor: script, displayName: Bo, config: {path: answers.json}}
substrate: {kind: file, path: talk.md}
dispatcher: {kind: mention}
";

fn swarm() -> TestDir {
    let place = TestDir::with("answers.json", r#"{"ada": "I am here.", "bo": "Me too."}"#);
    place.write("swarm.yaml", SWARM);
    place
}

const SERVED: &[&str] = &["--manifest", "swarm.yaml"];

async fn post(client: &Client, content: &str) -> String {
    let posted = client.call("post_message", json!({"conversationId": "talk", "content": content})).await;
    assert_eq!(posted["duplicate"], false);
    posted["id"].as_str().unwrap().to_owned()
}

async fn get(client: &Client, more: Value) -> Value {
    let mut arguments = json!({"conversationId": "talk"});
    for (key, value) in more.as_object().unwrap() {
        arguments[key] = value.clone();
    }
    client.call("get_messages", arguments).await
}

/// What was said, in order.
fn contents(given: &Value) -> Vec<&str> {
    given["messages"].as_array().unwrap().iter().map(|one| one["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_conversation_is_read_from_any_side() {
    let place = swarm();
    let client = Client::stdio(&place, SERVED).await;
    let all = client.tools().await;
    assert_eq!(all[..5], ["post_message", "get_messages", "run_operator", "kv_get", "kv_set"]);
    let empty = get(&client, json!({})).await;
    assert_eq!(empty, json!({"messages": [], "hasMore": false, "known": true}));
    let mut ids = Vec::new();
    for word in ["one", "two", "three", "four", "five"] {
        ids.push(post(&client, word).await);
    }
    let newest = get(&client, json!({"limit": 2})).await;
    assert_eq!((contents(&newest), &newest["hasMore"]), (vec!["four", "five"], &json!(true)));
    assert_eq!(contents(&get(&client, json!({})).await).len(), 5);
    let after = get(&client, json!({"after": ids[1], "limit": 2})).await;
    assert_eq!(
        (contents(&after), &after["hasMore"], &after["known"]),
        (vec!["three", "four"], &json!(true), &json!(true))
    );
    let before = get(&client, json!({"before": ids[3], "limit": 2})).await;
    assert_eq!((contents(&before), &before["hasMore"]), (vec!["two", "three"], &json!(true)));
    let first = get(&client, json!({"before": ids[1]})).await;
    assert_eq!((contents(&first), &first["hasMore"]), (vec!["one"], &json!(false)));
    let unknown = get(&client, json!({"after": "t_000000000000", "limit": 3})).await;
    assert_eq!((contents(&unknown), &unknown["known"]), (vec!["one", "two", "three"], &json!(false)));
    assert_eq!(get(&client, json!({"before": "t_000000000000"})).await["known"], false);
    let wrong = client.call_refused("get_messages", json!({"conversationId": "other"})).await;
    assert_eq!(wrong["code"], "quorate:conversation_unknown");
    assert!(wrong["help"].as_str().unwrap().contains("talk"));
    let wrong = client.call_malformed("get_messages", json!({"conversationId": "talk", "limit": 0})).await;
    assert!(wrong["message"].as_str().unwrap().contains("`limit`"));
}

#[tokio::test]
async fn a_key_is_taken_once_and_authors_are_who_they_are() {
    let place = swarm();
    let client = Client::stdio(&place, SERVED).await;
    let marks = json!({"quorate": {"participant": "zoe", "post": "p1"}, "mood": "calm"});
    let keyed = json!({"conversationId": "talk", "content": "once", "asOperatorId": "op_ada", "idempotencyKey": "k1", "metadata": marks});
    let first = client.call("post_message", keyed.clone()).await;
    let second = client.call("post_message", keyed).await;
    assert_eq!((&first["duplicate"], &second["duplicate"]), (&json!(false), &json!(true)));
    assert_eq!((&first["id"], &first["timestamp"]), (&second["id"], &second["timestamp"]));
    let given = get(&client, json!({})).await;
    let message = &given["messages"][0];
    assert_eq!((&message["authorId"], &message["authorName"]), (&json!("op_ada"), &json!("Ada")));
    assert_eq!(message["metadata"], marks);
    // The participant's own name is in the journal.
    assert!(place.read("talk.md").contains("participant=ada"), "{}", place.read("talk.md"));
    for (wrong, named) in [
        (json!({"conversationId": "talk", "content": "  "}), "`content`"),
        (json!({"conversationId": "talk", "content": "x", "asOperatorId": "a b"}), "`asOperatorId`"),
        (json!({"conversationId": "talk", "content": "x", "idempotencyKey": ""}), "`idempotencyKey`"),
        (json!({"conversationId": "talk", "content": "x", "asOperatorId": "ada"}), "it is a participant"),
        (
            json!({"conversationId": "talk", "content": "x", "asOperatorId": "ADA", "idempotencyKey": "k2"}),
            "it looks like the participant `ada`",
        ),
    ] {
        let refused = client.call_refused("post_message", wrong).await;
        assert!(refused["message"].as_str().unwrap().contains(named), "{refused}");
    }
}

#[tokio::test]
async fn a_key_is_for_one_message() {
    let place = swarm();
    let client = Client::stdio(&place, SERVED).await;
    let said = |content: &str, by: &str| json!({"conversationId": "talk", "content": content, "asOperatorId": by, "idempotencyKey": "k1"});
    let first = client.call("post_message", said("one", "eve")).await;
    for other in [said("two", "eve"), said("one", "adam")] {
        let refused = client.call_refused("post_message", other).await;
        assert_eq!(refused["code"], "quorate:key_taken");
        assert!(refused["message"].as_str().unwrap().contains(first["id"].as_str().unwrap()), "{refused}");
    }
    assert_eq!(client.call("post_message", said("one", "eve")).await["duplicate"], true);
    // A runtime elsewhere that answers again after it was killed gets its first answer back.
    let answer = |content: &str| {
        let stamp = json!({"key": "turn/t1/zoe", "runtime": "there", "trigger": first["id"]});
        json!({"conversationId": "talk", "content": content, "idempotencyKey": "turn/t1/zoe",
            "metadata": {"quorate": {"participant": "zoe", "post": "p1", "stamp": stamp}}})
    };
    assert_eq!(client.call("post_message", answer("yes")).await["duplicate"], false);
    assert_eq!(client.call("post_message", answer("yes, indeed")).await["duplicate"], true);
    assert_eq!(contents(&get(&client, json!({})).await), ["one", "yes"]);
}

#[tokio::test]
async fn several_clients_see_one_order() {
    let place = swarm();
    let server = Http::start(&place, SERVED, None);
    let (one, other) =
        (Client::http(&server, None).await.unwrap(), Client::http(&server, None).await.unwrap());
    let posts = |client| async move {
        for at in 0..20 {
            post(client, &format!("{at}")).await;
        }
    };
    // A third party writes past the server.
    let outside = async {
        for at in 0..5 {
            let child = place.start(&["say", "swarm.yaml", &format!("outside {at}")]);
            tokio::task::spawn_blocking(move || finish(child).assert_code(0)).await.unwrap();
        }
    };
    tokio::join!(posts(&one), posts(&other), outside);
    let seen = get(&one, json!({"limit": 100})).await;
    assert_eq!(contents(&seen).len(), 45);
    assert_eq!(seen, get(&other, json!({"limit": 100})).await);
    let log = place.run(&["log", "swarm.yaml", "--format", "json"]).assert_code(0).json();
    let log: Vec<&str> =
        log["turns"].as_array().unwrap().iter().map(|turn| turn["id"].as_str().unwrap()).collect();
    let ids: Vec<&str> =
        seen["messages"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(log, ids);
}

#[tokio::test]
async fn waiting_readers_are_woken_by_new_turns() {
    let place = swarm();
    let server = Http::start(&place, SERVED, None);
    let (one, other) =
        (Client::http(&server, None).await.unwrap(), Client::http(&server, None).await.unwrap());
    let first = post(&one, "first").await;
    let waiting = || get(&other, json!({"after": first, "waitMs": 50_000}));
    // By a client of this server.
    let (woken, second) = tokio::join!(waiting(), post(&one, "second"));
    assert_eq!(contents(&woken), ["second"]);
    // By another process; two wait for it.
    let say = async {
        let child = place.start(&["say", "swarm.yaml", "third"]);
        tokio::task::spawn_blocking(move || finish(child).assert_code(0)).await.unwrap()
    };
    let third = || json!({"after": second, "waitMs": 50_000});
    let (woken, also, _) = tokio::join!(get(&other, third()), get(&one, third()), say);
    assert_eq!((contents(&woken), contents(&also)), (vec!["third"], vec!["third"]));
    // By an unknown participant.
    let last = woken["messages"][0]["id"].clone();
    let nothing = get(&other, json!({"after": last, "waitMs": 10})).await;
    assert_eq!((contents(&nothing), &nothing["known"]), (vec![], &json!(true)));
}

#[tokio::test]
async fn a_participant_answers_the_newest_message() {
    let place = swarm();
    let client = Client::stdio(&place, SERVED).await;
    let ask = |more: Value| {
        let mut arguments = json!({"conversationId": "talk", "operatorId": "op_ada"});
        for (key, value) in more.as_object().unwrap() {
            arguments[key] = value.clone();
        }
        arguments
    };
    assert_eq!(client.call_refused("run_operator", ask(json!({}))).await["code"], "quorate:usage");
    post(&client, "Is anyone there?").await;
    let given = client.call("run_operator", ask(json!({}))).await;
    assert_eq!((&given["done"], &given["result"]), (&json!(true), &json!({"text": "I am here."})));
    assert_eq!(contents(&get(&client, json!({})).await), ["Is anyone there?"]);
    let posted = client.call("run_operator", ask(json!({"postReply": true, "idempotencyKey": "k1"}))).await;
    let id = posted["result"]["messageId"].as_str().unwrap().to_owned();
    let all = get(&client, json!({})).await;
    assert_eq!(contents(&all), ["Is anyone there?", "I am here."]);
    assert_eq!(all["messages"][1]["id"], *id);
    assert_eq!(all["messages"][1]["authorId"], "op_ada");
    // Asked again with the same key, it is the same message.
    let again = client.call("run_operator", ask(json!({"postReply": true, "idempotencyKey": "k1"}))).await;
    assert_eq!(again["result"]["messageId"], *id);
    let other = client.call("run_operator", ask(json!({"operatorId": "bo", "postReply": true}))).await;
    assert_eq!(other["result"]["text"], "Me too.");
    assert_eq!(get(&client, json!({})).await["messages"].as_array().unwrap().len(), 3);
    let refused = client.call_refused("run_operator", ask(json!({"operatorId": "eve"}))).await;
    assert_eq!(refused["code"], "quorate:participant_unknown");
    // A runtime that runs later does not have the same participants answer it again.
    post(&client, "@Ada and @Bo, and now?").await;
    client.call("run_operator", ask(json!({"operatorId": "bo", "postReply": true}))).await;
    place.run(&["run", "swarm.yaml"]).assert_code(0);
    let all = get(&client, json!({})).await;
    assert_eq!(contents(&all)[3..], ["@Ada and @Bo, and now?", "Me too.", "I am here."]);
}

#[tokio::test]
async fn a_participant_that_fails_says_why() {
    let place = swarm();
    place.write("answers.json", "{}");
    let client = Client::stdio(&place, SERVED).await;
    post(&client, "Is anyone there?").await;
    let asked = json!({"conversationId": "talk", "operatorId": "ada", "postReply": true});
    let failed = client.call_refused("run_operator", asked).await;
    assert_eq!(failed["code"], "quorate:operator_failed", "{failed}");
    assert_eq!(contents(&get(&client, json!({})).await).len(), 1);
}

#[tokio::test]
async fn state_is_read_and_replaced() {
    let place = swarm();
    let client = Client::stdio(&place, SERVED).await;
    assert_eq!(client.call("kv_get", json!({"key": "ada"})).await, json!({"value": {}}));
    assert_eq!(client.call("kv_set", json!({"key": "ada", "value": {"mood": "calm"}})).await, json!({}));
    assert_eq!(client.call("kv_get", json!({"key": "ada"})).await, json!({"value": {"mood": "calm"}}));
    let key = "quorate/elsewhere/../%41";
    client.call("kv_set", json!({"key": key, "value": {"n": 1}})).await;
    assert_eq!(client.call("kv_get", json!({"key": key})).await["value"]["n"], 1);
    assert!(place.run(&["state", "swarm.yaml", "ada"]).assert_code(0).stdout.contains("calm"));
    let refused = client.call_malformed("kv_set", json!({"key": "ada", "value": 7})).await;
    assert!(refused["message"].as_str().unwrap().contains("`value`"), "{refused}");
}

#[tokio::test]
async fn a_journal_that_is_replaced_is_read_anew() {
    let place = swarm();
    let client = Client::stdio(&place, SERVED).await;
    for word in ["one", "two"] {
        post(&client, word).await;
    }
    place.write("talk.md", "");
    tokio::time::timeout(Duration::from_secs(30), async {
        assert_eq!(contents(&get(&client, json!({})).await).len(), 0);
        post(&client, "anew").await;
        assert_eq!(contents(&get(&client, json!({})).await), ["anew"]);
    })
    .await
    .unwrap();
}
