//! The log of a session: chooses the file of a run's lines, and appends them.

use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_ledger::council_log::{self, IndexedLog, priors};
use quorate_ledger::files;
use quorate_protocol::Json;

use super::LedgerSession;
use crate::service::error::{ServiceError, error_chain};
use crate::service::guard::Role;
use crate::service::paths::display_path;
use crate::service::workspace::boundary::is_inside;

impl LedgerSession {
    /// Brings the log's index up to date.
    ///
    /// # Errors
    /// If log or ledger cannot be read.
    #[crate::boxed]
    pub async fn sync_log_index(&self) -> Result<IndexedLog, ServiceError> {
        let indexed = council_log::sync(&self.store, &self.workspace.log).await?;
        if indexed.newly_corrupt > 0 {
            let log = display_path(&self.environment, &self.workspace.log);
            let body = Body::new(format!(
                "skipped {} unreadable lines of {log}",
                indexed.newly_corrupt
            ));
            self.warn(codes::LOG_CORRUPT, body.help("they stay in the file, and every other line counts"));
        }
        Ok(indexed)
    }

    /// Updates the index for a reader, and warns about a torn last line, which does not count; the next append repairs it.
    ///
    /// # Errors
    /// If log or ledger cannot be read.
    #[crate::boxed]
    pub async fn read_log_index(&self) -> Result<IndexedLog, ServiceError> {
        let indexed = self.sync_log_index().await?;
        if indexed.is_cut {
            let log = display_path(&self.environment, &self.workspace.log);
            let body = Body::new(format!("skipped the last line of {log}: it has no line end"));
            let help = "a line of Quorate ends with a line feed: a write was cut off, or the file was changed. \
                        The next verdict to be logged ends the line if it is whole; `quorate ledger verify` compares it with its run";
            self.warn(codes::LOG_CORRUPT, body.help(help));
        }
        Ok(indexed)
    }

    /// As [`LedgerSession::read_log_index`], for readers of the whole log: rebuilds the index if it differs from a log that is
    /// not large (D13).
    ///
    /// # Errors
    /// If log or ledger cannot be read.
    #[crate::boxed]
    pub async fn compared_log_index(&self) -> Result<IndexedLog, ServiceError> {
        let indexed = self.read_log_index().await?;
        match council_log::rebuild_if_altered(&self.store, &self.workspace.log, indexed).await? {
            None => Ok(indexed),
            Some((what, rebuilt)) => {
                let log = display_path(&self.environment, &self.workspace.log);
                let body = Body::new(format!("rebuilt the index of {log}, which was altered: {what}"));
                self.warn(
                    codes::LOG_CORRUPT,
                    body.help("counts come from the log's lines again"),
                );
                Ok(rebuilt)
            }
        }
    }

    /// Earlier verdicts on a type of artifact, as the adjudicator sees them.
    ///
    /// # Errors
    /// If log or ledger cannot be read.
    #[crate::boxed]
    pub async fn priors(&self, indexed: IndexedLog, artifact_type: &str) -> Result<Vec<Json>, ServiceError> {
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

    /// The file for a run's lines, and the offset after which they may be: the log in the run's record if it belongs to this
    /// workspace, else the workspace's own log, with a warning.
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
        let is_free = || self.workspace.guard.occupant(log, Some(Role::Log)).is_none();
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
