//! The desk: an opened ledger and log, shared by everything that one command does.

mod own;
mod signing;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Kind, Ledger as _};
use quorate_ledger::council_log::line::Event;
use quorate_ledger::council_log::{self, Indexed, view};
use quorate_ledger::runs::{Found, Run};
use quorate_ledger::store::lease::{Held, Taken};
use quorate_ledger::{Store, aside};
use quorate_protocol::policy::Verdict;
use quorate_protocol::{Json, Name, Part, PartKind};
use serde_json::{Map, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::convene;
use super::environment::Environment;
use super::keys::Keys;
use super::ledger::{checkpoint, gc};
use super::overlays;
use super::reach;
use super::signer::{Signer, Whose};
use super::stop::{Stop, chain};
use super::workspace::{self, Places, Workspace, shown, shown_ledger};
use own::Own;

/// Names the run that was opened last, wherever a run is named.
pub const LATEST: &str = "latest";

/// An opened ledger and log.
pub struct Desk {
    /// The surroundings.
    pub environment: Environment,
    /// The configuration.
    pub workspace: Workspace,
    /// The ledger.
    pub store: Arc<Store>,
    warnings: Mutex<Report>,
    keys: Keys,
    signers: Mutex<BTreeMap<Name, Signer>>,
}

impl Desk {
    /// Opens the desk for work that will be logged: what could not be logged later is refused before anything is made.
    ///
    /// # Errors
    /// When the ledger cannot be opened, or the log cannot be appended to.
    pub async fn open_to_work(environment: Environment, workspace: Workspace) -> Result<Desk, Stop> {
        // Where both are to be made in one place, the ledger says what is wrong with it.
        let apart = workspace.log.exists() || workspace.log.parent() != Some(workspace.ledger.dir());
        let can = if apart { council_log::append::can_append(&workspace.log) } else { Ok(()) };
        can.map_err(|error| {
            let body =
                Body::new(format!("cannot append to {}: {error}", shown(&environment, &workspace.log)));
            let help = "make it writable, or set `logging.log_path` in council.yaml";
            Stop::configuration(codes::LOG_UNWRITABLE, body.help(help))
        })?;
        let desk = Desk::open(environment, workspace).await?;
        desk.may_write()?;
        Ok(desk)
    }

    /// Whether the ledger takes records. What could not be recorded is not begun: nobody is asked, and nothing is paid.
    ///
    /// # Errors
    /// When it is only read.
    pub fn may_write(&self) -> Result<(), Stop> {
        let ledger = || shown_ledger(&self.environment, self.store.address());
        self.store.closed_to_writers().map_or(Ok(()), |why| Err(Stop::closed(&ledger(), why)))
    }

    /// Opens ledger and log, and makes good what a process that died had left: an outcome without its log line.
    ///
    /// # Errors
    /// When the ledger cannot be opened.
    pub async fn open(environment: Environment, workspace: Workspace) -> Result<Desk, Stop> {
        let own = Own::of(&environment, &workspace);
        Box::pin(Desk::open_with(environment, own, workspace)).await
    }

    /// As [`Desk::open`], with the configuration of another workspace; ledger, keys, log and witness are those of `own`.
    ///
    /// # Errors
    /// As [`Desk::open`].
    pub async fn open_with(
        environment: Environment,
        own: Own,
        configuration: Workspace,
    ) -> Result<Desk, Stop> {
        let mut workspace = own.with(configuration);
        reach::keep_from_members(&workspace);
        let opened = Box::pin(Store::open_at(&workspace.ledger)).await?;
        let mut report = std::mem::take(&mut workspace.report);
        if let Some(piece) = opened.set_aside {
            let body = Body::new(format!(
                "{} is no ledger and was set aside as {}",
                shown_ledger(&environment, &workspace.ledger),
                shown(&environment, &piece.path)
            ));
            report.warn(
                codes::LEDGER_SET_ASIDE,
                body.help("a new ledger was started; nothing of the old file is lost"),
            );
        }
        if let Some(why) = opened.store.closed_to_writers() {
            let ledger = shown_ledger(&environment, &workspace.ledger);
            report.warn(
                codes::LEDGER_READ_ONLY,
                Body::new(format!("nothing is written to the ledger {ledger}: {why}"))
                    .help("what it holds can be shown, verified and exported"),
            );
        }
        let desk = Desk {
            keys: own.keys,
            environment,
            workspace,
            store: Arc::new(opened.store),
            warnings: Mutex::new(report),
            signers: Mutex::default(),
        };
        let keys = desk.keys.clone();
        desk.store.judge_by(move || keys.outside().map_err(|stop| stop.first()));
        if desk.store.closed_to_writers().is_none() {
            // What cannot be removed now is removed by the next process that writes a key.
            let _ = desk.keys().directory().tidy();
            Box::pin(desk.reconcile()).await?;
        }
        Ok(desk)
    }

    /// Everything that is to be said besides the result, once.
    pub fn take_warnings(&self) -> Report {
        std::mem::take(&mut self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a warning.
    pub fn warn(&self, code: quorate_diagnostics::WarningCode, body: Body) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).warn(code, body);
    }

    /// Adds a report.
    pub fn absorb(&self, report: Report) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).absorb(report);
    }

    /// Takes hold of a run, so that no other process takes it up meanwhile.
    ///
    /// # Errors
    /// When another process has it.
    pub async fn hold(&self, run: &Name) -> Result<Held, Stop> {
        self.may_write()?;
        let body = match self.store.take(run).await? {
            Taken::Ours(held) => return Ok(held),
            Taken::Here => Body::new(format!("run {run} is being worked on by another process"))
                .help(format!("see later what it came to with `quorate show {run}`")),
            Taken::Elsewhere { until_ms } => {
                let until = quorate_manifest::timestamp::write(until_ms);
                Body::new(format!(
                    "run {run} is being worked on by another machine, which has it until {until}"
                ))
                .help("it says so again before that while it lives; if it is dead, resume the run after that")
            }
        };
        Err(Stop::configuration(codes::RUN_MOVED, body))
    }

    /// Brings the log's index up to date.
    ///
    /// # Errors
    /// When log or ledger cannot be read.
    pub async fn index(&self) -> Result<Indexed, Stop> {
        let indexed = council_log::sync(&self.store, &self.workspace.log).await?;
        if indexed.newly_corrupt > 0 {
            let log = shown(&self.environment, &self.workspace.log);
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
    pub async fn find(&self, prefix: &str) -> Result<Run, Stop> {
        if prefix == LATEST
            && let Some(run) = self.store.runs(1).await?.pop()
        {
            return Ok(run);
        }
        match self.store.find(prefix).await? {
            Found::One(run) => Ok(run),
            Found::Several(some) => {
                let some = some.iter().map(|run| &**run).collect::<Vec<_>>().join(", ");
                let body = Body::new(format!("`{prefix}` begins the ids of several runs: {some}, …"));
                Err(Stop::new(
                    super::stop::Class::NotFound,
                    codes::RUN_AMBIGUOUS,
                    body.help("give more characters"),
                ))
            }
            Found::None => {
                let ledger = shown_ledger(&self.environment, self.store.address());
                let body = Body::new(format!("the ledger {ledger} has no run `{prefix}`"));
                Err(Stop::not_found(
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
    pub async fn history(&self, run: &Name) -> Result<History, Stop> {
        Ok(History::of(run, self.store.records(run).await?)?)
    }

    /// What is left of a run's records, folded: enough to show what it came to.
    ///
    /// # Errors
    /// When they are not there, or corrupt.
    pub async fn history_left(&self, run: &Name) -> Result<History, Stop> {
        Ok(History::of_what_is_left(run, self.store.records(run).await?)?)
    }

    /// The texts of a run's inputs.
    ///
    /// # Errors
    /// `quorate:body_evicted` where one is not kept any more.
    pub async fn inputs(&self, history: &History) -> Result<Vec<Part>, Stop> {
        let mut inputs = Vec::new();
        for (kind, name, sha256) in history.inputs() {
            let Some(text) = self.store.body(&sha256).await? else {
                let body = Body::new(format!("the artifact of run {} is not kept any more", history.run));
                return Err(Stop::configuration(codes::BODY_EVICTED, body));
            };
            inputs.push(Part::new(kind, name, text));
        }
        Ok(inputs)
    }

    /// The report of a run.
    ///
    /// # Errors
    /// As [`Desk::history`].
    pub async fn report(&self, run: &Name) -> Result<super::report::Report, Stop> {
        self.report_of(&self.history_left(run).await?).await
    }

    /// The report of a review whose records were read.
    ///
    /// # Errors
    /// When the ledger does not answer.
    pub async fn report_of(&self, history: &History) -> Result<super::report::Report, Stop> {
        let artifact = history.inputs().into_iter().find(|(kind, ..)| *kind == PartKind::Artifact);
        let text = match artifact {
            Some((.., sha256)) => self.store.body(&sha256).await?,
            None => None,
        };
        let mut report = super::report::Report::of(history, text);
        let near = |path: String| shown(&self.environment, Path::new(&path));
        report.council = report.council.map(near);
        let ledger = self.store.address();
        report.kept = Some(super::report::Kept {
            ledger: ledger.to_string(),
            shown: shown_ledger(&self.environment, ledger),
            flag: self.ledger_flag(),
        });
        if report.verdict == Some(Verdict::Incomplete) && history.erased.records == 0 {
            let command = self.resume_command(&history.run);
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
        let here = workspace::load(environment, &Places::default(), &environment.directory);
        // Reading that configuration has put its redaction in force; what is shown is this one's.
        environment.redacted.set(self.workspace.redaction.redactor.clone());
        match here.is_ok_and(|here| here.ledger == self.workspace.ledger) {
            true => String::new(),
            false => format!(" --ledger {}", shown_ledger(environment, &self.workspace.ledger)),
        }
    }

    /// Seals the ledger. What is wrong with that is said; nothing that was recorded depends on it.
    pub async fn seal(&self) {
        self.absorb(Box::pin(checkpoint::checkpoint_or_say(self)).await);
    }

    /// The command was interrupted: from now on no wait for the ledger takes long.
    pub fn hurry(&self) {
        self.store.hurry();
    }

    /// Closes the ledger. What was appended to it and is not sealed yet is sealed before, unless the command was
    /// interrupted and the ledger takes too long: then the next one seals it.
    pub async fn close(self) {
        if self.store.has_appended() {
            checkpoint::in_time(&self.store, Box::pin(self.seal())).await;
        }
        if let Some(store) = Arc::into_inner(self.store) {
            Box::pin(checkpoint::close_in_time(store)).await;
        }
    }

    /// Closes the ledger, and gives what is the workspace's own to who opens it again with another configuration.
    pub async fn close_and_keep(self) -> Own {
        let own = Own::of(&self.environment, &self.workspace);
        self.close().await;
        own
    }

    async fn reconcile(&self) -> Result<(), Stop> {
        let unended = self.store.unended().await?;
        let driven = match unended.is_empty() {
            true => BTreeSet::new(),
            false => self.store.driven_elsewhere().await?,
        };
        for run in unended {
            if driven.contains(&run.run) || self.is_anothers(&run) {
                continue;
            }
            // One run whose records do not fit keeps nobody from the others.
            let concluded = async {
                self.conclude(&run.run).await?;
                gc::after_run(self, &run.run).await
            };
            if let Err(stop) = concluded.await {
                let why =
                    stop.report.refusals.first().map_or_else(String::new, |one| one.body.message.clone());
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
    fn is_anothers(&self, run: &Run) -> bool {
        let log = Path::new(&run.log_path);
        !run.log_path.is_empty() && !self.has_log(log) && (self.store.is_shared() || log.exists())
    }

    /// Does what follows from an outcome: the log line, then the record that all is done. Doing it again does
    /// nothing.
    ///
    /// # Errors
    /// When the ledger does not answer. A log that cannot be written is a warning; the line is made good later.
    pub async fn conclude(&self, run: &Name) -> Result<(), Stop> {
        let mut history = self.history_left(run).await?;
        if history.outcome().is_none() || (history.ended.is_some() && history.unlogged == 0) {
            return Ok(());
        }
        if !self.sign_again(&mut history, Whose::Recorded).await? {
            // Whoever was faster concludes it.
            return Ok(());
        }
        let is_assembly = convene::is_assembly(&history);
        if is_assembly {
            overlays::add(self, &history).await?;
        } else if !self.log_what_is_new(&history).await {
            // The lines follow at the next start.
            return Ok(());
        }
        let logged = !is_assembly;
        match gc::keeps_no_answers(&history) {
            // They go when it ends, and whoever convened it is to see them before: see [`gc::after_run`].
            true => Ok(()),
            false => self.end(&history, logged).await,
        }
    }

    /// Records that all that follows from a run's outcome is done.
    pub(super) async fn end(&self, history: &History, logged: bool) -> Result<(), Stop> {
        let mut data = Map::from_iter([("logged".to_owned(), json!(logged))]);
        let elsewhere = self.logged_elsewhere(history).filter(|_| logged);
        data.extend(elsewhere.map(|log| ("log_path".to_owned(), log)));
        let entry = Entry { kind: Kind::RunEnded, at_ms: self.environment.clock.now_ms(), data };
        match self.store.append(Append::one(&history.run, history.next, entry, Durability::Written)).await {
            // Another process made it good at the same time.
            Ok(_) | Err(quorate_kernel::ports::ledger::Error::Moved { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.seal().await;
        Ok(())
    }

    /// Appends the lines of a review that are not known to stand in the log: of its verdict, and of what people decided
    /// since. `false` when that failed, which is said.
    async fn log_what_is_new(&self, history: &History) -> bool {
        if history.ended.is_none() && !self.log_review(history).await {
            return false;
        }
        let (_, decisions) = history.overrides.split_at(history.overrides.len() - history.unlogged);
        for (at_ms, decision) in decisions {
            if !self.log(history, view::override_line(history, *at_ms, decision)).await {
                return false;
            }
        }
        true
    }

    /// Appends the log line of a review that came to a verdict.
    async fn log_review(&self, history: &History) -> bool {
        let incomplete =
            history.outcome().and_then(|outcome| outcome.get("verdict")) == Some(&json!("INCOMPLETE"));
        let line = match (history.reopened, incomplete) {
            // It was logged as INCOMPLETE when it first ended, and that still holds.
            (true, true) => None,
            (true, false) => view::review(history, Event::Resumed),
            (false, _) => view::review(history, Event::Verdict),
        };
        match line {
            Some(line) => self.log(history, line).await,
            None => true,
        }
    }

    /// Appends a line to the run's log; `false` when that failed, which is said.
    async fn log(&self, history: &History, line: Json) -> bool {
        let (path, since) = self.log_of(history);
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
                if let Some(piece) = appended.set_aside {
                    self.torn(&path, &piece);
                }
                true
            }
            Err(error) => {
                let body = Body::new(format!(
                    "cannot append to {}: {}",
                    shown(&self.environment, &path),
                    chain(&error)
                ));
                self.warn(
                    codes::LOG_BEHIND,
                    body.help("what was decided stands in the ledger; the line follows at the next start"),
                );
                false
            }
        }
    }

    fn torn(&self, log: &Path, piece: &aside::Piece) {
        let (log, piece) = (shown(&self.environment, log), shown(&self.environment, &piece.path));
        self.warn(
            codes::LOG_TORN,
            Body::new(format!("the last line of {log} was torn and was set aside as {piece}")),
        );
    }
}
