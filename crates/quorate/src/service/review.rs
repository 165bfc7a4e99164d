//! Reviews one artifact: its council with the executor of each member, and the run. A file that a tool has just
//! written is reviewed as in a sweep: files that are not due are skipped, and content that this council has judged is
//! not judged again.
//!
//! The executor of a member is that of `--executor`; else that of the member's table in `quorate.toml`, its `runtime`
//! in `council.yaml`, the council's `runtime`, `[defaults]`; else the rubric.

use std::borrow::Cow;
use std::path::{Component, Path};
use std::sync::Arc;
use std::time::Duration;

use quorate_adapters::executor::agent_cli::MEMBER_VARIABLE;
use quorate_diagnostics::{Body, codes};
use quorate_kernel::budget::Caps;
use quorate_kernel::observer::Observer;
use quorate_kernel::record::{RunOpened, TierSource};
use quorate_ledger::council_log::IndexedLog;
use quorate_ledger::store::lease::{LockOutcome, RunGuard};
use quorate_manifest::config::MemberSettings;
use quorate_manifest::council::tiers::{self, UNCLASSIFIED};
use quorate_manifest::council::{self, ContextFile, Policy, VerdictPolicy};
use quorate_manifest::tree::reader::meant_or;
use quorate_protocol::modes::council::{ADJUDICATOR, Council, Setup};
use quorate_protocol::{Json, Name, Part, PartKind, Protocol, answers};
use serde_json::{Map, json};
use tokio::time::Instant;

use super::artifact::Artifact;
use super::environment::Environment;
use super::error::{Error, ErrorKind};
use super::estimate::{self, Estimate};
use super::executor::{self, NamedExecutor, SelectedExecutor, ensure_one_executor};
use super::report::{self, FailOn, Review};
use super::run_spec::{
    ExecutorSource, Fingerprint, MemberExecutors, NewRun, PreparedMember, ProtocolSetup, RunOptions, RunSpec,
    check_producer,
};
use super::session::LedgerSession;
use super::signer::Signer;
use super::tier_model::TierModel;
use super::trust::{self, Permit};
use super::workspace::{self, PathOverrides, Workspace};
use super::{budget, finalize, manifests, open_session};

/// How a draft is reviewed.
#[derive(Debug, Clone, Default)]
pub struct ReviewRequest {
    /// The type of the text, under which verdicts are remembered; default: by the council's tier rules.
    pub artifact_type: Option<String>,
    /// The tier; default: by the council's tier rules.
    pub tier: Option<tiers::Tier>,
    /// Whether the tier decides if the draft is reviewed.
    pub tier_policy: TierPolicy,
    /// The verdict policy; default: the council's.
    pub policy: Option<VerdictPolicy>,
    /// The mildest verdict whose exit code is not 0; `None` gives every verdict its own code.
    pub fail_on: Option<FailOn>,
    /// The options of the run.
    pub options: RunOptions,
}

/// The tier of an unclassified text.
pub(crate) const STRICTEST_TIER: u8 = 1;

/// Whether a review applies the artifact's tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TierPolicy {
    /// Tier 2 is skipped, tier 3 is sampled.
    Obey,
    /// A named file is always reviewed.
    #[default]
    Ignore,
}

/// The result of a review that may obey tiers.
#[derive(Debug)]
pub enum ReviewOutcome {
    /// The council has judged the draft.
    Judged(Box<Review>),
    /// The draft was skipped because of its tier, which is not a SHIP.
    Skipped {
        /// The tier.
        tier: u8,
        /// The type of the text.
        artifact_type: String,
        /// The model's reason for the tier, if a model chose it.
        reason: Option<String>,
    },
}

impl ReviewOutcome {
    /// The exit code of a command with this outcome.
    pub fn exit_code(&self) -> u8 {
        match self {
            ReviewOutcome::Judged(review) => review.exit,
            ReviewOutcome::Skipped { .. } => 6,
        }
    }
}

/// The severity of an exit code among those of several reviews.
pub(crate) fn severity(code: u8) -> u8 {
    match code {
        0 => 0,
        6 => 1,
        1 => 2,
        2 => 3,
        3 => 4,
        _ => 5,
    }
}

/// The interval between checks whether another process has judged the text.
const TEXT_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The maximum wait for another process: no review takes longer, and a stopped process would block this one forever.
const TEXT_WAIT: Duration = Duration::from_secs(15 * 60);

/// Locks a text while it is judged, so that of several processes with the same ledger one asks and the others use its
/// verdict. Waits for another process, but not inside a member of a run, because that run may be judging this text.
///
/// # Errors
/// If the ledger does not answer, or another process holds the text for too long.
#[crate::boxed]
pub(crate) async fn hold_text(session: &LedgerSession, sha256: &str) -> Result<Option<RunGuard>, Error> {
    if session.environment.variables.get(MEMBER_VARIABLE).is_some() {
        return Ok(None);
    }
    let name = Name::from(format!("text-{}", &sha256[..32]));
    let until = Instant::now() + TEXT_WAIT;
    while Instant::now() < until {
        if let LockOutcome::Acquired(held) = session.store.lock_run(&name).await? {
            return Ok(Some(held));
        }
        tokio::time::sleep(TEXT_POLL_INTERVAL).await;
    }
    let body = Body::new(format!(
        "another process has been judging this text for {} minutes",
        TEXT_WAIT.as_secs() / 60
    ));
    let help = "find its run with `quorate runs`, end the process, and repeat this command";
    Err(Error::new(ErrorKind::Moved, codes::RUN_MOVED, body.help(help)))
}

/// Opens the session for an artifact.
///
/// # Errors
/// If configuration or ledger are unusable.
#[crate::boxed]
pub(crate) async fn open_session(
    environment: &Environment,
    places: &PathOverrides,
    artifact: &Artifact,
) -> Result<LedgerSession, Error> {
    open_session::open_for_writing(environment.clone(), load(environment, places, artifact)?).await
}

/// Whether a member of an artifact's council asks a model. Calls no member.
///
/// # Errors
/// If configuration or executor are unusable.
pub(crate) fn asks_a_model(
    environment: &Environment,
    places: &PathOverrides,
    artifact: &Artifact,
    options: &RunOptions,
) -> Result<bool, Error> {
    let workspace = load(environment, places, artifact)?;
    let selected = select_executors(&workspace, options)?;
    Ok(selected.iter().any(|(_, executor)| executor.about().asks_a_model))
}

/// The run of reviewing an artifact, and its expected cost; empty if its tier is skipped. Calls no member, and neither
/// needs nor creates a ledger.
///
/// # Errors
/// If configuration or executor are unusable.
pub(crate) fn estimate(
    environment: &Environment,
    places: &PathOverrides,
    artifact: &Artifact,
    request: &ReviewRequest,
) -> Result<(Estimate, Workspace, RunSpec<Setup>), Error> {
    let workspace = load(environment, places, artifact)?;
    let spec = build(environment, &workspace, &request.options, request.policy)?;
    let relative = relative_to_council(&workspace, artifact);
    let classified = workspace.council.tiers.classify(&relative);
    let tier = request.tier.unwrap_or(classified.tier);
    // The model's choice of a tier is not known beforehand.
    let may_be_due = classified.asks_model || is_due(tier, &relative, &artifact.sha256);
    if request.tier_policy == TierPolicy::Obey && !may_be_due {
        let (tier, kind) = (tier.number(), classified.artifact_type);
        let why = format!("Tier {tier} (type {kind}) is not reviewed with `--tiered`.");
        return Ok((Estimate { obstacle: Some(why), ..Estimate::default() }, workspace, spec));
    }
    let part = Part::new(PartKind::Artifact, &*artifact.display_name, &*artifact.text);
    let mut estimate = estimate::estimate(&spec, part)?;
    estimate.obstacle = spec.obstacle(environment, estimate.calls);
    Ok((estimate, workspace, spec))
}

fn load(environment: &Environment, places: &PathOverrides, artifact: &Artifact) -> Result<Workspace, Error> {
    let start = artifact.path.as_deref().and_then(Path::parent).unwrap_or(&environment.directory);
    let workspace = workspace::load(environment, places, start)?;
    workspace.guard.ensure_unrecorded(artifact)?;
    Ok(workspace)
}

/// Reviews an artifact at an opened session.
///
/// # Errors
/// If the executor is refused, or the ledger fails.
#[crate::boxed]
pub(crate) async fn review(
    session: &LedgerSession,
    artifact: Artifact,
    request: &ReviewRequest,
    observer: Arc<dyn Observer>,
) -> Result<ReviewOutcome, Error> {
    session.workspace.guard.ensure_unrecorded(&artifact)?;
    let spec = build(&session.environment, &session.workspace, &request.options, request.policy)?;
    let permit = spec.admit(&session.environment)?;
    let relative = relative_to_council(&session.workspace, &artifact);
    let classified = session.workspace.council.tiers.classify(&relative);
    let mut tier = request.tier.unwrap_or(classified.tier);
    let mut tier_source = None;
    // A named file is reviewed whatever tier a model would choose, so none is asked.
    if classified.asks_model && request.tier.is_none() && request.tier_policy == TierPolicy::Obey {
        let model = tier_model(session, &request.options, Some(permit)).await?;
        let sorted = model.sort(session, &artifact).await?;
        (tier, tier_source) = (sorted.tier, Some(sorted.source));
    }
    let artifact_type = request.artifact_type.clone().unwrap_or(classified.artifact_type);
    let artifact_type = session.workspace.redaction.redactor.redact(&artifact_type).0;
    if request.tier_policy == TierPolicy::Obey && !is_due(tier, &relative, &artifact.sha256) {
        let reason = tier_source.map(|source| source.reason);
        return Ok(ReviewOutcome::Skipped { tier: tier.number(), artifact_type, reason });
    }
    let indexed = session.sync_log_index().await?;
    let input = ReviewInput { artifact, artifact_type, tier: tier.number(), tier_source };
    let mut report = start(&spec, session, &input, indexed, permit, observer).await?;
    report.notes.extend(unread_prompts(&spec, session));
    report.set_fail_on(request.fail_on);
    Ok(ReviewOutcome::Judged(Box::new(report)))
}

/// An artifact's path as tier rules see it.
fn relative_to_council(workspace: &Workspace, artifact: &Artifact) -> String {
    match &artifact.path {
        Some(path) => relative_path(&workspace.council.dir, path),
        None => artifact.display_name.clone(),
    }
}

/// Whether an artifact of a tier is reviewed if tiers are obeyed: tier 1 always, tier 2 never, tier 3 as a sample (C6).
pub(crate) fn is_due(tier: tiers::Tier, relative: &str, sha256: &str) -> bool {
    match tier {
        tiers::Tier::One => true,
        tiers::Tier::Two => false,
        tiers::Tier::Three => tiers::is_sampled(relative, sha256),
    }
}

/// A path as tier rules and sampling see it: relative to the council's directory, with `/`, and independent of the
/// spelling.
pub(crate) fn relative_path(dir: &Path, path: &Path) -> String {
    let (path, dir) = (normal_components(path), normal_components(dir));
    let shared = path.iter().zip(&dir).take_while(|(one, other)| one == other).count();
    let up = dir[shared..].iter().map(|_| "..".to_owned());
    up.chain(path[shared..].iter().cloned()).collect::<Vec<_>>().join("/")
}

/// A path's names from the root, with `.` and `..` resolved.
fn normal_components(path: &Path) -> Vec<String> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut steps = Vec::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => drop(steps.pop()),
            Component::Normal(name) => steps.push(name.to_string_lossy().into_owned()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    steps
}

/// The executor of each member by its id: the deliberators in roster order, then the adjudicator (C11).
///
/// # Errors
/// If `quorate.toml` has a table for a member that the council does not have, an executor is unknown or refuses its
/// settings, or `--model` is for members with different executors.
pub(crate) fn select_executors<'w>(
    workspace: &'w Workspace,
    options: &'w RunOptions,
) -> Result<Vec<(&'w str, SelectedExecutor)>, Error> {
    ensure_known_members(workspace)?;
    let (config, council) = (&workspace.config, &workspace.council);
    let host = workspace.config_path.as_deref().unwrap_or(&config.dir);
    let file = workspace.council_path.as_deref().unwrap_or(&council.dir);
    let mut executors = MemberExecutors::new(workspace, options, file)?;
    let mut selected = Vec::new();
    for (member, own) in council.member_ids().zip(council.settings()) {
        let table = config.council.members.get(member).map(|table| (table, host));
        let settings: Vec<_> = table.into_iter().chain([(own, file)]).collect();
        let runtime = own.runtime.as_ref().or(council.runtime.as_ref()).map(ExecutorSource::Runtime);
        let executor = executors.select(&settings, runtime);
        let mut executor = executor.map_err(|error| quoting(own, error))?;
        executor.limit_time(options.timeout);
        executor.ensure_answers(match member {
            ADJUDICATOR => answers::Schema::Adjudication,
            _ => answers::Schema::FirstAnswer,
        })?;
        selected.push((member, executor));
    }
    ensure_one_executor(options.model.as_deref(), selected.iter().map(|(_, executor)| executor))?;
    Ok(selected)
}

/// Lets the diagnostics of an error quote the council's file.
fn quoting(own: &MemberSettings, mut error: Error) -> Error {
    if let Some((_, place)) = own.executor.iter().chain(own.fallback.iter().flatten()).next() {
        error.report.add_source(place.file.clone(), own.source.clone());
    }
    error
}

/// The adjudicator's executor.
///
/// # Errors
/// As [`select_executors`].
pub(crate) fn adjudicator_executor(
    workspace: &Workspace,
    options: &RunOptions,
) -> Result<SelectedExecutor, Error> {
    let mut members = select_executors(workspace, options)?;
    let (_, adjudicator) = members.pop().expect("every council has an adjudicator");
    Ok(adjudicator)
}

/// The model that says tiers: the executor of `[council] tiers`, else the adjudicator's. With a permit for the council it is
/// admitted as well.
///
/// # Errors
/// If the executor is refused, or the ledger fails.
pub(crate) async fn tier_model(
    session: &LedgerSession,
    options: &RunOptions,
    mut permit: Option<Permit>,
) -> Result<TierModel, Error> {
    let workspace = &session.workspace;
    let (config, caps) = (&workspace.config, caps(workspace, options));
    let classifier = match config.council.tiers.as_ref().filter(|_| options.executor.is_none()) {
        None => adjudicator_executor(workspace, options)?,
        Some(named) => {
            let file = config.path();
            let chosen = workspace.executors().by_name(NamedExecutor::by_file(named, &file), Map::new())?;
            chosen.ensure_answers(answers::Schema::Tier)?;
            if permit.is_some() {
                permit = Some(trust::admit(&session.environment, chosen.needs())?);
                chosen.ensure_installed()?;
                chosen.ensure_enforceable(&caps)?;
            }
            chosen
        }
    };
    TierModel::open(session, classifier, caps, permit).await
}

/// The caps of a review: those of the options, else the configured ones.
pub(crate) fn caps(workspace: &Workspace, options: &RunOptions) -> Caps {
    options.caps_within(budget::configured(&workspace.config))
}

/// Refuses a table `[council.members.<id>]` for a member that the council does not have.
///
/// # Errors
/// [`codes::HOST_INVALID`] at the table.
pub(crate) fn ensure_known_members(workspace: &Workspace) -> Result<(), Error> {
    let known: Vec<&str> = workspace.council.member_ids().collect();
    let tables = &workspace.config.council.members;
    let Some((id, table)) = tables.iter().find(|(id, _)| !known.contains(&id.as_str())) else {
        return Ok(());
    };
    let help = meant_or(id, &known, || format!("the members are {}", known.join(", ")));
    let body = Body::new(format!("the council has no member `{id}`")).at(table.place.clone());
    Err(executor::refuse_in(codes::HOST_INVALID, body.help(help), &table.source))
}

impl ProtocolSetup for Setup {
    fn protocol(&self) -> Result<Box<dyn Protocol>, Error> {
        Ok(Box::new(Council::new(self.clone())))
    }
}

/// The maximum length of an artifact's type, in characters: every line of the log repeats it.
pub(crate) const MAX_TYPE_CHARS: usize = 200;

/// An artifact to review.
#[derive(Debug, Clone)]
pub(crate) struct ReviewInput {
    pub artifact: Artifact,
    pub artifact_type: String,
    pub tier: u8,
    /// How a model chose the tier, if it was asked.
    pub tier_source: Option<TierSource>,
}

/// Builds the run of a review.
///
/// # Errors
/// If the executor is refused.
pub(crate) fn build(
    environment: &Environment,
    workspace: &Workspace,
    options: &RunOptions,
    policy: Option<VerdictPolicy>,
) -> Result<RunSpec<Setup>, Error> {
    let council = &workspace.council;
    workspace.redaction.check_ids(council.deliberators.iter().map(|member| &*member.id))?;
    let executors = select_executors(workspace, options)?;
    if let Some(producer) = &options.producer {
        let (root, scope) = manifests::root_and_scope(environment, None);
        check_producer(producer, environment, &root, &[scope])?;
    }
    let chosen = policy.map(Policy::Named).or_else(|| council.policy.clone());
    let policy = chosen.unwrap_or(Policy::Named(VerdictPolicy::Seed));
    let setup = Setup::from_manifest(council, policy);
    let settings: Json =
        executors.iter().map(|(id, executor)| json!([id, executor.recorded_settings()])).collect();
    let fingerprint = Fingerprint::of_council(workspace, &setup, &settings);
    let mut executors = executors.into_iter().map(|(_, executor)| executor);
    let mut member = |id: Name, prompt: &Arc<str>, context, weight| {
        let executor = executors.next().expect("each member has an executor, in this order");
        PreparedMember {
            id,
            role: String::new(),
            prompt: prompt.clone(),
            persona: None,
            context,
            weight,
            timeout: executor.timeout,
            executor,
            composed: None,
            extra_fields: Map::new(),
        }
    };
    let shown = |file: &ContextFile| Part::new(PartKind::Context, &*file.path, file.text.clone());
    let mut prepared = Vec::with_capacity(council.deliberators.len() + 1);
    for deliberator in &council.deliberators {
        let context = deliberator.context.iter().map(shown).collect();
        let weight = Some(deliberator.weight);
        prepared.push(member(deliberator.id.clone(), &deliberator.prompt.text, context, weight));
    }
    prepared.push(member(ADJUDICATOR.into(), &council.adjudicator.text, Vec::new(), None));
    Ok(RunSpec::new(workspace, options, setup, prepared, fingerprint))
}

/// Reviews an artifact, and returns the report.
///
/// # Errors
/// If the ledger fails. Recorded answers stay, and the run can be resumed.
#[crate::boxed]
pub(crate) async fn start(
    spec: &RunSpec<Setup>,
    session: &LedgerSession,
    input: &ReviewInput,
    indexed: IndexedLog,
    permit: Permit,
    observer: Arc<dyn Observer>,
) -> Result<Review, Error> {
    let (workspace, redactor) = (&session.workspace, &spec.redaction.redactor);
    if input.artifact_type.chars().count() > MAX_TYPE_CHARS {
        let body = Body::new(format!("the type of the text has more than {MAX_TYPE_CHARS} characters"));
        return Err(Error::usage(body.help("shorten it to a word or two")));
    }
    let (shown, in_name) = redactor.redact(&input.artifact.display_name);
    let (text, in_text) =
        spec.redaction.redact_subject(&input.artifact.display_name, &input.artifact.text, false).await?;
    finalize::close_outdated(session, &input.artifact, &shown).await?;
    let signer = Signer::new(session.keys(), session.keys().signing_mode(), None).await?;
    let (artifact_type, in_type) = redactor.redact(&input.artifact_type);
    // Artifacts that no tier rule matches have no common type, so earlier verdicts say nothing about this one.
    let priors = match artifact_type.as_str() {
        UNCLASSIFIED => Vec::new(),
        _ => session.priors(indexed, &artifact_type).await?,
    };
    let text: Arc<str> = text.into();
    let (priors, in_priors) = redactor.redact_json(Json::Array(priors));
    let priors = priors.as_array().cloned().unwrap_or_default();
    let opened = RunOpened {
        artifact_type: Some(artifact_type),
        tier: Some(input.tier.into()),
        tier_source: input.tier_source.clone(),
        priors: Some(priors),
        files: json!(workspace.council.files),
        log_path: Some(workspace.log.to_string_lossy().into_owned()),
        log_bytes: Some(indexed.bytes),
        audit: signer.run_audit(),
        ..RunOpened::default()
    };
    let sorting = input.tier_source.as_ref().and_then(|source| source.spent.clone());
    let new = NewRun {
        spent_before: sorting.unwrap_or_default(),
        artifact: Cow::Borrowed(&input.artifact),
        part: Part::new(PartKind::Artifact, &*shown, text.clone()),
        redactions: in_name + in_type + in_text + in_priors,
        signer,
        opened,
        seed: None,
    };
    let history = spec.start(session, new, permit, observer).await?;
    Ok(report::of_own_run(session, &history, text))
}

/// A note on prompts of the workspace that the executors of their members do not read.
pub(crate) fn unread_prompts(spec: &RunSpec<Setup>, session: &LedgerSession) -> Option<String> {
    let ready_made = council::built_in_council();
    let is_ready_made = |member: &&PreparedMember| {
        ready_made.deliberators.iter().any(|known| known.prompt.text == member.prompt)
    };
    let deliberators = spec.members.iter().take(session.workspace.council.deliberators.len());
    let unread = |member: &&PreparedMember| !member.executor.about().asks_a_model;
    let own_rules: Vec<&PreparedMember> =
        deliberators.filter(unread).filter(|member| !is_ready_made(member)).collect();
    let kind = own_rules.first()?.executor.about().kind;
    let ids: Vec<&str> = own_rules.iter().map(|member| &*member.id).collect();
    Some(format!(
        "The {kind} reads no prompts: those of {} had no effect. `--executor NAME` asks a model.",
        ids.join(", ")
    ))
}
