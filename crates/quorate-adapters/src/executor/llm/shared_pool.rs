//! The part of a pool that the processes of one user share: a directory with one lock file for each call that may be under
//! way, and a small file with the time before which no call is sent and the number of calls that the service took. The
//! system releases the locks of a process when it ends. A file that cannot be read or used counts as absent, since each
//! process also has limits of its own.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use quorate_kernel::clock::{Clock, System};
use quorate_kernel::entropy;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::regular_file;

/// The longest wait that a pool obeys, and that one process tells the others. A later time in the file is not ours.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// A call is made without a slot after this long: a stopped process must not hold up all others.
const PATIENCE: Duration = Duration::from_secs(600);

/// How often a slot is looked for: a pause of this, and up to as much again.
const POLL_MS: u64 = 20;

/// Limits within this time of each other are one.
const SAME_STORM_MS: i64 = 1_000;

/// How long the number of calls stays halved, and how long each further one takes after that.
const HALVED_MS: i64 = 30_000;
const STEP_MS: i64 = 10_000;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 512;

const VERSION: u32 = 1;

/// Where this process shares its pools.
static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();

/// Shares the pools of this process with the other processes that name this directory: the state directory of one user.
/// The first call counts; without one, a pool is this process's own.
pub fn share_pools(state_dir: &Path) {
    let _ = DIRECTORY.set(state_dir.join("pools"));
}

/// Why this process cannot share its pools; `None` where it can, or was not told to.
pub fn sharing_failure() -> Option<String> {
    let directory = DIRECTORY.get()?;
    let failure = private_dir(directory).and_then(|()| tempfile::tempfile_in(directory)).err()?;
    Some(format!("{}: {failure}", directory.display()))
}

/// A pool's directory.
pub(super) struct SharedPool {
    base: PathBuf,
    dir: PathBuf,
    most: usize,
    clock: Arc<dyn Clock>,
    slots: Slots,
}

/// This process's slots by number. `None` is one that is held: its lock is not tried, which with many calls under way would
/// take longer than a call. The files of the others stay open for the next call.
type Slots = Arc<Mutex<BTreeMap<usize, Option<File>>>>;

/// The content of the shared file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    v: u32,
    /// In milliseconds since the Unix epoch, as is `limited_ms`.
    not_before_ms: i64,
    /// How many calls were allowed after the service limited one at `limited_ms`.
    limit: usize,
    limited_ms: i64,
}

/// A slot, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    /// Taken when the slot is dropped.
    file: Option<File>,
    number: usize,
    slots: Slots,
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Closing alone leaves the lock with a child that is just being started.
        let file = self.file.take().filter(|file| file.unlock().is_ok());
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        match file {
            Some(file) => slots.insert(self.number, Some(file)),
            None => slots.remove(&self.number),
        };
    }
}

enum Found {
    Slot(Slot),
    Busy,
    /// No slot can be used.
    Unusable,
}

impl SharedPool {
    /// The pool of a name with `most` calls at once; `None` if this process shares none.
    pub(super) fn named(name: &str, most: usize) -> Option<SharedPool> {
        Some(SharedPool::within(DIRECTORY.get()?, name, most, Arc::new(System)))
    }

    pub(super) fn within(base: &Path, name: &str, most: usize, clock: Arc<dyn Clock>) -> SharedPool {
        let dir = base.join(entropy::sha256_hex(name.as_bytes()));
        SharedPool { base: base.to_owned(), dir, most: most.max(1), clock, slots: Slots::default() }
    }

    /// Waits for a slot; `None` where the call is made without one.
    pub(super) async fn slot(&self) -> Option<Slot> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            match self.find() {
                Found::Slot(slot) => return Some(slot),
                Found::Unusable => break,
                Found::Busy => {
                    let [jitter] = entropy::bytes::<1>();
                    let pause = POLL_MS + POLL_MS * u64::from(jitter) / 255;
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
            }
        }
        None
    }

    fn find(&self) -> Found {
        if private_dir(&self.base).and_then(|()| private_dir(&self.dir)).is_err() {
            return Found::Unusable;
        }
        let mut found = Found::Unusable;
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        for number in 0..self.allowed(&self.read()) {
            let open = match slots.get_mut(&number) {
                Some(None) => {
                    found = Found::Busy;
                    continue;
                }
                Some(open) => open.take(),
                None => None,
            };
            let file = match open.filter(is_linked) {
                Some(file) => file,
                None => match open_own(&self.dir.join(format!("slot-{number}"))) {
                    Ok(file) => file,
                    Err(_) => {
                        slots.remove(&number);
                        continue;
                    }
                },
            };
            match file.try_lock() {
                Ok(()) => {
                    slots.insert(number, None);
                    return Found::Slot(Slot { file: Some(file), number, slots: Arc::clone(&self.slots) });
                }
                Err(TryLockError::WouldBlock) => {
                    slots.insert(number, Some(file));
                    found = Found::Busy;
                }
                Err(TryLockError::Error(_)) => drop(slots.remove(&number)),
            }
        }
        found
    }

    /// How long no call is sent.
    pub(super) fn wait(&self) -> Duration {
        let wait = self.read().not_before_ms.saturating_sub(self.clock.now_ms());
        Duration::from_millis(u64::try_from(wait).unwrap_or(0))
    }

    /// Tells the other processes that the service limited a call and asks to wait. If another process is writing, it was
    /// limited as well.
    pub(super) fn limited(&self, wait: Duration) {
        let write = || -> io::Result<()> {
            private_dir(&self.base)?;
            private_dir(&self.dir)?;
            let lock = open_own(&self.dir.join("lock"))?;
            lock.try_lock()?;
            let now = self.clock.now_ms();
            let mut state = self.read();
            if now.saturating_sub(state.limited_ms) >= SAME_STORM_MS {
                (state.limit, state.limited_ms) = ((self.allowed(&state) / 2).max(1), now);
            }
            let wait = i64::try_from(wait.min(LONGEST_WAIT).as_millis()).unwrap_or(0);
            state.not_before_ms = state.not_before_ms.max(now.saturating_add(wait));
            let mut file = tempfile::NamedTempFile::new_in(&self.dir)?;
            file.write_all(&serde_json::to_vec(&State { v: VERSION, ..state })?)?;
            file.persist(self.path())?;
            Ok(())
        };
        if let Err(error) = write() {
            tracing::debug!(%error, "a limit of the service was not shared");
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.join("state.json")
    }

    /// The content of the shared file; values that this program cannot have written are dropped.
    fn read(&self) -> State {
        let bytes = regular_file::read_no_symlink(&self.path(), MAX_BYTES).unwrap_or_default();
        let mut state = serde_json::from_slice::<State>(&bytes).unwrap_or_default();
        let now = self.clock.now_ms();
        let longest = i64::try_from(LONGEST_WAIT.as_millis()).unwrap_or(0);
        if state.v != VERSION {
            return State::default();
        }
        if state.not_before_ms.saturating_sub(now) > longest {
            state.not_before_ms = 0;
        }
        if state.limited_ms > now {
            (state.limit, state.limited_ms) = (0, 0);
        }
        state
    }

    /// How many calls may be under way now.
    fn allowed(&self, state: &State) -> usize {
        if state.limit == 0 {
            return self.most;
        }
        let since = self.clock.now_ms().saturating_sub(state.limited_ms).saturating_sub(HALVED_MS);
        let more = if since < 0 {
            0
        } else {
            usize::try_from(since / STEP_MS).unwrap_or(usize::MAX).saturating_add(1)
        };
        state.limit.saturating_add(more).min(self.most)
    }
}

/// Makes a directory that only this user can write to, and refuses one that others can, or a link.
fn private_dir(path: &Path) -> io::Result<()> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(path)?;
            path.symlink_metadata()?
        }
        Err(error) => return Err(error),
    };
    let refused = |why| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if !metadata.is_dir() {
        return refused("it is not a directory");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
            return refused("other users can write to it");
        }
    }
    Ok(())
}

/// Whether a file still has a name: without one, another process locks another file.
fn is_linked(file: &File) -> bool {
    #[cfg(unix)]
    return file.metadata().is_ok_and(|metadata| std::os::unix::fs::MetadataExt::nlink(&metadata) > 0);
    #[cfg(not(unix))]
    return true;
}

/// Opens or makes a file to lock.
fn open_own(path: &Path) -> io::Result<File> {
    regular_file::reject_symlink(path)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    regular_file::open_with(&mut options, path)
}

#[cfg(all(test, unix))]
mod tests {
    //! What a process makes of what it finds in a pool's directory.

    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::sync::Mutex;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    /// A clock that the test sets.
    #[derive(Default)]
    struct Set(Mutex<i64>);

    impl Clock for Set {
        fn now_ms(&self) -> i64 {
            *self.0.lock().expect("not poisoned")
        }
    }

    const NOW: i64 = 1_800_000_000_000;

    fn pool(dir: &Path) -> (SharedPool, Arc<Set>) {
        let clock = Arc::new(Set(Mutex::new(NOW)));
        (SharedPool::within(&dir.join("pools"), "api.example", 4, clock.clone()), clock)
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().expect("it is there").permissions().mode() & 0o777
    }

    fn is_free(pool: &SharedPool) -> bool {
        matches!(pool.find(), Found::Slot(_))
    }

    #[test]
    fn files_are_private_and_a_limit_is_known_to_all_and_fades() {
        let dir = tempfile::tempdir().unwrap();
        let (one, _) = pool(dir.path());
        let (other, clock) = pool(dir.path());
        assert!(is_free(&one));
        one.limited(Duration::from_secs(7));
        one.limited(Duration::from_secs(3));
        assert_eq!(other.wait(), Duration::from_secs(7));
        assert_eq!(other.allowed(&other.read()), 2, "two limits of one moment halve once");
        for (later, allowed) in [(29_999, 2), (30_000, 3), (40_000, 4), (i64::MAX - NOW, 4)] {
            *clock.0.lock().unwrap() = NOW + later;
            assert_eq!(other.allowed(&other.read()), allowed, "{later}");
            assert_eq!(other.wait(), Duration::ZERO);
        }
        assert_eq!((mode(&one.base), mode(&one.dir)), (0o700, 0o700));
        for file in ["slot-0", "lock", "state.json"] {
            assert_eq!(mode(&one.dir.join(file)), 0o600, "{file}");
        }
        // A wait of years is told as the longest, which the others believe.
        one.limited(Duration::MAX);
        *clock.0.lock().unwrap() = NOW;
        assert_eq!(other.wait(), LONGEST_WAIT);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test needs files")]
    fn what_no_process_wrote_counts_as_absent() {
        let dir = tempfile::tempdir().unwrap();
        let (pool, _) = pool(dir.path());
        assert!(is_free(&pool));
        let huge = vec![b' '; 50 << 20];
        let texts: [&[u8]; 8] = [
            b"",
            b"{",
            b"\xff\xfe",
            &huge,
            br#"{"v":1,"not_before_ms":253402300799000,"limit":4,"limited_ms":0}"#,
            br#"{"v":1,"not_before_ms":-9223372036854775808,"limit":0,"limited_ms":-9223372036854775808}"#,
            br#"{"v":1,"not_before_ms":0,"limit":1,"limited_ms":253402300799000}"#,
            br#"{"v":2,"not_before_ms":1800000005000,"limit":1,"limited_ms":1800000000000}"#,
        ];
        for text in texts {
            std::fs::write(pool.path(), text).unwrap();
            let shown = String::from_utf8_lossy(&text[..text.len().min(80)]);
            assert_eq!((pool.wait(), pool.allowed(&pool.read())), (Duration::ZERO, 4), "{shown}");
        }
        pool.limited(Duration::from_secs(1));
        assert_eq!(pool.wait(), Duration::from_secs(1), "garbage is replaced");
        std::fs::remove_file(pool.path()).unwrap();
        mknodat(CWD, pool.path(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(pool.wait(), Duration::ZERO);
        std::fs::remove_file(pool.path()).unwrap();
        let elsewhere = dir.path().join("elsewhere");
        std::fs::write(
            &elsewhere,
            r#"{"v":1,"not_before_ms":1800000005000,"limit":1,"limited_ms":1800000000000}"#,
        )
        .unwrap();
        symlink(&elsewhere, pool.path()).unwrap();
        assert_eq!(pool.wait(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    #[expect(clippy::disallowed_methods, reason = "the test needs files")]
    async fn slots_that_cannot_be_used_hold_up_no_call() {
        let dir = tempfile::tempdir().unwrap();
        let (first, _) = pool(dir.path());
        assert!(is_free(&first));
        std::fs::remove_file(first.dir.join("slot-0")).unwrap();
        mknodat(CWD, first.dir.join("slot-0"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        symlink(dir.path().join("made"), first.dir.join("slot-1")).unwrap();
        let held = [first.slot().await, first.slot().await];
        assert!(held.iter().all(|slot| slot.is_some()), "two are left");
        assert!(!dir.path().join("made").exists(), "no link is followed");
        assert!(matches!(first.find(), Found::Busy));
        // Another process that never gives them back.
        let start = Instant::now();
        assert!(first.slot().await.is_none());
        assert!(start.elapsed() >= PATIENCE);
        drop(held);
        assert!(first.slot().await.is_some());
        // A directory that others can write to, or a link.
        std::fs::set_permissions(&first.base, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(first.find(), Found::Unusable));
        first.limited(Duration::from_secs(5));
        std::fs::set_permissions(&first.base, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(first.wait(), Duration::ZERO, "nothing was written there");
        std::fs::write(dir.path().join("file"), "").unwrap();
        let (second, _) = pool(&dir.path().join("file"));
        let start = Instant::now();
        assert!(second.slot().await.is_none());
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
