//! The `file` substrate: an append-only journal in the public format, which people and other programs read and write,
//! too.
//!
//! Any number of handles and processes append at once; each holds the lock `<journal>.lock` while it writes. Programs
//! that know nothing of the lock may append as well, and people may edit the journal while it is open. An index beside
//! it, `<journal>.idx`, keeps the cost of a cycle the same whatever the journal's length; it may be deleted at any
//! time. The modules say the rest: `format` what stands in the journal, `book` what a handle knows of it, `append` what
//! an append does, `index` and `filter` how a turn is found, `scan` how the journal is read, `disk` the lock,
//! `preamble` what may stand before the first turn, `cautions` what people are told of it.
//!
//! Where a journal has two turns with one id, which only others can write, the last of them is meant.

mod append;
mod bloom_filter;
mod disk;
mod error;
mod format;
mod id_proof;
mod index;
mod journal_handle;
mod preamble;
mod scan;
mod warnings;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as Shared, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::conversation::{Capability, NewTurn, Turn};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::substrate::{About, Appended, Error, Keeps, Lifetime, Page, Substrate};
use quorate_kernel::registry::BuildContext;
use quorate_protocol::Name;
use tokio::sync::Mutex;
use tokio::time::Instant;

use self::error::JournalError;
use self::journal_handle::JournalHandle;
use super::file_watcher::FileWatcher;
use super::{check_turn, parse_sync};
use crate::block::Block;
use crate::file_stamp::FileStamp;

/// The kind that manifests name.
pub const KIND: &str = "file";

/// How long a journal that has become shorter is left alone before it is believed: whoever saves a file may empty it
/// first. And how often it is looked at.
const SETTLE_DELAY: Duration = Duration::from_millis(50);
const SETTLE_CHECKS: usize = 20;
/// From how many turns on they are read by a thread of their own.
const BLOCKING_TURNS: usize = 256;
/// A disk that syncs within this long is waited for by whoever appends.
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
        .map_err(|error| ConfigError::for_key("path", format!("`{path}` is no path: {error}")))?;
    if path.is_dir() {
        return Err(ConfigError::for_key(
            "path",
            format!("`{}` is a folder; a journal is a file", path.display()),
        )
        .with_help("name a file in it; it is made when it is needed"));
    }
    if path.exists() && !path.is_file() {
        let message = format!("`{}` is no regular file, and keeps nothing", path.display());
        return Err(
            ConfigError::for_key("path", message).with_help("name a file; it is made when it is needed")
        );
    }
    Ok(Arc::new(FileSubstrate::new(&path, parse_sync(build, &block)?)))
}

struct FileSubstrate {
    /// As the manifest has it.
    place: String,
    /// Where the file is, behind links.
    path: PathBuf,
    sync: bool,
    /// Whether the last sync was fast.
    syncs_fast: AtomicBool,
    handle: Arc<Mutex<JournalHandle>>,
    watch: FileWatcher,
    last_read: Arc<Shared<LastRead>>,
}

/// What the last `read` has given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastRead {
    /// Not everything, or it was never called.
    Partial,
    /// Everything, when the journal looked like this.
    Complete(Option<FileStamp>),
}

impl FileSubstrate {
    fn new(place: &Path, sync: bool) -> Self {
        // Two names of one journal have one lock.
        let path = place.canonicalize().unwrap_or_else(|_| place.to_owned());
        FileSubstrate {
            place: place.display().to_string(),
            sync,
            syncs_fast: AtomicBool::new(false),
            handle: Arc::new(Mutex::new(JournalHandle::new(path.clone()))),
            watch: FileWatcher::new(&path),
            path,
            last_read: Arc::new(Shared::new(LastRead::Partial)),
        }
    }

    /// Works with the book: here, where that takes a few system calls on what the system has in memory, since a thread
    /// to wait on costs more than those; in a thread of its own where it may take long.
    async fn with_handle<T: Send + 'static>(
        &self,
        appending: bool,
        many: bool,
        work: impl FnOnce(&mut JournalHandle) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, Error> {
        let mut handle = self.handle.clone().lock_owned().await;
        let now = self.wait_until_settled(&handle).await?;
        let done = move |book: &mut JournalHandle| {
            let done = work(book);
            book.lock.release();
            done
        };
        let done = match !many && handle.is_cheap(now, appending) {
            true => done(&mut handle),
            false => tokio::task::spawn_blocking(move || done(&mut handle))
                .await
                .map_err(std::io::Error::other)
                .map_err(JournalError::Io)
                .flatten(),
        };
        done.map_err(|trouble| trouble.into_port_error(&self.path))
    }

    /// Waits until a journal that has lost something stays as it is; what it looks like then.
    async fn wait_until_settled(&self, book: &JournalHandle) -> Result<Option<FileStamp>, Error> {
        let look = || book.stamp().map_err(|trouble| trouble.into_port_error(&self.path));
        let mut now = look()?;
        for _ in 0..SETTLE_CHECKS {
            if !book.has_lost_data(now) {
                break;
            }
            tokio::time::sleep(SETTLE_DELAY).await;
            let again = look()?;
            if std::mem::replace(&mut now, again) == again {
                break;
            }
        }
        Ok(now)
    }

    /// Syncs: here, where the disk has just shown that it takes no longer than a thread to wait on.
    async fn sync_file(&self, file: Arc<std::fs::File>) -> std::io::Result<()> {
        let begun = Instant::now();
        let synced = match self.syncs_fast.load(Ordering::Relaxed) {
            true => file.sync_data(),
            false => {
                tokio::task::spawn_blocking(move || file.sync_data()).await.map_err(std::io::Error::other)?
            }
        };
        self.syncs_fast.store(begun.elapsed() < FAST_SYNC, Ordering::Relaxed);
        synced
    }

    fn last_read(&self) -> LastRead {
        *self.last_read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Substrate for FileSubstrate {
    fn about(&self) -> About {
        About {
            kind: KIND,
            capabilities: [Capability::Mentions, Capability::MultiWriter, Capability::Ordered].into(),
            keeps: Keeps::Stamps,
            lifetime: Lifetime::Persistent,
            place: self.place.clone(),
            conversation: None,
        }
    }

    fn warnings(&self) -> Vec<String> {
        warnings::for_journal(&self.path)
    }

    async fn append(&self, turn: NewTurn) -> Result<Appended, Error> {
        check_turn(&turn)?;
        let (appended, file) = self.with_handle(true, false, move |book| book.append(turn)).await?;
        if self.sync {
            // Without the lock: others append meanwhile, and one sync is good for all that was written before it. A
            // turn that was there already may be one whose writer is syncing it just now.
            self.sync_file(file).await.map_err(|error| {
                Error::unavailable(format!("the journal {} cannot be synced", self.path.display()), error)
            })?;
        }
        Ok(appended)
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, Error> {
        let (since, given) = (since.cloned(), self.last_read.clone());
        let read = move |book: &mut JournalHandle| {
            let before = book.stamp();
            let page = book.page(since.as_deref(), limit);
            let now = match &page {
                Ok((_, true)) => LastRead::Complete(book.scanned_stamp),
                Ok((_, false)) => LastRead::Partial,
                // It will not be read until it is mended.
                Err(_) => before.map_or(LastRead::Partial, LastRead::Complete),
            };
            *given.lock().unwrap_or_else(PoisonError::into_inner) = now;
            Ok(page?.0)
        };
        self.with_handle(false, limit > BLOCKING_TURNS, read).await
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, Error> {
        let at = at.clone();
        self.with_handle(false, count > BLOCKING_TURNS, move |book| book.window(&at, count)).await
    }

    async fn changed(&self) -> Result<(), Error> {
        loop {
            let mut rung = self.watch.subscribe()?;
            let now = FileStamp::of_path(&self.path)
                .map_err(|error| JournalError::Io(error).into_port_error(&self.path))?;
            if self.last_read() != LastRead::Complete(now) {
                return Ok(());
            }
            // The bell is ours: it does not go away.
            let _ = rung.changed().await;
        }
    }
}
