//! What is kept of keys in files: closed to others, whole, and never overwritten.

#![expect(clippy::disallowed_methods, reason = "tests look at the files themselves")]

use std::fs;

use super::*;

fn directory() -> (tempfile::TempDir, Directory) {
    let dir = tempfile::tempdir().expect("a directory");
    let keys = Directory::new(dir.path());
    (dir, keys)
}

#[test]
fn a_key_is_made_once_and_read_again() {
    // D3
    let (_dir, keys) = directory();
    assert!(keys.load(Purpose::Ledger).unwrap().is_none());
    let made = keys.create(Purpose::Ledger).unwrap();
    assert_eq!(keys.load(Purpose::Ledger).unwrap().unwrap().public(), made.public());
    assert!(matches!(keys.create(Purpose::Ledger), Err(Error::AlreadyExists { .. })));
    assert_eq!(keys.load_or_create(Purpose::Ledger).unwrap().public(), made.public());
    assert_ne!(keys.load_or_create(Purpose::Signing).unwrap().public(), made.public());
}

#[test]
fn many_who_make_a_key_at_once_have_the_same() {
    let (dir, _) = directory();
    let made: Vec<PublicKey> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| Directory::new(dir.path()).load_or_create(Purpose::Ledger).unwrap().public())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(made.iter().all(|key| *key == made[0]));
}

#[test]
fn a_rotation_keeps_the_public_half_of_what_goes_and_not_its_secret() {
    // D3
    let (dir, keys) = directory();
    assert!(matches!(keys.rotate(Purpose::Ledger, 1_000), Err(Error::Missing { .. })));
    let first = keys.create(Purpose::Ledger).unwrap();
    keys.create(Purpose::Signing).unwrap();
    let rotated = keys.rotate(Purpose::Ledger, 1_000).unwrap();
    assert_eq!(rotated.old, first.public());
    assert_ne!(rotated.new.public(), first.public());
    assert_eq!(keys.load(Purpose::Ledger).unwrap().unwrap().public(), rotated.new.public());
    keys.rotate(Purpose::Ledger, 1_000).unwrap();

    let mut gone = vec![rotated.old, rotated.new.public()];
    gone.sort_by_key(PublicKey::id);
    assert_eq!(keys.retired(Purpose::Ledger).unwrap(), gone);
    assert!(keys.retired(Purpose::Signing).unwrap().is_empty());

    let left: Vec<String> = files_below(dir.path());
    let files = "two keys, two public halves with their vouchers, and what keeps them out of git";
    assert_eq!(left.len(), 7, "{files}: {left:?}");
    let seed = first.to_text();
    assert!(!left.iter().any(|file| fs::read_to_string(file).unwrap().contains(seed.trim_end())));
}

#[test]
fn what_is_no_key_is_said_without_repeating_it() {
    let (_dir, keys) = directory();
    keys.create(Purpose::Signing).unwrap();
    let path = keys.key_path(Purpose::Signing);
    for text in ["canary", "quorate:ed25519:seed:canary", "", "\u{0}"] {
        fs::write(&path, text).unwrap();
        let error = keys.load(Purpose::Signing).unwrap_err();
        assert!(matches!(error, Error::NotAKey { .. }), "{error:?}");
        assert!(!format!("{error:?} {error}").contains("canary"));
    }
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(matches!(keys.load(Purpose::Signing), Err(Error::NotAKey { .. })));
}

#[cfg(unix)]
#[test]
fn files_are_their_owners_alone_and_others_are_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let (dir, keys) = directory();
    keys.create(Purpose::Signing).unwrap();
    keys.rotate(Purpose::Signing, 1_000).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let (file, folder) = (keys.key_path(Purpose::Signing), dir.path().join("keys"));
    assert_eq!((mode(&file), mode(&folder)), (0o600, 0o700));
    for open in [0o640, 0o604, 0o620, 0o601] {
        set(&file, open);
        let error = keys.load(Purpose::Signing).unwrap_err();
        assert!(matches!(error, Error::Exposed { mode, .. } if mode == open), "{open:o}: {error:?}");
        assert!(keys.rotate(Purpose::Signing, 1_000).is_err());
    }
    set(&file, 0o600);
    // Who can write in the directory can put a key of his own there.
    set(&folder, 0o770);
    assert!(matches!(keys.load(Purpose::Signing), Err(Error::Exposed { mode: 0o770, .. })));
    assert!(matches!(keys.create(Purpose::Ledger), Err(Error::Exposed { .. })));
    set(&folder, 0o700);
    keys.load(Purpose::Signing).unwrap().expect("closed again");
}

fn files_below(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => files_below(&path),
            false => vec![path.display().to_string()],
        })
        .collect()
}
