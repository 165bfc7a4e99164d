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
