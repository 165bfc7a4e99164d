//! A runtime: an AIP-48 manifest with an adapter in each port, and the commands on it. `runtime/load.rs` reads the
//! manifest and composes the participants' prompts, `runtime/build.rs` fills the ports, `runtime/drive.rs` runs the loop and
//! summarizes it, and `runtime/conversation.rs` reads, extends and verifies conversations.

mod build;
pub(crate) mod conversation;
pub(crate) mod drive;
pub(crate) mod events;
mod load;

#[cfg(feature = "nats")]
mod serve_participant;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::budget::Caps;
use quorate_kernel::conversation::{Participant, Turn};
use quorate_kernel::ports::ledger::{Ledger as _, Record};
use quorate_kernel::ports::provisioning::Provisioning;
use quorate_kernel::ports::state::State;
use quorate_kernel::ports::substrate::{self, Substrate};
use quorate_kernel::ports::telemetry::Telemetry;
use quorate_kernel::redact::Redactor;
use quorate_kernel::turn::{self, Begin, Forecast, Runner, Swarm};
use quorate_ledger::Store;
use quorate_ledger::store::address::StoreAddress;
use quorate_ledger::store::lease::{LockOutcome, RunGuard};
use quorate_manifest::timestamp::format;
use quorate_protocol::Name;

use super::disk::display_ledger;
use super::environment::Environment;
use super::error::{Error, error_chain};
use super::guard::Guard;
use super::keys::WorkspaceKeys;
use super::open_session::open_once_made;
use super::sealing::{self, Sealer};
use super::signer::Signer;
use super::trust::requests::{Trust, TrustRequest};
use super::witness::Witness;
use super::workspace::PathOverrides;
use super::{budget, executor, overlays, session, trust};
use build::Ports;
use load::ComposedPrompts;

#[cfg(feature = "nats")]
pub use quorate_adapters::executor::remote::server::ServeEvent;

/// A runtime whose ports are filled.
pub struct Runtime {
    pub id: String,
    pub path: PathBuf,
    /// The participants, in the manifest's order.
    pub participants: Vec<Participant>,
    /// The conversation's substrate.
    pub substrate: Arc<dyn Substrate>,
    pub state: Arc<dyn State>,
    /// The package of its files, if the manifest names one.
    pub provisioning: Option<Arc<dyn Provisioning>>,
    pub ledger: StoreAddress,
    /// The guard of the workspace's files.
    pub guard: Guard,
    /// Warnings of the manifest and of the configuration.
    pub report: Report,
    witness: Option<Witness>,
    environment: Environment,
    keys: WorkspaceKeys,
    ports: Ports,
    /// Databases of its manifest that do not exist: reading them creates them.
    pub missing_databases: Vec<PathBuf>,
    redactor: Redactor,
    /// The budget of a run.
    pub caps: Caps,
    /// The time limit of a run.
    pub wall: Option<Duration>,
}

/// Reads a manifest and fills its ports. Calls no participant and connects to no server.
///
/// # Errors
/// If manifest or configuration are refused, an adapter refuses its block, or the conversation or its states are outside of
/// the workspace and not trusted: reading them would disclose them, and opening a database creates it.
pub fn open(
    environment: &Environment,
    places: &PathOverrides,
    request: &RuntimeRequest,
) -> Result<Runtime, Error> {
    let (written, mut workspace) = load::load(environment, places, request)?;
    let mut report = std::mem::take(&mut workspace.report);
    let built = build::build(environment, &written, &workspace, request);
    let mut ports = built
        .map_err(|error| load::explain(error, environment, workspace.config_path.as_deref(), &written.dir))?;
    trust::admit(environment, ports.contacts.clone())?;
    report.absorb(written.report);
    ports.cautions.absorb(written.cautions);
    report.absorb(ports.report.clone());
    Ok(Runtime {
        id: written.runtime.id.clone(),
        path: written.path,
        participants: ports.speakers.iter().map(|speaker| speaker.participant.clone()).collect(),
        substrate: ports.substrate.clone(),
        state: ports.state.clone(),
        provisioning: ports.provisioning.clone(),
        witness: workspace.witness.clone(),
        keys: WorkspaceKeys::of(environment, &workspace),
        ledger: workspace.ledger,
        guard: workspace.guard,
        missing_databases: load::missing_databases(&written.runtime, &written.dir),
        report,
        environment: environment.clone(),
        redactor: workspace.redaction.redactor,
        caps: request.caps.or(budget::configured(&workspace.config)),
        wall: workspace.config.budget.wall,
        ports,
    })
}

/// The findings of `check` in a runtime manifest beyond its schema: unknown kinds, blocks that adapters refuse, and
/// ambiguous names.
pub(crate) fn inspect(environment: &Environment, path: &Path, root: &Path) -> Report {
    // Nothing is connected or called, so no trust is needed.
    let environment = &Environment { trust: Trust::default().trusting_all(), ..environment.clone() };
    let request =
        RuntimeRequest { path: path.to_owned(), root: Some(root.to_owned()), ..RuntimeRequest::default() };
    match open(environment, &PathOverrides::default(), &request) {
        Ok(runtime) => {
            let altered = runtime.find_local_alterations();
            let mut ports = runtime.ports;
            ports.report.absorb(ports.cautions);
            ports.report.absorb(altered);
            ports.report
        }
        Err(error) => *error.report,
    }
}

impl Runtime {
    /// The kind of its dispatcher.
    pub(super) fn dispatcher(&self) -> &'static str {
        self.ports.dispatcher.kind()
    }

    /// The stream of its conversation in the ledger.
    pub(super) fn stream(&self) -> Name {
        Runner::stream(&self.id, &self.substrate.about().place)
    }

    /// The error of an unknown participant.
    fn no_such_participant(&self, id: &str) -> Error {
        let ids: Vec<&str> = self.participants.iter().map(|participant| &*participant.id).collect();
        let body = Body::new(format!("`{}` has no participant `{id}`", self.id));
        let help = format!("the participants are {}", ids.join(", "));
        Error::not_found(codes::PARTICIPANT_UNKNOWN, body.help(help))
    }

    /// How many turns a window has.
    pub(super) fn window(&self) -> usize {
        self.ports.policy.window.max(1)
    }

    /// Forecasts who answers the last turn of a window, without asking an executor. `records` are the last records of the
    /// conversation.
    pub(super) async fn forecast(&self, window: &[Turn], records: &[Record]) -> Forecast {
        let Ports { dispatcher, policy, .. } = &self.ports;
        let capabilities = self.substrate.about().capabilities;
        turn::forecast(&**dispatcher, &self.participants, &capabilities, *policy, window, records).await
    }

    /// The side effects of running it.
    pub(crate) fn trust_requests(&self) -> Vec<TrustRequest> {
        [&self.ports.contacts[..], &self.ports.needs[..]].concat()
    }
}

/// A runtime with an open ledger.
pub struct OpenRuntime {
    /// The runtime that was opened.
    pub runtime: Arc<Runtime>,
    /// The open ledger.
    pub store: Arc<Store>,
    /// The warnings of the runtime, and those for a process that runs the manifest.
    pub report: Report,
}

impl OpenRuntime {
    /// Opens the ledger.
    ///
    /// # Errors
    /// If the ledger cannot be opened.
    #[crate::boxed]
    pub async fn open(runtime: &Arc<Runtime>) -> Result<OpenRuntime, Error> {
        let Runtime { environment, ledger, .. } = &**runtime;
        let mut report = runtime.report.clone();
        report.absorb(runtime.ports.cautions.clone());
        let store = session::open_store(environment, ledger, &mut report).await?;
        session::connect(&store, environment, &runtime.keys);
        Ok(OpenRuntime { runtime: runtime.clone(), store: Arc::new(store), report })
    }
}

impl Runtime {
    /// The conversation's recorded attempts, consultations and turns, or the last ones; empty if it never ran.
    ///
    /// # Errors
    /// If the ledger cannot be opened or read.
    pub(crate) async fn records(&self, last: Option<u32>) -> Result<Vec<Record>, Error> {
        if !self.ledger.may_exist() {
            return Ok(Vec::new());
        }
        let open = || async { Ok(Store::open_read_only(&self.ledger).await?) };
        let store = open_once_made(open).await?;
        let records = match last {
            Some(count) => store.tail(&self.stream(), count).await,
            None => store.records(&self.stream()).await,
        };
        store.close().await;
        Ok(records?)
    }
}

impl OpenRuntime {
    /// Locks the conversation against other processes, and opens a runner.
    ///
    /// # Errors
    /// If another process runs it, or substrate or ledger fail.
    #[crate::boxed]
    pub async fn runner(
        &self,
        begin: Begin,
        caps: Option<Caps>,
        telemetry: Arc<dyn Telemetry>,
    ) -> Result<(Runner, RunGuard), Error> {
        self.ensure_writable()?;
        let runtime = &self.runtime;
        let place = runtime.substrate.about().place;
        let stream = Runner::stream(&runtime.id, &place);
        let busy = |who: &str, until: String, help: &str| {
            let body = Body::new(format!("another {who} runs `{}` over {place}{until}", runtime.id));
            Error::configuration(codes::RUNTIME_BUSY, body.help(help))
        };
        let hold = match self.store.lock_run(&stream).await? {
            LockOutcome::Acquired(held) => held,
            LockOutcome::HeldLocally => {
                let help = "post to it with `quorate say MANIFEST TEXT`, and watch it with `quorate log MANIFEST --follow`";
                return Err(busy("process", String::new(), help));
            }
            LockOutcome::HeldRemotely { until_ms } => {
                let until = format!(", and holds its lease until {} at least", format(until_ms));
                let help = "try again after that; the other machine renews its lease while it runs";
                return Err(busy("machine", until, help));
            }
        };
        Signer::sign_stream(&runtime.keys, &self.store, &stream).await?;
        let swarm = Arc::new(self.swarm(caps, telemetry)?);
        Ok((Runner::open(swarm, begin).await?, hold))
    }

    /// Checks that the ledger accepts records, before a participant is called.
    ///
    /// # Errors
    /// If it was opened read-only.
    pub(super) fn ensure_writable(&self) -> Result<(), Error> {
        let ledger = || display_ledger(&self.runtime.environment, &self.runtime.ledger);
        self.store.read_only_reason().map_or(Ok(()), |why| Err(Error::ledger_closed(&ledger(), why)))
    }

    /// The swarm that a runner drives.
    ///
    /// # Errors
    /// If the manifest's commands or servers are not trusted, an executor's program is not installed, or a budget cannot be
    /// enforced.
    pub(super) fn swarm(&self, caps: Option<Caps>, telemetry: Arc<dyn Telemetry>) -> Result<Swarm, Error> {
        let environment = &self.runtime.environment;
        let caps = caps.unwrap_or(self.runtime.caps);
        trust::admit(environment, self.runtime.trust_requests())?;
        for speaker in &self.runtime.ports.speakers {
            let member = &speaker.member;
            let mut stand_ins = member.executors().skip(1);
            let can_stand_in = stand_ins.any(|(executor, name)| executor::installed(name, executor).is_ok());
            if member.executor.recordings().is_some() || !can_stand_in {
                executor::installed(&member.executor_name, &*member.executor)?;
            }
            for (executor, name) in member.executors() {
                budget::ensure_holdable(&caps, name, executor)?;
            }
        }
        let Runtime { id, ports, environment, redactor, .. } = &*self.runtime;
        let overlays = Arc::<overlays::OverlayCache>::default();
        let speakers = ports.speakers.iter().cloned().map(|mut speaker| {
            if let Some(sources) = ports.prompt_sources.get(&speaker.participant.id) {
                speaker.prompts = Arc::new(ComposedPrompts {
                    sources: sources.clone(),
                    store: self.store.clone(),
                    clock: environment.clock.clone(),
                    overlays: overlays.clone(),
                    last_recorded: Mutex::default(),
                });
            }
            speaker
        });
        Ok(Swarm {
            runtime: id.as_str().into(),
            substrate: ports.substrate.clone(),
            dispatcher: ports.dispatcher.clone(),
            state: ports.state.clone(),
            lifecycles: ports.lifecycles.clone(),
            flags: ports.flags,
            telemetry: Arc::new(events::RedactingSink { redactor: redactor.clone(), inner: telemetry }),
            speakers: speakers.collect(),
            policy: ports.policy,
            caps,
            redactor: redactor.clone(),
            ledger: environment.ledger_port(&self.store),
            clock: environment.clock.clone(),
        })
    }

    /// Seals the ledger if this run appended to it; failures become warnings.
    #[crate::boxed]
    pub async fn seal(&self) -> Report {
        if !self.store.has_appended() {
            return Report::new();
        }
        let Runtime { environment, witness, .. } = &*self.runtime;
        let sealing = Sealer { environment, store: &self.store, witness: witness.as_ref() };
        sealing::within_deadline(&self.store, Box::pin(sealing.seal_or_warn())).await.unwrap_or_default()
    }

    /// Closes the ledger, unless a runner still uses it.
    #[crate::boxed]
    pub async fn close(self) {
        // A dropped runner may still be writing; the file closes with the process.
        if let Ok(store) = Arc::try_unwrap(self.store) {
            Box::pin(sealing::close_within_deadline(store)).await;
        }
    }
}

impl From<turn::TurnError> for Error {
    fn from(error: turn::TurnError) -> Self {
        match error {
            turn::TurnError::Substrate(error) => error.into(),
            turn::TurnError::Ledger(error) => error.into(),
            turn::TurnError::Altered(altered) => conversation::refusal(&altered),
            turn::TurnError::PositionUnknown(message) => Error::configuration(
                codes::CONVERSATION_LOST,
                Body::new(message)
                    .help("start after the existing turns with `quorate run MANIFEST --from-now`"),
            ),
        }
    }
}

impl From<substrate::SubstrateError> for Error {
    fn from(error: substrate::SubstrateError) -> Self {
        let code = match &error {
            substrate::SubstrateError::Refused(_) => codes::TURN_REFUSED,
            substrate::SubstrateError::Unknown(_) => codes::CONVERSATION_LOST,
            substrate::SubstrateError::Unavailable { .. } => codes::SUBSTRATE_UNAVAILABLE,
        };
        Error::configuration(code, Body::new(error_chain(&error)))
    }
}

/// The runtime to open, and overrides for its participants. A path converts into one.
#[derive(Debug, Clone, Default)]
pub struct RuntimeRequest {
    /// The manifest, or a directory with a `multi-agent.yaml` in it.
    pub path: PathBuf,
    /// The workspace's root; `None` searches for it.
    pub root: Option<PathBuf>,
    /// The executor of all participants, in place of the configured ones.
    pub executor: Option<String>,
    /// The budget of each run; what it leaves open is as configured.
    pub caps: Caps,
    /// The deadline of each turn.
    pub timeout: Option<Duration>,
}

impl<P: Into<PathBuf>> From<P> for RuntimeRequest {
    fn from(path: P) -> Self {
        RuntimeRequest { path: path.into(), ..RuntimeRequest::default() }
    }
}
