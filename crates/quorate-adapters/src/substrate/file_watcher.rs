//! File system notifications: waits for a change of a file, or of files beside it whose names begin with its name.
//!
//! It watches the folder, not the file, since files come and go. A notification carries no details: the waiter checks for
//! itself, which also merges a burst of notifications into one. Network file systems do not notify of changes made on
//! another machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use quorate_kernel::ports::substrate::Error;
use tokio::sync::watch::{Receiver, Sender};

/// Watches a file from the first [`Self::subscribe`] on.
pub(crate) struct FileWatcher {
    folder: PathBuf,
    prefix: OsString,
    signal: Arc<ChangeSignal>,
    watcher: Mutex<Option<RecommendedWatcher>>,
}

#[derive(Default)]
struct ChangeSignal {
    changes: Sender<()>,
    /// Set when the folder was removed, which ends the watch.
    folder_gone: AtomicBool,
}

impl FileWatcher {
    /// A watch over the file at an absolute path; inactive until subscribed to.
    pub(crate) fn new(path: &Path) -> Self {
        FileWatcher {
            folder: path.parent().unwrap_or(path).to_owned(),
            prefix: path.file_name().unwrap_or_default().to_owned(),
            signal: Arc::default(),
            watcher: Mutex::default(),
        }
    }

    /// Subscribes to changes: from now on each one wakes the receiver. Check for news after this call and before waiting, and
    /// no change is missed. Subscribe again for each wait, since the folder may be removed and created again.
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
        let on_event = move |event: notify::Result<Event>| {
            let Ok(event) = event else { return bell.changes.send_replace(()) };
            let lost = event.kind.is_remove() || matches!(event.kind, EventKind::Modify(ModifyKind::Name(_)));
            if lost && event.paths.contains(&folder) {
                bell.folder_gone.store(true, Ordering::SeqCst);
                return bell.changes.send_replace(());
            }
            // A read is no change, and readers check for changes themselves.
            let is_watched = |path: &PathBuf| {
                path.file_name()
                    .is_some_and(|name| name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes()))
            };
            if !event.kind.is_access() && (event.need_rescan() || event.paths.iter().any(is_watched)) {
                bell.changes.send_replace(());
            }
        };
        let mut started =
            notify::recommended_watcher(on_event).map_err(|error| Error::unavailable(cannot(), error))?;
        started
            .watch(&self.folder, RecursiveMode::NonRecursive)
            .map_err(|error| Error::unavailable(cannot(), error))?;
        *watcher = Some(started);
        Ok(())
    }
}
