//! The session: an opened ledger and log, shared by everything that one command does.

mod resources;
mod signing;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Kind, Ledger as _};
use quorate_ledger::council_log::line::Event;
use quorate_ledger::council_log::{self, IndexedLog, view};
use quorate_ledger::runs::{PrefixMatch, Run};
use quorate_ledger::store::lease::{LockOutcome, RunGuard};
use quorate_ledger::{Store, quarantine};
use quorate_protocol::policy::Verdict;
use quorate_protocol::{Json, Name, Part, PartKind};
use serde_json::{Map, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::convene;
use super::environment::Environment;
use super::error::{ServiceError, error_chain};
use super::keys::Keys;
use super::ledger::{checkpoint, gc};
use super::member_access;
use super::overlays;
use super::resume;
use super::signer::{KeySource, Signer};
use super::workspace::{self, PathOverrides, Workspace, display_ledger, display_path};
use resources::WorkspaceResources;

/// Names the run that was opened last, wherever a run is named.
pub const LATEST: &str = "latest";

/// An opened ledger and log.
pub struct LedgerSession {
    pub environment: Environment,
    pub workspace: Workspace,
    pub store: Arc<Store>,
    warnings: Mutex<Report>,
    keys: Keys,
    signers: Mutex<BTreeMap<Name, Signer>>,
}

impl LedgerSession {
    /// Opens the session for work that will be logged: what could not be logged later is refused before anything is made.
    ///
    /// # Errors
    /// When the ledger cannot be opened, or the log cannot be appended to.
    pub async fn open_for_writing(
        environment: Environment,
        workspace: Workspace,
    ) -> Result<LedgerSession, ServiceError> {
        // Where both are to be made in one place, the ledger says what is wrong with it.
        let apart = workspace.log.exists() || workspace.log.parent() != Some(workspace.ledger.dir());
        let can = if apart { council_log::append::can_append(&workspace.log) } else { Ok(()) };
        can.map_err(|error| workspace::log_unwritable(&environment, &workspace.log, &error))?;
        workspace.witness.as_ref().map_or(Ok(()), |witness| witness.ensure_file(&environment))?;
        let session = LedgerSession::open(environment, workspace).await?;
        session.ensure_writable()?;
        Ok(session)
    }

    /// Whether the ledger takes records. What could not be recorded is not begun: nobody is asked, and nothing is paid.
    ///
    /// # Errors
    /// When it is only read.
    pub fn ensure_writable(&self) -> Result<(), ServiceError> {
        let ledger = || display_ledger(&self.environment, self.store.address());
        self.store.read_only_reason().map_or(Ok(()), |why| Err(ServiceError::ledger_closed(&ledger(), why)))
    }

    /// Opens ledger and log, and makes good what a process that died had left: an outcome without its log line.
    ///
    /// # Errors
    /// When the ledger cannot be opened.
    pub async fn open(environment: Environment, workspace: Workspace) -> Result<LedgerSession, ServiceError> {
        let own = WorkspaceResources::of(&environment, &workspace);
        Box::pin(LedgerSession::open_with(environment, own, workspace)).await
    }

    /// As [`LedgerSession::open`], with the configuration of another workspace; ledger, keys, log and witness are those of `own`.
    ///
    /// # Errors
    /// As [`LedgerSession::open`].
    pub async fn open_with(
        environment: Environment,
        own: WorkspaceResources,
        configuration: Workspace,
    ) -> Result<LedgerSession, ServiceError> {
        let mut workspace = own.apply_to(configuration);
        member_access::deny_to_members(&workspace);
        let opened = Box::pin(Store::open_at(&workspace.ledger)).await?;
        let mut report = std::mem::take(&mut workspace.report);
        if let Some(piece) = opened.quarantined {
            let body = Body::new(format!(
                "{} is no ledger and was set aside as {}",
                display_ledger(&environment, &workspace.ledger),
                display_path(&environment, &piece.path)
            ));
            report.warn(
                codes::LEDGER_SET_ASIDE,
                body.help("a new ledger was started; nothing of the old file is lost"),
            );
        }
        if let Some(why) = opened.store.read_only_reason() {
            let ledger = display_ledger(&environment, &workspace.ledger);
            report.warn(
                codes::LEDGER_READ_ONLY,
                Body::new(format!("nothing is written to the ledger {ledger}: {why}"))
                    .help("what it holds can be shown, verified and exported"),
            );
        }
        let session = LedgerSession {
            keys: own.keys,
            environment,
            workspace,
            store: Arc::new(opened.store),
            warnings: Mutex::new(report),
            signers: Mutex::default(),
        };
        let keys = session.keys.clone();
        session.store.set_external_keys(move || keys.trusted_keys().map_err(|error| error.first_message()));
        if session.store.read_only_reason().is_none() {
            // What cannot be removed now is removed by the next process that writes a key.
            let _ = session.keys().directory().remove_leftovers();
            Box::pin(session.reconcile()).await?;
        }
        Ok(session)
    }

    /// Everything that is to be said besides the result, once.
    pub fn take_warnings(&self) -> Report {
        std::mem::take(&mut self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn warn(&self, code: quorate_diagnostics::WarningCode, body: Body) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).warn(code, body);
    }

    pub fn absorb(&self, report: Report) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).absorb(report);
    }

    /// Takes hold of a run, so that no other process takes it up meanwhile.
    ///
    /// # Errors
    /// When another process has it.
    pub async fn acquire_run(&self, run: &Name) -> Result<RunGuard, ServiceError> {
        self.ensure_writable()?;
        let body = match self.store.lock_run(run).await? {
            LockOutcome::Acquired(held) => return Ok(held),
            LockOutcome::HeldLocally => Body::new(format!("run {run} is being worked on by another process"))
                .help(format!("see later what it came to with `quorate show {run}`")),
            LockOutcome::HeldRemotely { until_ms } => {
                let until = quorate_manifest::timestamp::format(until_ms);
                Body::new(format!(
                    "run {run} is being worked on by another machine, which has it until {until}"
                ))
                .help("it says so again before that while it lives; if it is dead, resume the run after that")
            }
        };
        Err(ServiceError::configuration(codes::RUN_MOVED, body))
    }

    /// Brings the log's index up to date.
    ///
    /// # Errors
    /// When log or ledger cannot be read.
    pub async fn sync_log_index(&self) -> Result<IndexedLog, ServiceError> {
        let indexed = council_log::sync(&self.store, &self.workspace.log).await?;
        if indexed.newly_corrupt > 0 {
            let log = display_path(&self.environment, &self.workspace.log);
            let body = Body::new(format!(
                "{} lines of {log} cannot be read and are passed over",
                indexed.newly_corrupt
            ));
            self.warn(codes::LOG_CORRUPT, body.help("they stay where they are; every other line counts"));
        }
        Ok(indexed)
    }

    /// The run that an id, a unique prefix of one, or [`LATEST`] names.
    ///
    /// # Errors
    /// When there is none, or several.
    pub async fn find_run(&self, prefix: &str) -> Result<Run, ServiceError> {
        if prefix == LATEST
            && let Some(run) = self.store.runs(1).await?.pop()
        {
            return Ok(run);
        }
        match self.store.find_by_prefix(prefix).await? {
            PrefixMatch::One(run) => Ok(run),
            PrefixMatch::Several(some) => {
                let some = some.iter().map(|run| &**run).collect::<Vec<_>>().join(", ");
                let body = Body::new(format!("`{prefix}` begins the ids of several runs: {some}, …"));
                Err(ServiceError::new(
                    super::error::ExitClass::NotFound,
                    codes::RUN_AMBIGUOUS,
                    body.help("give more characters"),
                ))
            }
            PrefixMatch::None => {
                let ledger = display_ledger(&self.environment, self.store.address());
                let body = Body::new(format!("the ledger {ledger} has no run `{prefix}`"));
                Err(ServiceError::not_found(
                    codes::RUN_UNKNOWN,
                    body.help("`quorate runs` lists what it has; `--ledger` names another"),
                ))
            }
        }
    }

    /// A run's records, folded.
    ///
    /// # Errors
    /// When they are not there, not whole, or corrupt.
    pub async fn history(&self, run: &Name) -> Result<History, ServiceError> {
        Ok(History::from_records(run, self.store.records(run).await?)?)
    }

    /// What is left of a run's records, folded: enough to show what it came to.
    ///
    /// # Errors
    /// When they are not there, or corrupt.
    pub async fn partial_history(&self, run: &Name) -> Result<History, ServiceError> {
        Ok(History::from_remaining_records(run, self.store.records(run).await?)?)
    }

    /// The texts of a run's inputs.
    ///
    /// # Errors
    /// `quorate:body_evicted` where one is not kept any more.
    pub async fn load_inputs(&self, history: &History) -> Result<Vec<Part>, ServiceError> {
        let mut inputs = Vec::new();
        for (kind, name, sha256) in history.inputs() {
            let Some(text) = self.store.body(&sha256).await? else {
                let body = Body::new(format!("the artifact of run {} is not kept any more", history.run));
                return Err(ServiceError::configuration(codes::BODY_EVICTED, body));
            };
            inputs.push(Part::new(kind, name, text));
        }
        Ok(inputs)
    }

    /// The report of a run.
    ///
    /// # Errors
    /// As [`LedgerSession::history`].
    pub async fn report(&self, run: &Name) -> Result<super::report::Report, ServiceError> {
        self.report_from(&self.partial_history(run).await?).await
    }

    /// The report of a review whose records were read.
    ///
    /// # Errors
    /// When the ledger does not answer.
    pub async fn report_from(&self, history: &History) -> Result<super::report::Report, ServiceError> {
        let artifact = history.inputs().into_iter().find(|(kind, ..)| *kind == PartKind::Artifact);
        let text = match artifact {
            Some((.., sha256)) => self.store.body(&sha256).await?,
            None => None,
        };
        let mut report = super::report::Report::of(history, text);
        let near = |path: String| display_path(&self.environment, Path::new(&path));
        report.council = report.council.map(near);
        let ledger = self.store.address();
        report.ledger = Some(super::report::LedgerLocation {
            ledger: ledger.to_string(),
            shown: display_ledger(&self.environment, ledger),
            flag: self.ledger_flag(),
        });
        report.imported = self.store.is_imported(&history.run).await?;
        if report.verdict == Some(Verdict::Incomplete) && !report.imported && history.erased.records == 0 {
            let cap = resume::larger_cap(history, report.calls);
            let command = format!("{}{cap}", self.resume_command(&history.run));
            report.notes.push(format!(
                "Everything answered so far is kept: `{command}` asks again only for what is missing."
            ));
        }
        Ok(report)
    }

    /// The command that goes on with a run, as it works in this directory.
    pub fn resume_command(&self, run: &str) -> String {
        format!("quorate resume {run}{}", self.ledger_flag())
    }

    /// What a command needs in this directory to find this ledger: ` --ledger FILE`, or nothing.
    pub fn ledger_flag(&self) -> String {
        let environment = &self.environment;
        let here = workspace::load(environment, &PathOverrides::default(), &environment.directory);
        // Reading that configuration has put its redaction in force; what is shown is this one's.
        environment.redactor.set(self.workspace.redaction.redactor.clone());
        match here.is_ok_and(|here| here.ledger == self.workspace.ledger) {
            true => String::new(),
            false => format!(" --ledger {}", display_ledger(environment, &self.workspace.ledger)),
        }
    }

    /// Seals the ledger. What is wrong with that is said; nothing that was recorded depends on it.
    pub async fn seal(&self) {
        self.absorb(Box::pin(checkpoint::checkpoint_or_warn(self)).await);
    }

    /// The command was interrupted: from now on no wait for the ledger takes long.
    pub fn interrupt(&self) {
        self.store.interrupt();
    }

    /// Closes the ledger. What was appended to it and is not sealed yet is sealed before, unless the command was
    /// interrupted and the ledger takes too long: then the next one seals it.
    pub async fn close(self) {
        if self.store.has_appended() {
            checkpoint::within_deadline(&self.store, Box::pin(self.seal())).await;
        }
        if let Some(store) = Arc::into_inner(self.store) {
            Box::pin(checkpoint::close_within_deadline(store)).await;
        }
    }

    /// Closes the ledger, and gives what is the workspace's own to who opens it again with another configuration.
    pub async fn close_into_resources(self) -> WorkspaceResources {
        let own = WorkspaceResources::of(&self.environment, &self.workspace);
        self.close().await;
        own
    }

    async fn reconcile(&self) -> Result<(), ServiceError> {
        let unended = self.store.decided_unfinished().await?;
        let driven = match unended.is_empty() {
            true => BTreeSet::new(),
            false => self.store.runs_driven_elsewhere().await?,
        };
        for run in unended {
            if driven.contains(&run.run) || self.belongs_to_another_log(&run) {
                continue;
            }
            // One run whose records do not fit keeps nobody from the others.
            let concluded = async {
                self.finalize(&run.run).await?;
                gc::after_run(self, &run.run).await
            };
            if let Err(error) = concluded.await {
                let why =
                    error.report.refusals.first().map_or_else(String::new, |one| one.body.message.clone());
                let body = Body::new(format!(
                    "run {} came to a verdict, and its line cannot be logged: {why}",
                    run.run
                ));
                self.warn(codes::LOG_BEHIND, body);
            }
        }
        Ok(())
    }

    /// Whether a run's line belongs to a log of another workspace, which this one leaves alone. A file's log that is not where
    /// it was went along with the ledger.
    fn belongs_to_another_log(&self, run: &Run) -> bool {
        let log = Path::new(&run.log_path);
        !run.log_path.is_empty() && !self.owns_log(log) && (self.store.is_shared() || log.exists())
    }

    /// Does what follows from an outcome: the log line, then the record that all is done. Doing it again does
    /// nothing.
    ///
    /// # Errors
    /// When the ledger does not answer. A log that cannot be written is a warning; the line is made good later.
    pub async fn finalize(&self, run: &Name) -> Result<(), ServiceError> {
        let mut history = self.partial_history(run).await?;
        if history.outcome().is_none() || (history.ended.is_some() && history.unlogged == 0) {
            return Ok(());
        }
        if !self.resume_signing(&mut history, KeySource::Recorded).await? {
            // Whoever was faster concludes it.
            return Ok(());
        }
        let is_assembly = convene::is_assembly(&history);
        if is_assembly {
            overlays::add_from_run(self, &history).await?;
        } else if !self.append_pending_lines(&history).await {
            // The lines follow at the next start.
            return Ok(());
        }
        let logged = !is_assembly;
        match gc::drops_answers_at_end(&history) {
            // They go when it ends, and whoever convened it is to see them before: see [`gc::after_run`].
            true => Ok(()),
            false => self.record_run_ended(&history, logged).await,
        }
    }

    /// Records that all that follows from a run's outcome is done.
    pub(super) async fn record_run_ended(&self, history: &History, logged: bool) -> Result<(), ServiceError> {
        let mut data = Map::from_iter([("logged".to_owned(), json!(logged))]);
        let elsewhere = self.logged_elsewhere(history).filter(|_| logged);
        data.extend(elsewhere.map(|log| ("log_path".to_owned(), log)));
        let entry = Entry { kind: Kind::RunEnded, at_ms: self.environment.clock.now_ms(), data };
        match self.store.append(Append::one(&history.run, history.next, entry, Durability::Written)).await {
            // Another process made it good at the same time.
            Ok(_) | Err(quorate_kernel::ports::ledger::Error::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.seal().await;
        Ok(())
    }

    /// Appends the lines of a review that are not known to stand in the log: of its verdict, and of what people decided
    /// since. `false` when that failed, which is said.
    async fn append_pending_lines(&self, history: &History) -> bool {
        if history.ended.is_none() && !self.append_review_line(history).await {
            return false;
        }
        let (_, decisions) = history.overrides.split_at(history.overrides.len() - history.unlogged);
        for (at_ms, decision) in decisions {
            if !self.append_line(history, view::override_line(history, *at_ms, decision)).await {
                return false;
            }
        }
        true
    }

    /// Appends the log line of a review that came to a verdict.
    async fn append_review_line(&self, history: &History) -> bool {
        let incomplete =
            history.outcome().and_then(|outcome| outcome.get("verdict")) == Some(&json!("INCOMPLETE"));
        let line = match (history.reopened, incomplete) {
            // It was logged as INCOMPLETE when it first ended, and that still holds.
            (true, true) => None,
            (true, false) => view::review_line(history, Event::Resumed),
            (false, _) => view::review_line(history, Event::Verdict),
        };
        match line {
            Some(line) => self.append_line(history, line).await,
            None => true,
        }
    }

    /// Appends a line to the run's log; `false` when that failed, which is said.
    async fn append_line(&self, history: &History, line: Json) -> bool {
        let (path, since) = self.log_target(history);
        let dir = self.store.dir().to_owned();
        let appended = {
            let path = path.clone();
            tokio::task::spawn_blocking(move || {
                council_log::append::append_once(&path, &line.to_string(), since, &dir)
            })
            .await
        };
        match appended.map_err(std::io::Error::other).and_then(|appended| appended) {
            Ok(appended) => {
                if let Some(piece) = appended.quarantined {
                    self.warn_torn_line(&path, &piece);
                }
                true
            }
            Err(error) => {
                let body = Body::new(format!(
                    "cannot append to {}: {}",
                    display_path(&self.environment, &path),
                    error_chain(&error)
                ));
                self.warn(
                    codes::LOG_BEHIND,
                    body.help("what was decided stands in the ledger; the line follows at the next start"),
                );
                false
            }
        }
    }

    fn warn_torn_line(&self, log: &Path, piece: &quarantine::QuarantinedFile) {
        let (log, piece) =
            (display_path(&self.environment, log), display_path(&self.environment, &piece.path));
        self.warn(
            codes::LOG_TORN,
            Body::new(format!("the last line of {log} was torn and was set aside as {piece}")),
        );
    }
}
