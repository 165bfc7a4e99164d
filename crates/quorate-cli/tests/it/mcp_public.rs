//! The public example runtimes whose conversations live on a server, run against our own: they lie as data where
//! `QUORATE_CONFORMANCE_DIR` says; where it says nothing, nothing is tested, and that is said.
#![cfg(feature = "mcp")]

use crate::support;
use crate::support::mcp as client;
use crate::support::public;
use client::Http;
use public::{MANIFEST, copied_example, quorate};
use quorate::conversation::{RunRequest, SayRequest, Until};
use quorate::{Quorate, Trust};
use quorate_adapters::executor::inline::{Inline, Turn};
use serde_json::{Value, json};
use support::TestDir;

/// A place that serves a conversation of that id, with participants of its own.
fn serving(conversation: &str, participants: &str) -> (TestDir, Http) {
    let place = TestDir::with("answers.json", r#"{"stan": "It is published."}"#);
    place.write(
        "here.yaml",
        format!(
            "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: here
participants:
{participants}
substrate: {{kind: file, path: talk.md}}
dispatcher: {{kind: mention}}
"
        ),
    );
    let server = Http::start(&place, &["--manifest", &format!("{conversation}=here.yaml")], None);
    (place, server)
}

/// Tells a repository where the server is that its manifest calls `guilde`.
fn tell(repository: &TestDir, server: &Http, more: &str) {
    repository.write("repo/quorate.toml", format!("[mcp.guilde]\nurl = \"{}\"\n{more}", server.url));
}

/// Who said what, as the server's side has it.
fn talk(place: &TestDir) -> Vec<String> {
    let log = place.run(&["log", "here.yaml", "--format", "json"]).assert_code(0).json();
    let text = |turn: &Value, key: &str| turn[key].as_str().unwrap().to_owned();
    let said = |turn: &Value| format!("{}: {}", text(turn, "participant"), text(turn, "content"));
    log["turns"].as_array().unwrap().iter().map(said).collect()
}

const STAN: &str = "  - {id: stan, executor: script, config: {path: answers.json}, \
                        meta: {operatorId: 00000000-0000-0000-0000-000000000020}}";

#[test]
fn the_bridge_lets_a_cli_speak_in_a_conversation_on_a_server() {
    let Some(repository) = copied_example("02-guilde-bridge.yaml") else { return };
    let (here, server) = serving("11111111-1111-1111-1111-111111111111", STAN);
    tell(&repository, &server, "");
    here.run(&["say", "here.yaml", "@Claude Code, what do you make of it?", "--as", "eve"]).assert_code(0);
    quorate(&repository, &["run", MANIFEST]).assert_code(0);
    let all = [
        "eve: @Claude Code, what do you make of it?",
        "00000000-0000-0000-0000-000000000001: Here is the reviewer of this repository.",
    ];
    assert_eq!(talk(&here), all);
    quorate(&repository, &["run", MANIFEST]).assert_code(0).assert_stderr_contains("no new turns");
    assert_eq!(talk(&here), all);
}

#[test]
fn a_cli_and_an_operator_of_the_server_answer_side_by_side() {
    let Some(repository) = copied_example("03-guilde-mixed.yaml") else { return };
    let (here, server) = serving("22222222-2222-2222-2222-222222222222", STAN);
    tell(&repository, &server, "");
    let said = "@Claude Reviewer and @Stan, please";
    quorate(&repository, &["run", MANIFEST, "--say", said, "--as", "eve"]).assert_code(0);
    let turns = talk(&here);
    assert_eq!(turns.len(), 3, "{turns:#?}");
    assert_eq!(turns[0], format!("eve: {said}"));
    for said in
        ["00000000-0000-0000-0000-000000000010: Here is nobody of this repository.", "stan: It is published."]
    {
        assert!(turns.iter().any(|turn| turn == said), "{said} in {turns:#?}");
    }
    quorate(&repository, &["run", MANIFEST]).assert_code(0);
    assert_eq!(talk(&here), turns, "no participant answers twice");
}

#[tokio::test]
async fn a_closure_under_the_kind_that_the_manifest_names_takes_part() {
    let Some(repository) = copied_example("05-guilde-autonomous.yaml") else { return };
    let (here, server) = serving("33333333-3333-3333-3333-333333333333", STAN);
    // The router asks a model; here a command selects from the roster.
    let router = "#!/bin/sh\ncat > asked.txt\nprintf '%s' '{\"next\": [\"triager\"]}'\n";
    repository.write("repo/router.sh", router);
    let more = "[defaults]\nexecutor = \"router\"\n[executors.router]\nkind = \"agent-cli\"\ncommand = \"/bin/sh\"\n\
                args = [\"router.sh\"]\n";
    tell(&repository, &server, more);
    let directory = repository.path("repo");
    let builder = Quorate::builder().workspace(&directory).ledger(directory.join("ledger.db"));
    let builder = builder.state_dir(repository.path("state")).trust(Trust::Workspace);
    let builder = builder.executor_with("in-process-mastra", |_| {
        Ok(Inline::new(|speaking| async move {
            let trigger = speaking.trigger().map(|turn| turn.content.to_string()).unwrap_or_default();
            let seen = speaking.state.get("seen").and_then(Value::as_u64).unwrap_or_default() + 1;
            let state = json!({"seen": seen}).as_object().cloned();
            Ok(Turn { content: format!("{seen}: {trigger}"), state, ..Turn::default() })
        }))
    });
    let quorate = builder.build().expect("a workspace");
    for text in ["The build is red", "It is green again"] {
        let conversation = quorate.conversation(directory.join(MANIFEST)).expect("a manifest that holds");
        let (text, by) = (text.to_owned(), Some("eve".to_owned()));
        let say = Some(SayRequest { text, by, ..SayRequest::default() });
        let request = RunRequest { until: Until::Once, say, ..RunRequest::default() };
        conversation.run(request).finish().await.expect("a talk");
        let turns = conversation.reader().await.expect("a reader").last(None).await.expect("turns");
        assert!(!turns.is_empty());
    }
    let all = [
        "eve: The build is red",
        "00000000-0000-0000-0000-000000000030: 1: The build is red",
        "eve: It is green again",
        "00000000-0000-0000-0000-000000000030: 2: It is green again",
    ];
    assert_eq!(talk(&here), all, "what it remembers lives on the server, too");
}
