//! The executor port: the only way to ask a model or a person.
//!
//! # For adapter authors
//!
//! An executor turns an [`Invocation`] into a [`Reply`] or a [`Failure`]. It is called at most once per attempt;
//! re-prompts, retries, budgets, redaction and records are the caller's. An adapter must satisfy:
//!
//! - It ends by `deadline` plus two seconds, whatever the other side does, and leaves no process or task running.
//! - Dropping the future ends the call the same way: nothing that it started outlives it by more than two seconds.
//! - A limit message, an empty output and a non-zero exit are failures, not replies.
//! - It never invents text. What it returns in [`Reply::text`] is what the other side said.
//! - It holds no state between invocations that would change an answer.
//!
//! `quorate_testkit::conformance::executor` checks the first three for any implementation.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use quorate_manifest::money::{self, Money};
use quorate_protocol::{Json, Name, Part, answers};
use serde::{Deserialize, Serialize};

use crate::conversation::{ConversationContext, Participant};
use crate::ports::ledger::Fence;
use crate::redact::Redactor;

/// One attempt to get an answer from one member.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The id of the run.
    pub run: Name,
    /// The id of the invocation, for example `r2/skeptic`.
    pub id: Name,
    /// The id of the member that is asked.
    pub member: Name,
    /// The step: `r1`, `r2`, `adjudicate`.
    pub step: Name,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// The number of the sample, counted from 1: a member may be asked several times with the same prompt.
    pub sample: u32,
    /// The whole prompt, laid out; what a model is shown.
    pub prompt: Arc<str>,
    /// Where prefixes of the prompt end that other prompts share; see [`crate::prompt::Prompt::cuts`].
    pub cuts: Arc<[usize]>,
    /// The same material as typed parts, for executors that need no prompt.
    pub parts: Arc<[Part]>,
    /// The member's role text.
    pub role: Arc<str>,
    /// What is wanted of the member, in a sentence or two.
    pub task: Arc<str>,
    /// The member's persona: the merged frontmatter, with its body as `body`.
    pub persona: Option<Arc<Json>>,
    /// Which form the answer has to have.
    pub answer_schema: answers::Schema,
    /// The JSON Schema of the answer.
    pub json_schema: Arc<Json>,
    /// The conversation, if the answer becomes a turn in one.
    pub conversation: Option<Arc<ConversationContext>>,
    /// What marks the material in the prompt, drawn anew for each run.
    pub nonce: Arc<str>,
    /// Takes secrets out of what the executor keeps outside of the ledger. The prompt has none any more; a reply may.
    pub redactor: Redactor,
    /// The check before anything is sent.
    pub fence: Fence,
    /// When the attempt has to be over.
    pub deadline: tokio::time::Instant,
    /// Where the executor notes what is known of the attempt whether or not it gives a reply.
    pub notes: Notes,
    /// Where the executor says that the answer comes in.
    pub progress: Progress,
}

/// An answer to an invocation. The kernel checks it against the schema.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reply {
    /// The text of the answer, or of what was said in its place.
    pub text: String,
    /// The model that says it answered, where known.
    pub model: Option<String>,
    /// The cost, if the service reports it. [`AttemptInfo::usage`] counts in its place where it is set.
    pub usage: Usage,
    /// The turn, where the other side has put what was said into the conversation itself.
    #[serde(skip)]
    pub posted: Option<Name>,
}

/// What an executor notes about an attempt, for the kernel to read when the attempt is over, however it ended: a call that
/// failed, timed out or was dropped still has its price.
#[derive(Debug, Clone, Default)]
pub struct Notes(Arc<Mutex<AttemptInfo>>);

/// The content of [`Notes`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptInfo {
    /// What the attempt cost.
    pub usage: Option<Usage>,
    /// The model that was asked, as the other side names it.
    pub model: Option<String>,
    /// The version of the program that was asked.
    pub version: Option<String>,
    /// Whether the reply came from a recording of an earlier question of the same content, or is missing there.
    pub recorded: bool,
    /// The last lines that the other side printed beside its answer; quoted where the attempt times out.
    pub last_words: Option<String>,
    /// The HTTP status of a response that is an error.
    pub http_status: Option<u16>,
    /// The tools that the program refused its model, by its own names.
    pub refused_tools: Vec<String>,
    /// How many requests the attempt made, if more than one: a service refused a part of the first.
    pub requests: Option<u32>,
    /// What a request needed so that the service accepted it, and the setting that does the same.
    pub changed: Vec<String>,
    /// As `changed`, without what the process has said before.
    pub newly_changed: Vec<String>,
    /// Host and port of the service that was asked.
    pub host: Option<String>,
    /// Whether the failure is not the service's, so that no stand-in is asked: the model refused, its answer was cut off or
    /// empty, the question does not fit, or another process may drive the run.
    pub no_stand_in: bool,
    /// The probability of each option, where a decision model answered; of a yes-or-no question that of `yes` alone.
    pub probabilities: Option<BTreeMap<String, f64>>,
}

impl Notes {
    /// Changes the notes.
    pub fn note(&self, change: impl FnOnce(&mut AttemptInfo)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The same failure, noted as one that no stand-in is asked after; see [`AttemptInfo::no_stand_in`].
    pub fn without_stand_in(&self, failure: Failure) -> Failure {
        self.note(|info| info.no_stand_in = true);
        failure
    }

    /// The notes so far.
    pub fn read(&self) -> AttemptInfo {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

type OnWrote = dyn Fn(usize) + Send + Sync;
type OnWait = dyn Fn(&str, Duration) + Send + Sync;

/// Reports to a display that an answer arrives, or that an attempt waits before it is sent.
#[derive(Clone, Default)]
pub struct Progress {
    wrote: Option<Arc<OnWrote>>,
    waits: Option<Arc<OnWait>>,
}

impl Progress {
    /// Calls `tell` with the bytes that came in since the call before; with 0 for a sign of life.
    pub fn new(tell: impl Fn(usize) + Send + Sync + 'static) -> Self {
        Progress { wrote: Some(Arc::new(tell)), waits: None }
    }

    /// Calls `tell` with the reason for a wait, and how long it is.
    #[must_use]
    pub fn with_waits(self, tell: impl Fn(&str, Duration) + Send + Sync + 'static) -> Self {
        Progress { waits: Some(Arc::new(tell)), ..self }
    }

    /// Reports that the attempt waits before it is sent.
    pub fn waits(&self, why: &str, wait: Duration) {
        if let Some(tell) = &self.waits {
            tell(why, wait);
        }
    }

    /// Reports that this number of bytes of the answer arrived.
    pub fn wrote(&self, bytes: usize) {
        if let Some(tell) = &self.wrote {
            tell(bytes);
        }
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress").field("is_watched", &self.wrote.is_some()).finish_non_exhaustive()
    }
}

/// The right to have one invocation under way, given back when it is dropped.
#[derive(Default)]
pub struct Admission(Option<Box<dyn Send + Sync>>);

impl Admission {
    /// Keeps something for as long as the invocation lasts, such as a permit of a semaphore.
    pub fn with_permit(permit: impl Send + Sync + 'static) -> Self {
        Admission(Some(Box::new(permit)))
    }

    /// Whether something is kept.
    pub fn has_permit(&self) -> bool {
        self.0.is_some()
    }
}

/// The reason for the missing reply.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
pub enum Failure {
    /// The deadline passed. Not retried.
    #[error("timed out")]
    TimedOut,
    /// Anything else. Retried as `retry` says while the executor's `retries` last.
    #[error("{message}")]
    Failed {
        /// What went wrong, for a person, with what the other side said (capped).
        message: String,
        /// Whether and when to ask again.
        retry: Retry,
    },
}

/// Whether the same question may be asked again after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Retry {
    /// After the caller's own pause.
    Soon,
    /// Not before this much time has passed, as the other side asked. Takes a retry only if the time is zero.
    After(#[serde(with = "whole_millis")] Duration),
    /// The same question would fail the same way.
    Never,
}

/// A duration as a number of milliseconds.
mod whole_millis {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(wait: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

impl Failure {
    /// A failure that may pass by itself.
    pub fn failed(message: impl Into<String>) -> Self {
        Failure::Failed { message: message.into(), retry: Retry::Soon }
    }

    /// A failure that asking again would not mend.
    pub fn never(message: impl Into<String>) -> Self {
        Failure::Failed { message: message.into(), retry: Retry::Never }
    }

    /// The failure of a call that is not made, since another process may drive its run by now. If another process does, the
    /// consequence of the failure is not recorded either.
    pub fn not_driven() -> Self {
        Failure::never(
            "not asked: this process was silent for too long, and another one may hold the run by now",
        )
    }

    /// The same failure, to be asked again as said here. A deadline that passed is not asked again.
    #[must_use]
    pub fn with_retry(self, retry: Retry) -> Self {
        match self {
            Failure::Failed { message, .. } => Failure::Failed { message, retry },
            Failure::TimedOut => Failure::TimedOut,
        }
    }
}

/// An executor's description of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its kind, for example `agent-cli`.
    pub kind: &'static str,
    /// Whether a model is behind it.
    pub asks_a_model: bool,
    /// The model, where the settings name one.
    pub model: Option<String>,
}

/// Something that an executor does outside of this process when it is asked. A person who decides whether to trust the
/// file that configures the executor is shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideEffect {
    /// One line in the imperative, such as "run `./judge.sh --fast`, with the variables OPENAI_API_KEY".
    pub what: String,
    /// The files that decide what happens, such as the script that is started. Relative paths mean nothing here.
    pub files: Vec<std::path::PathBuf>,
}

impl SideEffect {
    /// An act that no further file decides.
    pub fn new(what: impl Into<String>) -> Self {
        SideEffect { what: what.into(), files: Vec::new() }
    }
}

/// The most that one call takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimit {
    /// Tokens of the prompt and of the answer.
    pub tokens: u64,
    /// The price; `None` if it is unknown.
    pub money: Option<Money>,
}

/// The program behind an executor, as found by its check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// Whether this version was tried.
    pub tried: bool,
    /// Its version, and what it lets a judge do, in one line.
    pub detail: String,
}

/// An executor that can be asked. See the module's documentation for the contract.
#[async_trait]
pub trait Executor: Send + Sync {
    /// The executor's description.
    fn about(&self) -> About;

    /// The executor that answers in its place where it has no answer of its own. What is not said otherwise is the source's.
    fn source(&self) -> Option<&dyn Executor> {
        None
    }

    /// What its answers depend on besides its settings, as far as it can know: the version of its rules, the hashes of
    /// files that it reads once. A run is resumed, and a sweep takes something for judged, only while it is the same.
    fn fingerprint(&self) -> Json {
        Json::Null
    }

    /// The form of its turns in a conversation: [`answers::Schema::PlainText`], or [`answers::Schema::Turn`] where it gives
    /// metadata and state with what it says.
    fn turn_schema(&self) -> answers::Schema {
        answers::Schema::PlainText
    }

    /// Why it cannot give an answer of this form; `None` if it can. A member that must give such an answer is refused
    /// before any call.
    fn refuses(&self, answer: answers::Schema) -> Option<String> {
        self.source()?.refuses(answer)
    }

    /// Refuses a participant whose turns it could never take, by the key at fault; `conversation` is what the substrate
    /// calls the conversation elsewhere, as in [`ConversationContext::external_id`].
    fn check_participant(
        &self,
        _participant: &Participant,
        _conversation: Option<&str>,
    ) -> Result<(), ConfigError> {
        self.refuses(self.turn_schema()).map_or(Ok(()), |why| Err(ConfigError::for_block(why)))
    }

    /// Whether it gives a participant the MCP servers that the manifest lets it use.
    fn forwards_mcp_servers(&self) -> bool {
        false
    }

    /// Whether it has the participant's operator answer where the conversation is kept, and the answer comes back here
    /// alone.
    fn returns_answer_only(&self) -> bool {
        false
    }

    /// The side effects of asking it outside of this process: commands that are started, addresses that texts are sent to. An
    /// executor that does neither gives an empty list, and is asked also where the workspace is not trusted.
    fn side_effects(&self) -> Vec<SideEffect> {
        let about = self.about();
        about
            .asks_a_model
            .then(|| SideEffect::new(format!("ask a model through `{}`", about.kind)))
            .into_iter()
            .collect()
    }

    /// Waits until the executor has room for one more invocation. The wait does not count against the member's timeout,
    /// and the kernel ends it by dropping the future when the run's time is spent. The admission is kept until the
    /// invocation, with all its attempts, is over.
    async fn admit(&self) -> Admission {
        match self.source() {
            Some(source) => source.admit().await,
            None => Admission::default(),
        }
    }

    /// The deadline of an invocation, with all its attempts, where the settings have none.
    fn default_timeout(&self) -> Duration {
        Duration::from_secs(180)
    }

    /// The lowest probability at which it answers a yes-or-no question with yes; `None` if it gives no probabilities.
    fn threshold(&self) -> Option<f64> {
        self.source()?.threshold()
    }

    /// How many failures are tried again where the settings do not say.
    fn default_retries(&self) -> u32 {
        0
    }

    /// The models that can be asked where this one is, sorted; `None` where they cannot be listed.
    async fn models(&self, deadline: tokio::time::Instant) -> Option<Result<Vec<String>, Failure>> {
        self.source()?.models(deadline).await
    }

    /// The most that one call takes whose prompt has at most so many tokens ([`crate::budget::most_tokens`]); `None`
    /// where that is not known. A budget of tokens or money is held by it: it is reserved before the call.
    fn call_limit(&self, prompt_tokens: u64, answer: answers::Schema) -> Option<CallLimit> {
        self.source()?.call_limit(prompt_tokens, answer)
    }

    /// The price of a call with this usage, for estimates; `None` if it is unknown. A run counts the money that
    /// [`Reply::usage`] reports; a capped run without it, what was reserved for the call.
    fn price(&self, usage: &Usage) -> Option<Money> {
        self.source()?.price(usage)
    }

    /// Whether each question is paid for, so that `doctor` asks one only with a person's consent.
    fn is_metered(&self) -> bool {
        self.source().is_some_and(|source| source.is_metered())
    }

    /// How many recorded answers it has, where it answers from these alone: a question that none was recorded for fails, so
    /// that `doctor` asks none.
    fn recordings(&self) -> Option<Result<usize, ConfigError>> {
        None
    }

    /// The tools of a judge that uses it; `None` if unknown.
    fn tools(&self) -> Option<Vec<String>> {
        self.source()?.tools()
    }

    /// Refuses where what it starts is not there, as far as that is known without starting anything.
    fn check_installed(&self) -> Result<(), ConfigError> {
        Ok(())
    }

    /// Holds the installed program against what the executor needs of it, without a question; `None` where there is
    /// nothing to hold. Fails where the program lacks something without which it must not be asked.
    async fn inspect(&self, deadline: tokio::time::Instant) -> Option<Result<Inspection, Failure>> {
        self.source()?.inspect(deadline).await
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure>;
}

impl dyn Executor {
    /// Asks, unless this process may have lost the run to another one.
    ///
    /// # Errors
    /// As [`Executor::invoke`], and [`Failure::not_driven`].
    pub async fn invoke_if_driven(&self, invocation: Invocation) -> Result<Reply, Failure> {
        match invocation.fence.holds(invocation.deadline).await {
            true => self.invoke(invocation).await,
            false => Err(invocation.notes.without_stand_in(Failure::not_driven())),
        }
    }
}

/// The settings that executors of all kinds share.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The name it goes by: a table of `quorate.toml`, or the kind itself.
    pub name: String,
    /// One deadline spans all attempts of an invocation.
    pub timeout: Duration,
    /// How many failures (not timeouts, not schema failures, none with [`Retry::Never`]) are tried again.
    pub retries: u32,
    /// The directory that relative paths in the block are relative to.
    pub dir: std::path::PathBuf,
    /// Everything else, verbatim, for the adapter.
    pub block: serde_json::Map<String, Json>,
    /// The MCP servers that the host has configured, by id, each with its table verbatim.
    pub servers: Servers,
    /// The file of prices that come before those that ship (`budget.prices`).
    pub prices: Option<std::path::PathBuf>,
}

/// Why an adapter refuses its block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    /// The key at fault, where there is one.
    pub key: Option<String>,
    /// What is wrong, for a person.
    pub message: String,
    /// What to do, in the imperative.
    pub help: Option<String>,
    /// Whether the adapter does not read this key: a misspelling, which is refused even if no run uses the block.
    pub is_unknown_key: bool,
}

impl ConfigError {
    /// A refusal of one key.
    pub fn for_key(key: impl Into<String>, message: impl Into<String>) -> Self {
        ConfigError { key: Some(key.into()), message: message.into(), help: None, is_unknown_key: false }
    }

    /// A refusal of the block as a whole.
    pub fn for_block(message: impl Into<String>) -> Self {
        ConfigError { key: None, message: message.into(), help: None, is_unknown_key: false }
    }

    /// A refusal of a key that the adapter does not read.
    pub fn for_unknown_key(key: impl Into<String>, message: impl Into<String>) -> Self {
        ConfigError { is_unknown_key: true, ..ConfigError::for_key(key, message) }
    }

    /// Adds what to do.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// MCP servers by id, each with its table of `quorate.toml` verbatim. It remembers which of them adapters have looked up.
/// Beside them are the connections that the host shares with its adapters.
#[derive(Debug, Clone, Default)]
pub struct Servers {
    tables: Arc<BTreeMap<String, Table>>,
    used: Arc<Mutex<BTreeSet<String>>>,
    connections: BTreeMap<TypeId, Connection>,
    used_connections: Arc<Mutex<BTreeSet<&'static str>>>,
}

/// A connection, and what it is to: `the ledger's database`.
type Connection = (&'static str, Arc<dyn Any + Send + Sync>);

/// The table of a server.
pub type Table = serde_json::Map<String, Json>;

impl Servers {
    /// These servers, none of them looked up yet.
    pub fn new(tables: BTreeMap<String, Table>) -> Self {
        Servers { tables: Arc::new(tables), ..Servers::default() }
    }

    /// The same servers, with a memory of its own for what is looked up.
    #[must_use]
    pub fn with_own_usage(&self) -> Self {
        Servers { used: Arc::default(), used_connections: Arc::default(), ..self.clone() }
    }

    /// The id and table of a server, which counts as used from now on.
    pub fn get(&self, id: &str) -> Option<(&str, &Table)> {
        let (id, table) = self.tables.get_key_value(id)?;
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
        Some((id, table))
    }

    /// Adds a connection that adapters share, which find it by its type; `to` says what it is to, as in "the ledger's
    /// database".
    #[must_use]
    pub fn with_connection<T: Any + Send + Sync>(mut self, to: &'static str, connection: Arc<T>) -> Self {
        self.connections.insert(TypeId::of::<T>(), (to, connection));
        self
    }

    /// The shared connection of a type, which counts as used from now on.
    pub fn connection<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let (to, connection) = self.connections.get(&TypeId::of::<T>())?.clone();
        self.used_connections.lock().unwrap_or_else(PoisonError::into_inner).insert(to);
        connection.downcast().ok()
    }

    /// The servers that the connections belong to.
    pub fn used_connections(&self) -> Vec<&'static str> {
        self.used_connections.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// The ids and tables of all servers.
    pub fn all(&self) -> Vec<(String, Table)> {
        self.tables.iter().map(|(id, table)| (id.clone(), table.clone())).collect()
    }

    /// The ids of all servers.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// The ids and tables of the servers that were looked up.
    pub fn used(&self) -> Vec<(String, Table)> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.iter().filter_map(|id| Some((id.clone(), self.tables.get(id)?.clone()))).collect()
    }
}

impl PartialEq for Servers {
    fn eq(&self, other: &Self) -> bool {
        self.tables == other.tables
    }
}

/// The known cost of one attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the prompt, those read from a cache and those written to one included.
    pub tokens_in: Option<u64>,
    /// Of `tokens_in`, those read from a cache.
    pub tokens_cached: Option<u64>,
    /// Of `tokens_in`, those written to a cache that keeps them for minutes.
    pub tokens_written: Option<u64>,
    /// Of `tokens_in`, those written to a cache that keeps them for an hour or longer. None of them counts in `tokens_written`.
    pub tokens_written_long: Option<u64>,
    /// Tokens that the model wrote, its reasoning included.
    pub tokens_out: Option<u64>,
    /// Of `tokens_out`, those of its reasoning.
    pub tokens_reasoning: Option<u64>,
    /// The price.
    #[serde(rename = "usd_nanos", with = "money::nanos")]
    pub money: Option<Money>,
}

impl Usage {
    /// The numbers of tokens that are known.
    pub fn counts(&self) -> impl Iterator<Item = u64> {
        let Usage {
            tokens_in,
            tokens_cached,
            tokens_written,
            tokens_written_long,
            tokens_out,
            tokens_reasoning,
            money: _,
        } = *self;
        [tokens_in, tokens_cached, tokens_written, tokens_written_long, tokens_out, tokens_reasoning]
            .into_iter()
            .flatten()
    }

    /// Adds another attempt's usage. A sum is known as soon as one of its terms is.
    pub fn add(&mut self, other: Usage) {
        let add = |sum: &mut Option<u64>, term: Option<u64>| {
            *sum = match (*sum, term) {
                (None, None) => None,
                (sum, term) => Some(sum.unwrap_or(0).saturating_add(term.unwrap_or(0))),
            };
        };
        add(&mut self.tokens_in, other.tokens_in);
        add(&mut self.tokens_cached, other.tokens_cached);
        add(&mut self.tokens_written, other.tokens_written);
        add(&mut self.tokens_written_long, other.tokens_written_long);
        add(&mut self.tokens_out, other.tokens_out);
        add(&mut self.tokens_reasoning, other.tokens_reasoning);
        self.money = self.money.into_iter().chain(other.money).reduce(Money::saturating_add);
    }
}
