//! The `cassette` executor: replays recorded answers, and records those of another executor. This file owns its block and
//! when it asks; `cassette/recording.rs` the form of a recording and what makes two requests the same,
//! `cassette/folder.rs` the files.
//!
//! Without `source` it asks nobody: a request without a recording fails. With `source`, a request without a recording is
//! put to that executor and its reply is written.

mod folder;
mod recording;

use std::path::{Component, Path};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::executor::{
    About, Admission, CallLimit, ConfigError, Executor, Failure, Inspection, Invocation, Reply, Settings,
    SideEffect, Usage,
};
use quorate_kernel::registry::Source;
use quorate_protocol::{Json, answers};
use serde_json::json;

use crate::block::Block;
use folder::Folder;
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
        let message = format!("`{dir}` is no folder of the workspace");
        let help = "name a folder below this file, without `..` and without names that begin with a dot";
        return Err(ConfigError::for_key("dir", message).with_help(help));
    }
    if block.text("source")?.is_some() && source.is_none() {
        let message = "`source` cannot be looked up here";
        let help = "record through a table `[executors.<name>]` of quorate.toml";
        return Err(ConfigError::for_key("source", message).with_help(help));
    }
    let folder = Folder::new(&settings.dir, dir);
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
    /// What is asked where nothing is recorded.
    source: Option<Source>,
}

impl Cassette {
    fn source(&self) -> Option<&dyn Executor> {
        self.source.as_ref().map(|source| &*source.executor)
    }

    /// The reply of a recording, at no price: no model was asked.
    fn replay(&self, recording: Recording, invocation: &Invocation) -> Reply {
        let usage = Usage { usd_nanos: None, ..recording.reply.usage() };
        invocation.notes.note(|noted| {
            noted.recorded = true;
            noted.usage = Some(usage);
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
        let recording = Recording::new(request, &replied.text, model, usage, asked.elapsed(), &redactor);
        match self.folder.write(&recording).await? {
            None => Ok(replied),
            // Another run was faster: what is on disk is the answer, for this run, too.
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

    /// The recordings, by name and content; those of a recorder change while it is asked.
    fn fingerprint(&self) -> Json {
        match self.source() {
            Some(source) => source.fingerprint(),
            None => self.folder.contents().map_or(Json::Null, |files| json!(sha256_hex(files.as_bytes()))),
        }
    }

    fn side_effects(&self) -> Vec<SideEffect> {
        let writes = || SideEffect::new(format!("write answers to `{}`", self.folder.shown()));
        self.source().map(|source| [vec![writes()], source.side_effects()].concat()).unwrap_or_default()
    }

    async fn admit(&self) -> Admission {
        match self.source() {
            Some(source) => source.admit().await,
            None => Admission::default(),
        }
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
            None => Some(CallLimit { tokens: 0, usd_nanos: Some(0) }),
        }
    }

    fn price(&self, usage: &Usage) -> Option<u64> {
        self.source()?.price(usage)
    }

    fn is_metered(&self) -> bool {
        self.source().is_some_and(|source| source.is_metered())
    }

    fn recordings(&self) -> Option<Result<usize, ConfigError>> {
        self.source.is_none().then(|| self.folder.check())
    }

    fn tools(&self) -> Option<Vec<String>> {
        self.source()?.tools()
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

    async fn inspect(&self, deadline: tokio::time::Instant) -> Option<Result<Inspection, Failure>> {
        self.source()?.inspect(deadline).await
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let request = Request::of(&invocation);
        match self.folder.find(&request)? {
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

#[cfg(test)]
#[path = "cassette/tests.rs"]
mod tests;
