//! Convening an assembly ([`Convening`], [`Decision`]), and conversations of agents ([`Conversation`]): a runtime
//! manifest whose participants answer each other.

use std::future::{Future, IntoFuture};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::turn::{Begin, CycleResult};
use serde_json::Value;

use super::builder::Quorate;
use super::error::Error;
use super::events::Run;
use super::service::convene::report::ConveneReport;
use super::service::convene::{self, ConveneRequest, spec};
use super::service::error::ServiceError;
use super::service::run_spec::Producer;
use super::service::runtime::conversation::{AuthorRule, ConversationReader, say};
use super::service::runtime::drive::{Step, Until, drive};
use super::service::runtime::events::FanOut;
use super::service::runtime::{OpenRuntime, RuntimeRequest, open};
use crate::service::open_session;

pub use quorate_kernel::conversation::Turn;

impl Quorate {
    /// Convenes an assembly: an `ASSEMBLY.md`, or the directory that holds it. The method of its mode names its
    /// subject: [`conversation`](Convening::conversation), [`proposal`](Convening::proposal),
    /// [`topic`](Convening::topic) or [`request`](Convening::request). Await it for the decision, or
    /// [`start`](Convening::start) it to receive events.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::Quorate;
    ///
    /// std::fs::write(dir.path().join("quorate.toml"), "strict_chain = true\n")?;
    /// std::fs::write(
    ///     dir.path().join("ASSEMBLY.md"),
    ///     "---\n\
    ///      schema: assembly.workspace/v1\n\
    ///      name: board\n\
    ///      title: Board\n\
    ///      description: Decides what is bought.\n\
    ///      version: 1.0.0\n\
    ///      mode: voting\n\
    ///      members: [{id: cfo, persona: ws://personas/cfo, role: CFO}]\n\
    ///      ---\n",
    /// )?;
    /// std::fs::create_dir_all(dir.path().join("personas/cfo"))?;
    /// std::fs::write(
    ///     dir.path().join("personas/cfo/PERSONA.md"),
    ///     "---\nschema: persona/v1\nname: cfo\ntitle: CFO\ndescription: Counts.\nversion: 1.0.0\n---\n",
    /// )?;
    /// std::fs::write(dir.path().join("proposal.md"), "# A second region\n\nResolution: open it.\n")?;
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let decision = quorate.convene("ASSEMBLY.md").proposal("proposal.md").await?;
    /// // The rubric votes for a member only by the lists of its persona; this one has none, so it abstains.
    /// assert_eq!(decision.verdict(), Some("fail"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn convene(&self, assembly: impl Into<PathBuf>) -> Convening {
        let request = ConveneRequest { path: assembly.into(), ..ConveneRequest::default() };
        Convening { quorate: self.clone(), request }
    }
}

/// A run of an assembly that has not started.
#[derive(Debug, Clone)]
#[must_use = "nothing happens until it is awaited or started"]
pub struct Convening {
    quorate: Quorate,
    request: ConveneRequest,
}

impl Convening {
    /// Advisory mode: the file with the conversation to advise on.
    pub fn conversation(mut self, file: impl Into<PathBuf>) -> Self {
        self.request.inputs.conversation = Some(file.into());
        self
    }

    /// Advisory mode: the phase of the conversation; default `session`.
    pub fn phase(mut self, phase: impl Into<String>) -> Self {
        self.request.inputs.phase = Some(phase.into());
        self
    }

    /// Advisory mode: asks the sentinels first, and the members of the phase only if no rule has ended the run by then.
    pub fn sentinel_first(mut self) -> Self {
        self.request.inputs.sentinel_first = true;
        self
    }

    /// Voting mode: the file with the proposal.
    pub fn proposal(mut self, file: impl Into<PathBuf>) -> Self {
        self.request.inputs.proposal = Some(file.into());
        self
    }

    /// Voting mode: the class of the proposal, which decides who votes and which rules apply.
    pub fn class(mut self, class: impl Into<String>) -> Self {
        self.request.inputs.class = Some(class.into());
        self
    }

    /// Peer mode: the file with the topic.
    pub fn topic(mut self, file: impl Into<PathBuf>) -> Self {
        self.request.inputs.topic = Some(file.into());
        self
    }

    /// Peer mode: the maximum number of rounds.
    pub fn rounds(mut self, rounds: u32) -> Self {
        self.request.inputs.rounds = Some(rounds);
        self
    }

    /// Hierarchy mode: the file with the request to assess.
    pub fn request(mut self, file: impl Into<PathBuf>) -> Self {
        self.request.inputs.request = Some(file.into());
        self
    }

    /// The producer of the subject.
    pub fn made_by(mut self, producer: impl Into<String>) -> Self {
        self.request.options.producer = Producer::from_flags(Some(&producer.into()), &[]);
        self
    }

    /// The executor of all members, instead of the configured one.
    pub fn executor(mut self, name: impl Into<String>) -> Self {
        self.request.options.executor = Some(name.into());
        self
    }

    /// The executor's model.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.request.options.model = Some(model.into());
        self
    }

    /// The maximum number of calls, re-prompts and retries included.
    pub fn max_calls(mut self, calls: u32) -> Self {
        self.request.options.caps.calls = Some(calls);
        self
    }

    /// The maximum number of tokens, of prompts and answers together. It is never exceeded: what a call takes at most
    /// is reserved before the call, which is not made if that is more than what is left.
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.request.options.caps.tokens = Some(tokens);
        self
    }

    /// The maximum price of all calls, in billionths of a US dollar: `5_000_000_000` is 5 USD. It is never exceeded, as
    /// with [`max_tokens`](Self::max_tokens). A model without a known price is an error before any call.
    pub fn max_usd_nanos(mut self, usd_nanos: u64) -> Self {
        self.request.options.caps.usd_nanos = Some(usd_nanos);
        self
    }

    /// The deadline of each member.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.request.options.timeout = Some(timeout);
        self
    }

    /// Starts the run, as a stream of events.
    pub fn start(self) -> Run<Decision> {
        Run::new(move |observer| async move {
            let Quorate { environment, places } = self.quorate;
            let registries = &*environment.registries;
            let (input, workspace) = convene::prepare(&environment, &places, &self.request, registries)?;
            let spec = spec::build(&environment, &workspace, &input, &self.request.options)?;
            let session = open_session::open(environment.clone(), workspace).await?;
            let report = convene::convene(&session, &input, &spec, observer).await;
            session.close().await;
            Ok(Decision::new(Box::new(report?)))
        })
    }
}

impl IntoFuture for Convening {
    type Output = Result<Decision, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Decision, Error>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start().finish())
    }
}

/// The result of a run of an assembly.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    report: Box<ConveneReport>,
}

impl Decision {
    pub(crate) fn new(report: Box<ConveneReport>) -> Self {
        Decision { report }
    }

    /// The run's id in the ledger.
    pub fn run(&self) -> &str {
        &self.report.run
    }

    /// `pass`, `fail`, `done`, `refused` or `incomplete`; `None` while the run is undecided.
    pub fn verdict(&self) -> Option<&str> {
        self.report.verdict.as_deref()
    }

    /// A stable word for the reason, if there is one: `no_voters`, `locked`, `budget_exhausted`, …
    pub fn code(&self) -> Option<&str> {
        self.report.code.as_deref()
    }

    /// The reason in one sentence, where the verdict alone does not explain itself.
    pub fn because(&self) -> Option<&str> {
        self.report.because.as_deref()
    }

    /// The members that were asked and gave no answer.
    pub fn missing(&self) -> &[String] {
        &self.report.missing
    }

    /// Whether a human should be called: advisory and hierarchy mode.
    pub fn should_escalate(&self) -> bool {
        self.report.should_escalate == Some(true)
    }

    /// The number of calls made.
    pub fn calls(&self) -> u32 {
        self.report.calls
    }

    /// The report as `quorate convene --format json` prints it; `quorate schema convene` prints its schema.
    pub fn to_json(&self) -> Value {
        self.report.json()
    }
}

/// How long participants that are still answering have to finish.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

impl Quorate {
    /// Opens a conversation: a runtime manifest, or the directory that holds it.
    ///
    /// # Errors
    /// If the manifest, the configuration or the ledger cannot be used.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use async_trait::async_trait;
    /// use quorate::Quorate;
    /// use quorate::ports::executor::{About, Executor, Failure, Invocation, Reply};
    ///
    /// /// Answers everything with the same words.
    /// struct Parrot;
    ///
    /// #[async_trait]
    /// impl Executor for Parrot {
    ///     fn about(&self) -> About {
    ///         About { kind: "parrot", asks_a_model: false, model: None }
    ///     }
    ///
    ///     async fn invoke(&self, _: Invocation) -> Result<Reply, Failure> {
    ///         Ok(Reply { text: "Hello, hello!".to_owned(), ..Reply::default() })
    ///     }
    /// }
    ///
    /// std::fs::write(
    ///     dir.path().join("parrots.yaml"),
    ///     "schema: agentruntimes/v1\n\
    ///      kind: MultiAgentRuntime\n\
    ///      id: parrots\n\
    ///      participants: [{id: polly, executor: parrot, displayName: Polly}]\n\
    ///      dispatcher: {kind: round-robin}\n\
    ///      substrate: {kind: file, path: talk.txt}\n",
    /// )?;
    /// let quorate = Quorate::builder().workspace(dir.path()).executor("parrot", Parrot).build()?;
    /// let conversation = quorate.conversation("parrots.yaml").await?;
    /// conversation.say("@polly, who are you?", "ann").await?;
    /// let answers = conversation.answer().await?;
    /// assert_eq!(&*answers[0].content, "Hello, hello!");
    /// conversation.close().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn conversation(&self, manifest: impl Into<PathBuf>) -> Result<Conversation, Error> {
        let request = RuntimeRequest { path: manifest.into(), ..RuntimeRequest::default() };
        let runtime = open(&self.environment, &self.places, &request, &self.environment.registries)?;
        Ok(Conversation { runtime: runtime.open_ledger().await? })
    }
}

/// An open conversation. [`Conversation::close`] seals and closes its ledger.
pub struct Conversation {
    runtime: OpenRuntime,
}

impl Conversation {
    /// Adds a turn under the name of a person, without white space. No participant answers before
    /// [`Conversation::answer`].
    ///
    /// # Errors
    /// If the text is empty, the name is a participant's, or the substrate rejects the turn.
    pub async fn say(&self, text: &str, by: &str) -> Result<Turn, Error> {
        Ok(say(&self.runtime.runtime, text, by, AuthorRule::PeopleOnly).await?)
    }

    /// Lets participants answer until no turn is unanswered, and returns what they wrote.
    ///
    /// # Errors
    /// If another process runs the conversation, or substrate or ledger fail. Answers given until then are recorded.
    pub async fn answer(&self) -> Result<Vec<Turn>, Error> {
        let (mut runner, _guard) = self.runtime.runner(Begin::First, Arc::new(FanOut::default())).await?;
        let mut replies = Vec::new();
        let driven = drive(&mut runner, Until::Idle, self.runtime.runtime.wall, |step| {
            if let Step::Cycled(CycleResult::Asked { appended, .. }) = step {
                replies.extend(appended);
            }
        })
        .await;
        let closed = runner.close(SHUTDOWN_TIMEOUT).await.map_err(ServiceError::from);
        driven?;
        closed?;
        Ok(replies)
    }

    /// The last `limit` turns, or all of them.
    ///
    /// # Errors
    /// If the substrate fails.
    pub async fn turns(&self, last: Option<usize>) -> Result<Vec<Turn>, Error> {
        Ok(ConversationReader::new(&self.runtime.runtime).last(last).await?)
    }

    /// Seals the ledger if it has new records, and closes it.
    pub async fn close(self) {
        self.runtime.seal().await;
        self.runtime.close().await;
    }
}
