//! The `script` executor: prepared answers for tests and demonstrations.
//!
//! The forms of a scripted answer.
//!
//! An object is an answer as it stands, a string is given verbatim. For a turn of a conversation, a string is its
//! content, and an object has `content`, and optionally `meta` and `stateUpdate`. Keys that start with `$` make an
//! instruction of an object: `{"$fail": "message"}`, `{"$timeout": true}`, `{"$delay_ms": 50, "answer": …}`.
//!
//! Looks answers up in one file or in a folder: by the invocation's id with the sample (`r1/skeptic#2`), then by the id (`r1/skeptic`), its step (`r1`; in a folder
//! `r1/_`), its member (`skeptic`), then `_`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::ports::executor::{
    About, ConfigError, Executor, Failure, Invocation, Reply, Settings, SideEffect,
};
use quorate_protocol::Json;
use quorate_protocol::answers::Schema;
use quorate_protocol::answers::advice::Turn;
use serde::Deserialize;
use tokio::time::{Instant, sleep_until};

use crate::block::Block;
use quorate_kernel::files;

/// The kind that `quorate.toml` names.
pub const KIND: &str = "script";

const KEYS: &[&str] = &["path", "delay"];

/// Builds the executor from its table.
///
/// # Errors
/// When the block has an unknown key, a value of the wrong type, or a `path` where no answers can be read.
pub fn new(settings: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
    let block = Block::parse(&settings.block, KEYS)?;
    let path = block.text("path")?.ok_or_else(|| {
        ConfigError::for_key("path", "`path` is missing")
            .with_help("the file or the folder that holds the answers")
    })?;
    let delay = block.duration("delay")?.unwrap_or_default();
    let path = settings.dir.join(path);
    let outside_path = files::path_outside(&settings.dir, &path);
    Ok(Arc::new(Script { source: Source::open(&path)?, outside_path, delay }))
}

struct Script {
    source: Source,
    /// The path of the answers, if it is outside of the settings' directory.
    outside_path: Option<PathBuf>,
    delay: Duration,
}

#[async_trait]
impl Executor for Script {
    fn about(&self) -> About {
        About { kind: KIND, asks_a_model: false, model: None }
    }

    /// Answers from outside end up in the ledger and in the conversation, which their owner may not intend.
    fn side_effects(&self) -> Vec<SideEffect> {
        let side_effect = |path: &PathBuf| SideEffect::new(format!("take answers from {}", path.display()));
        self.outside_path.iter().map(side_effect).collect()
    }

    /// Scripted answers may contain `meta` and `stateUpdate`.
    fn turn_schema(&self) -> Schema {
        Schema::Turn
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let Answer { delay, response } = self.source.answer(&invocation)?;
        let delay = self.delay.saturating_add(delay);
        let at = Instant::now().checked_add(delay).filter(|at| *at < invocation.deadline);
        let Some(at) = at.filter(|_| response != Response::Timeout) else {
            sleep_until(invocation.deadline).await;
            return Err(Failure::TimedOut);
        };
        if !delay.is_zero() {
            sleep_until(at).await;
        }
        let text = match (response, invocation.answer_schema) {
            (Response::Timeout, _) => return Err(Failure::TimedOut),
            (Response::Failure(message), _) => return Err(Failure::failed(message)),
            // Plain text becomes a turn, and a turn becomes its content where text is asked for.
            (Response::PlainText(words), Schema::Turn) => Turn::plain_text_answer(&words).to_string(),
            (Response::Verbatim(text), Schema::PlainText) => content(&text).unwrap_or(text),
            (Response::Verbatim(text) | Response::PlainText(text), _) => text,
        };
        Ok(Reply { text, ..Reply::default() })
    }
}

const EXTENSIONS: [&str; 3] = ["json", "txt", "md"];

/// The longest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

enum Source {
    /// Read once, by key; a list holds one answer for each attempt.
    File { path: PathBuf, answers: BTreeMap<String, Vec<Answer>> },
    /// Read at each invocation.
    Folder(PathBuf),
}

impl Source {
    /// Opens the path of the key `path`.
    fn open(path: &Path) -> Result<Self, ConfigError> {
        let refuse = |problem: String| ConfigError::for_key("path", format!("`{}`{problem}", path.display()));
        let unreadable = |error: io::Error| refuse(format!(" cannot be read: {error}"));
        if path.metadata().map_err(unreadable)?.is_dir() {
            return Ok(Source::Folder(path.to_owned()));
        }
        let text = files::read_text(path, MAX_FILE_BYTES).map_err(unreadable)?;
        let answers = read_file(&text).map_err(|problem| refuse(format!(": {problem}")))?;
        Ok(Source::File { path: path.to_owned(), answers })
    }

    fn answer(&self, invocation: &Invocation) -> Result<Answer, Failure> {
        match self {
            Source::File { path, answers } => {
                let sample = format!("{}#{}", invocation.id, invocation.sample);
                let keys = [&*invocation.id, &invocation.step, &invocation.member, "_"];
                let found = [&*sample].iter().chain(&keys).find_map(|key| answers.get(*key));
                let attempt = invocation.attempt.saturating_sub(1) as usize;
                found
                    .and_then(|answers| answers.get(attempt).or(answers.last()))
                    .cloned()
                    .ok_or_else(|| missing(path, &keys.map(str::to_owned)))
            }
            Source::Folder(folder) => in_folder(folder, invocation),
        }
    }
}

fn read_file(text: &str) -> Result<BTreeMap<String, Vec<Answer>>, String> {
    let json: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Json::Object(entries) = json else { return Err("it must hold one JSON object".into()) };
    entries
        .into_iter()
        .map(|(key, value)| {
            let read = match &value {
                Json::Array(attempts) if !attempts.is_empty() => attempts.iter().map(Answer::read).collect(),
                single => Answer::read(single).map(|answer| vec![answer]),
            };
            read.map(|answers| (key.clone(), answers)).map_err(|problem| format!("`{key}`: {problem}"))
        })
        .collect()
}

fn in_folder(folder: &Path, invocation: &Invocation) -> Result<Answer, Failure> {
    let names = [
        format!("{}#{}", invocation.id, invocation.sample),
        invocation.id.to_string(),
        format!("{}/_", invocation.step),
        invocation.member.to_string(),
        "_".into(),
    ];
    let inside =
        |name: &&String| Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    for name in names.iter().filter(inside) {
        for stem in [format!("{name}.{}", invocation.attempt), name.clone()] {
            for extension in EXTENSIONS {
                let path = folder.join(format!("{stem}.{extension}"));
                if path.exists() && files::path_outside(folder, &path).is_some() {
                    let path = path.display();
                    return Err(Failure::failed(format!("`{path}` leads out of its folder by a link")));
                }
                match files::read_text(&path, MAX_FILE_BYTES) {
                    Ok(text) => return read_one(&path, extension, text),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => {
                        return Err(Failure::failed(format!("`{}` cannot be read: {error}", path.display())));
                    }
                }
            }
        }
    }
    Err(missing(folder, &names[1..]))
}

/// Returns a file verbatim, so that broken JSON can be scripted too; only an instruction is interpreted.
fn read_one(path: &Path, extension: &str, text: String) -> Result<Answer, Failure> {
    if extension != "json" {
        return Ok(Response::PlainText(text).into());
    }
    match serde_json::from_str::<Json>(&text) {
        Ok(value) if is_instruction(&value) => Answer::read(&value)
            .map_err(|problem| Failure::failed(format!("`{}`: {problem}", path.display()))),
        _ => Ok(Response::Verbatim(text).into()),
    }
}

fn missing(place: &Path, names: &[String]) -> Failure {
    let names = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    Failure::failed(format!("`{}` has no answer under any of {names}", place.display()))
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Answer {
    /// How long to wait before the response.
    delay: Duration,
    response: Response,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Response {
    Verbatim(String),
    PlainText(String),
    Failure(String),
    /// No response until the deadline.
    Timeout,
}

impl From<Response> for Answer {
    /// Without delay.
    fn from(response: Response) -> Answer {
        Answer { delay: Duration::ZERO, response }
    }
}

/// An object that is an instruction instead of an answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Instruction {
    #[serde(rename = "$fail")]
    fail: Option<String>,
    #[serde(rename = "$timeout", default)]
    timeout: bool,
    #[serde(rename = "$delay_ms", default)]
    delay_ms: u64,
    answer: Option<Json>,
}

impl Answer {
    /// Reads one answer.
    ///
    /// # Errors
    /// The problem, as a message for users.
    fn read(value: &Json) -> Result<Self, String> {
        const ONE: &str = "an instruction has one of `\"$fail\": \"message\"`, `\"$timeout\": true` and, beside \
            `$delay_ms`, `answer`";
        match value {
            Json::String(words) => return Ok(Response::PlainText(words.clone()).into()),
            Json::Object(_) if is_instruction(value) => {}
            Json::Object(_) => return Ok(Response::Verbatim(value.to_string()).into()),
            _ => {
                return Err("an answer is an object, a text, or a list of these, one for each attempt".into());
            }
        }
        let Instruction { fail, timeout, delay_ms, answer } =
            Instruction::deserialize(value).map_err(|error| error.to_string())?;
        let mut read: Answer = match (fail, timeout, answer) {
            (Some(message), false, None) => Response::Failure(message).into(),
            (None, true, None) => Response::Timeout.into(),
            (None, false, Some(answer)) => Answer::read(&answer)?,
            _ => return Err(ONE.to_owned()),
        };
        read.delay = read.delay.saturating_add(Duration::from_millis(delay_ms));
        Ok(read)
    }
}

fn content(turn: &str) -> Option<String> {
    let turn: Json = serde_json::from_str(turn).ok()?;
    Some(turn.get("content")?.as_str()?.to_owned())
}

fn is_instruction(value: &Json) -> bool {
    value.as_object().is_some_and(|keys| keys.keys().any(|key| key.starts_with('$')))
}

#[cfg(test)]
mod tests {
    //! The lookup and the forms of scripted answers.

    #![expect(clippy::disallowed_methods, reason = "the answers are written here")]

    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use quorate_kernel::ports::executor::{ConfigError, Executor, Failure, Invocation};
    use quorate_protocol::answers::Schema;
    use serde_json::{Value, json};
    use tokio::time::Instant;

    use crate::block::test_settings;

    fn script(dir: &Path, block: Value) -> Result<Arc<dyn Executor>, ConfigError> {
        super::new(&test_settings(dir, &block))
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
            sample: 1,
            prompt: "".into(),
            cuts: Arc::new([]),
            parts: Arc::new([]),
            role: "".into(),
            task: "".into(),
            persona: None,
            answer_schema: form,
            json_schema: Arc::new(json!({})),
            conversation: None,
            nonce: "".into(),
            redactor: quorate_kernel::redact::Redactor::default(),
            fence: quorate_kernel::ports::ledger::Fence::default(),
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
        assert_eq!(
            refused(json!({"path": ".", "dealy": "1s"})).help.as_deref(),
            Some("did you mean `delay`?")
        );
        for delay in ["1", "1y", "-1s", "s", "99999999999999999999ms"] {
            assert_eq!(
                refused(json!({"path": ".", "delay": delay})).key.as_deref(),
                Some("delay"),
                "{delay}"
            );
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
}
