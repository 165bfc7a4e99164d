//! Reviews one artifact.

pub mod members;
pub mod spec;
pub mod written;

use std::path::{Component, Path};
use std::sync::Arc;
use std::time::Duration;

use quorate_adapters::executor::agent_cli::MEMBER_VARIABLE;
use quorate_diagnostics::{Body, codes};
use quorate_kernel::observer::Observer;
use quorate_ledger::store::lease::{LockOutcome, RunGuard};
use quorate_manifest::council::tiers;
use quorate_protocol::policy::Policy;
use quorate_protocol::{Name, Part, PartKind};
use tokio::time::Instant;

use super::artifact::Artifact;
use super::environment::Environment;
use super::error::ServiceError;
use super::estimate::{self, Estimate};
use super::open_session;
use super::report::Report;
use super::run_options::RunOptions;
use super::session::LedgerSession;
use super::tier_model::TierModel;
use super::workspace::{self, PathOverrides, Workspace};
use spec::ReviewInput;

#[derive(Debug, Clone)]
pub struct Request {
    /// `--type`, overrides the tier rules.
    pub artifact_type: Option<String>,
    /// `--tier`, overrides the tier rules.
    pub tier: Option<tiers::Tier>,
    /// `--tiered`: obey the tier, as a sweep does.
    pub tier_policy: TierPolicy,
    /// `--policy`, overrides the council's file.
    pub policy: Option<Policy>,
    pub options: RunOptions,
}

/// The tier of an unclassified text.
pub const STRICTEST_TIER: u8 = 1;

/// Whether a review applies the artifact's tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TierPolicy {
    /// Tier 2 is skipped, tier 3 is sampled.
    Obey,
    /// A named file is always reviewed.
    Ignore,
}

/// The result of a review.
#[derive(Debug)]
pub enum ReviewOutcome {
    Judged(Box<Report>),
    /// Skipped because of its tier (C5: never reported like SHIP).
    Skipped {
        tier: u8,
        artifact_type: String,
        /// The model's reason for the tier, if a model chose it.
        reason: Option<String>,
    },
}

/// The interval between checks whether another process has judged the text.
const TEXT_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The maximum wait for another process: no review takes longer, and a stopped process would block this one forever.
const TEXT_WAIT: Duration = Duration::from_secs(15 * 60);

/// Locks a text while it is judged, so that of several processes with the same ledger one asks and the others use its verdict.
/// Waits for another process, but not inside a member of a run, because that run may be judging this text.
///
/// # Errors
/// If the ledger does not answer, or another process holds the text for too long.
#[crate::boxed]
pub(in crate::service) async fn hold_text(
    session: &LedgerSession,
    sha256: &str,
) -> Result<Option<RunGuard>, ServiceError> {
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
    let body =
        Body::new(format!("another process has been judging this text for {} minutes", TEXT_WAIT.as_secs() / 60));
    let help = "find its run with `quorate runs`, end the process, and repeat this command";
    Err(ServiceError::configuration(codes::RUN_MOVED, body.help(help)))
}

/// Opens the session for an artifact.
///
/// # Errors
/// If configuration or ledger are unusable.
#[crate::boxed]
pub async fn open_session(
    environment: &Environment,
    places: &PathOverrides,
    artifact: &Artifact,
) -> Result<LedgerSession, ServiceError> {
    open_session::open_for_writing(environment.clone(), load(environment, places, artifact)?).await
}

/// Checks, without a ledger, that an artifact can be reviewed: valid configuration, available executor, enforceable caps.
///
/// # Errors
/// If configuration or executor are unusable.
pub fn check(
    environment: &Environment,
    places: &PathOverrides,
    artifact: &Artifact,
    request: &Request,
) -> Result<(), ServiceError> {
    let workspace = load(environment, places, artifact)?;
    spec::build(environment, &workspace, &request.options, request.policy)?.admit(environment).map(drop)
}

/// Whether a member of an artifact's council asks a model. Calls no member.
///
/// # Errors
/// If configuration or executor are unusable.
pub fn asks_a_model(
    environment: &Environment,
    places: &PathOverrides,
    artifact: &Artifact,
    options: &RunOptions,
) -> Result<bool, ServiceError> {
    let workspace = load(environment, places, artifact)?;
    let selected = members::select(&workspace, options)?;
    Ok(selected.iter().any(|(_, executor)| executor.about().asks_a_model))
}

/// The expected cost of reviewing an artifact; empty if its tier is skipped. Calls no member, and neither needs nor creates a
/// ledger.
///
/// # Errors
/// If configuration or executor are unusable.
pub fn estimate(
    environment: &Environment,
    places: &PathOverrides,
    artifact: &Artifact,
    request: &Request,
) -> Result<Estimate, ServiceError> {
    let workspace = load(environment, places, artifact)?;
    let spec = spec::build(environment, &workspace, &request.options, request.policy)?;
    let relative = relative_to_council(&workspace, artifact);
    let classified = workspace.council.tiers.classify(&relative);
    let tier = request.tier.unwrap_or(classified.tier);
    // The model's choice of a tier is not known beforehand.
    let may_be_due = classified.asks_model || is_due(tier, &relative, &artifact.sha256);
    if request.tier_policy == TierPolicy::Obey && !may_be_due {
        return Ok(Estimate::default());
    }
    estimate::estimate(&spec, Part::new(PartKind::Artifact, &*artifact.display_name, &*artifact.text))
}

fn load(
    environment: &Environment,
    places: &PathOverrides,
    artifact: &Artifact,
) -> Result<Workspace, ServiceError> {
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
pub async fn review(
    session: &LedgerSession,
    artifact: Artifact,
    request: &Request,
    observer: Arc<dyn Observer>,
) -> Result<ReviewOutcome, ServiceError> {
    let spec = spec::build(&session.environment, &session.workspace, &request.options, request.policy)?;
    let permit = spec.admit(&session.environment)?;
    let relative = relative_to_council(&session.workspace, &artifact);
    let classified = session.workspace.council.tiers.classify(&relative);
    let mut tier = request.tier.unwrap_or(classified.tier);
    let mut tier_source = None;
    // A named file is reviewed whatever tier a model would choose, so none is asked.
    if classified.asks_model && request.tier.is_none() && request.tier_policy == TierPolicy::Obey {
        let model = TierModel::open(session, &request.options, Some(permit)).await?;
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
    let mut report = spec::start(&spec, session, &input, indexed, permit, observer).await?;
    report.notes.extend(spec::unread_prompts(&spec, session));
    Ok(ReviewOutcome::Judged(Box::new(report)))
}

/// An artifact's path as tier rules see it.
fn relative_to_council(workspace: &Workspace, artifact: &Artifact) -> String {
    match &artifact.path {
        Some(path) => relative_path(&workspace.council.dir, path),
        None => artifact.display_name.clone(),
    }
}

/// Whether an artifact of a tier is reviewed if tiers are obeyed (C6).
pub fn is_due(tier: tiers::Tier, relative: &str, sha256: &str) -> bool {
    match tier {
        tiers::Tier::One => true,
        tiers::Tier::Two => false,
        tiers::Tier::Three => tiers::is_sampled(relative, sha256),
    }
}

/// A path as tier rules and sampling see it: relative to the council's directory, with `/`, and independent of the
/// spelling.
pub fn relative_path(dir: &Path, path: &Path) -> String {
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
