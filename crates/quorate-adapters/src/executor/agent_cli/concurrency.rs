//! How many commands of one executor run at once. The limit is the process's: all runs that use an executor share it,
//! even if each has built the executor again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use quorate_kernel::ports::executor::{Admission, Settings};
use tokio::sync::Semaphore;

/// The lowest default: the members of one council.
const MIN_DEFAULT: usize = 4;

/// Directory, name and limit: an executor whose limit changed counts as another.
type Key = (PathBuf, String, usize);

static LIMITS: Mutex<BTreeMap<Key, Arc<Semaphore>>> = Mutex::new(BTreeMap::new());

/// The permits of one executor.
#[derive(Debug, Clone)]
pub(super) struct Concurrency(Arc<Semaphore>);

impl Concurrency {
    /// The permits of the executor with these settings.
    pub(super) fn for_executor(settings: &Settings, most: Option<usize>) -> Self {
        let most = most.unwrap_or_else(default_limit).min(Semaphore::MAX_PERMITS);
        let key = (settings.dir.clone(), settings.name.clone(), most);
        let mut rooms = LIMITS.lock().unwrap_or_else(PoisonError::into_inner);
        Concurrency(Arc::clone(rooms.entry(key).or_insert_with(|| Arc::new(Semaphore::new(most)))))
    }

    pub(super) async fn acquire(&self) -> Admission {
        match Arc::clone(&self.0).acquire_owned().await {
            Ok(permit) => Admission::with_permit(permit),
            // It is never closed.
            Err(_) => Admission::default(),
        }
    }
}

/// One for each core, and at least [`MIN_DEFAULT`].
fn default_limit() -> usize {
    std::thread::available_parallelism().map_or(MIN_DEFAULT, |cores| cores.get().max(MIN_DEFAULT))
}
