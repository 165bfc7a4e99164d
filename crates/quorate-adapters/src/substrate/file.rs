//! The `file` substrate: an append-only journal in the public format, which people and other programs also read and
//! write.
//!
//! Any number of handles and processes append concurrently; each holds the lock `<journal>.lock` while it writes. Programs
//! that do not know the lock may append as well, and people may edit the journal while it is open. An index beside it,
//! `<journal>.idx`, makes the cost of a cycle independent of the journal's length; it may be deleted at any time. The
//! modules: `format` defines the journal's syntax, `journal_handle` scans the journal and appends to it, `index` finds
//! turns, `disk` has the lock, `warnings` reports problems.
//!
//! If two turns of a journal share an id, which only other programs can cause, the last one counts.

mod disk;
mod format;
mod index;
mod journal_handle;
mod warnings;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as Shared, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::conversation::{NewTurn, Turn};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::substrate::{About, Appended, IdProof, Page, Substrate, SubstrateError};
use quorate_kernel::registry::BuildContext;
use quorate_protocol::Name;
use tokio::sync::Mutex;
use tokio::time::Instant;

use self::journal_handle::JournalHandle;
use super::{FileWatcher, check_turn, parse_sync, persistent};
use crate::block::Block;
use disk::JournalError;
use quorate_kernel::files::{FileStamp, real_path};

/// The kind that manifests name.
pub const KIND: &str = "file";

/// How long a journal must stay unchanged after it became shorter: a program that saves a file may empty it first. And
/// how often it is checked.
const SETTLE_DELAY: Duration = Duration::from_millis(50);
const SETTLE_CHECKS: usize = 20;
/// From this many turns on a thread of its own reads them.
const BLOCKING_TURNS: usize = 256;
/// If the disk syncs within this time, the next append syncs on its own thread.
const FAST_SYNC: Duration = Duration::from_millis(1);

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
    /// Whether the last sync took less than [`FAST_SYNC`].
    syncs_fast: AtomicBool,
    handle: Arc<Mutex<JournalHandle>>,
    watch: FileWatcher,
    last_read: Arc<Shared<LastRead>>,
}

/// What the last `read` returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastRead {
    /// A part, or `read` was never called.
    Partial,
    /// All turns of the journal that had this stamp.
    Complete(Option<FileStamp>),
}

impl FileSubstrate {
    fn new(named: &Path, sync: bool) -> Self {
        let path = real_path(named);
        FileSubstrate {
            sync,
            syncs_fast: AtomicBool::new(false),
            handle: Arc::new(Mutex::new(JournalHandle::new(path.clone()))),
            watch: FileWatcher::new(&path),
            path,
            last_read: Arc::new(Shared::new(LastRead::Partial)),
        }
    }

    /// Works with the journal handle: on this thread if that takes a few system calls on cached data, since a thread switch
    /// costs more; on a thread of its own if it may take long.
    async fn with_handle<T: Send + 'static>(
        &self,
        appending: bool,
        many: bool,
        work: impl FnOnce(&mut JournalHandle) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, SubstrateError> {
        let mut handle = self.handle.clone().lock_owned().await;
        let now = self.wait_until_settled(&handle).await?;
        let task = move |handle: &mut JournalHandle| {
            let result = work(handle);
            handle.lock.release();
            result
        };
        let result = match !many && handle.is_cheap(now, appending) {
            true => task(&mut handle),
            false => tokio::task::spawn_blocking(move || task(&mut handle))
                .await
                .map_err(std::io::Error::other)
                .map_err(JournalError::Io)
                .flatten(),
        };
        result.map_err(|error| error.into_port_error(&self.path))
    }

    /// Waits until a journal that became shorter no longer changes; returns its stamp.
    async fn wait_until_settled(&self, handle: &JournalHandle) -> Result<Option<FileStamp>, SubstrateError> {
        let read_stamp = || handle.stamp().map_err(|error| error.into_port_error(&self.path));
        let mut now = read_stamp()?;
        for _ in 0..SETTLE_CHECKS {
            if !handle.has_lost_data(now) {
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

    /// Syncs: on this thread, if the last sync was faster than a thread switch.
    async fn sync_file(&self, file: Arc<std::fs::File>) -> std::io::Result<()> {
        let started = Instant::now();
        let synced = match self.syncs_fast.load(Ordering::Relaxed) {
            true => file.sync_data(),
            false => {
                tokio::task::spawn_blocking(move || file.sync_data()).await.map_err(std::io::Error::other)?
            }
        };
        self.syncs_fast.store(started.elapsed() < FAST_SYNC, Ordering::Relaxed);
        synced
    }

    fn last_read(&self) -> LastRead {
        *self.last_read.lock().unwrap_or_else(PoisonError::into_inner)
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
        Some((self.path.clone(), journal_handle::line_of(&self.path, turn)?))
    }

    async fn append(&self, turn: NewTurn) -> Result<Appended, SubstrateError> {
        check_turn(&turn)?;
        let (appended, file) = self.with_handle(true, false, move |handle| handle.append(turn)).await?;
        if self.sync {
            // Without the lock: others append meanwhile, and one sync covers all earlier writes. A turn that existed
            // already may be one whose writer is syncing it now.
            self.sync_file(file).await.map_err(|error| {
                SubstrateError::unavailable(
                    format!("the journal {} cannot be synced", self.path.display()),
                    error,
                )
            })?;
        }
        Ok(appended)
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, SubstrateError> {
        let (since, last_read) = (since.cloned(), self.last_read.clone());
        let read = move |handle: &mut JournalHandle| {
            let before = handle.stamp();
            let page = handle.page(since.as_deref(), limit);
            let now = match &page {
                Ok((_, true)) => LastRead::Complete(handle.scanned_stamp),
                Ok((_, false)) => LastRead::Partial,
                // The journal cannot be read until it is corrected.
                Err(_) => before.map_or(LastRead::Partial, LastRead::Complete),
            };
            *last_read.lock().unwrap_or_else(PoisonError::into_inner) = now;
            Ok(page?.0)
        };
        self.with_handle(false, limit > BLOCKING_TURNS, read).await
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, SubstrateError> {
        let at = at.clone();
        self.with_handle(false, count > BLOCKING_TURNS, move |handle| handle.window(&at, count)).await
    }

    async fn changed(&self) -> Result<(), SubstrateError> {
        loop {
            let mut rung = self.watch.subscribe()?;
            let now = FileStamp::of_path(&self.path)
                .map_err(|error| JournalError::Io(error).into_port_error(&self.path))?;
            if self.last_read() != LastRead::Complete(now) {
                return Ok(());
            }
            // This object owns the sender, so the channel stays open.
            let _ = rung.changed().await;
        }
    }
}
