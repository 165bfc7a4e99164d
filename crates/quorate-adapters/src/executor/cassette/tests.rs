//! Requests are the same in every run, and what is no recording is refused.
#![expect(clippy::disallowed_methods, reason = "the tests need files")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use quorate_kernel::ports::executor::{Notes, Progress};
use quorate_kernel::prompt::Layout;
use quorate_kernel::redact::{Redactor, Secrets};
use quorate_protocol::answers::Schema;
use quorate_protocol::{Invoke, Part, PartKind};
use tempfile::TempDir;

use super::*;

const ANSWER: &str = r#"{"notes":"Fine.","would_block":false}"#;

/// A source that counts its calls.
struct Live {
    text: String,
    calls: AtomicUsize,
}

impl Live {
    fn saying(text: &str) -> Arc<Live> {
        Arc::new(Live { text: text.to_owned(), calls: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl Executor for Live {
    fn about(&self) -> About {
        About { kind: "live", asks_a_model: true, model: Some("large".to_owned()) }
    }

    async fn invoke(&self, _: Invocation) -> Result<Reply, Failure> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let usage =
            Usage { tokens_in: Some(100), tokens_out: Some(7), usd_nanos: Some(5), ..Usage::default() };
        Ok(Reply { text: self.text.clone(), model: Some("large-2026".to_owned()), usage, posted: None })
    }
}

/// A question of one run; what is drawn for each run differs by `nonce`.
fn asked(nonce: &str, artifact: &str, role: &str) -> Invocation {
    let invoke = Invoke {
        id: "r1/skeptic".into(),
        member: "skeptic".into(),
        step: "r1".into(),
        parts: vec![Part::new(PartKind::Artifact, "draft.md", artifact)],
        schema: Schema::FirstAnswer,
        task: "This is round 1.".into(),
        extra_fields: serde_json::Map::new(),
    };
    let prompt = Layout { nonce: nonce.to_owned() }.prompt(&invoke, &[], role);
    Invocation {
        run: format!("r{nonce}").into(),
        id: invoke.id,
        member: invoke.member,
        step: invoke.step,
        attempt: 1,
        prompt: prompt.text.into(),
        cuts: prompt.cuts.into(),
        parts: invoke.parts.into(),
        role: role.into(),
        persona: None,
        answer_schema: invoke.schema,
        json_schema: Arc::new(json!({})),
        conversation: None,
        nonce: nonce.into(),
        redactor: Redactor::default(),
        fence: quorate_kernel::ports::fence::Fence::default(),
        deadline: tokio::time::Instant::now() + Duration::from_secs(20),
        notes: Notes::default(),
        progress: Progress::default(),
    }
}

fn question() -> Invocation {
    asked("0011aabb", "The meeting moved.\n", "# Skeptic\n\nDoubt it.")
}

fn settings(dir: &TempDir, block: Json) -> Settings {
    Settings {
        name: "recorded".into(),
        timeout: Duration::from_secs(20),
        retries: 0,
        dir: dir.path().to_owned(),
        block: block.as_object().cloned().unwrap_or_default(),
        servers: Default::default(),
        prices: None,
    }
}

fn recorder(dir: &TempDir, live: &Arc<Live>) -> Arc<dyn Executor> {
    let source = Source { executor: live.clone(), timeout: Duration::from_secs(7), retries: 3 };
    new(&settings(dir, json!({"dir": "tapes", "source": "live"})), Some(source)).unwrap()
}

fn player(dir: &TempDir) -> Arc<dyn Executor> {
    new(&settings(dir, json!({"dir": "tapes"})), None).unwrap()
}

/// The one recording of a place that was recorded with an answer.
async fn recorded(answer: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    recorder(&dir, &Live::saying(answer)).invoke(question()).await.unwrap();
    let files: Vec<_> =
        std::fs::read_dir(dir.path().join("tapes")).unwrap().map(|one| one.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    (dir, files[0].clone())
}

fn message(failed: Result<Reply, Failure>) -> String {
    match failed {
        Err(Failure::Failed { message, retry }) => {
            assert_eq!(retry, quorate_kernel::ports::executor::Retry::Never);
            message
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_recording_is_replayed_to_the_byte_in_another_run_and_nobody_is_asked() {
    for answer in [ANSWER, "{\n  \"would_block\": false\n}\n", "Well: {\"would_block\": true}"] {
        let dir = tempfile::tempdir().unwrap();
        let live = Live::saying(answer);
        let recorder = recorder(&dir, &live);
        recorder.invoke(question()).await.unwrap();
        let again =
            recorder.invoke(asked("ffee", "The meeting moved.\n", "# Skeptic\n\nDoubt it.")).await.unwrap();
        assert_eq!((again.text.as_str(), live.calls.load(Ordering::Relaxed)), (answer, 1));
        let other_run = asked("99887766", "The meeting moved.\n", "# Skeptic\n\nDoubt it.");
        let notes = other_run.notes.clone();
        let reply = player(&dir).invoke(other_run).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.model.as_deref()), (answer, Some("large-2026")));
        // Tokens as they were, and no price: nobody was paid.
        assert_eq!(
            (reply.usage.tokens_in, reply.usage.tokens_out, reply.usage.usd_nanos),
            (Some(100), Some(7), None)
        );
        assert!(notes.read().recorded);
        assert_eq!(player(&dir).recordings(), Some(Ok(1)));
    }
}

#[tokio::test]
async fn the_failure_names_the_field_and_the_line_that_differ() {
    let (dir, file) = recorded(ANSWER).await;
    let player = player(&dir);
    let name = file.file_name().unwrap().to_str().unwrap();
    let changed = asked("aa", "The meeting moved to Tuesday.\n", "# Skeptic\n\nDoubt it.");
    let said = message(player.invoke(changed).await);
    assert!(said.contains(&format!("`tapes/{name}`, differs in `prompt`; line ")), "{said}");
    assert!(
        said.contains(r#"of the prompt was "The meeting moved.", is "The meeting moved to Tuesday.""#),
        "{said}"
    );
    let said = message(player.invoke(asked("aa", "The meeting moved.\n", "# Skeptic\n\nTrust it.")).await);
    assert!(
        said.contains(r#"differs in `role`; line 3 of the role was "Doubt it.", is "Trust it.""#),
        "{said}"
    );
    let said = message(player.invoke(Invocation { step: "r2".into(), ..question() }).await);
    assert!(said.contains("differs in `step`") && !said.contains("prompt"), "{said}");
    let other = Invocation { member: "evidence".into(), answer_schema: Schema::Ballot, ..question() };
    let said = message(player.invoke(other).await);
    assert!(said.contains("differs in `member`, `schema`"), "{said}");
    // A repeated question is the same question; one with complaints is another.
    player.invoke(Invocation { attempt: 2, ..question() }).await.unwrap();
    let again = format!("{}\n## Once more\n", question().prompt);
    let said = message(player.invoke(Invocation { attempt: 2, prompt: again.into(), ..question() }).await);
    assert!(said.contains("differs in `attempt`, `prompt`"), "{said}");
    std::fs::remove_file(file).unwrap();
    assert!(message(player.invoke(question()).await).contains("`tapes` has no recordings"));
}

#[tokio::test]
async fn a_recording_has_no_secret() {
    const KEY: &str = "canary-6f2b90d1";
    let dir = tempfile::tempdir().unwrap();
    let secrets = Secrets { builtin: true, values: vec![KEY.to_owned()], patterns: Vec::new() };
    let redactor = Redactor::from_secrets(&secrets).unwrap();
    let said = format!("{{\"notes\":\"the key is {KEY}\",\"would_block\":false}}");
    let shown = asked("aa", &format!("A {KEY} in the text.\n"), &format!("# Skeptic {KEY}"));
    let live = Live::saying(&said);
    let shown = Invocation { redactor, ..shown };
    recorder(&dir, &live).invoke(shown.clone()).await.unwrap();
    let file = std::fs::read_dir(dir.path().join("tapes")).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(file).unwrap();
    assert!(!text.contains(KEY), "{text}");
    player(&dir).invoke(shown).await.expect("it is found without them");
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_no_recording_is_refused() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let (dir, file) = recorded(ANSWER).await;
    let text = std::fs::read_to_string(&file).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    let refused = |what: &str, why: &str| {
        let said = player(&dir).check_installed().expect_err(what);
        assert_eq!(said.key.as_deref(), Some("dir"));
        assert!(said.message.contains(&name) && said.message.contains(why), "{what}: {said}");
        said
    };
    let mut padded = vec![b' '; 50 << 20];
    padded.extend_from_slice(text.as_bytes());
    let deep = text.replace("\"Fine.\"", &format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)));
    let version = text.replace("\"version\": 1", "\"version\": 2");
    let both = text.replace("\"json\": {", "\"text\": [\"x\"], \"json\": {");
    for (bytes, why) in [
        (padded, "larger than"),
        (deep.into_bytes(), "recursion limit"),
        (version.into_bytes(), "version is 2"),
        (both.into_bytes(), "exactly one"),
        (text.replace("\"member\"", "\"mmber\"").into_bytes(), "mmber"),
        (b"\xff".to_vec(), "line 1"),
        (Vec::new(), "line 1"),
    ] {
        std::fs::write(&file, &bytes).unwrap();
        refused(why, why);
        assert!(message(player(&dir).invoke(question()).await).contains(why));
    }
    std::fs::remove_file(&file).unwrap();
    mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    refused("a pipe", "no regular file");
    assert!(message(player(&dir).invoke(question()).await).contains("no regular file"));
    std::fs::remove_file(&file).unwrap();
    std::fs::write(dir.path().join("elsewhere.json"), &text).unwrap();
    std::os::unix::fs::symlink(dir.path().join("elsewhere.json"), &file).unwrap();
    refused("a link", "a link");
    // A recorder writes over neither a link nor another file.
    let live = Live::saying("other");
    assert!(message(recorder(&dir, &live).invoke(question()).await).contains("a link"));
    assert_eq!(live.calls.load(Ordering::Relaxed), 0, "it is refused before anybody is paid");
    // A request that was edited in place fits its name no more.
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, text.replace("The meeting moved.", "The meeting stays.")).unwrap();
    assert!(message(player(&dir).invoke(question()).await).contains("changed by hand"));
    // The folder itself may be no link either.
    std::fs::rename(dir.path().join("tapes"), dir.path().join("moved")).unwrap();
    std::os::unix::fs::symlink("moved", dir.path().join("tapes")).unwrap();
    assert!(player(&dir).check_installed().unwrap_err().message.contains("link"));
    assert!(message(recorder(&dir, &live).invoke(asked("aa", "New.\n", "# X")).await).contains("link"));
}

#[tokio::test]
async fn the_first_of_two_recorders_is_the_answer_of_both() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (Live::saying("one"), Live::saying("other"));
    let folder = Folder::new(dir.path(), "tapes");
    let request = Request::of(&question());
    let tape = |text| {
        Recording::new(request.clone(), text, None, Usage::default(), Duration::ZERO, &Redactor::default())
    };
    assert_eq!(folder.write(&tape("one")).await.unwrap(), None);
    assert_eq!(folder.write(&tape("other")).await.unwrap(), Some(tape("one")));
    for live in [one, other] {
        assert_eq!(recorder(&dir, &live).invoke(question()).await.unwrap().text, "one");
        assert_eq!(live.calls.load(Ordering::Relaxed), 0);
    }
}

#[tokio::test]
async fn the_folder_is_one_of_the_workspace() {
    let dir = tempfile::tempdir().unwrap();
    for path in ["/tmp", "..", "a/../../b", ".git", "a/.hidden", ".", "./"] {
        let refused = new(&settings(&dir, json!({"dir": path})), None).err().expect(path);
        assert_eq!(refused.key.as_deref(), Some("dir"), "{path}");
    }
    let refused = new(&settings(&dir, json!({"dir": "a", "source": "x"})), None).err().unwrap();
    assert_eq!((refused.key.as_deref(), refused.is_unknown_key), (Some("source"), false));
    let refused = new(&settings(&dir, json!({"dir": "a", "mode": "x"})), None).err().unwrap();
    assert!(refused.is_unknown_key);
    assert!(player(&dir).check_installed().unwrap_err().message.contains("cannot read the folder `tapes`"));
    let recorder = recorder(&dir, &Live::saying("x"));
    recorder.check_installed().expect("it is made when it is needed");
    assert_eq!((recorder.default_timeout(), recorder.default_retries()), (Duration::from_secs(7), 3));
    assert!(recorder.side_effects()[0].what.contains("write answers to `tapes`"));
    assert!(player(&dir).side_effects().is_empty() && !player(&dir).is_metered());
}
