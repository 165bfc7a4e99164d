//! Convening an assembly: [`Convening`] configures it, [`Decision`] is its result.

use std::future::{Future, IntoFuture};
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use quorate_manifest::assembly::Trigger;
use quorate_protocol::assembly::Setup;

use super::builder::Quorate;
use super::error::Error;
use super::events::Run;
use super::service::artifact::Draft;
use super::service::convene::{self, ConveneInput, DueStatus, plan, spec};
use super::service::open_session;
use super::service::run_spec::{Producer, RunOptions, RunSpec};
use super::service::runs::Recorded;
use super::service::workspace::Workspace;
use super::session::Outcome;

pub use super::service::convene::plan::{DeferredQuestion, Plan, PlannedRule, Question};
pub use super::service::convene::report::{
    AppliedRule, AssemblyVerdict, Consultation, Contribution, CountedVote, Decision, ExactRatio, Fragment,
    Member, Message, Needed, Node, Objection, Risk, Rollup, Violation, VoteCount,
};
pub use super::service::convene::{ConveneRequest, Inputs};

impl Quorate {
    /// Convenes an assembly: an `ASSEMBLY.md`, or the directory that holds it. The method of its mode names its
    /// subject: [`conversation`](Convening::conversation), [`proposal`](Convening::proposal),
    /// [`topic`](Convening::topic) or [`request`](Convening::request). Await it for the decision, or
    /// [`start`](Convening::start) it to receive events.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::{AssemblyVerdict, Draft, Quorate};
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
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let text = "# A second region\n\nResolution: open it.\n".to_owned();
    /// let proposal = Draft::Text { name: "proposal.md".to_owned(), text };
    /// let decision = quorate.convene("ASSEMBLY.md").proposal(proposal).await?;
    /// // The rubric votes for a member only by the lists of its persona; this one has none, so it abstains.
    /// assert_eq!(decision.verdict, Some(AssemblyVerdict::Fail));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn convene(&self, assembly: impl Into<PathBuf>) -> Convening {
        self.convening(ConveneRequest { path: assembly.into(), ..ConveneRequest::default() })
    }

    /// As [`convene`](Self::convene), with the whole request at once.
    pub fn convening(&self, request: ConveneRequest) -> Convening {
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

/// How a run that starts only if it is due ended.
#[derive(Debug, Clone, PartialEq)]
pub enum ConveneOutcome {
    /// The assembly was convened.
    Decided(Box<Decision>),
    /// The assembly is not due, for this reason.
    NotDue(String),
}

impl Convening {
    /// Finds the assembly now instead of at the start, so that a path out of a confined workspace is an error before any
    /// work begins.
    ///
    /// # Errors
    /// If the path leads out of a confined workspace.
    pub fn locate(mut self) -> Result<Self, Error> {
        match (&self.quorate.root, self.request.root.take()) {
            (Some(root), None) => {
                let (path, root) = root.manifest(&self.quorate.environment, &self.request.path)?;
                (self.request.path, self.request.root) = (path, Some(root));
            }
            (_, named) => {
                self.request.root = named.map(|root| self.quorate.named_path(root)).transpose()?;
                self.request.path = self.quorate.named_path(self.request.path)?;
            }
        }
        Ok(self)
    }

    /// Advisory mode: the conversation to advise on.
    pub fn conversation(mut self, draft: impl Into<Draft>) -> Self {
        self.request.inputs.conversation = Some(draft.into());
        self
    }

    /// Advisory mode: the phase of the conversation; default `session`.
    pub fn phase(mut self, phase: impl Into<String>) -> Self {
        self.request.inputs.phase = Some(phase.into());
        self
    }

    /// Advisory mode: the reason for asking; default manual.
    pub fn trigger(mut self, trigger: Trigger) -> Self {
        self.request.inputs.trigger = Some(trigger);
        self
    }

    /// Advisory mode: asks the sentinels first, and the members of the phase only if no rule has ended the run by then.
    pub fn sentinel_first(mut self) -> Self {
        self.request.inputs.sentinel_first = true;
        self
    }

    /// Voting mode: the proposal.
    pub fn proposal(mut self, draft: impl Into<Draft>) -> Self {
        self.request.inputs.proposal = Some(draft.into());
        self
    }

    /// Voting mode: the class of the proposal, which decides who votes and which rules apply.
    pub fn class(mut self, class: impl Into<String>) -> Self {
        self.request.inputs.class = Some(class.into());
        self
    }

    /// Peer mode: the topic.
    pub fn topic(mut self, draft: impl Into<Draft>) -> Self {
        self.request.inputs.topic = Some(draft.into());
        self
    }

    /// Peer mode: the maximum number of rounds.
    pub fn rounds(mut self, rounds: u32) -> Self {
        self.request.inputs.rounds = Some(rounds);
        self
    }

    /// Hierarchy mode: the request to assess.
    pub fn request(mut self, draft: impl Into<Draft>) -> Self {
        self.request.inputs.request = Some(draft.into());
        self
    }

    /// All options of the run at once.
    pub fn options(mut self, options: RunOptions) -> Self {
        self.request.options = options;
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
    pub fn start(self) -> Run<Outcome<Decision>> {
        self.start_when(Due::Ignored).map(|convened| {
            convened.map(|outcome| match outcome {
                ConveneOutcome::Decided(decision) => *decision,
                ConveneOutcome::NotDue(_) => unreachable!("it is convened in any case"),
            })
        })
    }

    /// As [`start`](Self::start), but convenes the assembly only if it is due by the `defaults` of its manifest.
    pub fn start_if_due(self) -> Run<Outcome<ConveneOutcome>> {
        self.start_when(Due::Required)
    }

    fn start_when(self, due: Due) -> Run<Outcome<ConveneOutcome>> {
        Run::new(move |observer, interruption| async move {
            let (quorate, input, spec, workspace) = self.prepare()?;
            let session = quorate.open(open_session::open(quorate.environment.clone(), workspace)).await?;
            if due == Due::Required {
                match convene::check_due(&session, &input, &spec).await {
                    Ok(DueStatus::Due) => {}
                    Ok(DueStatus::NotDue(why)) => {
                        return session.finish(Ok(ConveneOutcome::NotDue(why))).await;
                    }
                    Err(error) => return session.finish(Err(error)).await,
                }
            }
            let decided = |recorded| match recorded {
                Recorded::Decision(decision) => Some(*decision),
                Recorded::Review(_) => None,
            };
            let convened = convene::convene(&session, &input, &spec, observer);
            let convened = session.until_interrupted(&interruption, convened, decided).await;
            session.finish(convened.map(|decision| ConveneOutcome::Decided(Box::new(decision)))).await
        })
    }

    /// Plans the run: whom it would ask in which order, with the prompts. Asks no member and creates no ledger.
    ///
    /// # Errors
    /// If the manifest, the subject or the configuration is unusable, or an existing ledger cannot be read.
    #[crate::boxed]
    pub async fn plan(self) -> Result<Outcome<Plan>, Error> {
        let (quorate, input, spec, workspace) = self.prepare()?;
        let plan = plan::build(&quorate.environment, &workspace, &input, &spec).await?;
        Ok(Outcome { value: plan, warnings: workspace.report })
    }

    /// Reads everything that the run needs, and asks no member.
    fn prepare(self) -> Result<(Quorate, ConveneInput, RunSpec<Setup>, Workspace), Error> {
        let Convening { quorate, request } = self.locate()?;
        let environment = &quorate.environment;
        let read = |draft: &Draft| quorate.read_draft(draft.clone());
        let registries = &*environment.registries;
        let (input, workspace) =
            convene::prepare_with(environment, &quorate.places, &request, registries, read)?;
        let spec = spec::build(environment, &workspace, &input, &request.options)?;
        Ok((quorate, input, spec, workspace))
    }
}

/// Whether an assembly that is not due is convened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Required,
    Ignored,
}

impl IntoFuture for Convening {
    type Output = Result<Outcome<Decision>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Outcome<Decision>, Error>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start().finish())
    }
}
