//! What a review runs with: everything that it needs, put together, and the run that it becomes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::budget::Caps;
use quorate_kernel::driver::{Opening, RunConfig};
use quorate_kernel::entropy;
use quorate_kernel::extensions::Extensions;
use quorate_kernel::member_config::MemberConfig;
use quorate_kernel::observer::Observer;
use quorate_kernel::redact::Redactor;
use quorate_ledger::council_log::{IndexedLog, priors};
use quorate_manifest::council::tiers::UNCLASSIFIED;
use quorate_manifest::council::{Deliberator, PolicyName, built_in};
use quorate_protocol::modes::council::{ADJUDICATOR, Council, Setup, VERSION};
use quorate_protocol::policy::Policy;
use quorate_protocol::{Json, Name, Part, PartKind};
use serde_json::{Map, json};

use super::artifact::Artifact;
use super::error::ServiceError;
use super::executor::{self, SelectedExecutor};
use super::finalize::finalize;
use super::fingerprint::Fingerprint;
use super::producer::Producer;
use super::session::LedgerSession;
use super::signer::Signer;
use super::supersede;
use super::trust::Permit;
use super::weave;

/// What the user says about a review besides what it is of.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `--executor`.
    pub executor: Option<String>,
    /// `--model`.
    pub model: Option<String>,
    /// `--policy`.
    pub policy: Option<Policy>,
    /// `--max-calls`.
    pub max_calls: Option<u32>,
    /// `--timeout`: the deadline of each invocation.
    pub timeout: Option<Duration>,
    /// `--made-by`: who has made what it is about.
    pub producer: Option<Producer>,
}

/// A council that can be convened.
pub struct RunSpec {
    pub executor: SelectedExecutor,
    /// What the protocol is set up with.
    pub setup: Setup,
    admitted: Permit,
    redactor: Redactor,
    caps: Caps,
    producer: Option<Producer>,
    model: Option<String>,
}

/// An artifact as it is reviewed.
#[derive(Debug, Clone)]
pub struct ReviewInput {
    pub artifact: Artifact,
    pub artifact_type: String,
    pub tier: u8,
}

/// A review that was held.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletedRun {
    pub run: Name,
    /// The body of its outcome.
    pub outcome: Map<String, Json>,
}

impl RunSpec {
    /// Puts it together.
    ///
    /// # Errors
    /// When the executor is refused.
    pub fn new(session: &LedgerSession, options: &Options) -> Result<RunSpec, ServiceError> {
        let workspace = &session.workspace;
        let council = &workspace.council;
        workspace.redaction.check_ids(council.deliberators.iter().map(|one| &*one.id))?;
        let executor = executor::select(workspace, options)?;
        let admitted = session.environment.trust.admit(&session.environment, executor.needs())?;
        executor.ensure_installed()?;
        let policy = options.policy.unwrap_or(match council.policy {
            Some(PolicyName::Strict) => Policy::Strict,
            Some(PolicyName::Seed) | None => Policy::Seed,
        });
        let redactor = workspace.redaction.redactor.clone();
        let caps = Caps {
            calls: options.max_calls.or(workspace.host.budget.calls),
            wall: workspace.host.budget.wall,
        };
        let producer = options.producer.clone();
        if let Some(producer) = &producer {
            let (root, scope) = weave::root_and_scope(&session.environment, None);
            producer.check(&session.environment, &root, &[scope])?;
        }
        let model = options.model.clone();
        Ok(RunSpec {
            setup: Setup::from_manifest(council, policy),
            executor,
            admitted,
            redactor,
            caps,
            producer,
            model,
        })
    }

    /// The fingerprint of this council on this artifact.
    pub fn fingerprint(&self, session: &LedgerSession, artifact_sha256: &str) -> Fingerprint {
        Fingerprint::of_council(&session.workspace, &self.setup, &self.executor, artifact_sha256)
    }

    /// What is said where nobody reads what the council's own prompts say: members whose prompts are not the built-in ones, and
    /// an executor that reads none.
    pub fn unread_prompts(&self, session: &LedgerSession) -> Option<String> {
        let about = self.executor.about();
        let ready_made = built_in();
        let is_ready_made = |one: &&Deliberator| {
            ready_made.deliberators.iter().any(|known| known.prompt.text == one.prompt.text)
        };
        let own: Vec<&str> = session
            .workspace
            .council
            .deliberators
            .iter()
            .filter(|one| !is_ready_made(one))
            .map(|one| &*one.id)
            .collect();
        (!about.asks_a_model && !own.is_empty()).then(|| {
            format!(
                "The {} reads no prompts: what is written for {} had no effect. `--executor NAME` asks a model.",
                about.kind,
                own.join(", ")
            )
        })
    }

    /// The kernel's side of a run.
    pub fn run_config(
        &self,
        session: &LedgerSession,
        run: Name,
        seed: [u8; 32],
        observer: Arc<dyn Observer>,
    ) -> RunConfig {
        RunConfig {
            run,
            seed,
            protocol: Box::new(Council::new(self.setup.clone())),
            members: self.members(session),
            caps: self.caps,
            redactor: self.redactor.clone(),
            extensions: Extensions::default(),
            ledger: session.store.clone(),
            clock: session.environment.clock.clone(),
            observer,
        }
    }

    fn members(&self, session: &LedgerSession) -> BTreeMap<Name, MemberConfig> {
        let council = &session.workspace.council;
        let seat = |role: &Arc<str>, context, weight| MemberConfig {
            executor: self.executor.executor(self.admitted),
            executor_name: self.executor.name.clone(),
            timeout: self.executor.timeout,
            retries: self.executor.retries,
            role: role.clone(),
            persona: None,
            context,
            weight,
            extra_fields: Map::new(),
            conversation: None,
        };
        let context = |one: &Deliberator| {
            let part = |file: &quorate_manifest::council::ContextFile| {
                Part::new(PartKind::Context, &*file.path, file.text.clone())
            };
            one.context.iter().map(part).collect()
        };
        let deliberators = council.deliberators.iter();
        let mut seats: BTreeMap<Name, MemberConfig> = deliberators
            .map(|one| (one.id.clone(), seat(&one.prompt.text, context(one), Some(one.weight))))
            .collect();
        seats.insert(ADJUDICATOR.into(), seat(&council.adjudicator.text, Vec::new(), None));
        seats
    }

    /// Holds a review to its end, log line included.
    ///
    /// # Errors
    /// When the ledger fails. What was recorded stays, and the run can be resumed.
    pub async fn run(
        &self,
        session: &LedgerSession,
        input: &ReviewInput,
        indexed: IndexedLog,
        observer: Arc<dyn Observer>,
    ) -> Result<CompletedRun, ServiceError> {
        let (subject, _) = self.redactor.redact(&input.artifact.display_name);
        supersede::close_outdated(session, &input.artifact, &subject).await?;
        let signer = Signer::new(session.keys(), session.keys().signing_mode(), None).await?;
        let run = entropy::run_id();
        let _held = session.acquire_run(&run).await?;
        let seed = entropy::bytes();
        let (artifact_type, in_type) = self.redactor.redact(&input.artifact_type);
        // What no rule knows has nothing in common.
        let priors = match artifact_type.as_str() {
            UNCLASSIFIED => Vec::new(),
            _ => priors::priors(&session.store, &session.workspace.log, indexed, &artifact_type).await?,
        };
        let text = input.artifact.text.clone();
        let redacted =
            self.redactor.run_blocking_if_large(text.len(), move |redactor| redactor.redact(&text));
        let (text, mut redactions) = redacted.await;
        let (shown, in_name) = self.redactor.redact(&input.artifact.display_name);
        let (priors, in_priors) = self.redactor.redact_json(Json::Array(priors));
        let priors = priors.as_array().cloned().unwrap_or_default();
        redactions += in_name + in_priors + in_type;
        let part = Part::new(PartKind::Artifact, &*shown, text);
        let mut data = self.run_opened(session, input, &part, &priors, &seed, redactions, indexed);
        data.extend(signer.run_audit());
        session.start_signing(&run, signer);
        let opening = Opening { data, inputs: vec![part], priors, overlays: Vec::new() };
        let concluded = self.run_config(session, run.clone(), seed, observer).open(opening).await?;
        finalize(session, &run).await?;
        Ok(CompletedRun { run, outcome: concluded.outcome })
    }

    /// The body of `run.opened`.
    #[expect(clippy::too_many_arguments, reason = "one record that names everything a run starts from")]
    fn run_opened(
        &self,
        session: &LedgerSession,
        input: &ReviewInput,
        part: &Part,
        priors: &[Json],
        seed: &[u8; 32],
        redactions: usize,
        indexed: IndexedLog,
    ) -> Map<String, Json> {
        let artifact = &input.artifact;
        let about = self.executor.about();
        let path = |path: Option<&std::path::Path>| path.map(|path| path.to_string_lossy().into_owned());
        session.workspace.redaction.redact_run_opened(quorate_kernel::consultation::object(json!({
            "protocol": VERSION,
            "program": concat!("quorate/", env!("CARGO_PKG_VERSION")),
            "setup": self.setup,
            "fingerprint": self.fingerprint(session, &artifact.sha256).json(),
            "seed": entropy::hex(seed),
            "subject": &*part.name,
            "artifact_path": path(artifact.path.as_deref()).filter(|path| self.redactor.redact(path).1 == 0),
            "artifact_sha256": artifact.sha256,
            "artifact_type": self.redactor.redact(&input.artifact_type).0,
            "tier": input.tier,
            "inputs": [{"kind": part.kind.as_str(), "name": &*part.name, "sha256": entropy::sha256_hex(part.text.as_bytes())}],
            "priors": priors,
            "redactions": redactions,
            "model": self.model,
            "max_calls": self.caps.calls,
            "executors": [{"name": &*self.executor.name, "kind": about.kind, "model": about.model, "asks_a_model": about.asks_a_model, "tools": self.executor.tools()}],
            "config": path(session.workspace.council_path.as_deref()),
            "files": session.workspace.council.files,
            "host": path(session.workspace.host_path.as_deref()),
            "log_path": path(Some(&session.workspace.log)),
            "log_bytes": indexed.bytes,
            "producer": self.producer.as_ref().map(|one| one.json(&part.text)),
        })))
    }
}
