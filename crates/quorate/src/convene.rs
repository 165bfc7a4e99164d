//! Convening an assembly: [`Convening`] configures it, [`Decision`] is its result.

use std::future::{Future, IntoFuture};
use std::path::PathBuf;
use std::pin::Pin;

use quorate_protocol::assembly::Setup;

use super::builder::Quorate;
use super::error::Error;
use super::events::Run;
use super::service::artifact::Draft;
use super::service::convene::{self, ConveneInput, plan, spec};
use super::service::open_session;
use super::service::run_spec::{RunSpec, run_option_methods};
use super::service::runs::Recorded;
use super::service::workspace::Workspace;
use super::session::Outcome;

pub use super::service::convene::plan::{DeferredQuestion, Plan, PlannedRule, PlannedStandIns, Question};
pub use super::service::convene::report::{
    AppliedRule, AssemblyOutcome, AssemblyVerdict, Consultation, Contribution, CountedVote, Decision,
    ExactRatio, Fragment, Member, Message, Needed, Node, Objection, OutcomeKind, Risk, Rollup, Violation,
    VoteCount,
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
    /// assert_eq!(decision.verdict(), Some(AssemblyVerdict::Fail));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn convene(&self, assembly: impl Into<PathBuf>) -> Convening {
        self.convening(ConveneRequest { path: assembly.into(), ..ConveneRequest::default() })
    }

    /// As [`convene`](Self::convene), with the whole request at once.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::convene::{ConveneRequest, Inputs};
    /// use quorate::{ErrorKind, Quorate};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let inputs = Inputs { proposal: Some("proposal.md".into()), ..Inputs::default() };
    /// let request = ConveneRequest { path: "board/ASSEMBLY.md".into(), inputs, ..ConveneRequest::default() };
    /// let error = quorate.convening(request).await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::NotFound); // there is no such assembly
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn convening(&self, request: ConveneRequest) -> Convening {
        Convening { quorate: self.clone(), request }
    }
}

/// A run of an assembly that has not started. Await it for the decision, [`start`](Self::start) it to receive events, or
/// [`plan`](Self::plan) it to see whom it would ask. The methods of other modes than the assembly's are an error.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let dir = tempfile::tempdir()?;
/// use quorate::init::InitTemplate;
/// use quorate::ports::Mode;
/// use quorate::{Draft, Quorate};
///
/// let quorate = Quorate::builder().workspace(dir.path()).build()?;
/// let board = quorate.init_manifest(".".as_ref(), InitTemplate::Assembly(Mode::Voting), "board")?;
/// let proposal = Draft::of_text("# A second region\n\nResolution: open it.\n".to_owned(), None);
/// let plan = quorate.convene(&board.done[0]).proposal(proposal).plan().await?;
/// assert_eq!(plan.assembly, "board");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

    /// Voting mode: the proposal.
    pub fn proposal(mut self, draft: impl Into<Draft>) -> Self {
        self.request.inputs.proposal = Some(draft.into());
        self
    }

    /// Peer mode: the topic.
    pub fn topic(mut self, draft: impl Into<Draft>) -> Self {
        self.request.inputs.topic = Some(draft.into());
        self
    }

    /// Hierarchy mode: the request to assess.
    pub fn request(mut self, draft: impl Into<Draft>) -> Self {
        self.request.inputs.request = Some(draft.into());
        self
    }

    run_option_methods!();

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
                let reason = convene::reason_not_due(&session, &input, &spec).await.transpose();
                if let Some(reason) = reason {
                    return session.finish(reason.map(ConveneOutcome::NotDue)).await;
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
        let (input, setup, workspace) = convene::prepare(environment, &quorate.places, &request, read)?;
        let spec = spec::build(environment, &workspace, &input, setup, &request.options)?;
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
