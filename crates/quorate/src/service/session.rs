//! The session: an opened ledger and log that all steps of a command share. `open_session.rs` opens it.
//!
//! Ledger, keys, log and witness are the workspace's own, whatever configuration a run was started with. A run's record
//! also names paths, but anyone who can write to the ledger can choose these. Keys are therefore never searched for
//! there, and no line is appended to a file outside of the workspace.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use quorate_adapters::process::{self, LedgerFiles};
use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Ledger, LedgerError};
use quorate_kernel::record::Keyring;
use quorate_ledger::council_log::{self, IndexedLog, priors};
use quorate_ledger::runs::{PrefixMatch, RunFinding, RunRow};
use quorate_ledger::store::address::StoreAddress;
use quorate_ledger::store::lease::{LockOutcome, RunGuard};
use quorate_ledger::{Store, files};
use quorate_manifest::assembly::Signing;
use quorate_protocol::{Json, Name, Part};
use serde_json::json;
use tokio::time::Instant;

use super::disk::{absolute, canonical_or_new, display_ledger, display_path, is_inside, shell_quoted};
use super::environment::Environment;
use super::error::{Error, ErrorKind, error_chain};
use super::guard::{FileRole, SQLITE_SUFFIXES, with_suffix};
use super::keys::WorkspaceKeys;
use super::sealing::{self, Sealer};
use super::signer::{KeySource, Signer};
use super::workspace::{self, PathOverrides, Workspace};

/// The name of the newest run, accepted wherever a run is named.
pub(crate) const LATEST: &str = "latest";

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
    keys: WorkspaceKeys,
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
    pub fn ensure_writable(&self) -> Result<(), Error> {
        let ledger = || display_ledger(&self.environment, self.store.address());
        self.store.read_only_reason().map_or(Ok(()), |why| Err(Error::ledger_closed(&ledger(), why)))
    }

    /// Opens ledger and log with the keys of a workspace, which may be another one than the configuration's. Callers use
    /// `open_session`, which also finalizes runs of crashed processes.
    ///
    /// # Errors
    /// If the ledger cannot be opened.
    pub(super) async fn open(
        environment: Environment,
        keys: WorkspaceKeys,
        mut workspace: Workspace,
    ) -> Result<LedgerSession, Error> {
        deny_to_members(&workspace);
        let mut report = std::mem::take(&mut workspace.report);
        let store = open_store(&environment, &workspace.ledger, &mut report).await?;
        if let Some(why) = store.read_only_reason() {
            let ledger = display_ledger(&environment, &workspace.ledger);
            report.warn(
                codes::LEDGER_READ_ONLY,
                Body::new(format!("cannot write to the ledger {ledger}: {why}"))
                    .help("reading commands still work: show, verify and export"),
            );
        }
        let session = LedgerSession::of(environment, keys, workspace, store, report);
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
    #[crate::boxed]
    pub(crate) async fn open_read_only(
        environment: Environment,
        mut workspace: Workspace,
    ) -> Result<LedgerSession, Error> {
        let keys = WorkspaceKeys::of(&environment, &workspace);
        let store = Box::pin(Store::open_read_only(&workspace.ledger)).await?;
        let report = std::mem::take(&mut workspace.report);
        Ok(LedgerSession::of(environment, keys, workspace, store, report))
    }

    fn of(
        environment: Environment,
        keys: WorkspaceKeys,
        workspace: Workspace,
        store: Store,
        report: Report,
    ) -> LedgerSession {
        connect(&store, &environment, &keys);
        LedgerSession {
            keys,
            environment,
            workspace,
            store: Arc::new(store),
            warnings: Mutex::new(report),
            signers: Mutex::default(),
            sealed_at: Mutex::default(),
            ledger_flag: OnceLock::new(),
        }
    }

    /// The ledger for runs; measures its appends if that is configured.
    pub(crate) fn ledger(&self) -> Arc<dyn Ledger> {
        self.environment.ledger_port(&self.store)
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
    pub async fn acquire_run(&self, run: &Name) -> Result<RunGuard, Error> {
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
        Err(Error::new(ErrorKind::Moved, codes::RUN_MOVED, body))
    }

    /// The run that an id, a unique prefix of one, or [`LATEST`] names.
    #[crate::boxed]
    async fn find_by_prefix(&self, prefix: &str) -> Result<RunRow, Error> {
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
                Err(Error::new(ErrorKind::NotFound, codes::RUN_AMBIGUOUS, body.help("give more characters")))
            }
            PrefixMatch::None => {
                if let Some(run) = self.store.find_unlisted(prefix).await? {
                    self.ensure_unaltered(&run).await?;
                }
                let ledger = display_ledger(&self.environment, self.store.address());
                let body = Body::new(format!("the ledger {ledger} has no run `{prefix}`"));
                Err(Error::not_found(
                    codes::RUN_UNKNOWN,
                    body.help("run `quorate runs` to list its runs, or pass another ledger with `--ledger`"),
                ))
            }
        }
    }

    /// The run that an id, a unique prefix of one, or [`LATEST`] names; the name of a file that a review or an assembly
    /// read stands for the newest run about it.
    ///
    /// # Errors
    /// If none or several match.
    #[crate::boxed]
    pub async fn find_run(&self, named: &str) -> Result<RunRow, Error> {
        let missing = match self.find_by_prefix(named).await {
            Err(error) if error.kind() == ErrorKind::NotFound => error,
            found => return found,
        };
        let path = absolute(&self.environment.directory, Path::new(named));
        let Some(name) = path.file_name().and_then(OsStr::to_str) else { return Err(missing) };
        let place = canonical_or_new(&path);
        // Several folders may have a file of that name, and an override must not decide about another one.
        for row in self.store.runs_on_files_named(name).await? {
            let read = self.partial_history(&row.run).await?.opened.artifact_path;
            if read.is_some_and(|read| canonical_or_new(Path::new(&read)) == place) {
                return Ok(row);
            }
        }
        Err(missing)
    }

    /// As [`find_run`](Self::find_run), to append to the run. Only the ledger that a run was recorded in may append to
    /// it, so imported runs are refused.
    ///
    /// # Errors
    /// If none or several match, or the run was imported.
    #[crate::boxed]
    pub async fn find_own_run(&self, prefix: &str) -> Result<Name, Error> {
        let run = self.find_run(prefix).await?.run;
        if self.store.is_imported(&run).await? {
            let body = Body::new(format!("cannot add to run {run}: it was imported from another ledger"));
            let help = "add to it in the ledger that recorded it; `quorate show RUN` and `quorate replay RUN` work here";
            return Err(Error::new(ErrorKind::Conflict, codes::RUN_IMPORTED, body.help(help)));
        }
        Ok(run)
    }

    /// Refuses a run whose row, records and tree differ, and one whose outcome was erased: displays match the
    /// records (D13).
    ///
    /// # Errors
    /// `quorate:run_altered`, and `quorate:body_evicted`.
    #[crate::boxed]
    pub async fn ensure_unaltered(&self, run: &Name) -> Result<(), Error> {
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
    pub async fn history(&self, run: &Name) -> Result<History, Error> {
        self.ensure_unaltered(run).await?;
        Ok(History::from_records(run, self.store.records(run).await?)?)
    }

    /// The history of a run from its remaining records: enough to show its outcome.
    ///
    /// # Errors
    /// If they are altered or missing.
    #[crate::boxed]
    pub async fn partial_history(&self, run: &Name) -> Result<History, Error> {
        self.ensure_unaltered(run).await?;
        Ok(History::from_remaining_records(run, self.store.records(run).await?)?)
    }

    /// The texts of a run's inputs.
    ///
    /// # Errors
    /// `quorate:body_evicted` if a text was erased.
    #[crate::boxed]
    pub async fn load_inputs(&self, history: &History) -> Result<Vec<Part>, Error> {
        let mut inputs = Vec::new();
        for (kind, name, sha256) in history.inputs() {
            let Some(text) = self.store.body(&sha256).await? else {
                let body = Body::new(format!("the artifact of run {} is no longer stored", history.run));
                return Err(Error::configuration(codes::BODY_EVICTED, body));
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
            if self.workspace.is_found_here {
                return String::new();
            }
            let environment = &self.environment;
            let is_ours = |ledger: &StoreAddress| *ledger == self.workspace.ledger;
            let is_default = workspace::default_ledger(environment).is_ok_and(|ledger| is_ours(&ledger)) && {
                let loaded = workspace::load(environment, &PathOverrides::default(), &environment.directory);
                loaded.is_ok_and(|loaded| is_ours(&loaded.ledger))
            };
            let ledger = display_ledger(environment, &self.workspace.ledger);
            if is_default { String::new() } else { format!(" --ledger {}", shell_quoted(&ledger)) }
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

    /// Seals the ledger at the end of one of several runs, unless it was sealed a moment ago: then the end of the next
    /// run or of the session seals it.
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

    /// Closes the ledger after sealing unsealed records. If the command was interrupted and the ledger takes too long,
    /// leaves them to the next command. Returns the remaining warnings.
    #[crate::boxed]
    pub async fn close(self) -> Report {
        if self.store.has_appended() {
            sealing::within_deadline(&self.store, Box::pin(self.seal())).await;
        }
        let warnings = self.take_warnings();
        if let Some(store) = Arc::into_inner(self.store) {
            Box::pin(sealing::close_within_deadline(store)).await;
        }
        warnings
    }
}

/// Opens a ledger for writing, and warns of a file in its place that was none.
///
/// # Errors
/// If it cannot be opened.
pub(super) async fn open_store(
    environment: &Environment,
    ledger: &StoreAddress,
    report: &mut Report,
) -> Result<Store, Error> {
    let opened = Box::pin(Store::open_at(ledger)).await?;
    if opened.is_new {
        sealing::note_begun(environment, ledger);
    }
    if let Some(piece) = opened.quarantined {
        let (ledger, piece) = (display_ledger(environment, ledger), display_path(environment, &piece.path));
        let body = Body::new(format!("{ledger} was not a ledger and was moved to {piece}"));
        let help = "a new ledger was created; the old file is unchanged";
        report.warn(codes::LEDGER_SET_ASIDE, body.help(help));
    }
    Ok(opened.store)
}

/// Announces what a ledger commits, and lets a workspace's keys count in it.
pub(super) fn connect(store: &Store, environment: &Environment, keys: &WorkspaceKeys) {
    let (keys, events) = (keys.clone(), environment.commit_events.clone());
    store.observe_commits(move |records| events.committed(&records));
    store.set_external_keys(move || keys.trusted_keys().map_err(|error| error.first_message()));
}

/// The refusal of a run whose row, records and tree differ, or whose outcome was erased.
pub(crate) fn altered_error(run: &Name, finding: &RunFinding) -> Error {
    let word = finding.word();
    match finding.difference() {
        Some(what) => {
            let body = Body::new(format!("run {run} is {word}: {what}"));
            let help = "run `quorate ledger verify` to list all differences; restore the ledger from a copy";
            Error::new(ErrorKind::Altered, codes::RUN_ALTERED, body.help(help))
        }
        None => {
            let body = Body::new(format!("the outcome of run {run} is {word}"));
            let help = "only its hash remains: an earlier copy of the ledger may have the outcome";
            Error::configuration(codes::BODY_EVICTED, body.help(help))
        }
    }
}

impl LedgerSession {
    /// The locations of the keys.
    pub fn keys(&self) -> &WorkspaceKeys {
        &self.keys
    }

    /// Signs the records of a run from here on, if its signer has a key.
    pub fn start_signing(&self, run: &Name, signer: Signer) {
        signer.sign(&self.store, run);
        self.signers.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone(), signer);
    }

    /// Appends a record to a run, and returns the number of the next one; `None` if another process appended first.
    ///
    /// # Errors
    /// If the ledger does not answer.
    pub(super) async fn append(
        &self,
        run: &Name,
        next: u64,
        entry: Entry,
        durability: Durability,
    ) -> Result<Option<u64>, Error> {
        match self.store.append(Append::one(run, next, entry, durability)).await {
            Ok(next) => Ok(Some(next)),
            Err(LedgerError::Conflict { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Signs appends to a run that began with signatures. If the key is newer than the run, first appends a record with
    /// its voucher, and `history` continues after that. Returns `false` if another process was faster and the run must
    /// be read again.
    ///
    /// # Errors
    /// If the run is signed and no key may sign for it, or the record cannot be appended.
    #[crate::boxed]
    pub async fn resume_signing(&self, history: &mut History, whose: KeySource) -> Result<bool, Error> {
        if self.signer(&history.run).is_some() {
            return Ok(true);
        }
        let Some((signer, vouchers)) =
            Signer::for_existing_run(self.keys(), &self.store, history, whose).await?
        else {
            return Ok(true);
        };
        signer.sign(&self.store, &history.run);
        if !vouchers.is_empty() {
            let vouched = vouchers.iter().map(|voucher| json!(voucher)).collect();
            let entry = Entry::of(&Keyring { vouched }, self.environment.clock.now_ms());
            match self.append(&history.run, history.next, entry, Durability::Written).await? {
                Some(next) => history.next = next,
                None => return Ok(false),
            }
        }
        self.start_signing(&history.run, signer);
        Ok(true)
    }

    /// Signs appends to a stream beside the runs if the stream began signed. A new stream begins with signatures if it
    /// starts with a run that requires them.
    ///
    /// # Errors
    /// If the stream is signed and no key may sign for it.
    #[crate::boxed]
    pub async fn sign_stream(&self, stream: &Name, run: Option<&Name>) -> Result<(), Error> {
        if self.signer(stream).is_some() {
            return Ok(());
        }
        match run.and_then(|run| self.signer(run)) {
            Some(signer) if signer.signing() == Signing::Required => self.start_signing(stream, signer),
            _ if self.store.is_signed(stream).await? => {
                let signer = Signer::new(self.keys(), Signing::Required, None).await?;
                self.start_signing(stream, signer);
            }
            _ => {}
        }
        Ok(())
    }

    /// The signer of a stream that this session began or continues.
    fn signer(&self, run: &Name) -> Option<Signer> {
        self.signers.lock().unwrap_or_else(PoisonError::into_inner).get(run).cloned()
    }
}

/// Denies members that start from now on access to the keys, ledger and log of a workspace.
pub(crate) fn deny_to_members(workspace: &Workspace) {
    let dir = workspace.ledger.dir();
    let ledger = match workspace.ledger.file() {
        // The whole of Quorate's own directory is denied, with the files that were moved aside.
        _ if dir.file_name().is_some_and(|name| name == ".quorate") => vec![dir.to_owned()],
        Some(file) => {
            SQLITE_SUFFIXES.iter().map(|ending| with_suffix(file, ending)).chain([file.to_owned()]).collect()
        }
        None => vec![dir.to_owned()],
    };
    let council = workspace.council_path.as_deref();
    let root = workspace.config_path.as_deref().or(council).and_then(Path::parent);
    process::protect_from_members(LedgerFiles {
        keys: dir.join("keys"),
        ledger,
        log: workspace.log.clone(),
        workspace: root.map(Path::to_owned),
    });
}

impl LedgerSession {
    /// Brings the log's index up to date.
    ///
    /// # Errors
    /// If log or ledger cannot be read.
    #[crate::boxed]
    pub async fn sync_log_index(&self) -> Result<IndexedLog, Error> {
        let indexed = council_log::sync(&self.store, &self.workspace.log).await?;
        if indexed.newly_corrupt > 0 {
            let log = display_path(&self.environment, &self.workspace.log);
            let body = Body::new(format!("skipped {} unreadable lines of {log}", indexed.newly_corrupt));
            self.warn(codes::LOG_CORRUPT, body.help("they stay in the file, and every other line counts"));
        }
        Ok(indexed)
    }

    /// As [`sync_log_index`](Self::sync_log_index), for readers of the whole log: rebuilds the index if it differs from a
    /// log that is not large, since displays match the records (D13). Warns about a torn last line, which does not count;
    /// the next append repairs it.
    ///
    /// # Errors
    /// If log or ledger cannot be read.
    #[crate::boxed]
    pub async fn compared_log_index(&self) -> Result<IndexedLog, Error> {
        let indexed = self.sync_log_index().await?;
        if indexed.is_cut {
            let log = display_path(&self.environment, &self.workspace.log);
            let body = Body::new(format!("skipped the last line of {log}: it has no line end"));
            let help = "a line of Quorate ends with a line feed: a write was cut off, or the file was changed. \
                        The next verdict to be logged ends the line if it is whole; `quorate ledger verify` compares it with its run";
            self.warn(codes::LOG_CORRUPT, body.help(help));
        }
        match council_log::rebuild_if_altered(&self.store, &self.workspace.log, indexed).await? {
            None => Ok(indexed),
            Some((what, rebuilt)) => {
                let log = display_path(&self.environment, &self.workspace.log);
                let body = Body::new(format!("rebuilt the index of {log}, which was altered: {what}"));
                self.warn(codes::LOG_CORRUPT, body.help("counts come from the log's lines again"));
                Ok(rebuilt)
            }
        }
    }

    /// Earlier verdicts on a type of artifact, as the adjudicator sees them.
    ///
    /// # Errors
    /// If log or ledger cannot be read.
    #[crate::boxed]
    pub async fn priors(&self, indexed: IndexedLog, artifact_type: &str) -> Result<Vec<Json>, Error> {
        let priors = priors::priors(&self.store, &self.workspace.log, indexed, artifact_type).await?;
        for prior in priors.iter().filter(|prior| prior["verdict"] == priors::ALTERED) {
            let log = display_path(&self.environment, &self.workspace.log);
            let of = prior["artifact"].as_str().unwrap_or_default();
            let body = Body::new(format!("the line of {of} in {log} differs from the run's records"));
            let help = "the adjudicator sees ALTERED instead of its verdict; `quorate ledger verify` lists the differences";
            self.warn(codes::LOG_CORRUPT, body.help(help));
        }
        Ok(priors)
    }

    /// The file for a run's lines, and the offset after which they may be: the log in the run's record if it belongs to
    /// this workspace, else the workspace's own log, with a warning.
    fn log_target(&self, history: &History) -> (PathBuf, u64) {
        let named = history.opened.log_path.as_deref().map(Path::new);
        match named {
            Some(named) if self.owns_log(named) => {
                let log = if self.is_default_log(named) { &self.workspace.log } else { named };
                return (log.to_owned(), history.opened.log_bytes.unwrap_or(0));
            }
            Some(named) => {
                let log = display_path(&self.environment, &self.workspace.log);
                let body = Body::new(format!(
                    "the log of run {} is {}, which is not in this workspace: the line was written to {log}",
                    history.run,
                    named.display()
                ));
                let help = "`quorate ledger verify` finds it here; to log it there, run the command in the run's own workspace";
                self.warn(codes::LOG_ELSEWHERE, body.help(help));
            }
            None => {}
        }
        (self.workspace.log.clone(), 0)
    }

    /// The log in the record that ends a run, if its lines are in another log than its first record names. `verify`
    /// looks for them there.
    pub(in crate::service) fn logged_elsewhere(&self, history: &History) -> Option<String> {
        let named = history.opened.log_path.as_deref()?;
        let own = self.workspace.redaction.redactor.redact(&self.workspace.log.to_string_lossy()).0;
        (!self.owns_log(Path::new(named))).then_some(own)
    }

    /// Whether a log is this workspace's: its own, or another one below its root.
    pub(in crate::service) fn owns_log(&self, log: &Path) -> bool {
        let is_log = || log.extension().is_some_and(|end| end == "jsonl");
        let is_free = || self.workspace.guard.occupant(log, Some(FileRole::Log)).is_none();
        self.is_default_log(log) || (is_log() && is_inside(self.keys.root(), log) && is_free())
    }

    /// Whether a log named in a record is the workspace's own. Recorded names are redacted.
    fn is_default_log(&self, log: &Path) -> bool {
        let own_path = &self.workspace.log;
        log == own_path
            || *log.to_string_lossy()
                == *self.workspace.redaction.redactor.redact(&own_path.to_string_lossy()).0
    }

    /// Appends a line to the run's log; returns `false` after a warning if that fails.
    pub(in crate::service) async fn append_line(&self, history: &History, line: Json) -> bool {
        let (path, since) = self.log_target(history);
        let dir = self.store.dir().to_owned();
        let appended = {
            let path = path.clone();
            tokio::task::spawn_blocking(move || {
                council_log::append_once(&path, &line.to_string(), since, &dir)
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
                    body.help("the verdict is in the ledger; the line follows at the next start"),
                );
                false
            }
        }
    }

    fn warn_torn_line(&self, log: &Path, piece: &files::QuarantinedFile) {
        let (log, piece) =
            (display_path(&self.environment, log), display_path(&self.environment, &piece.path));
        self.warn(
            codes::LOG_TORN,
            Body::new(format!("the last line of {log} was torn and was moved to {piece}")),
        );
    }
}
