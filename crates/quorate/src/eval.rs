//! Evaluations: is a council worth its calls? [`Quorate::coherence`] measures without labels how steady a council and its
//! members are, what they find, and what round 2 changes.
//!
//! Every text is judged by an ordinary run in a ledger of its own, `eval/ledger.db` beside the workspace's. So the council's
//! log, its earlier verdicts and its audit know nothing of an evaluation. The id of a run follows from the council and the
//! text: the same command continues after a crash, and asks nothing that is recorded.

use std::collections::BTreeSet;
use std::sync::Arc;

use quorate_adapters::executor::rubric;
use quorate_diagnostics::Body;
use quorate_eval::coherence::{Judged, Position, Positions};
use quorate_eval::variants::{self, Defect, Relation, Variant};
use quorate_kernel::attempts::{Cost, SharedAnswers};
use quorate_kernel::entropy::{self, sha256_hex};
use quorate_kernel::record::RunOpened;
use quorate_ledger::runs::PrefixMatch;
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::council::tiers::UNCLASSIFIED;
use quorate_manifest::council::{CrossRead, Rounds, VerdictPolicy};
use quorate_manifest::tree::reader::meant_or;
use quorate_protocol::modes::council::findings::ArtifactIndex;
use quorate_protocol::modes::council::{FIRST, Setup};
use quorate_protocol::policy::Verdict;
use quorate_protocol::{Invoke, Part, PartKind};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::task::JoinSet;

use crate::builder::Quorate;
use crate::error::Error;
use crate::events::{Event, Observer, Run};
use crate::review::{Draft, Review};
use crate::service::artifact::{self, Artifact};
use crate::service::compare::Stance;
use crate::service::disk::display_ledger;
use crate::service::environment::Environment;
use crate::service::estimate::Estimate;
use crate::service::review;
use crate::service::run_spec::{NewRun, RunOptions, RunSpec};
use crate::service::session::LedgerSession;
use crate::service::signer::{KeySource, Signer};
use crate::service::trust::Permit;
use crate::service::workspace::{self, Workspace};
use crate::service::{estimate, open_session, report};
use crate::session::Outcome;
use crate::sweep::{SweepEvent, SweepObserver, SweptFile, SweptOutcome};
use crate::view::wording::amount;
use crate::worker_thread::run_on_own_thread;

pub use quorate_eval::coherence::{Coherence, Conversions, KindRecall, RoundTwo, Steadiness, UNSTABLE};
pub use quorate_eval::stats::{Difference, Interval, MIN_CLUSTERS, Share};

/// The version of the JSON.
pub(crate) const SCHEMA: &str = "quorate.coherence/v1";

/// The kinds of defects that an evaluation puts into texts, with what each is.
pub fn defect_kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    variants::defects().iter().map(|defect| (&*defect.kind, &*defect.says))
}

/// Whether texts with an inserted sentence are also judged without showing the members each other's answers in round 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Control {
    /// They are, which shows what reading each other adds. The first answers are shared.
    #[default]
    Run,
    /// They are not.
    Skip,
}

/// An evaluation without labels.
#[derive(Debug, Clone)]
pub struct CoherenceRequest {
    /// The drafts that the variants are made from.
    pub drafts: Vec<Draft>,
    /// The kinds of defects; all if it is empty.
    pub kinds: Vec<String>,
    /// Whether round 2 is also judged without the others' answers.
    pub control: Control,
    /// The number of concurrent reviews.
    pub jobs: usize,
    /// Overrides the policy of the council's file.
    pub policy: Option<VerdictPolicy>,
    /// The options of each review.
    pub options: RunOptions,
}

impl Default for CoherenceRequest {
    fn default() -> Self {
        CoherenceRequest {
            drafts: Vec::new(),
            kinds: Vec::new(),
            control: Control::default(),
            jobs: 4,
            policy: None,
            options: RunOptions::default(),
        }
    }
}

/// The expected cost of an evaluation
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CoherenceEstimate {
    /// The number of texts that are judged
    pub texts: usize,
    /// The expected cost of all runs. An answer that two runs share counts once
    #[serde(flatten)]
    pub estimate: Estimate,
}

/// How steady a council is, as `quorate eval coherence --format json` prints it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CoherenceReport {
    /// The version of this format
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// What was measured
    #[serde(flatten)]
    pub coherence: Coherence,
    /// The names of the executors
    pub executor: String,
    /// Whether a model was asked
    pub model_asked: bool,
    /// The calls of all runs and their cost as far as known. An answer that two runs share counts once
    pub spent: Cost,
    /// The ledger that has the runs
    pub ledger: String,
    /// What limits the figures
    pub notes: Vec<String>,
}

impl Quorate {
    /// Measures, without labels, how steady the council and its members are. Makes variants of each draft whose relation to it
    /// is known, and judges them: the same text again, texts that say the same, and texts with a defect or its harmless twin.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use std::sync::Arc;
    ///
    /// use quorate::eval::CoherenceRequest;
    /// use quorate::{Draft, Quorate};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let draft = Draft::of_text("# Notice\n\nThe meeting moved to Tuesday at ten.\n".to_owned(), None);
    /// let kinds = vec!["placeholder".to_owned()];
    /// let request = CoherenceRequest { drafts: vec![draft], kinds, ..CoherenceRequest::default() };
    /// let report = quorate.coherence(request, Arc::new(|_| ())).finish().await?;
    /// // The draft, the same again, a padded one, and one with a placeholder and its twin.
    /// assert_eq!(report.coherence.texts, 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn coherence(
        &self,
        request: CoherenceRequest,
        observer: SweepObserver,
    ) -> Run<Outcome<CoherenceReport>> {
        let quorate = self.clone();
        Run::new(move |_, interruption| async move {
            let workspace =
                workspace::load(&quorate.environment, &quorate.places, &quorate.environment.directory)?;
            let texts = quorate.texts(&request)?;
            let opening = open(&quorate.environment, workspace);
            let session = quorate.open(opening).await?;
            let judging = judge_all(&session, &request, texts, observer);
            let judged = session.until_interrupted(&interruption, judging, |_| None).await;
            session.finish(judged).await
        })
    }

    /// The expected cost of an evaluation. Asks no member, and neither needs nor creates a ledger.
    ///
    /// # Errors
    /// If a draft, the configuration or an executor are unusable, or a kind of defect is unknown.
    pub fn coherence_estimate(&self, request: &CoherenceRequest) -> Result<CoherenceEstimate, Error> {
        let workspace = workspace::load(&self.environment, &self.places, &self.environment.directory)?;
        let texts = self.texts(request)?;
        let spec = review::build(&self.environment, &workspace, &request.options, request.policy)?;
        let mut total = Estimate::default();
        for text in &texts {
            let part = Part::new(PartKind::Artifact, &*text.artifact.display_name, &*text.artifact.text);
            if text.has_control(request.control, &workspace) {
                // The first answers are shared.
                let is_asked = |invoke: &Invoke| *invoke.step != *FIRST;
                total.add(estimate::estimate_where(&spec, part.clone(), is_asked)?);
            }
            total.add(estimate::estimate(&spec, part)?);
        }
        total.obstacle = spec.obstacle(&self.environment, total.calls / texts.len().max(1) as u64);
        Ok(CoherenceEstimate { texts: texts.len(), estimate: total })
    }

    /// The drafts of a request and their variants.
    fn texts(&self, request: &CoherenceRequest) -> Result<Vec<Text>, Error> {
        let defects = chosen_defects(&request.kinds)?;
        let mut texts = Vec::new();
        for (at, draft) in request.drafts.iter().enumerate() {
            let draft = self.read_draft(draft.clone())?;
            let text = draft.text.clone();
            let original =
                Variant { relation: Relation::Original, text: text.to_string(), lines: Vec::new() };
            let seeded = defects.iter().filter_map(|defect| variants::seeded(&text, defect)).flatten();
            for variant in std::iter::once(original).chain(variants::neutral(&text)).chain(seeded) {
                texts.push(Text::of(at, &draft.display_name, variant)?);
            }
        }
        Ok(texts)
    }
}

fn chosen_defects(kinds: &[String]) -> Result<Vec<&'static Defect>, Error> {
    let all = variants::defects();
    if kinds.is_empty() {
        return Ok(all.iter().collect());
    }
    let find = |kind: &String| {
        all.iter().find(|defect| defect.kind == *kind).ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(|defect| &*defect.kind).collect();
            let help = meant_or(kind, &known, || format!("the kinds are {}", known.join(", ")));
            Error::usage(Body::new(format!("there is no kind of defect `{kind}`")).help(help))
        })
    };
    kinds.iter().map(find).collect()
}

/// A text to judge.
struct Text {
    /// The number of its draft.
    draft: usize,
    relation: Relation,
    lines: Vec<usize>,
    artifact: Artifact,
}

impl Text {
    /// The members see the draft's name, whatever was done to the text.
    fn of(draft: usize, name: &str, variant: Variant) -> Result<Text, Error> {
        let Variant { relation, text, lines } = variant;
        let artifact = artifact::from_bytes(name.to_owned(), None, Ok(text.into_bytes()))?;
        Ok(Text { draft, relation, lines, artifact })
    }

    /// Whether it is judged a second time, with a round 2 that shows nothing.
    fn has_control(&self, control: Control, workspace: &Workspace) -> bool {
        let protocol = &workspace.council.protocol;
        control == Control::Run
            && protocol.rounds == Rounds::Two
            && protocol.cross_read != CrossRead::None
            && matches!(self.relation, Relation::Defect(_) | Relation::Twin(_))
    }

    /// How progress names it.
    fn shown(&self) -> String {
        format!("{} ({})", self.artifact.display_name, self.relation.name())
    }
}

/// Opens the ledger of evaluations.
#[crate::boxed]
async fn open(environment: &Environment, mut workspace: Workspace) -> Result<LedgerSession, Error> {
    let dir = workspace.ledger.dir().join("eval");
    workspace.log = dir.join("council_log.jsonl");
    workspace.ledger = StoreAddress::File(dir.join("ledger.db"));
    // A witness knows the workspace's own ledger.
    workspace.witness = None;
    workspace.is_found_here = false;
    open_session::open_for_writing(environment.clone(), workspace).await
}

/// Judges all texts and says what follows from it.
#[crate::boxed]
async fn judge_all(
    session: &Arc<LedgerSession>,
    request: &CoherenceRequest,
    texts: Vec<Text>,
    observer: SweepObserver,
) -> Result<CoherenceReport, Error> {
    let council = review::build(&session.environment, &session.workspace, &request.options, request.policy)?;
    let permit = council.admit(&session.environment)?;
    let mut control =
        review::build(&session.environment, &session.workspace, &request.options, request.policy)?;
    control.setup.cross_read = CrossRead::None;
    let members: Vec<String> = council.setup.deliberators.iter().map(ToString::to_string).collect();
    observer(SweepEvent::Planned(texts.len()));
    let (kind, ledger) = (request.control, display_ledger(&session.environment, session.store.address()));
    let judge = Arc::new(Judge { session: Arc::clone(session), council, control, kind, permit, observer });
    let mut texts = texts.into_iter();
    let mut judging = JoinSet::new();
    let (mut judged, mut reviews) = (Vec::new(), Vec::new());
    loop {
        while judging.len() < request.jobs.max(1)
            && let Some(text) = texts.next()
        {
            let judge = Arc::clone(&judge);
            judging.spawn(run_on_own_thread(async move { judge.judge(text).await }));
        }
        match judging.join_next().await {
            None => break,
            Some(Ok(ended)) => {
                let (one, of_text) = ended?;
                judged.push(one);
                reviews.extend(of_text);
            }
            Some(Err(gone)) => match gone.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => unreachable!("reviews are only cancelled all together, by dropping the set"),
            },
        }
    }
    judged.sort_by(|one, other| (one.draft, &one.relation).cmp(&(other.draft, &other.relation)));
    Ok(CoherenceReport::of(&members, &judged, &reviews, ledger))
}

/// What judges the texts of an evaluation.
struct Judge {
    session: Arc<LedgerSession>,
    council: RunSpec<Setup>,
    /// The same council, whose members see nothing of each other.
    control: RunSpec<Setup>,
    kind: Control,
    permit: Permit,
    observer: SweepObserver,
}

impl Judge {
    /// Judges a text, also in the control if it has one.
    async fn judge(&self, text: Text) -> Result<(Judged, Vec<Review>), Error> {
        let shown = text.shown();
        (self.observer)(SweepEvent::Started(&shown));
        let council = self.council.fingerprint("").combined();
        let question = format!("{council}/{}/{}", text.artifact.sha256, text.relation.name());
        let shared = Arc::new(SharedAnswers::default());
        let review = self.run(&self.council, &question, &text, &shared).await?;
        let mut reviews = vec![review];
        if text.has_control(self.kind, &self.session.workspace) {
            reviews.push(self.run(&self.control, &question, &text, &shared).await?);
        }
        let index = ArtifactIndex::new(&text.artifact.text);
        let of = |review: &Review| {
            review.deliberators.iter().map(|one| positions(&one.stances(review.rounds), &index)).collect()
        };
        let judged = Judged {
            draft: text.draft,
            relation: text.relation,
            lines: text.lines,
            members: of(&reviews[0]),
            council: council_position(&reviews[0]),
            alone: reviews.get(1).map(of),
        };
        (self.observer)(SweepEvent::Ended(&SweptFile {
            path: shown,
            tier: 1,
            artifact_type: UNCLASSIFIED.to_owned(),
            tier_reason: None,
            outcome: SweptOutcome::of(&reviews[0]),
        }));
        Ok((judged, reviews))
    }

    /// The run on a text: the recorded one, the rest of an interrupted one, or a new one. `question` names the council and
    /// the text. A run shares the answers of the others on that text.
    async fn run(
        &self,
        spec: &RunSpec<Setup>,
        question: &str,
        text: &Text,
        shared: &Arc<SharedAnswers>,
    ) -> Result<Review, Error> {
        let session = &self.session;
        let run = entropy::derived_run_id(&format!("{question}/{:?}", spec.setup.cross_read));
        let _guard = session.acquire_run(&run).await?;
        let waits = self.observer.clone();
        let observer: Arc<dyn Observer> = Arc::new(move |event: Event| {
            event.wait_line().iter().for_each(|line| waits(SweepEvent::Waiting(line)))
        });
        let history = match session.store.find_by_prefix(&run).await? {
            PrefixMatch::One(_) => {
                let history = session.history(&run).await?;
                match history.outcome() {
                    Some(outcome) if !outcome.is_incomplete() => history,
                    _ => {
                        spec.sharing(shared)
                            .resume(session, history, KeySource::Recorded, self.permit, observer)
                            .await?
                    }
                }
            }
            PrefixMatch::None | PrefixMatch::Several(_) => {
                let new = self.new_run(spec, text, question).await?;
                spec.sharing(shared).start_as(&run, session, new, self.permit, observer).await?
            }
        };
        history.share_with(shared);
        let mut review = report::load_from(session, &history).await?;
        // An answer that another run on the text paid for is not paid again.
        let consultations = history.fed.iter().filter_map(|fed| fed.consultation.as_ref());
        let taken = consultations.filter(|one| one.recorded).map(|one| one.attempts).sum::<u32>();
        review.spent.calls = review.spent.calls.saturating_sub(taken);
        Ok(review)
    }

    async fn new_run<'t>(
        &self,
        spec: &RunSpec<Setup>,
        text: &'t Text,
        question: &str,
    ) -> Result<NewRun<'t>, Error> {
        let (session, artifact) = (&self.session, &text.artifact);
        let (name, in_name) = spec.redaction.redactor.redact(&artifact.display_name);
        let (shown, in_text) =
            spec.redaction.redact_subject(&artifact.display_name, &artifact.text, false).await?;
        let signer = Signer::new(session.keys(), session.keys().signing_mode(), None).await?;
        let opened = RunOpened {
            artifact_type: Some(UNCLASSIFIED.to_owned()),
            tier: Some(review::STRICTEST_TIER.into()),
            priors: Some(Vec::new()),
            log_path: Some(session.workspace.log.to_string_lossy().into_owned()),
            audit: signer.run_audit(),
            ..RunOpened::default()
        };
        Ok(NewRun {
            spent_before: Default::default(),
            artifact: std::borrow::Cow::Borrowed(artifact),
            part: Part::new(PartKind::Artifact, &*name, &*shown),
            redactions: in_name + in_text,
            signer,
            opened,
            seed: entropy::unhex(&sha256_hex(question.as_bytes())),
        })
    }
}

/// The first and the last position of a member in two answers.
fn positions([first, last]: &[Stance; 2], index: &ArtifactIndex<'_>) -> Positions {
    let found = |stance: &Stance| stance.read.as_ref()?.findings.clone();
    let position = |stance: &Stance| {
        let read = stance.read.as_ref()?;
        // A second answer without a list of findings keeps those of the first.
        let findings = found(stance).or_else(|| found(first)).unwrap_or_default();
        let lines = findings.iter().filter_map(|finding| Some(index.locate(finding)?.line)).collect();
        Some(Position { stops: read.would_block, lines })
    };
    Positions { first: position(first), last: position(last) }
}

/// What the council decided, with the lines of all findings; `None` for INCOMPLETE.
fn council_position(review: &Review) -> Option<Position> {
    let verdict = review.verdict.filter(|verdict| *verdict != Verdict::Incomplete)?;
    let lines = review.findings.iter().filter_map(|finding| usize::try_from(finding.line?).ok()).collect();
    Some(Position { stops: verdict != Verdict::Ship, lines })
}

impl CoherenceReport {
    fn of(members: &[String], judged: &[Judged], reviews: &[Review], ledger: String) -> Self {
        let mut spent = Cost::default();
        reviews.iter().for_each(|review| spent.add(&review.spent));
        spent.took = reviews.iter().map(|review| review.spent.took).sum();
        let names: BTreeSet<&str> = reviews.iter().map(|review| &*review.executor).collect();
        let coherence = quorate_eval::coherence::coherence(members, judged);
        let model_asked = reviews.iter().any(|review| review.model_asked);
        let mut notes = Vec::new();
        if !model_asked && reviews.iter().all(|review| review.kind == rubric::KIND) {
            let is_found = |kind: &&KindRecall| kind.recall.is_some_and(|recall| recall.hits > 0);
            let found = coherence.kinds.iter().filter(is_found).count();
            let kinds = amount(coherence.kinds.len() as u64, "kind");
            notes.push(format!(
                "No model was asked. The rubric knows patterns and understands no text: of {kinds} of defects it found {found}."
            ));
        }
        let incomplete = judged.iter().filter(|run| run.council.is_none()).count();
        if incomplete > 0 {
            notes.push(format!(
                "{} without a verdict count in no figure of the council. The same command asks the missing members again.",
                amount(incomplete as u64, "text")
            ));
        }
        CoherenceReport {
            schema: SCHEMA,
            coherence,
            executor: names.into_iter().collect::<Vec<_>>().join(", "),
            model_asked,
            spent,
            ledger,
            notes,
        }
    }
}
