//! What a convening runs with: everything that it needs, put together, and the run that it becomes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::budget::Caps;
use quorate_kernel::canonical;
use quorate_kernel::consultation::object;
use quorate_kernel::driver::{Opening, RunConfig};
use quorate_kernel::entropy;
use quorate_kernel::extensions::Extensions;
use quorate_kernel::observer::Observer;
use quorate_kernel::redact::Redactor;
use quorate_manifest::Capabilities as _;
use quorate_manifest::workspace::Scope;
use quorate_protocol::assembly::{HostOptions, Setup, subject_kind};
use quorate_protocol::modes::assembly::{Assembly, version};
use quorate_protocol::{Json, Name, Part};
use serde_json::{Map, json};

use super::members::{self, PreparedMember};
use super::{ConveneInput, Options, due};
use crate::service::environment::Environment;
use crate::service::error::ServiceError;
use crate::service::finalize::finalize;
use crate::service::fingerprint::{AssemblyParts, Fingerprint};
use crate::service::host::Host;
use crate::service::overlays;
use crate::service::producer::Producer;
use crate::service::redaction::Redaction;
use crate::service::resolve;
use crate::service::session::LedgerSession;
use crate::service::signer::Signer;
use crate::service::trust::Permit;
use crate::service::workspace::Workspace;

/// An assembly that can be convened.
pub struct RunSpec {
    /// What the protocol is set up with.
    pub setup: Setup,
    /// Who sits in it, in roster order.
    pub members: Vec<PreparedMember>,
    /// What must not be recorded.
    pub redaction: Redaction,
    /// How many secrets were in the setup.
    in_setup: usize,
    /// What is wrong with playbooks, which keeps them out of prompts and nobody from being asked.
    pub report: Report,
    manifest: Json,
    caps: Caps,
    extensions: Extensions,
    executor: Option<String>,
    model: Option<String>,
    producer: Option<Producer>,
}

impl RunSpec {
    /// Puts it together.
    ///
    /// # Errors
    /// When an executor or a pattern is refused.
    pub fn new(
        environment: &Environment,
        workspace: &Workspace,
        input: &ConveneInput,
        options: &Options,
        host: &Host,
    ) -> Result<RunSpec, ServiceError> {
        let configuration = &workspace.host;
        let around =
            HostOptions { embeds: host.has_embedder(), early_decision: configuration.early_decision };
        let redaction = workspace.redaction.clone();
        let mut report = Report::new();
        let (setup, in_setup) = redact_setup(
            &Setup::from_resolved(&input.resolution.resolved, input.request.clone(), around),
            &redaction,
        )?;
        if let Some(producer) = &options.producer {
            let leaf = input.resolution.resolved.chain.leaf().path.scope().clone();
            producer.check(environment, &input.resolution.root, &[leaf, Scope::Workspace])?;
        }
        let members = members::seat(environment, workspace, input, options, host, &mut report)?;
        redaction.check_ids(members.iter().map(|member| &*member.id))?;
        Ok(RunSpec {
            setup,
            in_setup,
            members,
            report,
            redaction,
            manifest: input
                .resolution
                .resolved
                .chain
                .documents
                .iter()
                .map(|document| json!(&*document.text))
                .collect(),
            caps: Caps {
                calls: options.max_calls.or(configuration.budget.calls),
                wall: configuration.budget.wall,
            },
            extensions: host.extensions(),
            executor: options.executor.clone(),
            model: options.model.clone(),
            producer: options.producer.clone(),
        })
    }

    /// The protocol.
    ///
    /// # Errors
    /// When a locked trait cannot be matched.
    pub fn protocol(&self) -> Result<Assembly, ServiceError> {
        protocol(&self.setup)
    }

    /// The fingerprint on a subject.
    pub fn fingerprint(&self, input_sha256: &str) -> Fingerprint {
        let of = |value: fn(&PreparedMember) -> Json| {
            self.members.iter().map(|one| json!([&*one.id, value(one)])).collect::<Vec<Json>>()
        };
        Fingerprint::of_assembly(AssemblyParts {
            manifest: self.manifest.clone(),
            prompts: json!(of(|one| json!(&*one.prompt))),
            setup: json!(self.setup),
            executors: json!(of(|one| one.executor.settings.clone())),
            redaction: self.redaction.settings(),
            mode: version(self.setup.mode),
            input: input_sha256,
        })
    }

    /// Has the members' executors admitted, all at once.
    ///
    /// # Errors
    /// When a file that says who answers is not trusted, or a program that is to answer is not there.
    pub fn admit(&self, environment: &Environment) -> Result<Permit, ServiceError> {
        let needs = self.members.iter().flat_map(|one| one.executor.needs()).collect();
        let admitted = environment.trust.admit(environment, needs)?;
        self.members.iter().try_for_each(|one| one.executor.ensure_installed())?;
        Ok(admitted)
    }

    /// The kernel's side of a run.
    ///
    /// # Errors
    /// As [`RunSpec::protocol`].
    pub fn run_config(
        &self,
        session: &LedgerSession,
        run: Name,
        seed: [u8; 32],
        admitted: Permit,
        observer: Arc<dyn Observer>,
    ) -> Result<RunConfig, ServiceError> {
        let seat = |one: &PreparedMember| (one.id.clone(), one.member_config(admitted));
        let seats: BTreeMap<Name, _> = self.members.iter().map(seat).collect();
        Ok(RunConfig {
            run,
            seed,
            protocol: Box::new(self.protocol()?),
            members: seats,
            caps: self.caps,
            redactor: self.redaction.redactor.clone(),
            extensions: self.extensions.clone(),
            ledger: session.store.clone(),
            clock: session.environment.clock.clone(),
            observer,
        })
    }

    /// Holds a run to its end, overlays included, and gives its id.
    ///
    /// # Errors
    /// When the ledger fails. What was recorded stays, and the run can be resumed.
    pub async fn run(
        &self,
        session: &LedgerSession,
        input: &ConveneInput,
        observer: Arc<dyn Observer>,
    ) -> Result<Name, ServiceError> {
        let admitted = self.admit(&session.environment)?;
        let signer = Signer::of_assembly(session.keys(), &input.resolution.resolved).await?;
        let run = entropy::run_id();
        let _held = session.acquire_run(&run).await?;
        let seed = entropy::bytes();
        session.absorb(self.report.clone());
        for (sources, composed) in self.members.iter().filter_map(|one| one.composed.as_deref()) {
            sources.record(&session.store, composed, session.environment.clock.now_ms()).await?;
        }
        let standing = overlays::load(&session.store, &self.setup.assembly).await?;
        let overlays = overlays::active_texts(&standing, &self.setup, session.environment.clock.now_ms());
        let (overlays, in_overlays) = self.redaction.redactor.redact_json(Json::Array(overlays));
        let overlays = overlays.as_array().cloned().unwrap_or_default();
        let (part, in_input) = self.redacted_input(input).await;
        let redactions = self.in_setup + in_overlays + in_input;
        let mut data = self.run_opened(session, input, &part, &overlays, &seed, redactions);
        data.extend([signer.assembly_audit(&input.resolution.resolved)]);
        session.start_signing(&run, signer);
        let opening = Opening { data, inputs: vec![part], priors: Vec::new(), overlays };
        self.run_config(session, run.clone(), seed, admitted, observer)?.open(opening).await?;
        finalize(session, &run).await?;
        Ok(run)
    }

    /// What the run is about, as it is recorded and shown to members.
    pub async fn redacted_input(&self, input: &ConveneInput) -> (Part, usize) {
        let subject_text = input.subject.text.clone();
        // What an escape in a line of JSON hides from a pattern is read by members.
        let lines = input.subject.display_name.to_ascii_lowercase().ends_with(".jsonl");
        let work = move |redactor: &Redactor| match lines {
            true => redactor.redact_lines(&subject_text),
            false => redactor.redact(&subject_text),
        };
        let (text, in_text) =
            self.redaction.redactor.run_blocking_if_large(input.subject.text.len(), work).await;
        let (shown, in_name) = self.redaction.redactor.redact(&input.subject.display_name);
        (Part::new(subject_kind(self.setup.mode), &*shown, text), in_text + in_name)
    }

    /// The body of `run.opened`.
    fn run_opened(
        &self,
        session: &LedgerSession,
        input: &ConveneInput,
        part: &Part,
        overlays: &[Json],
        seed: &[u8; 32],
        redactions: usize,
    ) -> Map<String, Json> {
        let path = |path: Option<&Path>| path.map(|path| path.to_string_lossy().into_owned());
        let chain = &input.resolution.resolved.chain;
        let files: Vec<String> = chain
            .documents
            .iter()
            .map(|document| {
                resolve::disk_path(&input.resolution.root, document).to_string_lossy().into_owned()
            })
            .collect();
        let manifest = resolve::disk_path(&input.resolution.root, chain.leaf());
        let subject_path =
            path(input.subject.path.as_deref()).filter(|path| self.redaction.redactor.redact(path).1 == 0);
        self.redaction.redact_run_opened(object(json!({
            "protocol": version(self.setup.mode),
            "program": concat!("quorate/", env!("CARGO_PKG_VERSION")),
            "setup": self.setup,
            "title": input.resolution.resolved.title,
            "grouping": input.resolution.resolved.display.as_ref().and_then(|display| display.default_grouping),
            "fingerprint": self.fingerprint(&input.subject.sha256).json(),
            "seed": entropy::hex(seed),
            "subject": &*part.name,
            "artifact_path": subject_path,
            "artifact_sha256": input.subject.sha256,
            "artifact_type": &*self.setup.assembly,
            "inputs": [{
                "kind": part.kind.as_str(), "name": &*part.name,
                "sha256": entropy::sha256_hex(part.text.as_bytes()),
            }],
            "messages": due::message_count(input),
            "overlays": overlays,
            "redactions": redactions,
            "executors": self.executors(),
            "executor": self.executor,
            "model": self.model,
            "max_calls": self.caps.calls,
            "manifest": manifest.to_string_lossy(),
            "root": input.resolution.root.to_string_lossy(),
            "config": path(session.workspace.council_path.as_deref()),
            "host": path(session.workspace.host_path.as_deref()),
            "files": files,
            "producer": self.producer.as_ref().map(|one| one.json(&part.text)),
        })))
    }

    fn executors(&self) -> Vec<Json> {
        let mut all: Vec<Json> = Vec::new();
        for member in &self.members {
            let about = member.executor.about();
            let one = json!({
                "name": &*member.executor.name, "kind": about.kind, "model": about.model,
                "asks_a_model": about.asks_a_model, "tools": member.executor.tools(),
            });
            if !all.contains(&one) {
                all.push(one);
            }
        }
        all
    }
}

/// A setup without secrets, as it will be read from the record, and how many secrets there were: a replay has to have the
/// one that was used.
///
/// # Errors
/// When it makes no sense any more without them.
fn redact_setup(setup: &Setup, redaction: &Redaction) -> Result<(Setup, usize), ServiceError> {
    let (clean, found) = redaction.redactor.redact_json(json!(setup));
    let unreadable = |error: serde_json::Error| {
        let body = Body::new(format!("the manifest has a secret where none can be: {error}"));
        ServiceError::configuration(
            codes::ASSEMBLY_WORKSPACE_INVALID,
            body.help("take it out of the manifest"),
        )
    };
    Ok((serde_json::from_value(canonical::normalize(clean)).map_err(unreadable)?, found))
}

/// The protocol of a setup.
///
/// # Errors
/// When a locked trait cannot be matched.
pub fn protocol(setup: &Setup) -> Result<Assembly, ServiceError> {
    Assembly::new(setup.clone())
        .map_err(|error| ServiceError::configuration(codes::PATTERN_INVALID, Body::new(error.to_string())))
}
