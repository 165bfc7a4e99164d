//! Two Quorates hold one conversation: one serves it over MCP, the other one's substrate, operator and state are there.
#![cfg(feature = "mcp")]

use crate::support;
use crate::support::mcp as client;
use client::Http;
use serde_json::Value;
use support::TestDir;

const HERE: &str = "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: here
participants:
  - {id: ada, executor: script, displayName: Ada, config: {path: answers.json}, meta: {operatorId: op_ada}}
substrate: {kind: SUBSTRATE, path: talk.db}
dispatcher: {kind: mention}
";

const THERE: &str = "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: there
participants:
  - {id: zoe, executor: script, displayName: Zoe, config: {path: answers.json}}
  - {id: echo, executor: db-operator, displayName: Echo, config: {server: here}, meta: {operatorId: op_ada}}
substrate: {kind: guilde-mcp, server: here, conversationId: here}
dispatcher: {kind: mention}
state: {kind: mcp-kv, server: here}
";

/// Who said what.
fn talk(place: &TestDir, manifest: &str) -> Vec<String> {
    let log = place.run(&["log", manifest, "--format", "json"]).assert_code(0).json();
    let text = |turn: &Value, key: &str| turn[key].as_str().unwrap().to_owned();
    let said = |turn: &Value| format!("{}: {}", text(turn, "participant"), text(turn, "content"));
    log["turns"].as_array().unwrap().iter().map(said).collect()
}

fn together(substrate: &str) {
    let here = TestDir::with("answers.json", r#"{"ada": "Here I am."}"#);
    here.write("here.yaml", HERE.replace("SUBSTRATE", substrate));
    let server = Http::start(&here, &["--manifest", "here.yaml"], Some("open sesame, please"));
    let zoe = r#"{"zoe": {"content": "Hello from there. @Ada?", "stateUpdate": {"greeted": true}}}"#;
    let there = TestDir::with("answers.json", zoe);
    there.write("quorate.toml", format!("[mcp.here]\nurl = \"{}\"\ntoken = \"TOKEN\"\n", server.url));
    there.write("there.yaml", THERE);
    let run = |place: &TestDir, arguments: &[&str]| {
        let child = place.command(arguments).env("TOKEN", "open sesame, please").spawn().unwrap();
        support::finish(child)
    };
    // A person there, and who answers there.
    run(&there, &["run", "there.yaml", "--say", "@Zoe, say hello", "--as", "eve"]).assert_code(0);
    let first = ["eve: @Zoe, say hello", "zoe: Hello from there. @Ada?"];
    assert_eq!(talk(&here, "here.yaml"), first);
    // Who is mentioned here answers here, once.
    here.run(&["run", "here.yaml"]).assert_code(0);
    let second = [&first[..], &["ada: Here I am."]].concat();
    assert_eq!(talk(&here, "here.yaml"), second);
    run(&there, &["run", "there.yaml"]).assert_code(0);
    here.run(&["run", "here.yaml"]).assert_code(0);
    assert_eq!(talk(&here, "here.yaml"), second);
    // Both see one order.
    let order = |ran: support::CommandOutput| -> Vec<String> {
        let log = ran.assert_code(0).json();
        log["turns"].as_array().unwrap().iter().map(|turn| turn["id"].as_str().unwrap().to_owned()).collect()
    };
    let theirs = order(run(&there, &["log", "there.yaml", "--format", "json"]));
    assert_eq!(theirs, order(here.run(&["log", "here.yaml", "--format", "json"])));
    // The other machine's state is stored here.
    let state = run(&there, &["state", "there.yaml", "zoe"]).assert_code(0);
    assert!(state.stdout.contains("greeted"), "{}", state.stdout);
    // An operator that lives here speaks there.
    run(&there, &["run", "there.yaml", "--say", "@Echo, are you there?", "--as", "eve"]).assert_code(0);
    let third = [&second[..], &["eve: @Echo, are you there?", "ada: Here I am."]].concat();
    assert_eq!(talk(&here, "here.yaml"), third);
    // Without the token access is denied.
    let child = there.command(&["log", "there.yaml"]).env("TOKEN", "wrong").spawn().unwrap();
    support::finish(child).assert_code(5).assert_stderr_contains("token");
}

#[test]
fn over_a_journal_in_a_file() {
    together("file");
}

#[test]
fn over_a_database() {
    together("sqlite");
}

const GUARDED: &str = "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: here
participants:
  - {id: ada, executor: script, displayName: Ada, config: {path: answers.json}}
substrate: {kind: sqlite, path: talk.db}
dispatcher: {kind: mention, maxAgentTurns: 1}
";

const ELSEWHERE: &str = "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: there
participants:
  - {id: zoe, executor: script, displayName: Zoe, config: {path: answers.json}}
substrate: {kind: guilde-mcp, server: here, conversationId: here}
dispatcher: {kind: mention, maxAgentTurns: 1}
";

#[test]
fn a_person_elsewhere_is_a_person_and_an_agent_elsewhere_is_an_agent() {
    let here = TestDir::with("answers.json", r#"{"ada": "Here I am. @Zoe?"}"#);
    here.write("here.yaml", GUARDED);
    let server = Http::start(&here, &["--manifest", "here.yaml"], None);
    let there = TestDir::with("answers.json", r#"{"zoe": "Hello from there. @Ada?"}"#);
    there.write("quorate.toml", format!("[mcp.here]\nurl = \"{}\"\n", server.url));
    there.write("there.yaml", ELSEWHERE);
    // A turn posted through the other machine is answered here.
    there.run(&["say", "there.yaml", "@Ada, are you there?", "--as", "eve"]).assert_code(0);
    here.run(&["run", "here.yaml"]).assert_code(0);
    let mut said = vec!["eve: @Ada, are you there?", "ada: Here I am. @Zoe?"];
    assert_eq!(talk(&here, "here.yaml"), said);
    // The guard stops an answer to a participant elsewhere, here and there (K12).
    let guarded = "it ends a chain of 1 participant's turn";
    there.run(&["run", "there.yaml"]).assert_code(3).assert_stderr_contains(guarded);
    assert_eq!(talk(&there, "there.yaml"), said);
    there.run(&["run", "there.yaml", "--say", "@Zoe, and you?", "--as", "eve"]).assert_code(0);
    here.run(&["run", "here.yaml"]).assert_code(3).assert_stderr_contains(guarded);
    said.extend(["eve: @Zoe, and you?", "zoe: Hello from there. @Ada?"]);
    assert_eq!(talk(&here, "here.yaml"), said);
}
