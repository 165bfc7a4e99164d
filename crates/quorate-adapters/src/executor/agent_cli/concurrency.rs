//! How many commands of one executor run at once. The room is the process's: all runs that use an executor share it, also
//! where each has built the executor anew.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use quorate_kernel::ports::executor::{Admission, Settings};
use tokio::sync::Semaphore;

/// The least that is allowed by default: the members of one council.
const MIN_DEFAULT: usize = 4;

/// An executor, with the room it asks for: one whose settings were changed meanwhile is another.
type Key = (PathBuf, String, usize);

static LIMITS: Mutex<BTreeMap<Key, Arc<Semaphore>>> = Mutex::new(BTreeMap::new());

/// The room of one executor.
#[derive(Debug, Clone)]
pub(super) struct Concurrency(Arc<Semaphore>);

impl Concurrency {
    /// The room of the executor with these settings.
    pub(super) fn for_executor(settings: &Settings, most: Option<usize>) -> Self {
        let most = most.unwrap_or_else(default_limit).min(Semaphore::MAX_PERMITS);
        let key = (settings.dir.clone(), settings.name.clone(), most);
        let mut rooms = LIMITS.lock().unwrap_or_else(PoisonError::into_inner);
        Concurrency(Arc::clone(rooms.entry(key).or_insert_with(|| Arc::new(Semaphore::new(most)))))
    }

    /// Waits for a place.
    pub(super) async fn acquire(&self) -> Admission {
        match Arc::clone(&self.0).acquire_owned().await {
            Ok(permit) => Admission::with_permit(permit),
            // It is never closed.
            Err(_) => Admission::default(),
        }
    }
}

/// One for each core, and no fewer than [`LEAST`].
fn default_limit() -> usize {
    std::thread::available_parallelism().map_or(MIN_DEFAULT, |cores| cores.get().max(MIN_DEFAULT))
}
