//! A run of any protocol: its members and limits, and how it is started and resumed.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::Report;
use quorate_kernel::budget::Caps;
use quorate_kernel::driver::{Opening, RunConfig};
use quorate_kernel::entropy;
use quorate_kernel::extensions::Extensions;
use quorate_kernel::history::History;
use quorate_kernel::member_config::MemberConfig;
use quorate_kernel::observer::Observer;
use quorate_kernel::ports::ledger::Error;
use quorate_kernel::record::{ExecutorUsed, Input, Money, RunOpened, Spent};
use quorate_playbook::compose::Composition;
use quorate_protocol::{Json, Name, Part, Protocol};
use serde::Serialize;
use serde_json::{Map, json};

use super::artifact::Artifact;
use super::compose::{self, Sources};
use super::embedder::SelectedEmbedder;
use super::environment::Environment;
use super::error::ServiceError;
use super::executor::SelectedExecutor;
use super::finalize::finalize;
use super::fingerprint::Fingerprint;
use super::redaction::Redaction;
use super::run_opened;
use super::run_options::RunOptions;
use super::session::LedgerSession;
use super::signer::{KeySource, Signer};
use super::trust;
use super::trust::Permit;

/// A protocol's setup, as `run.opened` records it.
pub trait ProtocolSetup: Serialize {
    /// A protocol in its initial state.
    ///
    /// # Errors
    /// If a locked trait cannot be matched.
    fn protocol(&self) -> Result<Box<dyn Protocol>, ServiceError>;
}

/// A member with its executor and prompt.
pub struct PreparedMember {
    pub id: Name,
    /// The display name of the role.
    pub role: String,
    pub prompt: Arc<str>,
    /// Its persona, in the form that executors read.
    pub persona: Option<Arc<Json>>,
    /// Documents that only this member sees.
    pub context: Vec<Part>,
    pub weight: Option<f64>,
    pub executor: SelectedExecutor,
    /// The deadline of an invocation.
    pub timeout: Duration,
    /// The sources of its prompt, if its persona is an operator's.
    pub composed: Option<Arc<(Sources, Composition)>>,
    /// The fields that are recorded with each of its answers besides its composition.
    pub extra_fields: Map<String, Json>,
}

impl PreparedMember {
    fn config(&self, permit: Permit) -> MemberConfig {
        MemberConfig {
            executor: self.executor.executor(permit),
            executor_name: self.executor.name.clone(),
            timeout: self.timeout,
            retries: self.executor.retries,
            role: self.prompt.clone(),
            persona: self.persona.clone(),
            context: self.context.clone(),
            weight: self.weight,
            extra_fields: self.composition_fields(),
            conversation: None,
        }
    }

    /// The playbooks in its prompt, recorded with each of its answers.
    pub(super) fn composition_fields(&self) -> Map<String, Json> {
        let mut fields = self.extra_fields.clone();
        let Some((sources, composed)) = self.composed.as_deref() else { return fields };
        fields.insert("woven".to_owned(), json!(sources.hashes(composed, &[])));
        if !composed.shadows.is_empty() {
            fields.insert("shadows".to_owned(), compose::shadows(&composed.shadows));
        }
        fields
    }
}

/// Everything a run needs before it starts.
pub struct RunSpec<S> {
    pub setup: S,
    /// The members, in roster order.
    pub members: Vec<PreparedMember>,
    pub redaction: Redaction,
    /// The number of secrets redacted in the setup.
    pub setup_redactions: usize,
    /// Problems that keep playbooks out of prompts, but do not stop the run.
    pub report: Report,
    pub(super) fingerprint: Fingerprint,
    pub(super) extensions: Extensions,
    /// The workspace's embedder, if the run needs it.
    pub(super) embedder: Option<SelectedEmbedder>,
    pub(super) caps: Caps,
    pub(super) wall: Option<Duration>,
    pub(super) options: RunOptions,
}

/// A new run's input, and its protocol's fields for the first record.
pub struct NewRun<'a> {
    /// The amount that its budget paid before it was opened.
    pub spent_before: Spent,
    pub artifact: Cow<'a, Artifact>,
    /// The artifact as members see it.
    pub part: Part,
    /// The number of secrets redacted in these texts.
    pub redactions: usize,
    pub signer: Signer,
    /// The fields that are specific to runs of this protocol.
    pub opened: RunOpened,
}

impl<S: ProtocolSetup> RunSpec<S> {
    /// The fingerprint with an input, given the SHA-256 of its bytes.
    pub fn fingerprint(&self, input_sha256: &str) -> Fingerprint {
        self.fingerprint.clone().with_input(input_sha256)
    }

    /// Requests trust for all executors and the embedder at once.
    ///
    /// # Errors
    /// If a file that names an executor is not trusted, an executor's program is not installed, or a cap cannot be enforced.
    pub fn admit(&self, environment: &Environment) -> Result<Permit, ServiceError> {
        let needs = self.members.iter().flat_map(|member| member.executor.needs());
        let needs = needs.chain(self.embedder.as_ref().map(SelectedEmbedder::needs)).collect();
        let permit = trust::admit(environment, needs)?;
        for PreparedMember { executor, .. } in &self.members {
            executor.ensure_installed()?;
            executor.ensure_enforceable(&self.caps)?;
        }
        if let Some(embedder) = &self.embedder {
            embedder.ensure_installed()?;
            embedder.ensure_enforceable(&self.caps)?;
        }
        Ok(permit)
    }

    /// Runs it to its end, finalizes it, and returns its history.
    ///
    /// # Errors
    /// If the ledger fails. Recorded answers stay, and the run can be resumed.
    pub async fn start(
        &self,
        session: &LedgerSession,
        new: NewRun<'_>,
        permit: Permit,
        observer: Arc<dyn Observer>,
    ) -> Result<History, ServiceError> {
        let run = entropy::run_id();
        let _guard = session.acquire_run(&run).await?;
        self.record_compositions(session).await?;
        self.start_as(&run, session, new, permit, observer).await
    }

    /// Records the compositions of the members' prompts, and warns of omitted playbooks.
    pub(super) async fn record_compositions(&self, session: &LedgerSession) -> Result<(), ServiceError> {
        session.absorb(self.report.clone());
        for (sources, composed) in self.members.iter().filter_map(|member| member.composed.as_deref()) {
            sources.record(&session.store, composed, session.environment.clock.now_ms()).await?;
        }
        Ok(())
    }

    /// Runs a new run, whose guard the caller holds, to its end, and finalizes it. Returns its history.
    ///
    /// # Errors
    /// As [`RunSpec::start`].
    pub(super) async fn start_as(
        &self,
        run: &Name,
        session: &LedgerSession,
        new: NewRun<'_>,
        permit: Permit,
        observer: Arc<dyn Observer>,
    ) -> Result<History, ServiceError> {
        let seed = entropy::bytes();
        let caps = self.caps.less(&new.spent_before);
        let opened = self.run_opened(session, &new, caps, &seed)?;
        session.start_signing(run, new.signer);
        let opening = Opening { opened, inputs: vec![new.part] };
        self.run_config(session, run, (caps, seed), permit, observer)?.open(opening).await?;
        finalize(session, run).await
    }

    /// Continues a run whose guard the caller holds.
    ///
    /// # Errors
    /// If its input is not its artifact, a text was erased, or the ledger fails.
    pub async fn resume(
        &self,
        session: &LedgerSession,
        mut history: History,
        keys: KeySource,
        permit: Permit,
        observer: Arc<dyn Observer>,
    ) -> Result<(), ServiceError> {
        let run = history.run.clone();
        run_opened::ensure_shown_artifact(&history)?;
        if !session.resume_signing(&mut history, keys).await? {
            return Err(Error::Conflict { run }.into());
        }
        let inputs = session.load_inputs(&history).await?;
        let seed = run_opened::seed(&history)?;
        let superseded = match history.outcome() {
            Some(_) => history.reopen(inputs.clone(), &mut *self.setup.protocol()?),
            None => Vec::new(),
        };
        let config = self.run_config(session, &run, (self.caps, seed), permit, observer)?;
        config.resume(&history, inputs, superseded).await?;
        finalize(session, &run).await.map(drop)
    }

    /// The kernel's run config.
    fn run_config(
        &self,
        session: &LedgerSession,
        run: &Name,
        (caps, seed): (Caps, [u8; 32]),
        permit: Permit,
        observer: Arc<dyn Observer>,
    ) -> Result<RunConfig, ServiceError> {
        Ok(RunConfig {
            run: run.clone(),
            seed,
            protocol: self.setup.protocol()?,
            members: self.members.iter().map(|member| (member.id.clone(), member.config(permit))).collect(),
            caps,
            wall: self.wall,
            redactor: self.redaction.redactor.clone(),
            extensions: match &self.embedder {
                Some(embedder) => {
                    Extensions { embedder: Some(embedder.embedder(permit)), ..self.extensions.clone() }
                }
                None => self.extensions.clone(),
            },
            ledger: session.ledger(),
            clock: session.environment.clock.clone(),
            observer,
        })
    }

    /// The first record of the run.
    fn run_opened(
        &self,
        session: &LedgerSession,
        new: &NewRun<'_>,
        caps: Caps,
        seed: &[u8; 32],
    ) -> Result<RunOpened, ServiceError> {
        let path = |path: Option<&Path>| path.map(|path| path.to_string_lossy().into_owned());
        let NewRun { artifact, part, .. } = new;
        // The configuration's files on the machine that happens to run a queued run are not recorded.
        let is_local = new.opened.queued.is_none();
        let artifact_path =
            path(artifact.path.as_deref()).filter(|path| self.redaction.redactor.redact(path).1 == 0);
        let mut opened = RunOpened {
            protocol: self.setup.protocol()?.version().to_owned(),
            program: concat!("quorate/", env!("CARGO_PKG_VERSION")).to_owned(),
            setup: json!(self.setup),
            fingerprint: self.fingerprint(&artifact.sha256).recorded(),
            seed: entropy::hex(seed),
            subject: Some(part.name.to_string()),
            artifact_path,
            artifact_sha256: Some(artifact.sha256.clone()),
            inputs: vec![Input {
                kind: part.kind.as_str().to_owned(),
                name: part.name.to_string(),
                sha256: entropy::sha256_hex(part.text.as_bytes()),
            }],
            redactions: (new.redactions + self.setup_redactions) as u64,
            executors: self.executors(),
            executor: Some(self.options.executor.clone()),
            model: self.options.model.clone(),
            max_calls: caps.calls,
            max_tokens: caps.tokens,
            max_money: caps.usd_nanos.map(Money::usd),
            config: path(session.workspace.council_path.as_deref().filter(|_| is_local)),
            host: path(session.workspace.host_path.as_deref().filter(|_| is_local)),
            producer: match &self.options.producer {
                Some(producer) => Some(producer.recorded(&part.text)),
                None => new.opened.producer.clone(),
            },
            ..new.opened.clone()
        };
        self.redaction.redact_run_opened(&mut opened);
        Ok(opened)
    }

    /// The executors of all members, without duplicates.
    fn executors(&self) -> Vec<ExecutorUsed> {
        let mut executors: Vec<ExecutorUsed> = Vec::new();
        for member in &self.members {
            let about = member.executor.about();
            let executor = ExecutorUsed {
                name: member.executor.name.to_string(),
                kind: about.kind.to_string(),
                model: about.model,
                asks_a_model: about.asks_a_model,
                tools: member.executor.tools(),
            };
            if !executors.contains(&executor) {
                executors.push(executor);
            }
        }
        executors
    }
}
