//! The lookup and the forms of scripted answers.

#![expect(clippy::disallowed_methods, reason = "the answers are written here")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::ports::executor::{ConfigError, Executor, Failure, Invocation, Settings};
use quorate_protocol::answers::Schema;
use serde_json::{Value, json};
use tokio::time::Instant;

fn settings(dir: &Path, block: Value) -> Settings {
    Settings {
        name: "script".into(),
        timeout: Duration::from_secs(1),
        retries: 0,
        dir: dir.to_owned(),
        block: block.as_object().cloned().unwrap_or_default(),
        servers: Default::default(),
        prices: None,
    }
}

fn script(dir: &Path, block: Value) -> Result<Arc<dyn Executor>, ConfigError> {
    super::new(&settings(dir, block))
}

fn with_file(answers: Value) -> (tempfile::TempDir, Arc<dyn Executor>) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("answers.json"), answers.to_string()).unwrap();
    let executor = script(dir.path(), json!({"path": "answers.json"})).unwrap();
    (dir, executor)
}

async fn ask(executor: &dyn Executor, step: &str, member: &str, attempt: u32) -> Result<String, Failure> {
    ask_for(Schema::FirstAnswer, executor, step, member, attempt).await
}

async fn ask_for(
    form: Schema,
    executor: &dyn Executor,
    step: &str,
    member: &str,
    attempt: u32,
) -> Result<String, Failure> {
    let invocation = Invocation {
        run: "run".into(),
        id: format!("{step}/{member}").into(),
        member: member.into(),
        step: step.into(),
        attempt,
        prompt: "".into(),
        cuts: Arc::new([]),
        parts: Arc::new([]),
        role: "".into(),
        persona: None,
        answer_schema: form,
        json_schema: Arc::new(json!({})),
        conversation: None,
        nonce: "".into(),
        redactor: quorate_kernel::redact::Redactor::default(),
        fence: quorate_kernel::ports::fence::Fence::default(),
        deadline: Instant::now() + Duration::from_millis(200),
        notes: quorate_kernel::ports::executor::Notes::default(),
        progress: quorate_kernel::ports::executor::Progress::default(),
    };
    executor.invoke(invocation).await.map(|reply| reply.text)
}

#[tokio::test(start_paused = true)]
async fn a_file_answers_by_id_step_member_and_fallback() {
    let (_dir, executor) = with_file(json!({
        "r1/skeptic": {"by": "id"}, "r2": {"by": "step"}, "voice": {"by": "member"}, "_": "by fallback"
    }));
    assert_eq!(ask(&*executor, "r1", "skeptic", 1).await.unwrap(), r#"{"by":"id"}"#);
    assert_eq!(ask(&*executor, "r2", "skeptic", 1).await.unwrap(), r#"{"by":"step"}"#);
    assert_eq!(ask(&*executor, "r1", "voice", 1).await.unwrap(), r#"{"by":"member"}"#);
    assert_eq!(ask(&*executor, "r1", "other", 1).await.unwrap(), "by fallback");
}

#[tokio::test(start_paused = true)]
async fn a_list_has_one_answer_for_each_attempt_and_the_last_repeats() {
    let (_dir, executor) = with_file(json!({"_": ["not JSON", {"fine": true}]}));
    assert_eq!(ask(&*executor, "r1", "a", 1).await.unwrap(), "not JSON");
    assert_eq!(ask(&*executor, "r1", "a", 2).await.unwrap(), r#"{"fine":true}"#);
    assert_eq!(ask(&*executor, "r1", "a", 3).await.unwrap(), r#"{"fine":true}"#);
}

#[tokio::test(start_paused = true)]
async fn failures_timeouts_and_delays_can_be_scripted() {
    let (_dir, executor) = with_file(json!({
        "fails": {"$fail": "no quota"}, "hangs": {"$timeout": true},
        "slow": {"$delay_ms": 50, "answer": {"a": 1}}, "late": {"$delay_ms": 500, "answer": "x"}
    }));
    assert_eq!(ask(&*executor, "r1", "fails", 1).await, Err(Failure::failed("no quota")));
    let before = Instant::now();
    assert_eq!(ask(&*executor, "r1", "slow", 1).await.unwrap(), r#"{"a":1}"#);
    assert_eq!(before.elapsed(), Duration::from_millis(50));
    for member in ["hangs", "late"] {
        let before = Instant::now();
        assert_eq!(ask(&*executor, "r1", member, 1).await, Err(Failure::TimedOut));
        assert_eq!(before.elapsed(), Duration::from_millis(200));
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_answer_names_what_was_looked_for() {
    let (_dir, executor) = with_file(json!({}));
    let failure = ask(&*executor, "r1", "skeptic", 1).await.unwrap_err().to_string();
    assert!(failure.contains("`r1/skeptic`, `r1`, `skeptic`, `_`"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_folder_answers_by_file_and_by_attempt() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("r1/skeptic.json", "{\"broken\": ");
    write("r1/skeptic.2.json", "{\"whole\": 1}");
    write("r1/_.txt", "step");
    write("voice.md", "member");
    write("_.json", "{\"$fail\": \"nobody\"}");
    let executor = script(dir.path(), json!({"path": "."})).unwrap();
    assert_eq!(ask(&*executor, "r1", "skeptic", 1).await.unwrap(), "{\"broken\": ");
    assert_eq!(ask(&*executor, "r1", "skeptic", 2).await.unwrap(), "{\"whole\": 1}");
    assert_eq!(ask(&*executor, "r1", "voice", 1).await.unwrap(), "step");
    assert_eq!(ask(&*executor, "r2", "voice", 1).await.unwrap(), "member");
    assert_eq!(ask(&*executor, "r2", "../../etc/passwd", 1).await, Err(Failure::failed("nobody")));
}

#[tokio::test(start_paused = true)]
async fn the_delay_of_the_table_counts_for_all() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("_.txt"), "x").unwrap();
    let executor = script(dir.path(), json!({"path": ".", "delay": "100ms"})).unwrap();
    let before = Instant::now();
    assert_eq!(ask(&*executor, "r1", "a", 1).await.unwrap(), "x");
    assert_eq!(before.elapsed(), Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_words_or_an_object_with_what_goes_with_them() {
    let turn = json!({"content": "Good.", "meta": {"a": 1}, "stateUpdate": {"seen": 2}});
    let (_dir, executor) = with_file(json!({
        "words": "Good.", "object": turn, "listed": [{"$delay_ms": 5, "answer": "Good."}], "no": {"$fail": "no"}
    }));
    assert_eq!(executor.turn_schema(), Schema::Turn);
    let ask = async |form, member: &str| ask_for(form, &*executor, "turn", member, 1).await;
    let parsed = |text: Result<String, Failure>| serde_json::from_str::<Value>(&text.unwrap()).unwrap();
    assert_eq!(parsed(ask(Schema::Turn, "object").await), turn);
    for member in ["words", "listed"] {
        assert_eq!(parsed(ask(Schema::Turn, member).await), json!({"content": "Good."}));
    }
    for member in ["words", "listed", "object"] {
        assert_eq!(ask(Schema::PlainText, member).await.unwrap(), "Good.");
    }
    assert_eq!(ask(Schema::PlainText, "no").await, Err(Failure::failed("no")));
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.md"), "# Good.\n").unwrap();
    std::fs::write(dir.path().join("b.json"), "{\"content\": ").unwrap();
    let folder = script(dir.path(), json!({"path": "."})).unwrap();
    let turn = ask_for(Schema::Turn, &*folder, "turn", "a", 1).await;
    assert_eq!(parsed(turn), json!({"content": "# Good.\n"}));
    let broken = ask_for(Schema::Turn, &*folder, "turn", "b", 1).await;
    assert_eq!(broken.unwrap(), "{\"content\": ", "broken JSON can be scripted too");
}

#[test]
fn what_cannot_work_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |block: Value| script(dir.path(), block).err().unwrap();
    assert_eq!(refused(json!({})).key.as_deref(), Some("path"));
    assert_eq!(refused(json!({"path": "missing.json"})).key.as_deref(), Some("path"));
    assert_eq!(refused(json!({"path": ".", "dealy": "1s"})).help.as_deref(), Some("did you mean `delay`?"));
    for delay in ["1", "1h", "-1s", "s", "99999999999999999999ms"] {
        assert_eq!(refused(json!({"path": ".", "delay": delay})).key.as_deref(), Some("delay"), "{delay}");
    }
    for answers in [
        "[]",
        "{",
        r#"{"a": 1}"#,
        r#"{"a": []}"#,
        r#"{"a": {"$fial": "x"}}"#,
        r#"{"a": {"$timeout": false}}"#,
    ] {
        std::fs::write(dir.path().join("bad.json"), answers).unwrap();
        assert_eq!(refused(json!({"path": "bad.json"})).key.as_deref(), Some("path"), "{answers}");
    }
}
