//! How a review is held: the council of the workspace, with the executor that answers for all of it.

use std::sync::Arc;

use quorate_diagnostics::Report;
use quorate_kernel::extensions::Extensions;
use quorate_kernel::observer::Observer;
use quorate_kernel::record::RunOpened;
use quorate_ledger::council_log::{IndexedLog, priors};
use quorate_manifest::council::tiers::UNCLASSIFIED;
use quorate_manifest::council::{ContextFile, Deliberator, PolicyName, built_in};
use quorate_protocol::modes::council::{ADJUDICATOR, Council, Setup};
use quorate_protocol::policy::Policy;
use quorate_protocol::{Json, Name, Part, PartKind, Protocol};
use serde_json::{Map, json};

use crate::service::artifact::Artifact;
use crate::service::error::ServiceError;
use crate::service::executor::{self, SelectedExecutor};
use crate::service::fingerprint::Fingerprint;
use crate::service::manifests;
use crate::service::producer::check::check as check_producer;
use crate::service::run_options::RunOptions;
use crate::service::run_spec::{NewRun, PreparedMember, ProtocolSetup, RunSpec, caps};
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

/// An artifact as it is reviewed.
#[derive(Debug, Clone)]
pub struct ReviewInput {
    pub artifact: Artifact,
    pub artifact_type: String,
    pub tier: u8,
}

/// Puts a review together.
///
/// # Errors
/// When the executor is refused.
pub fn build(
    session: &LedgerSession,
    options: &RunOptions,
    policy: Option<Policy>,
) -> Result<RunSpec<Setup>, ServiceError> {
    let workspace = &session.workspace;
    let council = &workspace.council;
    workspace.redaction.check_ids(council.deliberators.iter().map(|member| &*member.id))?;
    let executor = select_executor(workspace, options)?;
    if let Some(producer) = &options.producer {
        let (root, scope) = manifests::root_and_scope(&session.environment, None);
        check_producer(producer, &session.environment, &root, &[scope])?;
    }
    let policy = policy.unwrap_or(match council.policy {
        Some(PolicyName::Strict) => Policy::Strict,
        Some(PolicyName::Seed) | None => Policy::Seed,
    });
    let setup = Setup::from_manifest(council, policy);
    let member = |id: Name, prompt: &Arc<str>, context, weight| PreparedMember {
        id,
        role: String::new(),
        prompt: prompt.clone(),
        persona: None,
        context,
        weight,
        timeout: executor.timeout,
        executor: executor.clone(),
        composed: None,
    };
    let shown = |file: &ContextFile| Part::new(PartKind::Context, &*file.path, file.text.clone());
    let deliberators = council.deliberators.iter().map(|deliberator| {
        let context = deliberator.context.iter().map(shown).collect();
        member(deliberator.id.clone(), &deliberator.prompt.text, context, Some(deliberator.weight))
    });
    let adjudicator = member(ADJUDICATOR.into(), &council.adjudicator.text, Vec::new(), None);
    Ok(RunSpec {
        members: deliberators.chain([adjudicator]).collect(),
        fingerprint: Fingerprint::of_council(workspace, &setup, &executor),
        setup,
        redaction: workspace.redaction.clone(),
        setup_redactions: 0,
        report: Report::new(),
        extensions: Extensions::default(),
        caps: caps(options, &workspace.host),
        options: options.clone(),
    })
}

/// The executor of a review: `--executor`, else the council's runtime, else `[defaults]`, else the rubric (C11).
///
/// # Errors
/// When the name or kind is unknown, or the adapter refuses its settings.
pub fn select_executor(
    workspace: &Workspace,
    options: &RunOptions,
) -> Result<SelectedExecutor, ServiceError> {
    let (registry, host) = (&workspace.registry, &workspace.host);
    let file = host.path();
    let council = workspace.council_path.as_deref().unwrap_or(&workspace.council.dir);
    let build = |extra: Map<String, Json>| match (
        &options.executor,
        &workspace.council.runtime,
        &host.default_executor,
    ) {
        (Some(name), ..) => {
            executor::by_name_with(registry, host, name, None, executor::SelectedBy::Person, extra)
        }
        (None, Some(table), _) => {
            let mut table = table.clone();
            table.block.json.extend(extra);
            executor::by_runtime(registry, &table, &workspace.council.dir, council)
        }
        (None, None, Some((name, place))) => executor::by_name_with(
            registry,
            host,
            name,
            Some(place),
            executor::SelectedBy::File(&file),
            extra,
        ),
        (None, None, None) => executor::fallback_with(registry, host, extra),
    };
    let mut chosen = executor::with_model(options.model.as_deref(), build)?;
    chosen.timeout = options.timeout.unwrap_or(chosen.timeout);
    Ok(chosen)
}

/// Reviews an artifact, and gives the run's id.
///
/// # Errors
/// When the ledger fails. What was recorded stays, and the run can be resumed.
pub async fn start(
    spec: &RunSpec<Setup>,
    session: &LedgerSession,
    input: &ReviewInput,
    indexed: IndexedLog,
    permit: Permit,
    observer: Arc<dyn Observer>,
) -> Result<Name, ServiceError> {
    let (workspace, redactor) = (&session.workspace, &spec.redaction.redactor);
    let (shown, in_name) = redactor.redact(&input.artifact.display_name);
    supersede::close_outdated(session, &input.artifact, &shown).await?;
    let signer = Signer::new(session.keys(), session.keys().signing_mode(), None).await?;
    let (artifact_type, in_type) = redactor.redact(&input.artifact_type);
    // What no rule knows has nothing in common.
    let priors = match artifact_type.as_str() {
        UNCLASSIFIED => Vec::new(),
        _ => priors::priors(&session.store, &workspace.log, indexed, &artifact_type).await?,
    };
    let text = input.artifact.text.clone();
    let redacted = redactor.run_blocking_if_large(text.len(), move |redactor| redactor.redact(&text));
    let (text, in_text) = redacted.await;
    let (priors, in_priors) = redactor.redact_json(Json::Array(priors));
    let priors = priors.as_array().cloned().unwrap_or_default();
    let opened = RunOpened {
        artifact_type: Some(artifact_type),
        tier: Some(input.tier.into()),
        priors: Some(priors),
        files: json!(workspace.council.files),
        log_path: Some(workspace.log.to_string_lossy().into_owned()),
        log_bytes: Some(indexed.bytes),
        audit: signer.run_audit(),
        ..RunOpened::default()
    };
    let new = NewRun {
        artifact: &input.artifact,
        part: Part::new(PartKind::Artifact, &*shown, text),
        redactions: in_name + in_type + in_text + in_priors,
        signer,
        opened,
    };
    spec.start(session, new, permit, observer).await
}

/// A note for prompts that the workspace wrote and that the executor does not read.
pub fn unread_prompts(spec: &RunSpec<Setup>, session: &LedgerSession) -> Option<String> {
    let about = spec.members.first()?.executor.about();
    let ready_made = built_in();
    let is_ready_made = |member: &&Deliberator| {
        ready_made.deliberators.iter().any(|known| known.prompt.text == member.prompt.text)
    };
    let deliberators = session.workspace.council.deliberators.iter();
    let own_rules: Vec<&str> =
        deliberators.filter(|member| !is_ready_made(member)).map(|member| &*member.id).collect();
    (!about.asks_a_model && !own_rules.is_empty()).then(|| {
        format!(
            "The {} reads no prompts: what is written for {} had no effect. `--executor NAME` asks a model.",
            about.kind,
            own_rules.join(", ")
        )
    })
}
