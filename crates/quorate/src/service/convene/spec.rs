//! Builds an assembly's run: its members with their prompts and executors, and its first record.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::canonical;
use quorate_kernel::history::History;
use quorate_kernel::observer::Observer;
use quorate_kernel::record::{RunOpened, Spent};
use quorate_manifest::Capabilities as _;
use quorate_manifest::assembly::MatchMode;
use quorate_manifest::workspace::Scope;
use quorate_protocol::assembly::{HostOptions, Setup, subject_kind};
use quorate_protocol::modes::assembly::{Assembly, version};
use quorate_protocol::{Json, Part, Protocol};
use serde_json::json;

use super::due;
use super::inputs::ConveneInput;
use super::members;
use crate::service::budget;
use crate::service::embedder;
use crate::service::environment::Environment;
use crate::service::error::ServiceError;
use crate::service::fingerprint::{AssemblyParts, Fingerprint};
use crate::service::overlays;
use crate::service::producer::check::check as check_producer;
use crate::service::redaction::Redaction;
use crate::service::resolve;
use crate::service::run_options::RunOptions;
use crate::service::run_spec::{NewRun, PreparedMember, ProtocolSetup, RunSpec};
use crate::service::session::LedgerSession;
use crate::service::signer::Signer;
use crate::service::workspace::Workspace;

impl ProtocolSetup for Setup {
    fn protocol(&self) -> Result<Box<dyn Protocol>, ServiceError> {
        Ok(Box::new(assembly(self)?))
    }
}

/// The protocol for a setup.
///
/// # Errors
/// If a locked trait cannot be matched.
pub fn assembly(setup: &Setup) -> Result<Assembly, ServiceError> {
    Assembly::new(setup.clone())
        .map_err(|error| ServiceError::configuration(codes::PATTERN_INVALID, Body::new(error.to_string())))
}

/// Builds the run spec of an assembly.
///
/// # Errors
/// If an executor or a pattern is refused.
pub fn build(
    environment: &Environment,
    workspace: &Workspace,
    input: &ConveneInput,
    options: &RunOptions,
) -> Result<RunSpec<Setup>, ServiceError> {
    let host = &environment.host;
    let resolved = &input.resolution.resolved;
    let compares = resolved.match_mode == MatchMode::Semantic && !resolved.locked_traits.is_empty();
    let embedder = match compares && !host.has_embedder() {
        true => embedder::configured(&workspace.registry, &workspace.host)?,
        false => None,
    };
    let embeds = host.has_embedder() || embedder.is_some();
    let around = HostOptions { embeds, early_decision: workspace.host.early_decision };
    let redaction = workspace.redaction.clone();
    let (setup, setup_redactions) = redact_setup(
        &Setup::from_resolved(&input.resolution.resolved, input.request.clone(), around),
        &redaction,
    )?;
    if let Some(producer) = &options.producer {
        let leaf = input.resolution.resolved.chain.leaf().path.scope().clone();
        check_producer(producer, environment, &input.resolution.root, &[leaf, Scope::Workspace])?;
    }
    let mut report = Report::new();
    let members = members::prepare(environment, workspace, input, options, &mut report)?;
    redaction.check_ids(members.iter().map(|member| &*member.id))?;
    let by_member = |value: fn(&PreparedMember) -> Json| {
        members.iter().map(|member| json!([&*member.id, value(member)])).collect::<Json>()
    };
    let documents = &input.resolution.resolved.chain.documents;
    let fingerprint = Fingerprint::of_assembly(AssemblyParts {
        manifest: documents.iter().map(|document| json!(&*document.text)).collect(),
        prompts: by_member(|member| json!(&*member.prompt)),
        setup: json!(setup),
        executors: by_member(|member| member.executor.settings.clone()),
        embedder: embedder.as_ref().map(|embedder| &embedder.settings),
        redaction: redaction.settings(),
        mode: version(setup.mode),
    });
    Ok(RunSpec {
        setup,
        members,
        redaction,
        setup_redactions,
        report,
        fingerprint,
        extensions: host.extensions(),
        embedder,
        caps: options.caps.or(budget::configured(&workspace.host)),
        wall: workspace.host.budget.wall,
        options: options.clone(),
    })
}

/// Convenes, and returns the run's id.
///
/// # Errors
/// If the ledger fails. Everything recorded until then stays, and the run can be resumed.
#[crate::boxed]
pub async fn start(
    spec: &RunSpec<Setup>,
    session: &LedgerSession,
    input: &ConveneInput,
    observer: Arc<dyn Observer>,
) -> Result<History, ServiceError> {
    let permit = spec.admit(&session.environment)?;
    let resolved = &input.resolution.resolved;
    let signer = Signer::of_assembly(session.keys(), resolved).await?;
    let recorded = overlays::load(&session.store, &spec.setup.assembly).await?;
    let overlays = overlays::active_texts(&recorded, &spec.setup, session.environment.clock.now_ms());
    let (overlays, in_overlays) = spec.redaction.redactor.redact_json(Json::Array(overlays));
    let overlays = overlays.as_array().cloned().unwrap_or_default();
    let (part, in_input) = redacted_input(spec, input).await?;
    let opened = RunOpened {
        overlays: Some(overlays),
        audit: Some(signer.assembly_audit(resolved)),
        ..described(spec, input)
    };
    let new = NewRun {
        spent_before: Spent::default(),
        artifact: Cow::Borrowed(&input.subject),
        part,
        redactions: in_overlays + in_input,
        signer,
        opened,
    };
    spec.start(session, new, permit, observer).await
}

/// The fields of `run.opened` specific to assemblies.
pub(in crate::service) fn described(spec: &RunSpec<Setup>, input: &ConveneInput) -> RunOpened {
    let resolution = &input.resolution;
    let (resolved, chain) = (&resolution.resolved, &resolution.resolved.chain);
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    let file = |document| shown(&resolve::disk_path(&resolution.root, document));
    RunOpened {
        title: Some(resolved.title.clone()),
        grouping: Some(json!(resolved.display.as_ref().and_then(|display| display.default_grouping))),
        artifact_type: Some(spec.setup.assembly.to_string()),
        messages: Some(due::message_count(input)),
        manifest: Some(file(chain.leaf())),
        root: Some(shown(&resolution.root)),
        files: chain.documents.iter().map(|document| file(document)).collect(),
        ..RunOpened::default()
    }
}

/// The run's subject, as recorded and shown to members.
///
/// # Errors
/// If sentences would be lost to what looks like a secret.
#[crate::boxed]
pub async fn redacted_input(
    spec: &RunSpec<Setup>,
    input: &ConveneInput,
) -> Result<(Part, usize), ServiceError> {
    // A JSON escape can hide a secret from a pattern, but members read the decoded text.
    let lines = input.subject.display_name.to_ascii_lowercase().ends_with(".jsonl");
    let (text, in_text) =
        spec.redaction.redact_subject(&input.subject.display_name, &input.subject.text, lines).await?;
    let (shown, in_name) = spec.redaction.redactor.redact(&input.subject.display_name);
    Ok((Part::new(subject_kind(spec.setup.mode), &*shown, text), in_text + in_name))
}

/// The setup as it is read back from its record, without secrets, and the number of secrets: a replay needs the setup that
/// the run used.
///
/// # Errors
/// If it is invalid without them.
fn redact_setup(setup: &Setup, redaction: &Redaction) -> Result<(Setup, usize), ServiceError> {
    let (clean, found) = redaction.redactor.redact_json(json!(setup));
    let unreadable = |error: serde_json::Error| {
        let body =
            Body::new(format!("cannot redact a secret in the manifest: {error}"));
        ServiceError::configuration(
            codes::ASSEMBLY_WORKSPACE_INVALID,
            body.help("remove the secret from the manifest"),
        )
    };
    Ok((serde_json::from_value(canonical::normalize(clean)).map_err(unreadable)?, found))
}
