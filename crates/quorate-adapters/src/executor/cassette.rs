//! The `cassette` executor: replays recorded answers, and records those of another executor. This file owns its block
//! and its folder; `cassette/recording.rs` owns the form of a recording and the identity of requests.
//!
//! Without `source` it asks no executor: a request without a recording fails. With `source`, a request without a recording is
//! put to that executor and its reply is written.

mod recording;

use std::io::{ErrorKind, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::executor::{
    About, CallLimit, ConfigError, Executor, Failure, Invocation, Reply, Settings, SideEffect, Usage,
};
use quorate_kernel::registry::Source;
use quorate_manifest::money::Money;
use quorate_protocol::{Json, answers};
use serde_json::json;

use crate::block::Block;
use quorate_kernel::files;
use recording::{Recording, Request};

/// The kind that `quorate.toml` names.
pub const KIND: &str = "cassette";

const KEYS: &[&str] = &["dir", "source"];

/// Builds the executor from its table; `source` is the executor of its key `source`.
///
/// # Errors
/// When the block has an unknown key or a value of the wrong type, `dir` leads out of the settings' directory, or `source`
/// is named where no executor can be looked up.
pub fn new(settings: &Settings, source: Option<Source>) -> Result<Arc<dyn Executor>, ConfigError> {
    let block = Block::parse(&settings.block, KEYS)?;
    let dir = block.text("dir")?.ok_or_else(|| {
        ConfigError::for_key("dir", "`dir` is missing").with_help("the folder that holds the recordings")
    })?;
    if !is_inside(Path::new(dir)) {
        let message = format!("`{dir}` is not a folder of the workspace");
        let help = "name a folder below this file, without `..` and without names that begin with a dot";
        return Err(ConfigError::for_key("dir", message).with_help(help));
    }
    if block.text("source")?.is_some() && source.is_none() {
        let message = "`source` cannot be looked up here";
        let help = "record through a table `[executors.<name>]` of quorate.toml";
        return Err(ConfigError::for_key("source", message).with_help(help));
    }
    let folder = Folder { root: settings.dir.clone(), written: dir.to_owned() };
    Ok(Arc::new(Cassette { folder, source }))
}

/// Whether a path goes down from where it starts. Names with a dot belong to programs, such as `.git` and `.quorate`.
fn is_inside(path: &Path) -> bool {
    let plain = |part: Component<'_>| match part {
        Component::Normal(name) => !name.to_string_lossy().starts_with('.'),
        Component::CurDir => true,
        Component::ParentDir | Component::RootDir | Component::Prefix(_) => false,
    };
    path.components().all(plain) && path.components().any(|part| matches!(part, Component::Normal(_)))
}

struct Cassette {
    folder: Folder,
    /// Answers requests that have no recording.
    source: Option<Source>,
}

impl Cassette {
    /// The reply of a recording, at no price: no model was asked.
    fn replay(&self, recording: Recording, invocation: &Invocation) -> Reply {
        let usage = Usage { money: None, ..recording.reply.spent.usage() };
        invocation.notes.note(|noted| {
            noted.recorded = true;
            noted.usage = Some(usage);
            noted.probabilities = recording.reply.probabilities.clone();
        });
        Reply { text: recording.reply.text(), model: recording.reply.model, usage, posted: None }
    }

    async fn record(
        &self,
        source: &Source,
        request: Request,
        invocation: Invocation,
    ) -> Result<Reply, Failure> {
        let (notes, redactor, asked) =
            (invocation.notes.clone(), invocation.redactor.clone(), tokio::time::Instant::now());
        let about = source.executor.about();
        let replied = source.executor.invoke(invocation.clone()).await?;
        let noted = notes.read();
        let usage = noted.usage.unwrap_or(replied.usage);
        let model = replied.model.clone().or(noted.model).or(about.model);
        let mut recording = Recording::new(request, &replied.text, model, usage, asked.elapsed(), &redactor);
        recording.reply.probabilities = noted.probabilities;
        match self.folder.write(&recording).await? {
            None => Ok(replied),
            // Another run was faster: its recording is the answer of this run as well.
            Some(earlier) => Ok(self.replay(earlier, &invocation)),
        }
    }
}

#[async_trait]
impl Executor for Cassette {
    fn about(&self) -> About {
        let source = self.source().map(|source| source.about());
        About {
            kind: KIND,
            asks_a_model: source.as_ref().is_some_and(|about| about.asks_a_model),
            model: source.and_then(|about| about.model),
        }
    }

    fn source(&self) -> Option<&dyn Executor> {
        self.source.as_ref().map(|source| &*source.executor)
    }

    /// The recordings, by name and content; those of a recorder change while it is asked.
    fn fingerprint(&self) -> Json {
        match self.source() {
            Some(source) => source.fingerprint(),
            None => self.folder.contents().map_or(Json::Null, |files| json!(sha256_hex(files.as_bytes()))),
        }
    }

    fn side_effects(&self) -> Vec<SideEffect> {
        let writes = || SideEffect::new(format!("write answers to `{}`", self.folder.written));
        self.source().map(|source| [vec![writes()], source.side_effects()].concat()).unwrap_or_default()
    }

    fn default_timeout(&self) -> Duration {
        self.source.as_ref().map_or(Duration::from_secs(180), |source| source.timeout)
    }

    fn default_retries(&self) -> u32 {
        self.source.as_ref().map_or(0, |source| source.retries)
    }

    fn call_limit(&self, prompt_tokens: u64, answer: answers::Schema) -> Option<CallLimit> {
        match self.source() {
            Some(source) => source.call_limit(prompt_tokens, answer),
            None => Some(CallLimit { tokens: 0, money: Some(Money::ZERO) }),
        }
    }

    fn recordings(&self) -> Option<Result<usize, ConfigError>> {
        self.source.is_none().then(|| self.folder.check())
    }

    fn check_installed(&self) -> Result<(), ConfigError> {
        match self.source() {
            Some(source) => {
                source.check_installed()?;
                self.folder.check_for_writing()
            }
            None => self.folder.check().map(drop),
        }
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let request = Request::of(&invocation);
        let unusable = |failure| invocation.notes.without_stand_in(failure);
        match self.folder.find(&request).map_err(unusable)? {
            Some(recording) => Ok(self.replay(recording, &invocation)),
            None => match &self.source {
                Some(source) => self.record(source, request, invocation).await,
                None => {
                    invocation.notes.note(|noted| noted.recorded = true);
                    Err(self.folder.missing(&request))
                }
            },
        }
    }
}

/// The longest recording, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// The most recordings of a folder.
const MAX_FILES: usize = 5_000;
/// The most that is read of a folder to compare its recordings, in bytes.
const MAX_FOLDER_BYTES: usize = 64 << 20;

struct Folder {
    /// The directory that the path is relative to.
    root: PathBuf,
    /// The path as written.
    written: String,
}

impl Folder {
    fn path(&self) -> PathBuf {
        self.root.join(&self.written)
    }

    /// A file as messages name it.
    fn shown_file(&self, name: &str) -> String {
        format!("{}/{name}", self.written.trim_end_matches('/'))
    }

    /// Refuses a link on the way to the folder.
    fn ensure_no_link(&self) -> Result<(), String> {
        let mut path = self.root.clone();
        for part in Path::new(&self.written).components() {
            path.push(part);
            files::reject_symlink(&path)
                .map_err(|error| format!("`{}`: {}: {error}", self.written, part.as_os_str().display()))?;
        }
        Ok(())
    }

    /// The recording of a request, if there is one.
    fn find(&self, request: &Request) -> Result<Option<Recording>, Failure> {
        let name = request.file_name();
        self.ensure_no_link().map_err(Failure::never)?;
        match self.read(&name) {
            Ok(None) => Ok(None),
            Ok(Some(recording)) if recording.request.is_same(request) => Ok(Some(recording)),
            Ok(Some(recording)) => Err(Failure::never(format!(
                "`{}` was changed by hand: its request is another one, in {}",
                self.shown_file(&name),
                request.difference(&recording.request)
            ))),
            Err(refused) => Err(Failure::never(refused)),
        }
    }

    /// Reads a recording; `None` if there is no such file.
    fn read(&self, name: &str) -> Result<Option<Recording>, String> {
        let refused = |why: String| format!("`{}` is not a recording: {why}", self.shown_file(name));
        match files::read_no_symlink(&self.path().join(name), MAX_FILE_BYTES) {
            Ok(text) => Recording::parse(&text).map(Some).map_err(refused),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(refused(error.to_string())),
        }
    }

    /// All recordings with their names, sorted.
    #[expect(clippy::disallowed_methods, reason = "this module is where recordings are read")]
    fn recordings(&self) -> Result<Vec<(String, Recording)>, String> {
        self.ensure_no_link()?;
        let unreadable =
            |error: std::io::Error| format!("cannot read the folder `{}`: {error}", self.written);
        let mut left = MAX_FOLDER_BYTES;
        let mut all = Vec::new();
        for entry in std::fs::read_dir(self.path()).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned();
            if !name.ends_with(".json") || name.starts_with('.') {
                continue;
            }
            if all.len() == MAX_FILES {
                return Err(format!("the folder `{}` has more than {MAX_FILES} recordings", self.written));
            }
            if let Some(recording) = self.read(&name)? {
                left = left.checked_sub(recording.text().len()).ok_or_else(|| {
                    format!("the recordings of `{}` are larger than {MAX_FOLDER_BYTES} bytes", self.written)
                })?;
                all.push((name, recording));
            }
        }
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(all)
    }

    /// Names and content of all recordings, for a hash.
    fn contents(&self) -> Result<String, String> {
        let all = self.recordings()?;
        Ok(all
            .iter()
            .map(|(name, recording)| format!("{name} {}\n", sha256_hex(recording.text().as_bytes())))
            .collect())
    }

    /// Checks every recording; the number of them.
    fn check(&self) -> Result<usize, ConfigError> {
        let checked = self.recordings();
        checked.map(|all| all.len()).map_err(|why| ConfigError::for_key("dir", why))
    }

    /// Checks the existing recordings. The folder may be missing.
    fn check_for_writing(&self) -> Result<(), ConfigError> {
        match self.path().symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            _ => self.check().map(drop),
        }
    }

    /// The failure of a request without a recording: what differs from the nearest one.
    fn missing(&self, request: &Request) -> Failure {
        let all = match self.recordings() {
            Ok(all) => all,
            Err(refused) => return Failure::never(refused),
        };
        let compared = all.iter().map(|(name, recording)| (name, request.difference(&recording.request)));
        let nearest = compared.min_by_key(|(_, difference)| difference.distance());
        let why = match nearest {
            None => format!("`{}` has no recordings", self.written),
            Some((name, difference)) => {
                format!("the nearest recording, `{}`, differs in {difference}", self.shown_file(name))
            }
        };
        Failure::never(format!("no answer to this question is recorded: {why}"))
    }

    /// Writes a recording; if another one of the same request is there, that is returned, and nothing is written.
    async fn write(&self, recording: &Recording) -> Result<Option<Recording>, Failure> {
        let name = recording.request.file_name();
        self.ensure_no_link().map_err(Failure::never)?;
        let (dir, path, text) = (self.path(), self.path().join(&name), recording.text());
        // A sync may take long. A started task also ends if the caller is dropped.
        let written = tokio::task::spawn_blocking(move || write_new(&dir, &path, text.as_bytes())).await;
        match written.map_err(std::io::Error::other).flatten() {
            Ok(()) => Ok(None),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.find(&recording.request),
            Err(error) => Err(Failure::never(format!(
                "cannot write the recording `{}`: {error}",
                self.shown_file(&name)
            ))),
        }
    }
}

/// Writes a file as a whole, where there is none: an existing file or link in its place stays.
#[expect(clippy::disallowed_methods, reason = "this module is where recordings are written")]
fn write_new(dir: &Path, path: &Path, text: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    let mut file = tempfile::Builder::new().prefix(".writing-").tempfile_in(dir)?;
    file.write_all(text)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    //! Requests are the same in every run, and a file in another form is refused.
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
            let usage = Usage {
                tokens_in: Some(100),
                tokens_out: Some(7),
                money: Some(Money::from_nanos(5)),
                ..Usage::default()
            };
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
            sample: 1,
            prompt: prompt.text.into(),
            cuts: prompt.cuts.into(),
            parts: invoke.parts.into(),
            role: role.into(),
            task: invoke.task,
            persona: None,
            answer_schema: invoke.schema,
            json_schema: Arc::new(json!({})),
            conversation: None,
            nonce: nonce.into(),
            redactor: Redactor::default(),
            fence: quorate_kernel::ports::ledger::Fence::default(),
            deadline: tokio::time::Instant::now() + Duration::from_secs(20),
            notes: Notes::default(),
            progress: Progress::default(),
        }
    }

    fn question() -> Invocation {
        asked("0011aabb", "The meeting moved.\n", "# Skeptic\n\nDoubt it.")
    }

    fn settings(dir: &TempDir, block: Json) -> Settings {
        Settings { timeout: Duration::from_secs(20), ..crate::block::test_settings(dir.path(), &block) }
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
            let again = recorder
                .invoke(asked("ffee", "The meeting moved.\n", "# Skeptic\n\nDoubt it."))
                .await
                .unwrap();
            assert_eq!((again.text.as_str(), live.calls.load(Ordering::Relaxed)), (answer, 1));
            let other_run = asked("99887766", "The meeting moved.\n", "# Skeptic\n\nDoubt it.");
            let notes = other_run.notes.clone();
            let reply = player(&dir).invoke(other_run).await.unwrap();
            assert_eq!((reply.text.as_str(), reply.model.as_deref()), (answer, Some("large-2026")));
            // The recorded tokens without a price, since no model was called.
            assert_eq!(
                (reply.usage.tokens_in, reply.usage.tokens_out, reply.usage.money),
                (Some(100), Some(7), None)
            );
            assert!(notes.read().recorded);
            assert_eq!(player(&dir).recordings(), Some(Ok(1)));
        }
    }

    #[tokio::test]
    async fn each_sample_has_a_recording_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (Live::saying("one"), Live::saying("two"));
        let sample = |sample| Invocation { sample, ..question() };
        recorder(&dir, &first).invoke(sample(1)).await.unwrap();
        recorder(&dir, &second).invoke(sample(2)).await.unwrap();
        let player = player(&dir);
        assert_eq!(player.recordings(), Some(Ok(2)));
        // The first sample is the answer of a member that is asked once.
        for (number, text) in [(0, "one"), (1, "one"), (2, "two")] {
            assert_eq!(player.invoke(sample(number)).await.unwrap().text, text);
        }
        let said = message(player.invoke(sample(3)).await);
        assert!(said.contains("differs in `sample`"), "{said}");
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
        let said =
            message(player.invoke(asked("aa", "The meeting moved.\n", "# Skeptic\n\nTrust it.")).await);
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
        let said =
            message(player.invoke(Invocation { attempt: 2, prompt: again.into(), ..question() }).await);
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
        refused("a pipe", "not a regular file");
        assert!(message(player(&dir).invoke(question()).await).contains("not a regular file"));
        std::fs::remove_file(&file).unwrap();
        std::fs::write(dir.path().join("elsewhere.json"), &text).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere.json"), &file).unwrap();
        refused("a link", "a link");
        // A recorder writes over neither a link nor another file.
        let live = Live::saying("other");
        assert!(message(recorder(&dir, &live).invoke(question()).await).contains("a link"));
        assert_eq!(live.calls.load(Ordering::Relaxed), 0, "it is refused before a model is called");
        // A request that was edited in place fits its name no more.
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, text.replace("The meeting moved.", "The meeting stays.")).unwrap();
        assert!(message(player(&dir).invoke(question()).await).contains("changed by hand"));
        // A link in place of the folder is refused as well.
        std::fs::rename(dir.path().join("tapes"), dir.path().join("moved")).unwrap();
        std::os::unix::fs::symlink("moved", dir.path().join("tapes")).unwrap();
        assert!(player(&dir).check_installed().unwrap_err().message.contains("link"));
        assert!(message(recorder(&dir, &live).invoke(asked("aa", "New.\n", "# X")).await).contains("link"));
    }

    #[tokio::test]
    async fn the_first_of_two_recorders_is_the_answer_of_both() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (Live::saying("one"), Live::saying("other"));
        let folder = Folder { root: dir.path().to_owned(), written: "tapes".to_owned() };
        let request = Request::of(&question());
        let tape = |text| {
            Recording::new(
                request.clone(),
                text,
                None,
                Usage::default(),
                Duration::ZERO,
                &Redactor::default(),
            )
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
        assert!(
            player(&dir).check_installed().unwrap_err().message.contains("cannot read the folder `tapes`")
        );
        let recorder = recorder(&dir, &Live::saying("x"));
        recorder.check_installed().expect("it is made when it is needed");
        assert_eq!((recorder.default_timeout(), recorder.default_retries()), (Duration::from_secs(7), 3));
        assert!(recorder.side_effects()[0].what.contains("write answers to `tapes`"));
        assert!(player(&dir).side_effects().is_empty() && !player(&dir).is_metered());
    }
}
