//! Notifications of the file system: waits until something happens to a file, or to what lies beside it under a name
//! that begins in the same way.
//!
//! The folder is watched, not the file, since files come and go. What happened is not told: whoever waits looks for
//! itself, which also makes one of a burst of notifications. File systems over a network tell of nothing that happens
//! on another machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use quorate_kernel::ports::substrate::Error;
use tokio::sync::watch::{Receiver, Sender};

/// Watches a file from the first time that somebody waits for it.
pub(crate) struct FileWatcher {
    folder: PathBuf,
    prefix: OsString,
    signal: Arc<ChangeSignal>,
    watcher: Mutex<Option<RecommendedWatcher>>,
}

#[derive(Default)]
struct ChangeSignal {
    changes: Sender<()>,
    /// The folder itself went away, and the watch with it.
    folder_gone: AtomicBool,
}

impl FileWatcher {
    /// A watch over the file at an absolute path.
    pub(crate) fn new(path: &Path) -> Self {
        FileWatcher {
            folder: path.parent().unwrap_or(path).to_owned(),
            prefix: path.file_name().unwrap_or_default().to_owned(),
            signal: Arc::default(),
            watcher: Mutex::default(),
        }
    }

    /// Begins to listen: from now on everything that happens wakes whoever waits for the receiver to change. Whoever
    /// looks for news after this and then waits misses nothing. It is good for one wait, since the folder itself may
    /// go away, and come again.
    ///
    /// # Errors
    /// When the folder cannot be watched.
    pub(crate) fn subscribe(&self) -> Result<Receiver<()>, Error> {
        self.start()?;
        Ok(self.signal.changes.subscribe())
    }

    #[expect(clippy::disallowed_methods, reason = "a folder that is not there cannot be watched")]
    fn start(&self) -> Result<(), Error> {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if self.signal.folder_gone.swap(false, Ordering::SeqCst) {
            *watcher = None;
        }
        if watcher.is_some() {
            return Ok(());
        }
        let cannot = || format!("cannot watch {}", self.folder.display());
        std::fs::create_dir_all(&self.folder).map_err(|error| Error::unavailable(cannot(), error))?;
        let (folder, prefix, bell) = (self.folder.clone(), self.prefix.clone(), self.signal.clone());
        let heard = move |event: notify::Result<Event>| {
            let Ok(event) = event else { return bell.changes.send_replace(()) };
            let lost = event.kind.is_remove() || matches!(event.kind, EventKind::Modify(ModifyKind::Name(_)));
            if lost && event.paths.contains(&folder) {
                bell.folder_gone.store(true, Ordering::SeqCst);
                return bell.changes.send_replace(());
            }
            // Reading is no news, and whoever looks reads.
            let named = |path: &PathBuf| {
                path.file_name()
                    .is_some_and(|name| name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes()))
            };
            if !event.kind.is_access() && (event.need_rescan() || event.paths.iter().any(named)) {
                bell.changes.send_replace(());
            }
        };
        let mut started =
            notify::recommended_watcher(heard).map_err(|error| Error::unavailable(cannot(), error))?;
        started
            .watch(&self.folder, RecursiveMode::NonRecursive)
            .map_err(|error| Error::unavailable(cannot(), error))?;
        *watcher = Some(started);
        Ok(())
    }
}
