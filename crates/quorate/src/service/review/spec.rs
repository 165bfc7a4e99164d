//! Builds the run of a review: the workspace's council, with the executor of each member.

use std::borrow::Cow;
use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::extensions::Extensions;
use quorate_kernel::observer::Observer;
use quorate_kernel::record::{RunOpened, TierSource};
use quorate_ledger::council_log::IndexedLog;
use quorate_manifest::council;
use quorate_manifest::council::tiers::UNCLASSIFIED;
use quorate_manifest::council::{ContextFile, PolicyName};
use quorate_protocol::modes::council::{ADJUDICATOR, Council, Setup};
use quorate_protocol::policy::Policy;
use quorate_protocol::{Json, Name, Part, PartKind, Protocol};
use serde_json::{Map, json};

use super::members;
use crate::service::artifact::Artifact;
use crate::service::budget;
use crate::service::environment::Environment;
use crate::service::error::{ExitClass, ServiceError};
use crate::service::fingerprint::Fingerprint;
use crate::service::load_report;
use crate::service::manifests;
use crate::service::producer::check::check as check_producer;
use crate::service::report::Report as ReviewReport;
use crate::service::run_options::RunOptions;
use crate::service::run_spec::{NewRun, PreparedMember, ProtocolSetup, RunSpec};
use crate::service::session::LedgerSession;
use crate::service::signer::Signer;
use crate::service::supersede;
use crate::service::trust::Permit;
use crate::service::workspace::Workspace;

impl ProtocolSetup for Setup {
    fn protocol(&self) -> Result<Box<dyn Protocol>, ServiceError> {
        Ok(Box::new(Council::new(self.clone())))
    }
}

/// The maximum length of an artifact's type, in characters: every line of the log repeats it.
pub(in crate::service) const MAX_TYPE_CHARS: usize = 200;

/// An artifact to review.
#[derive(Debug, Clone)]
pub struct ReviewInput {
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
pub fn build(
    environment: &Environment,
    workspace: &Workspace,
    options: &RunOptions,
    policy: Option<Policy>,
) -> Result<RunSpec<Setup>, ServiceError> {
    let council = &workspace.council;
    workspace.redaction.check_ids(council.deliberators.iter().map(|member| &*member.id))?;
    let executors = members::select(workspace, options)?;
    if let Some(producer) = &options.producer {
        let (root, scope) = manifests::root_and_scope(environment, None);
        check_producer(producer, environment, &root, &[scope])?;
    }
    let policy = policy.unwrap_or(match council.policy {
        Some(PolicyName::Strict) => Policy::Strict,
        Some(PolicyName::Seed) | None => Policy::Seed,
    });
    let setup = Setup::from_manifest(council, policy);
    let settings: Json = executors.iter().map(|(id, executor)| json!([id, executor.settings])).collect();
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
    Ok(RunSpec {
        members: prepared,
        fingerprint,
        setup,
        redaction: workspace.redaction.clone(),
        setup_redactions: 0,
        report: Report::new(),
        extensions: Extensions::default(),
        embedder: None,
        caps: options.caps.or(budget::configured(&workspace.host)),
        wall: workspace.host.budget.wall,
        options: options.clone(),
    })
}

/// Reviews an artifact, and returns the report.
///
/// # Errors
/// If the ledger fails. Recorded answers stay, and the run can be resumed.
#[crate::boxed]
pub async fn start(
    spec: &RunSpec<Setup>,
    session: &LedgerSession,
    input: &ReviewInput,
    indexed: IndexedLog,
    permit: Permit,
    observer: Arc<dyn Observer>,
) -> Result<ReviewReport, ServiceError> {
    let (workspace, redactor) = (&session.workspace, &spec.redaction.redactor);
    if input.artifact_type.chars().count() > MAX_TYPE_CHARS {
        let body = Body::new(format!("the type of the text has more than {MAX_TYPE_CHARS} characters"));
        return Err(ServiceError::new(
            ExitClass::Usage,
            codes::USAGE,
            body.help("shorten it to a word or two"),
        ));
    }
    let (shown, in_name) = redactor.redact(&input.artifact.display_name);
    let (text, in_text) =
        spec.redaction.redact_subject(&input.artifact.display_name, &input.artifact.text, false).await?;
    supersede::close_outdated(session, &input.artifact, &shown).await?;
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
    };
    let history = spec.start(session, new, permit, observer).await?;
    Ok(load_report::of_own_run(session, &history, text))
}

/// A note on prompts of the workspace that the executors of their members do not read.
pub fn unread_prompts(spec: &RunSpec<Setup>, session: &LedgerSession) -> Option<String> {
    let ready_made = built_in();
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
