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
use quorate_kernel::history::History;
use quorate_kernel::record::RunOpened;
use quorate_ledger::runs::PrefixMatch;
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::council::tiers::UNCLASSIFIED;
use quorate_manifest::council::{CrossRead, Rounds, VerdictPolicy};
use quorate_manifest::tree::reader::meant_or;
use quorate_protocol::modes::council::findings::ArtifactIndex;
use quorate_protocol::modes::council::{FIRST, Setup};
use quorate_protocol::policy::Verdict;
use quorate_protocol::{Invoke, Name, Part, PartKind};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tokio::task::JoinSet;

use crate::builder::Quorate;
use crate::error::Error;
use crate::events::{Event, Observer, Run};
use crate::review::{Deliberator, Draft, Review};
use crate::service::artifact::{self, Artifact};
use crate::service::compare::Stance;
use crate::service::disk::display_ledger;
use crate::service::environment::Environment;
use crate::service::estimate::Estimate;
use crate::service::review;
use crate::service::run_spec::{NewRun, PreparedMember, RunOptions, RunSpec};
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
    /// The expected time in milliseconds, by the last review of this council; null if there is none that asked a model
    pub expected_ms: Option<u64>,
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
            let (texts, notes) = quorate.texts(&request)?;
            let opening = open(&quorate.environment, workspace);
            let session = quorate.open(opening).await?;
            let judging = judge_all(&session, &request, (texts, notes), observer);
            let judged = session.until_interrupted(&interruption, judging, |_| None).await;
            session.finish(judged).await
        })
    }

    /// The expected cost of an evaluation. Asks no member, and creates no ledger.
    ///
    /// # Errors
    /// If a draft, the configuration or an executor are unusable, or a kind of defect is unknown.
    #[crate::boxed]
    pub async fn coherence_estimate(&self, request: &CoherenceRequest) -> Result<CoherenceEstimate, Error> {
        let workspace = workspace::load(&self.environment, &self.places, &self.environment.directory)?;
        let texts = self.texts(request)?.0;
        let spec = review::build(&self.environment, &workspace, &request.options, request.policy)?;
        let control = control_of(request, &spec);
        let (mut total, mut most, mut runs) = (Estimate::default(), 0, 0);
        for text in &texts {
            let part = Part::new(PartKind::Artifact, &*text.artifact.display_name, &*text.artifact.text);
            if text.has_control(control) {
                // The first answers are shared.
                let is_asked = |invoke: &Invoke| *invoke.step != *FIRST;
                total.add(estimate::estimate_where(&spec, part.clone(), is_asked)?);
                runs += 1;
            }
            let review = estimate::estimate(&spec, part)?;
            most = most.max(review.calls);
            total.add(review);
            runs += 1;
        }
        total.obstacle = spec.obstacle(&self.environment, most);
        let last = estimate::last_run_in(&workspace.ledger, &spec).await.ok().flatten();
        let expected_ms = last.map(|ms| ms.saturating_mul(runs) / request.jobs.max(1) as u64);
        Ok(CoherenceEstimate { texts: texts.len(), expected_ms, estimate: total })
    }

    /// The drafts of a request and their variants, and what limits them. A text that occurs twice is one draft.
    fn texts(&self, request: &CoherenceRequest) -> Result<(Vec<Text>, Vec<String>), Error> {
        let defects = chosen_defects(&request.kinds)?;
        let (mut texts, mut known, mut without_paragraph) = (Vec::new(), BTreeSet::new(), 0);
        for draft in &request.drafts {
            if *draft == Draft::File("-".into()) {
                let body =
                    Body::new("an evaluation reads its drafts more than once, and standard input only once");
                return Err(Error::usage(body.help("write the text to a file, and name that")));
            }
            let draft = self.read_draft(draft.clone())?;
            if !known.insert(draft.sha256.clone()) {
                continue;
            }
            let text = draft.text.clone();
            let original =
                Variant { relation: Relation::Original, text: text.to_string(), lines: Vec::new() };
            let seeded: Vec<Variant> =
                defects.iter().filter_map(|defect| variants::seeded(&text, defect)).flatten().collect();
            without_paragraph += usize::from(seeded.is_empty());
            for variant in std::iter::once(original).chain(variants::neutral(&text)).chain(seeded) {
                texts.push(Text::of(known.len() - 1, &draft.display_name, variant)?);
            }
        }
        let mut notes = Vec::new();
        let repeated = request.drafts.len() - known.len();
        if repeated > 0 {
            notes.push(format!(
                "{} with the text of another one counts once.",
                amount(repeated as u64, "draft")
            ));
        }
        if without_paragraph > 0 {
            let drafts = amount(without_paragraph as u64, "draft");
            notes.push(format!("{drafts} without a paragraph got no defects."));
        }
        if known.len() == 1 {
            notes.push("The ranges are about this draft alone.".to_owned());
        }
        Ok((texts, notes))
    }
}

/// Whether texts of these runs get a control. Samples of an answer are not shared, so that a control would differ in its
/// first answers.
fn control_of(request: &CoherenceRequest, spec: &RunSpec<Setup>) -> Control {
    let has_samples = spec.members.iter().any(|member| member.executor.samples > 1);
    let reads_others = spec.setup.rounds == Rounds::Two && spec.setup.cross_read != CrossRead::None;
    if has_samples || !reads_others { Control::Skip } else { request.control }
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
    kinds.iter().try_for_each(|kind| find(kind).map(drop))?;
    Ok(all.iter().filter(|defect| kinds.contains(&defect.kind)).collect())
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
    fn has_control(&self, control: Control) -> bool {
        control == Control::Run && matches!(self.relation, Relation::Defect(_) | Relation::Twin(_))
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
    (texts, notes): (Vec<Text>, Vec<String>),
    observer: SweepObserver,
) -> Result<CoherenceReport, Error> {
    let council = review::build(&session.environment, &session.workspace, &request.options, request.policy)?;
    let permit = council.admit(&session.environment)?;
    let mut control =
        review::build(&session.environment, &session.workspace, &request.options, request.policy)?;
    control.setup.cross_read = CrossRead::None;
    control.fingerprint = control.fingerprint.with_setup(&json!(control.setup));
    let members: Vec<String> = council.setup.deliberators.iter().map(ToString::to_string).collect();
    observer(SweepEvent::Planned(texts.len()));
    let (kind, ledger) =
        (control_of(request, &council), display_ledger(&session.environment, session.store.address()));
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
    let has_two_rounds = judge.council.setup.rounds == Rounds::Two;
    let coherence = quorate_eval::coherence::coherence(&members, has_two_rounds, &judged);
    Ok(CoherenceReport::of(coherence, &judged, &reviews, (ledger, notes)))
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
        let Artifact { display_name, sha256, .. } = &text.artifact;
        let version = env!("CARGO_PKG_VERSION");
        let question = format!("{version}/{council}/{display_name}/{sha256}/{}", text.relation.name());
        let shared = Arc::new(SharedAnswers::default());
        // What an earlier command recorded in either run counts for both.
        for spec in [&self.council, &self.control] {
            if let Some(history) = self.recorded(&self.run_id(spec, &question)).await? {
                history.share_with(&shared);
            }
        }
        let review = self.run(&self.council, &question, &text, &shared).await?;
        let mut reviews = vec![review];
        if text.has_control(self.kind) {
            reviews.push(self.run(&self.control, &question, &text, &shared).await?);
        }
        // What the members saw: secrets are taken out.
        let stored = reviews[0].text.clone().unwrap_or_default();
        let index = ArtifactIndex::new(&stored);
        let of = |review: &Review| {
            let positions = |one: &Deliberator| positions(one.stances(review.rounds), review.rounds, &index);
            review.deliberators.iter().map(positions).collect()
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
        let run = self.run_id(spec, question);
        let _guard = session.acquire_run(&run).await?;
        let waits = self.observer.clone();
        let observer: Arc<dyn Observer> = Arc::new(move |event: Event| {
            event.wait_line().iter().for_each(|line| waits(SweepEvent::Waiting(line)))
        });
        let history = match self.recorded(&run).await? {
            Some(history) if history.outcome().is_some_and(|outcome| !outcome.is_incomplete()) => history,
            Some(history) => {
                spec.sharing(shared)
                    .resume(session, history, KeySource::Recorded, self.permit, observer)
                    .await?
            }
            None => {
                let new = self.new_run(spec, text, question).await?;
                spec.sharing(shared).start_as(&run, session, new, self.permit, observer).await?
            }
        };
        history.share_with(shared);
        let mut review = report::load_from(session, &history).await?;
        // An answer that another run on the text paid for is not paid again.
        let is_cassette =
            |member: &PreparedMember| member.executor.executor(self.permit).recordings().is_some();
        let consultations = history.fed.iter().filter_map(|fed| fed.consultation.as_ref());
        let consultations = consultations.filter(|_| !spec.members.iter().any(is_cassette));
        let taken = consultations.filter(|one| one.recorded).map(|one| one.attempts).sum::<u32>();
        review.spent.calls = review.spent.calls.saturating_sub(taken);
        Ok(review)
    }

    fn run_id(&self, spec: &RunSpec<Setup>, question: &str) -> Name {
        entropy::derived_run_id(&format!("{question}/{:?}", spec.setup.cross_read))
    }

    /// The records of a run, if there is one.
    async fn recorded(&self, run: &Name) -> Result<Option<History>, Error> {
        match self.session.store.find_by_prefix(run).await? {
            PrefixMatch::One(_) => self.session.history(run).await.map(Some),
            PrefixMatch::None | PrefixMatch::Several(_) => Ok(None),
        }
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

/// The first and the last position of a member, from its answers in a council with this number of rounds.
fn positions([first, second]: [Stance; 2], rounds: u8, index: &ArtifactIndex<'_>) -> Positions {
    let found = |stance: &Stance| stance.read.as_ref()?.findings.clone();
    let position = |stance: &Stance| {
        let read = stance.read.as_ref()?;
        // A second answer without a list of findings keeps those of the first.
        let findings = found(stance).or_else(|| found(&first)).unwrap_or_default();
        let lines = findings.iter().filter_map(|finding| Some(index.locate(finding)?.line)).collect();
        Some(Position { stops: read.would_block, lines })
    };
    Positions { first: position(&first), last: position(if rounds == 1 { &first } else { &second }) }
}

/// What the council decided, with the lines of all findings; `None` for INCOMPLETE.
fn council_position(review: &Review) -> Option<Position> {
    let verdict = review.verdict.filter(|verdict| *verdict != Verdict::Incomplete)?;
    let lines = review.findings.iter().filter_map(|finding| usize::try_from(finding.line?).ok()).collect();
    Some(Position { stops: verdict != Verdict::Ship, lines })
}

impl CoherenceReport {
    fn of(
        coherence: Coherence,
        judged: &[Judged],
        reviews: &[Review],
        (ledger, mut notes): (String, Vec<String>),
    ) -> Self {
        let mut spent = Cost::default();
        reviews.iter().for_each(|review| spent.add(&review.spent));
        spent.took = reviews.iter().map(|review| review.spent.took).sum();
        let names: BTreeSet<&str> = reviews.iter().map(|review| &*review.executor).collect();
        let model_asked = reviews.iter().any(|review| review.model_asked);
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
