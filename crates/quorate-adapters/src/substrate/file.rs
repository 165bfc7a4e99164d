//! The `file` substrate: an append-only journal in the public format, which people and other programs also read and
//! write.
//!
//! Any number of handles and processes append concurrently; each holds the lock `<journal>.lock` while it writes. Programs
//! that do not know the lock may append as well, and people may edit the journal while it is open. A process scans the
//! journal once and keeps the place of each turn in memory, so that the cost of a cycle does not depend on the journal's
//! length. The modules: `format` defines the journal's syntax, `journal` scans the journal and appends to it, `warnings`
//! reports problems.
//!
//! If two turns of a journal share an id, which only other programs can cause, the last one counts.

mod format;
mod journal;
mod warnings;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex as Shared, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::conversation::{NewTurn, Turn};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::substrate::{About, Appended, IdProof, Page, Substrate, SubstrateError};
use quorate_kernel::registry::BuildContext;
use quorate_protocol::Name;
use tokio::sync::Mutex;

use self::journal::{Journal, JournalError};
use super::{POLL_INTERVAL, check_turn, parse_sync, persistent};
use crate::block::Block;
use quorate_kernel::files::{FileStamp, real_path};

/// The kind that manifests name.
pub const KIND: &str = "file";

/// How long a journal must stay unchanged after it became shorter: a program that saves a file may empty it first. And
/// how often it is checked.
const SETTLE_DELAY: Duration = Duration::from_millis(50);
const SETTLE_CHECKS: usize = 20;
/// From this many turns on a thread of its own reads them.
const BLOCKING_TURNS: usize = 256;

/// Builds the substrate from its block.
///
/// # Errors
/// When the block has an unknown key, or `path` is missing or a folder.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Substrate>, ConfigError> {
    let block = Block::parse(build.block, &["kind", "path", "sync"])?;
    let Some(path) = block.text("path")? else {
        return Err(ConfigError::for_key("path", "`path` is missing: a journal is a file")
            .with_help("for example `path: conversation.md`, relative to the manifest"));
    };
    let path = std::path::absolute(build.dir.join(path))
        .map_err(|error| ConfigError::for_key("path", format!("`{path}` is not a path: {error}")))?;
    if path.is_dir() {
        return Err(ConfigError::for_key(
            "path",
            format!("`{}` is a folder; a journal is a file", path.display()),
        )
        .with_help("name a file in it; it is made when it is needed"));
    }
    if path.exists() && !path.is_file() {
        let message = format!("`{}` is not a regular file, and keeps nothing", path.display());
        return Err(
            ConfigError::for_key("path", message).with_help("name a file; it is made when it is needed")
        );
    }
    Ok(Arc::new(FileSubstrate::new(&path, parse_sync(build, &block)?)))
}

struct FileSubstrate {
    /// The file's one path, without links: two names of one journal share a lock, and are one conversation.
    path: PathBuf,
    sync: bool,
    journal: Arc<Mutex<Journal>>,
    /// The stamp of the journal of which the last `read` returned all turns, if it did.
    read_whole: Arc<Shared<Option<Option<FileStamp>>>>,
}

impl FileSubstrate {
    fn new(named: &Path, sync: bool) -> Self {
        let path = real_path(named);
        FileSubstrate {
            sync,
            journal: Arc::new(Mutex::new(Journal::new(path.clone()))),
            path,
            read_whole: Arc::default(),
        }
    }

    /// Works with the journal: on this thread if that takes a few system calls on cached data, since a thread switch costs
    /// more; on a thread of its own if it may take long.
    async fn with_journal<T: Send + 'static>(
        &self,
        appending: bool,
        many: bool,
        work: impl FnOnce(&mut Journal) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, SubstrateError> {
        let mut journal = self.journal.clone().lock_owned().await;
        let now = self.wait_until_settled(&journal).await?;
        let task = move |journal: &mut Journal| {
            let result = work(journal);
            journal.release();
            result
        };
        let result = match !many && journal.is_quick(now, appending) {
            true => task(&mut journal),
            false => tokio::task::spawn_blocking(move || task(&mut journal))
                .await
                .map_err(std::io::Error::other)
                .map_err(JournalError::Io)
                .flatten(),
        };
        result.map_err(|error| error.into_port_error(&self.path))
    }

    /// Waits until a journal that became shorter no longer changes; returns its stamp.
    async fn wait_until_settled(&self, journal: &Journal) -> Result<Option<FileStamp>, SubstrateError> {
        let read_stamp =
            || journal.stamp().map_err(|error| JournalError::Io(error).into_port_error(&self.path));
        let mut now = read_stamp()?;
        for _ in 0..SETTLE_CHECKS {
            if !journal.has_lost_data(now) {
                break;
            }
            tokio::time::sleep(SETTLE_DELAY).await;
            let again = read_stamp()?;
            if std::mem::replace(&mut now, again) == again {
                break;
            }
        }
        Ok(now)
    }
}

#[async_trait]
impl Substrate for FileSubstrate {
    fn about(&self) -> About {
        persistent(KIND, self.path.display().to_string())
    }

    fn warnings(&self) -> Vec<String> {
        warnings::for_journal(&self.path)
    }

    fn id_proof(&self, turn: &Turn) -> IdProof {
        format::id_proof(turn)
    }

    fn locate(&self, turn: &Name) -> Option<(PathBuf, usize)> {
        Some((self.path.clone(), journal::line_of(&self.path, turn).ok()??))
    }

    async fn append(&self, turn: NewTurn) -> Result<Appended, SubstrateError> {
        check_turn(&turn)?;
        let (appended, file) = self.with_journal(true, false, move |journal| journal.append(turn)).await?;
        if self.sync {
            // Without the lock: others append meanwhile, and one sync covers all earlier writes. A turn that existed
            // already may be one whose writer is syncing it now.
            let synced = tokio::task::spawn_blocking(move || file.sync_data()).await;
            synced.map_err(std::io::Error::other).flatten().map_err(|error| {
                SubstrateError::unavailable(
                    format!("the journal {} cannot be synced", self.path.display()),
                    error,
                )
            })?;
        }
        Ok(appended)
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, SubstrateError> {
        let (since, read_whole) = (since.cloned(), self.read_whole.clone());
        let read = move |journal: &mut Journal| {
            let before = journal.stamp();
            let page = journal.page(since.as_deref(), limit);
            *read_whole.lock().unwrap_or_else(PoisonError::into_inner) = match &page {
                Ok((_, is_all)) => is_all.then_some(journal.scanned),
                // The journal cannot be read until it is corrected.
                Err(_) => before.ok(),
            };
            Ok(page?.0)
        };
        self.with_journal(false, limit > BLOCKING_TURNS, read).await
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, SubstrateError> {
        let at = at.clone();
        self.with_journal(false, count > BLOCKING_TURNS, move |journal| journal.window(&at, count)).await
    }

    async fn changed(&self) -> Result<(), SubstrateError> {
        loop {
            let now = FileStamp::of_path(&self.path)
                .map_err(|error| JournalError::Io(error).into_port_error(&self.path))?;
            if *self.read_whole.lock().unwrap_or_else(PoisonError::into_inner) != Some(now) {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}
