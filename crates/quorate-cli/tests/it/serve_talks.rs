//! Conversations in `quorate serve`: found by ids that lead nowhere else, read, followed, and answered within a budget and
//! within what is trusted.

use std::io::{BufRead as _, BufReader};
use std::time::Duration;

use serde_json::{Value, json};

use super::support::serve::Served;
use super::support::{TestDir, wait_until};

const SWARM: &str = "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: talk
participants:
  - {id: ada, executor: script, displayName: Ada, config: {path: answers.json}}
  - {id: bo, executor: script, displayName: Bo, config: {path: answers.json}}
substrate: {kind: file, path: talk.md}
dispatcher: {kind: mention}
";

fn swarm() -> TestDir {
    let place = TestDir::with("answers.json", r#"{"ada": "I am here.", "bo": "Me too."}"#);
    place.write("swarm.yaml", SWARM);
    place
}

/// The id of the only conversation.
fn only_talk(served: &Served) -> String {
    let talks = served.get("/api/v1/talks").json();
    assert_eq!(talks["talks"].as_array().unwrap().len(), 1, "{talks}");
    talks["talks"][0]["id"].as_str().unwrap().to_owned()
}

fn contents(talk: &Value) -> Vec<&str> {
    talk["turns"].as_array().unwrap().iter().map(|turn| turn["content"].as_str().unwrap()).collect()
}

/// The events of a stream, until `enough`: name, id and data.
fn events(
    served: &Served,
    path: &str,
    last: Option<&str>,
    mut enough: impl FnMut(&str, &Value) -> bool,
) -> Vec<(String, Option<String>, Value)> {
    let bearer = served.bearer();
    let mut headers = vec![("Authorization", &*bearer)];
    headers.extend(last.map(|last| ("Last-Event-ID", last)));
    let stream = served.open("GET", path, &headers, "");
    let (mut all, mut name, mut id) = (Vec::new(), String::new(), None);
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        if let Some(said) = line.strip_prefix("event: ") {
            (name, id) = (said.to_owned(), None);
        } else if let Some(said) = line.strip_prefix("id: ") {
            id = Some(said.to_owned());
        } else if let Some(data) = line.strip_prefix("data: ") {
            let data: Value = serde_json::from_str(data).unwrap();
            let is_enough = enough(&name, &data);
            all.push((name.clone(), id.clone(), data));
            if is_enough {
                return all;
            }
        }
    }
    panic!("the stream ended: {all:?}")
}

#[test]
fn something_is_said_and_participants_answer() {
    let place = swarm();
    let served = Served::start(&place, &[]);
    let id = only_talk(&served);
    let path = format!("/api/v1/talks/{id}");
    let empty = served.get(&path).json();
    assert_eq!((contents(&empty), &empty["next"]["turn"]), (vec![], &Value::Null));
    let body = json!({"text": "@Ada and @Bo, are you there?", "as": "carl", "budget": {"calls": 5}});
    let posted = served.post(&format!("{path}/messages"), &body);
    assert_eq!(posted.status, 202, "{}", posted.body);
    let posted = posted.json();
    assert_eq!(posted["turn"]["participant"], "carl");
    let result = served.finish(posted["job"].as_str().unwrap());
    assert_eq!(
        (&result["runtime"], result["appended"].as_array().unwrap().len()),
        (&json!("talk"), 2),
        "{result}"
    );
    let talk = served.get(&path).json();
    assert_eq!(contents(&talk), ["@Ada and @Bo, are you there?", "I am here.", "Me too."]);
    assert_eq!(talk["turns"][1]["answers"], posted["turn"]["id"]);
    assert_eq!((&talk["next"]["turn"], &talk["answering"]), (&Value::Null, &json!(false)));
    let doing: Vec<&Value> =
        talk["participants"].as_array().unwrap().iter().map(|one| &one["doing"]).collect();
    assert_eq!(doing, ["answered", "answered"]);
    let logged = place.run(&["log", "swarm.yaml", "--format", "json"]).assert_code(0).json();
    assert_eq!(talk["turns"], logged["turns"]);
    // The command line goes on where the server ended.
    let idle = place.run(&["run", "swarm.yaml", "--format", "json"]).assert_code(0).json();
    assert_eq!(idle["asked"], 0, "{idle}");
    let older =
        served.get(&format!("{path}?limit=1&before={}", talk["turns"][2]["id"].as_str().unwrap())).json();
    assert_eq!((contents(&older), &older["more"]), (vec!["I am here."], &json!(true)));
    assert_eq!(served.get(&format!("{path}?limit=0")).status, 400);
    let page = served.get(&format!("/talks/{id}")).body;
    assert!(
        page.contains("I am here.") && page.contains("No turn is open") && page.contains("data-send"),
        "{page}"
    );
    assert!(served.get("/talks").body.contains(&format!("/talks/{id}")));
}

#[test]
fn who_is_next_is_said_before_a_participant_is_asked() {
    let place = swarm();
    let served = Served::start(&place, &[]);
    let path = format!("/api/v1/talks/{}", only_talk(&served));
    let said = served.post(&format!("{path}/messages"), &json!({"text": "@Bo first", "answer": false}));
    assert_eq!((said.status, &said.json()["job"]), (202, &Value::Null));
    let next = served.get(&path).json()["next"].clone();
    assert_eq!((&next["participants"], &next["open"]), (&json!(["bo"]), &json!(1)));
    assert!(next["why"].as_str().unwrap().contains("`mention`"), "{next}");
    place.run(&["say", "swarm.yaml", "@Adda, you?"]).assert_code(0);
    // Without a text, what is open is answered; what was read just before is outdated then.
    served.get(&path);
    let posted = served.post(&format!("{path}/messages"), &json!({})).json();
    assert_eq!(posted["turn"], Value::Null);
    let result = served.finish(posted["job"].as_str().unwrap());
    assert_eq!(result["appended"][0]["content"], "Me too.", "{result}");
    let page = served.get(&path.replace("/api/v1", "")).body;
    assert!(page.contains("no participant answers: "), "{page}");
}

#[test]
fn a_watcher_sees_turns_of_this_server_and_of_other_processes_once() {
    let place = swarm();
    let served = Served::start(&place, &[]);
    let path = format!("/api/v1/talks/{}", only_talk(&served));
    place.run(&["say", "swarm.yaml", "one"]).assert_code(0);
    place.run(&["say", "swarm.yaml", "two"]).assert_code(0);
    let stream = format!("{path}/events");
    let is = |text: &'static str| move |name: &str, data: &Value| name == "turn" && data["content"] == text;
    let seen = events(&served, &stream, None, is("two"));
    let turns: Vec<_> = seen.iter().filter(|(name, ..)| name == "turn").collect();
    let first = turns[0].1.clone().unwrap();
    assert_eq!((turns.len(), &*first), (2, turns[0].2["id"].as_str().unwrap()));
    std::thread::scope(|scope| {
        let rest = scope.spawn(|| events(&served, &stream, Some(&first), is("I am here.")));
        place.run(&["run", "swarm.yaml", "--say", "@Ada hello"]).assert_code(0);
        let turns = rest.join().unwrap();
        let said: Vec<_> = turns
            .iter()
            .filter(|(name, ..)| name == "turn")
            .map(|(.., turn)| turn["content"].clone())
            .collect();
        assert_eq!(said, ["two", "@Ada hello", "I am here."]);
    });
    let unknown = events(&served, &stream, Some("t_000000000000"), is("one"));
    assert_eq!(unknown[0].0, "reset");
}

#[test]
fn a_repeated_message_is_said_once_and_two_at_once_are_both_answered() {
    let place = swarm();
    let served = Served::start(&place, &[]);
    let path = format!("/api/v1/talks/{}/messages", only_talk(&served));
    let bearer = served.bearer();
    let body = json!({"text": "@Ada hello"}).to_string();
    let headers = [("Authorization", &*bearer), ("Idempotency-Key", "k1")];
    let first = served.send("POST", &path, &headers, &body).json();
    assert_eq!(served.send("POST", &path, &headers, &body).json(), first);
    let others = ["@Bo one", "@Bo two"].map(|text| served.post(&path, &json!({"text": text})).json());
    for job in [&first].into_iter().chain(&others) {
        served.finish(job["job"].as_str().unwrap());
    }
    let log = place.run(&["log", "swarm.yaml", "--format", "json"]).assert_code(0).json();
    let all = contents(&log);
    let count = |text: &str| all.iter().filter(|one| **one == text).count();
    assert_eq!((count("@Ada hello"), count("I am here."), count("Me too.")), (1, 1, 2), "{all:?}");
}

#[test]
fn a_conversation_that_another_process_runs_is_answered_there() {
    let place = swarm();
    let served = Served::start(&place, &[]);
    let path = format!("/api/v1/talks/{}", only_talk(&served));
    let mut watching = place.start(&["run", "swarm.yaml", "--watch"]);
    place.run(&["say", "swarm.yaml", "@Ada up?"]).assert_code(0);
    let answers = |text: &'static str| {
        let talk = served.get(&path).json();
        contents(&talk).contains(&text)
    };
    wait_until(Duration::from_secs(60), "the other process answers", || answers("I am here."));
    let posted = served.post(&format!("{path}/messages"), &json!({"text": "@Bo too?"})).json();
    let result = served.finish(posted["job"].as_str().unwrap());
    assert_eq!(result["elsewhere"], true, "{result}");
    wait_until(Duration::from_secs(60), "the other process answers", || answers("Me too."));
    watching.kill().unwrap();
    watching.wait().unwrap();
}

#[test]
fn ids_lead_to_manifests_of_the_workspace_alone() {
    let place = swarm();
    place.write("other/answers.json", "{}");
    place.write("other/deep.yaml", SWARM.replace("id: talk", "id: deep").replace("talk.md", "deep.md"));
    let served = Served::start(&place, &[]);
    assert_eq!(
        served.get("/api/v1/talks/deep").json()["manifest"],
        "other/deep.yaml",
        "a runtime's id is one, too"
    );
    for id in ["..%2F..%2Fetc%2Fpasswd", "swarm.yaml", "%2Fetc%2Fpasswd", "t000000000000", "nothing"] {
        let answered = served.get(&format!("/api/v1/talks/{id}"));
        assert_eq!(
            (answered.status, &answered.json()["code"]),
            (404, &json!("quorate:conversation_unknown")),
            "{id}"
        );
        assert_eq!(served.get(&format!("/api/v1/talks/{id}/events")).status, 404, "{id}");
        assert_eq!(
            served.post(&format!("/api/v1/talks/{id}/messages"), &json!({"text": "a"})).status,
            404,
            "{id}"
        );
        assert_eq!(served.get(&format!("/talks/{id}")).status, 404, "{id}");
    }
}

#[test]
fn what_cannot_be_answered_is_refused_before_anything_is_said() {
    let place = swarm();
    let served = Served::start(&place, &[]);
    let path = format!("/api/v1/talks/{}/messages", only_talk(&served));
    for (body, status, says) in [
        (json!({"text": "  "}), 400, "the text is empty"),
        (json!({"text": "a", "as": "a b"}), 400, "has white space"),
        (json!({"text": "a", "as": "ada"}), 400, "it is a participant"),
        (json!({"text": "a", "as": "ADA", "answer": false}), 400, "it looks like the participant `ada`"),
        (json!({"answer": false}), 400, "nothing to answer"),
        (json!({"text": 1}), 400, "`text`: invalid type"),
        (json!({"text": "a", "executor": "sh"}), 400, "unknown field"),
        (json!({"text": "a", "budget": {"calls": 0}}), 400, "`budget.calls`: it is 0"),
        (json!({"text": "x".repeat(300_000)}), 422, "256 KiB"),
    ] {
        let refused = served.post(&path, &body);
        assert_eq!(refused.status, status, "{}", refused.body);
        let said = refused.json()["message"].as_str().unwrap().to_owned();
        assert!(said.contains(says) || status == 422, "{says}: {said}");
    }
    assert!(!place.path("talk.md").exists(), "nothing was said");
    // A command that the workspace names has to be trusted, as on the command line.
    place.write(
        "swarm.yaml",
        SWARM
            .replace("executor: script", "executor: agent-cli")
            .replace("path: answers.json", "command: cat"),
    );
    let mut command = place.command(&["serve"]);
    command.env_remove("QUORATE_TRUST");
    let refused = Served::start_by(command).post(&path, &json!({"text": "@Ada hello"}));
    assert_eq!(
        (refused.status, &refused.json()["code"]),
        (422, &json!("quorate:workspace_untrusted")),
        "{}",
        refused.body
    );
    assert!(!place.path("talk.md").exists(), "nothing was said");
    place.write("swarm.yaml", SWARM.replace("kind: file, path: talk.md", "kind: memory"));
    let refused = served.get(&path.replace("/messages", ""));
    assert_eq!((refused.status, &refused.json()["code"]), (422, &json!("quorate:conversation_not_shared")));
}

#[test]
fn a_server_that_only_reads_makes_no_database() {
    let place = swarm();
    place.write("swarm.yaml", SWARM.replace("kind: file, path: talk.md", "kind: sqlite, path: talk.db"));
    let served = Served::start(&place, &["--read-only"]);
    let path = format!("/api/v1/talks/{}", only_talk(&served));
    assert_eq!(served.get(&path).status, 404);
    assert_eq!(served.get(&format!("{path}/events")).status, 404);
    assert!(!place.path("talk.db").exists());
}
