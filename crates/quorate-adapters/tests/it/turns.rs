//! Executors as participants of a conversation, compared with what a turn asks of them.
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_adapters::default_registry;
use quorate_adapters::executor::inline::{Inline, Turn};
use quorate_kernel::conversation::Tools;
use quorate_kernel::ports::executor::{ConfigError, Executor, Failure, Servers, Settings};
use quorate_kernel::single_call::probe_question;
use quorate_protocol::answers::Schema;
use quorate_testkit::conformance::executor::{respects_turn_deadline, takes_turns, turn_invocation};
use serde_json::{Map, Value, json};

fn try_executor(
    kind: &str,
    dir: &Path,
    block: Value,
    servers: Servers,
) -> Result<Arc<dyn Executor>, ConfigError> {
    let new = default_registry().unwrap().executor_kind(kind).expect("a shipped kind");
    new(&Settings {
        name: "under-test".into(),
        timeout: Duration::from_secs(20),
        retries: 0,
        dir: dir.to_owned(),
        block: block.as_object().cloned().unwrap_or_default(),
        servers,
        prices: None,
    })
}

fn executor(kind: &str, dir: &Path, block: Value) -> Arc<dyn Executor> {
    try_executor(kind, dir, block, Servers::default()).expect("a block that fits")
}

fn command(dir: &Path, script: &str, mut block: Value) -> Arc<dyn Executor> {
    use std::os::unix::fs::PermissionsExt;
    let path = dir.join("member.sh");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    block["command"] = json!("/bin/sh");
    if !block["preset"].is_null() {
        block["command"] = json!("./member.sh");
    } else {
        block["args"] = json!([path.to_str().unwrap()]);
    }
    executor("agent-cli", dir, block)
}

#[tokio::test]
async fn a_command_says_what_it_prints() {
    let dir = tempfile::tempdir().unwrap();
    let member = command(dir.path(), r#"cat >/dev/null; echo 'Looks good: {"a": 1}'"#, json!({}));
    assert_eq!(member.turn_schema(), Schema::PlainText);
    assert_eq!(takes_turns(&*member, "Well?").await.content, "Looks good: {\"a\": 1}");
    respects_turn_deadline(&*command(dir.path(), "exec sleep 60", json!({}))).await;
    let silent = command(dir.path(), "cat >/dev/null", json!({}));
    assert!(matches!(
        silent.invoke(turn_invocation(&*silent, "Well?", Duration::from_secs(20))).await,
        Err(Failure::Failed { .. })
    ));
}

#[tokio::test]
async fn a_command_that_answers_in_json_gives_what_goes_with_a_turn() {
    let dir = tempfile::tempdir().unwrap();
    let script = r#"cat >/dev/null; echo '{"content": "Good.", "meta": {"a": 1}, "stateUpdate": {"n": 2}}'"#;
    let member = command(dir.path(), script, json!({"answer": "json"}));
    assert_eq!(member.turn_schema(), Schema::Turn);
    let said = takes_turns(&*member, "Well?").await;
    assert_eq!((said.content.as_str(), Value::Object(said.meta)), ("Good.", json!({"a": 1})));
    assert_eq!(said.state.map(Value::Object), Some(json!({"n": 2})));
}

#[tokio::test]
async fn a_preset_asks_for_text_and_hands_on_the_tools() {
    let dir = tempfile::tempdir().unwrap();
    let script = r#"cat >/dev/null; printf '%s\n' "$@" > seen
env | cut -d= -f1 > names
echo '{"type": "result", "is_error": false, "result": "Good."}'"#;
    drop(command(dir.path(), script, json!({})));
    let table = json!({"command": "db", "env": ["CARGO_PKG_NAME"]}).as_object().cloned().unwrap();
    let servers = Servers::new([("db".to_owned(), table)].into());
    let block = json!({"preset": "claude", "command": "./member.sh"});
    let member = try_executor("agent-cli", dir.path(), block, servers).unwrap();
    let mut asked = turn_invocation(&*member, "Well?", Duration::from_secs(20));
    let mut speaking = asked.conversation.as_deref().cloned().unwrap();
    speaking.participant.tools = Tools {
        allowed: Some(vec!["Read".to_owned()]),
        servers: vec!["db".to_owned(), "nobody-configured-it".to_owned()],
    };
    asked.conversation = Some(Arc::new(speaking));
    assert_eq!(member.invoke(asked).await.unwrap().text, "Good.");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let seen = read("seen");
    let mut seen: Vec<&str> = seen.lines().collect();
    let config = seen.pop().unwrap();
    assert!(config.starts_with("--mcp-config=/"), "{config}");
    let rest = ["--print", "--output-format", "json", "--tools=Read", "--allowedTools=Read,mcp__db"];
    assert_eq!(seen[..5], rest);
    assert_eq!(seen[5..], ["--strict-mcp-config"]);
    assert!(!Path::new(config.trim_start_matches("--mcp-config=")).exists(), "it is gone with the attempt");
    assert!(read("names").lines().any(|name| name == "CARGO_PKG_NAME"), "the server's variable is handed on");
    // An invocation outside of a conversation gets nothing of that.
    assert!(member.invoke(turn_invocation(&*member, "Well?", Duration::from_secs(20))).await.is_ok());
    assert_eq!(read("seen").lines().count(), 3);
    assert!(!read("names").contains("CARGO_PKG_NAME"));
}

#[tokio::test]
async fn a_script_says_what_was_written_for_a_participant() {
    let dir = tempfile::tempdir().unwrap();
    let script = |answers: Value| {
        std::fs::write(dir.path().join("turns.json"), answers.to_string()).unwrap();
        executor("script", dir.path(), json!({"path": "turns.json"}))
    };
    let by_id = script(json!({"reviewer": "Good.", "_": "someone else's"}));
    assert_eq!(takes_turns(&*by_id, "Well?").await.content, "Good.");
    let by_turn =
        script(json!({"turn/t1/reviewer": {"content": "Yes.", "stateUpdate": {}}, "reviewer": "No."}));
    let said = takes_turns(&*by_turn, "Well?").await;
    assert_eq!((said.content.as_str(), said.state), ("Yes.", Some(Map::new())));
    respects_turn_deadline(&*script(json!({"_": {"$timeout": true}}))).await;
}

#[tokio::test]
async fn the_rubric_says_something_and_mentions_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let rubric = executor("rubric", dir.path(), json!({}));
    let draft = "Everyone knows that our product is always the best. Studies show that 87% of all users definitely \
                 agree, and nobody in the whole world could ever disagree with @Writer about any of this.";
    let said = takes_turns(&*rubric, draft).await;
    assert!(said.content.contains('\u{201c}') && !said.content.contains('@'), "{}", said.content);
    assert!(takes_turns(&*rubric, "").await.content.contains("I cannot judge this"));
    let mut choice = turn_invocation(&*rubric, "Who is next?", Duration::from_secs(20));
    choice.answer_schema = Schema::Selection;
    let failure = rubric.invoke(choice).await.unwrap_err().to_string();
    assert!(failure.contains("cannot choose who speaks"), "{failure}");
}

fn closure() -> Arc<dyn Executor> {
    Inline::new(|speaking| async move {
        let said = speaking.trigger().map(|turn| turn.content.to_string()).unwrap_or_default();
        match &*said {
            "hang" => std::future::pending().await,
            "fail" => Err("out of order".to_owned()),
            "panic" => panic!("on purpose"),
            said => Ok(Turn {
                content: format!("{} heard {said}", speaking.participant.display_name),
                meta: Map::from_iter([("n".to_owned(), json!(1))]),
                state: Some(Map::new()),
            }),
        }
    })
}

#[tokio::test]
async fn a_closure_takes_turns() {
    let said = takes_turns(&*closure(), "this").await;
    let expected = Turn {
        content: "Reviewer heard this".to_owned(),
        meta: Map::from_iter([("n".to_owned(), json!(1))]),
        state: Some(Map::new()),
    };
    assert_eq!(said, expected);
    let mut plain = turn_invocation(&*closure(), "this", Duration::from_secs(20));
    plain.answer_schema = Schema::PlainText;
    assert_eq!(closure().invoke(plain).await.unwrap().text, "Reviewer heard this");
}

#[tokio::test]
async fn a_closure_that_fails_panics_or_hangs_has_failed() {
    let asked = async |said: &str, ms| {
        closure().invoke(turn_invocation(&*closure(), said, Duration::from_millis(ms))).await.unwrap_err()
    };
    assert_eq!(asked("fail", 20_000).await, Failure::failed("out of order"));
    assert_eq!(asked("panic", 20_000).await, Failure::failed("the closure panicked: on purpose"));
    assert_eq!(asked("hang", 300).await, Failure::TimedOut);
    respects_turn_deadline(&*Inline::new(|_| std::future::pending())).await;
    let early = Inline::new(|_| -> std::future::Ready<Result<Turn, String>> { panic!("at {}", "once") });
    let failure = early.invoke(turn_invocation(&*early, "?", Duration::from_secs(20))).await.unwrap_err();
    assert_eq!(failure, Failure::failed("the closure panicked: at once"));
    let alone = closure().invoke(probe_question(Duration::from_secs(20))).await.unwrap_err().to_string();
    assert!(alone.contains("conversations alone"), "{alone}");
}

#[tokio::test]
async fn a_closure_is_registered_under_any_kind_and_the_plain_kind_says_how() {
    let mut registry = default_registry().unwrap();
    registry.executor("in-process-mastra", |_| Ok(closure())).unwrap();
    assert!(registry.executor_kind("in-process-mastra").is_some());
    let refused = try_executor("inline", Path::new("/"), json!({}), Servers::default()).err().unwrap();
    assert!(refused.help.unwrap().contains("host.with_executor("));
}
