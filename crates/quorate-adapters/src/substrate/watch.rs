//! Notifications of the file system: waits until something happens to a file, or to what lies beside it under a name
//! that begins in the same way.
//!
//! The folder is watched, not the file, since files come and go. What happened is not told: whoever waits looks for
//! itself, which also makes one of a burst of notifications. File systems over a network tell of nothing that happens
//! on another machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use quorate_kernel::ports::substrate::Error;
use tokio::sync::Notify;

/// Watches a file from the first time that somebody waits for it.
pub(crate) struct Watch {
    folder: PathBuf,
    prefix: OsString,
    bell: Arc<Bell>,
    watcher: Mutex<Option<RecommendedWatcher>>,
}

#[derive(Default)]
struct Bell {
    rung: Notify,
    /// The folder itself went away, and the watch with it.
    gone: std::sync::atomic::AtomicBool,
}

impl Watch {
    /// A watch over the file at an absolute path.
    pub(crate) fn over(path: &Path) -> Self {
        Watch {
            folder: path.parent().unwrap_or(path).to_owned(),
            prefix: path.file_name().unwrap_or_default().to_owned(),
            bell: Arc::default(),
            watcher: Mutex::default(),
        }
    }

    /// Returns when `news` says so; it is asked at first, and then at each notification.
    ///
    /// # Errors
    /// When the folder cannot be watched, or what `news` fails with.
    pub(crate) async fn until(
        &self,
        mut news: impl AsyncFnMut() -> Result<bool, Error>,
    ) -> Result<(), Error> {
        loop {
            self.start()?;
            // Listening first: what happens between the look and the wait wakes us.
            let mut rung = std::pin::pin!(self.bell.rung.notified());
            rung.as_mut().enable();
            if news().await? {
                return Ok(());
            }
            rung.await;
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a folder that is not there cannot be watched")]
    fn start(&self) -> Result<(), Error> {
        use std::sync::atomic::Ordering::SeqCst;
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if self.bell.gone.swap(false, SeqCst) {
            *watcher = None;
        }
        if watcher.is_some() {
            return Ok(());
        }
        let cannot = || format!("cannot watch {}", self.folder.display());
        std::fs::create_dir_all(&self.folder).map_err(|error| Error::unavailable(cannot(), error))?;
        let (folder, prefix, bell) = (self.folder.clone(), self.prefix.clone(), self.bell.clone());
        let heard = move |event: notify::Result<Event>| {
            let Ok(event) = event else { return bell.rung.notify_waiters() };
            let lost = event.kind.is_remove() || matches!(event.kind, EventKind::Modify(_));
            if lost && event.paths.contains(&folder) && !folder.is_dir() {
                bell.gone.store(true, SeqCst);
                return bell.rung.notify_waiters();
            }
            // Reading is no news, and whoever looks reads.
            let named = |path: &PathBuf| {
                path.file_name().is_some_and(|name| {
                    name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes())
                })
            };
            if !event.kind.is_access() && (event.need_rescan() || event.paths.iter().any(named)) {
                bell.rung.notify_waiters();
            }
        };
        let mut started = notify::recommended_watcher(heard)
            .map_err(|error| Error::unavailable(cannot(), error))?;
        started
            .watch(&self.folder, RecursiveMode::NonRecursive)
            .map_err(|error| Error::unavailable(cannot(), error))?;
        *watcher = Some(started);
        Ok(())
    }
}
