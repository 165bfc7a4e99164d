//! The session: an opened ledger and log that all steps of a command share.

mod log;
pub mod resources;
mod signing;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::Ledger;
use quorate_ledger::Store;
use quorate_ledger::runs::{Finding, PrefixMatch, RunRow};
use quorate_ledger::store::lease::{LockOutcome, RunGuard};
use quorate_protocol::{Name, Part};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

use super::environment::Environment;
use super::error::ServiceError;
use super::keys::Keys;
use super::member_access;
use super::metrics;
use super::paths::{display_ledger, display_path};
use super::sealing::{self, Sealer};
use super::signer::Signer;
use super::workspace::{self, PathOverrides, Workspace};
use resources::WorkspaceResources;

/// The name of the newest run, accepted wherever a run is named.
pub const LATEST: &str = "latest";

/// The minimum interval between seals of a ledger while runs end one after another.
const SEAL_INTERVAL: Duration = Duration::from_secs(1);
/// The same for a server: sealing blocks every other writer for some twenty round trips.
const SHARED_SEAL_INTERVAL: Duration = Duration::from_secs(5);

/// An opened ledger and log.
pub struct LedgerSession {
    pub environment: Environment,
    pub workspace: Workspace,
    pub store: Arc<Store>,
    warnings: Mutex<Report>,
    keys: Keys,
    /// The time of the last seal.
    sealed_at: Mutex<Option<Instant>>,
    signers: Mutex<BTreeMap<Name, Signer>>,
    ledger_flag: OnceLock<String>,
}

impl LedgerSession {
    /// Checks that the ledger accepts records, before any member is called and paid.
    ///
    /// # Errors
    /// If it was opened read-only.
    pub fn ensure_writable(&self) -> Result<(), ServiceError> {
        let ledger = || display_ledger(&self.environment, self.store.address());
        self.store.read_only_reason().map_or(Ok(()), |why| Err(ServiceError::ledger_closed(&ledger(), why)))
    }

    /// Opens ledger and log, with a configuration that may be another workspace's; ledger, keys, log and witness come from
    /// `own`. Callers use `open_session`, which also finalizes runs of crashed processes.
    ///
    /// # Errors
    /// If the ledger cannot be opened.
    pub(super) async fn open(
        environment: Environment,
        own: WorkspaceResources,
        configuration: Workspace,
    ) -> Result<LedgerSession, ServiceError> {
        let mut workspace = own.apply_to(configuration);
        member_access::deny_to_members(&workspace);
        let opened = Box::pin(Store::open_at(&workspace.ledger)).await?;
        let mut report = std::mem::take(&mut workspace.report);
        if opened.is_new {
            sealing::note_begun(&environment, &workspace.ledger);
        }
        if let Some(piece) = opened.quarantined {
            let body = Body::new(format!(
                "{} was not a ledger and was moved to {}",
                display_ledger(&environment, &workspace.ledger),
                display_path(&environment, &piece.path)
            ));
            report.warn(
                codes::LEDGER_SET_ASIDE,
                body.help("a new ledger was created; the old file is complete"),
            );
        }
        if let Some(why) = opened.store.read_only_reason() {
            let ledger = display_ledger(&environment, &workspace.ledger);
            report.warn(
                codes::LEDGER_READ_ONLY,
                Body::new(format!("cannot write to the ledger {ledger}: {why}"))
                    .help("reading commands still work: show, verify and export"),
            );
        }
        let session = LedgerSession::of(environment, own.keys, workspace, opened.store, report);
        // Done before any other work: finding the flag replaces the process's redactor for a moment.
        session.ledger_flag();
        if session.store.read_only_reason().is_none() {
            // The next process that writes a key removes the remaining files.
            let _ = session.keys().directory().remove_leftovers();
        }
        Ok(session)
    }

    /// Opens the ledger of a workspace read-only. Writes nothing, not even for runs that a dead process left open.
    ///
    /// # Errors
    /// If the ledger does not exist or cannot be read.
    pub(super) async fn open_read_only(
        environment: Environment,
        workspace: Workspace,
    ) -> Result<LedgerSession, ServiceError> {
        let own = WorkspaceResources::of(&environment, &workspace);
        let mut workspace = own.apply_to(workspace);
        let store = Box::pin(Store::open_read_only(&workspace.ledger)).await?;
        let report = std::mem::take(&mut workspace.report);
        Ok(LedgerSession::of(environment, own.keys, workspace, store, report))
    }

    fn of(
        environment: Environment,
        keys: Keys,
        workspace: Workspace,
        store: Store,
        report: Report,
    ) -> LedgerSession {
        let session = LedgerSession {
            keys,
            environment,
            workspace,
            store: Arc::new(store),
            warnings: Mutex::new(report),
            signers: Mutex::default(),
            sealed_at: Mutex::default(),
            ledger_flag: OnceLock::new(),
        };
        let keys = session.keys.clone();
        let events = session.environment.commit_events.clone();
        session.store.observe_commits(move |records| events.committed(&records));
        session.store.set_external_keys(move || keys.trusted_keys().map_err(|error| error.first_message()));
        session
    }

    /// The ledger for runs; measures its appends if that is configured.
    pub(super) fn ledger(&self) -> Arc<dyn Ledger> {
        metrics::ledger(&self.environment, &self.store)
    }

    /// All warnings, each once; clears them.
    pub fn take_warnings(&self) -> Report {
        std::mem::take(&mut self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn warn(&self, code: quorate_diagnostics::WarningCode, body: Body) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).warn(code, body);
    }

    pub fn absorb(&self, report: Report) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).absorb(report);
    }

    /// Acquires the lock of a run against other processes.
    ///
    /// # Errors
    /// If another process holds it.
    #[crate::boxed]
    pub async fn acquire_run(&self, run: &Name) -> Result<RunGuard, ServiceError> {
        self.ensure_writable()?;
        let body = match self.store.lock_run(run).await? {
            LockOutcome::Acquired(held) => return Ok(held),
            LockOutcome::HeldLocally => Body::new(format!("another process works on run {run}"))
                .help(format!("see its outcome later with `quorate show {run}`")),
            LockOutcome::HeldRemotely { until_ms } => {
                let until = quorate_manifest::timestamp::format(until_ms);
                Body::new(format!("run {run} is in progress on another machine, whose lease ends {until}"))
                    .help("the process renews its lease while it runs; if it crashed, resume the run after that time")
            }
        };
        Err(ServiceError::configuration(codes::RUN_MOVED, body))
    }

    /// The run that an id, a unique prefix of one, or [`LATEST`] names.
    ///
    /// # Errors
    /// If none or several match.
    #[crate::boxed]
    pub async fn find_run(&self, prefix: &str) -> Result<RunRow, ServiceError> {
        if prefix == LATEST
            && let Some(run) = self.store.runs(1).await?.pop()
        {
            return Ok(run);
        }
        match self.store.find_by_prefix(prefix).await? {
            PrefixMatch::One(run) => Ok(run),
            PrefixMatch::Several(some) => {
                let some = some.iter().map(|run| &**run).collect::<Vec<_>>().join(", ");
                let body = Body::new(format!("`{prefix}` is a prefix of several runs: {some}, …"));
                Err(ServiceError::new(
                    super::error::ExitClass::NotFound,
                    codes::RUN_AMBIGUOUS,
                    body.help("give more characters"),
                ))
            }
            PrefixMatch::None => {
                if let Some(run) = self.store.find_unlisted(prefix).await? {
                    self.ensure_unaltered(&run).await?;
                }
                let ledger = display_ledger(&self.environment, self.store.address());
                let body = Body::new(format!("the ledger {ledger} has no run `{prefix}`"));
                Err(ServiceError::not_found(
                    codes::RUN_UNKNOWN,
                    body.help("run `quorate runs` to list its runs, or pass another ledger with `--ledger`"),
                ))
            }
        }
    }

    /// Refuses a run whose row, records and tree differ, and one whose outcome was erased (D13).
    ///
    /// # Errors
    /// `quorate:run_altered`, and `quorate:body_evicted`.
    #[crate::boxed]
    pub async fn ensure_unaltered(&self, run: &Name) -> Result<(), ServiceError> {
        // Each append of this session was compared with the run's head.
        if self.signer(run).is_some() {
            return Ok(());
        }
        match self.store.compare_run(run).await? {
            None => Ok(()),
            Some(finding) => Err(altered_error(run, &finding)),
        }
    }

    /// A run's history.
    ///
    /// # Errors
    /// If its records are altered, missing or incomplete.
    #[crate::boxed]
    pub async fn history(&self, run: &Name) -> Result<History, ServiceError> {
        self.ensure_unaltered(run).await?;
        Ok(History::from_records(run, self.store.records(run).await?)?)
    }

    /// The history of a run from its remaining records: enough to show its outcome.
    ///
    /// # Errors
    /// If they are altered or missing.
    #[crate::boxed]
    pub async fn partial_history(&self, run: &Name) -> Result<History, ServiceError> {
        self.ensure_unaltered(run).await?;
        Ok(History::from_remaining_records(run, self.store.records(run).await?)?)
    }

    /// The texts of a run's inputs.
    ///
    /// # Errors
    /// `quorate:body_evicted` if a text was erased.
    #[crate::boxed]
    pub async fn load_inputs(&self, history: &History) -> Result<Vec<Part>, ServiceError> {
        let mut inputs = Vec::new();
        for (kind, name, sha256) in history.inputs() {
            let Some(text) = self.store.body(&sha256).await? else {
                let body = Body::new(format!("the artifact of run {} is no longer stored", history.run));
                return Err(ServiceError::configuration(codes::BODY_EVICTED, body));
            };
            inputs.push(Part::new(kind, name, text));
        }
        Ok(inputs)
    }

    /// The command that resumes a run in this directory.
    pub fn resume_command(&self, run: &str) -> String {
        format!("quorate resume {run}{}", self.ledger_flag())
    }

    /// The arguments that commands in this directory need to find this ledger: ` --ledger FILE`, or nothing.
    pub fn ledger_flag(&self) -> &str {
        self.ledger_flag.get_or_init(|| {
            let environment = &self.environment;
            let loaded = workspace::load(environment, &PathOverrides::default(), &environment.directory);
            // Loading that configuration replaced the process's redaction; this restores the session's.
            environment.redactor.set(self.workspace.redaction.redactor.clone());
            match loaded.is_ok_and(|loaded| loaded.ledger == self.workspace.ledger) {
                true => String::new(),
                false => format!(" --ledger {}", display_ledger(environment, &self.workspace.ledger)),
            }
        })
    }

    /// Seals this ledger.
    pub fn sealer(&self) -> Sealer<'_> {
        Sealer {
            environment: &self.environment,
            store: &self.store,
            witness: self.workspace.witness.as_ref(),
        }
    }

    /// Seals the ledger. Failures become warnings, since no record depends on a seal.
    #[crate::boxed]
    pub async fn seal(&self) {
        *self.sealed_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.absorb(Box::pin(self.sealer().seal_or_warn()).await);
    }

    /// Seals the ledger at the end of one of several runs, unless it was sealed a moment ago: then the end of the next run or
    /// of the session seals it.
    #[crate::boxed]
    pub async fn seal_run(&self) {
        let last = *self.sealed_at.lock().unwrap_or_else(PoisonError::into_inner);
        let interval = if self.store.is_shared() { SHARED_SEAL_INTERVAL } else { SEAL_INTERVAL };
        if last.is_none_or(|last| last.elapsed() >= interval) {
            self.seal().await;
        }
    }

    /// Marks the command as interrupted: from now on no wait for the ledger takes long.
    pub fn interrupt(&self) {
        self.store.interrupt();
    }

    /// Closes the ledger after sealing unsealed records. If the command was interrupted and the ledger takes too long, leaves
    /// them to the next command.
    #[crate::boxed]
    pub async fn close(self) {
        if self.store.has_appended() {
            sealing::within_deadline(&self.store, Box::pin(self.seal())).await;
        }
        if let Some(store) = Arc::into_inner(self.store) {
            Box::pin(sealing::close_within_deadline(store)).await;
        }
    }

    /// Closes the ledger and returns the workspace's resources, to open it with another configuration.
    #[crate::boxed]
    pub async fn close_into_resources(self) -> WorkspaceResources {
        let resources = WorkspaceResources::of(&self.environment, &self.workspace);
        self.close().await;
        resources
    }
}

/// The refusal of a run whose row, records and tree differ, or whose outcome was erased.
pub(super) fn altered_error(run: &Name, finding: &Finding) -> ServiceError {
    let word = finding.word();
    match finding.difference() {
        Some(what) => {
            let body = Body::new(format!("run {run} is {word}: {what}"));
            let help =
                "run `quorate ledger verify` to list all differences; restore the ledger from a copy";
            ServiceError::configuration(codes::RUN_ALTERED, body.help(help))
        }
        None => {
            let body = Body::new(format!("the outcome of run {run} is {word}"));
            let help = "only its hash remains: an earlier copy of the ledger may have the outcome";
            ServiceError::configuration(codes::BODY_EVICTED, body.help(help))
        }
    }
}
