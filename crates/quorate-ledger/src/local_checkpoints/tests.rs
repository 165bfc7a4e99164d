//! The copies of the last checkpoint: by identity, in two places, never replaced by an older or a contradicting one.

#![expect(clippy::disallowed_methods, reason = "tests look at the files themselves")]

use super::*;
use crate::merkle::TreeHead;
use crate::note::Signer;
use crate::signing::SecretKey;

fn note(origin: &str, size: u64, root: u8) -> String {
    let signer = Signer::new(origin, SecretKey::from_seed(&[7; 32])).unwrap();
    Checkpoint::new(origin, TreeHead { size, root: [root; 32] }).unwrap().sign(&signer).unwrap().to_string()
}

/// A ledger's directory, a state directory, and the copies of two ledgers that share both.
fn two_ledgers() -> (tempfile::TempDir, CheckpointFiles, CheckpointFiles) {
    let dir = tempfile::tempdir().unwrap();
    let (ledgers, state) = (dir.path().join("ledgers"), dir.path().join("state"));
    let of = |name: &str| CheckpointFiles::new(&Address::File(ledgers.join(name)), Some(&state));
    let (a, b) = (of("a.db"), of("b.db"));
    (dir, a, b)
}

fn sizes(kept: &LocalCheckpoints) -> Vec<Option<u64>> {
    let size = |copy: &CheckpointCopy| Some(parse_checkpoint(copy.note.as_ref().ok()?).ok()?.tree().size);
    kept.copies.iter().map(size).collect()
}

#[test]
fn two_ledgers_of_a_directory_have_copies_of_their_own() {
    // D12
    let (_dir, a, b) = two_ledgers();
    a.save(&note("a", 3, 1)).unwrap();
    b.save(&note("b", 9, 2)).unwrap();
    assert_eq!(sizes(&a.read(Some("a"))), [Some(3), Some(3)]);
    assert_eq!(sizes(&b.read(Some("b"))), [Some(9), Some(9)]);
    assert_eq!((a.read(Some("a")).replaced_origin, b.read(Some("b")).replaced_origin), (None, None));
    // A file that is another ledger now, or none.
    assert_eq!(a.read(Some("c")).replaced_origin.as_deref(), Some("a"));
    assert_eq!(sizes(&a.read(None)), [Some(3), Some(3)]);
}

#[test]
fn the_state_directory_knows_which_ledger_stood_at_a_path() {
    // D12: everything beside the ledger is replaced by what is beside another one.
    let (dir, a, b) = two_ledgers();
    a.save(&note("a", 3, 1)).unwrap();
    std::fs::remove_dir_all(dir.path().join("ledgers")).unwrap();
    assert_eq!(a.read(Some("c")).replaced_origin.as_deref(), Some("a"));
    assert_eq!(sizes(&a.read(None)), [Some(3)], "and what a new one would have to lead to");
    assert!(a.save(&note("c", 1, 3)).is_err());
    a.discard(Some("c")).unwrap();
    a.save(&note("c", 1, 3)).unwrap();
    assert_eq!(a.read(Some("c")).replaced_origin, None);
    // Nothing is said of another path, nor where there is no state directory.
    assert_eq!(b.read(Some("b")).replaced_origin, None);
    assert_eq!(
        CheckpointFiles::new(&Address::File(dir.path().join("moved/a.db")), a.state.as_deref())
            .read(Some("c"))
            .replaced_origin,
        None
    );
    std::fs::remove_dir_all(dir.path().join("state")).unwrap();
    std::fs::remove_dir_all(dir.path().join("ledgers")).unwrap();
    assert_eq!(a.read(Some("d")).replaced_origin, None);
}

#[cfg(unix)]
#[test]
fn a_link_in_the_place_of_a_directory_does_not_hide_which_ledger_it_was() {
    // D12
    let (dir, a, _) = two_ledgers();
    a.save(&note("a", 3, 1)).unwrap();
    let path = |name: &str| dir.path().join(name);
    std::fs::rename(path("ledgers"), path("moved")).unwrap();
    std::fs::create_dir(path("others")).unwrap();
    std::os::unix::fs::symlink(path("others"), path("ledgers")).unwrap();
    assert_eq!(a.read(Some("c")).replaced_origin.as_deref(), Some("a"));
}

#[test]
fn an_older_checkpoint_replaces_nothing_and_a_contradicting_one_is_refused() {
    // D12
    let (_dir, a, _) = two_ledgers();
    a.save(&note("a", 5, 1)).unwrap();
    a.save(&note("a", 3, 9)).unwrap();
    assert_eq!(sizes(&a.read(Some("a"))), [Some(5), Some(5)]);
    let errors = a.save(&note("a", 5, 2)).unwrap_err();
    assert!(matches!(errors[..], [Error::Contradicts { .. }, Error::Contradicts { .. }]), "{errors:?}");
    a.save(&note("a", 6, 2)).unwrap();
    assert_eq!(sizes(&a.read(Some("a"))), [Some(6), Some(6)]);
}

#[test]
fn garbage_in_a_copy_is_said_and_not_replaced() {
    // D12
    let (_dir, a, _) = two_ledgers();
    a.save(&note("a", 5, 1)).unwrap();
    let path = a.read(Some("a")).copies[1].path.clone();
    for garbage in ["", "nonsense", "\u{2014} a b\n", &note("b", 5, 1)] {
        std::fs::write(&path, garbage).unwrap();
        let kept = a.read(Some("a"));
        assert!(kept.copies[0].note.is_ok() && kept.copies[1].note.is_err(), "{kept:?}");
        assert_eq!(a.save(&note("a", 6, 2)).unwrap_err().len(), 1);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), garbage);
    }
    std::fs::write(&path, [0xff; 9]).unwrap();
    assert!(a.read(Some("a")).copies[1].note.is_err());
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(a.read(Some("a")).copies[1].note.is_err());
}

#[test]
fn the_one_file_of_an_older_version_is_taken_over() {
    // D12
    let (_dir, a, b) = two_ledgers();
    let old = a.keys.legacy_checkpoint_path();
    std::fs::create_dir_all(old.parent().unwrap()).unwrap();
    std::fs::write(&old, note("a", 4, 1)).unwrap();
    // It counts for the ledger that it is of, and for no other.
    assert_eq!(sizes(&a.read(Some("a"))), [Some(4)]);
    assert_eq!(sizes(&b.read(Some("b"))), []);
    assert_eq!(sizes(&b.read(None)), []);
    b.save(&note("b", 9, 2)).unwrap();
    assert!(!old.exists());
    assert_eq!(sizes(&a.read(Some("a"))), [Some(4), Some(4)]);
    std::fs::write(&old, "nonsense").unwrap();
    assert_eq!(sizes(&b.read(Some("b"))), [Some(9), Some(9), None]);
}

#[test]
fn what_is_given_up_lies_aside() {
    // D12
    let (dir, a, b) = two_ledgers();
    a.save(&note("a", 5, 1)).unwrap();
    b.save(&note("b", 5, 1)).unwrap();
    a.discard(Some("a")).unwrap();
    assert_eq!(sizes(&a.read(Some("a"))), []);
    assert_eq!(sizes(&b.read(Some("b"))), [Some(5), Some(5)]);
    assert_eq!(std::fs::read_dir(dir.path().join("ledgers/aside")).unwrap().count(), 2);
    a.save(&note("a", 2, 3)).unwrap();
    assert_eq!(sizes(&a.read(Some("a"))), [Some(2), Some(2)]);
    // Another ledger begins in its place, before its first checkpoint.
    a.discard(None).unwrap();
    a.save(&note("c", 1, 3)).unwrap();
    assert_eq!(
        (a.read(Some("c")).replaced_origin, sizes(&a.read(Some("c")))),
        (None, vec![Some(1), Some(1)])
    );
}

#[test]
fn a_killed_process_leaves_nothing_behind() {
    // D3
    let (_dir, a, _) = two_ledgers();
    a.save(&note("a", 5, 1)).unwrap();
    a.keys.create(keys::Purpose::Ledger).unwrap();
    let left = ["", "checkpoints"].map(|below| a.keys.path().join(below).join(".new-x1y2z3"));
    let before = a.keys.path().join(".tmpAbCdEf");
    for path in left.iter().chain([&before]) {
        std::fs::write(path, "quorate:ed25519:secret:").unwrap();
    }
    a.save(&note("a", 6, 1)).unwrap();
    a.keys.remove_leftovers().unwrap();
    assert!(!left[0].exists() && !left[1].exists() && !before.exists());
    std::fs::write(&left[0], "quorate:ed25519:secret:").unwrap();
    a.keys.rotate(keys::Purpose::Ledger, 1_000).unwrap();
    assert!(!left[0].exists());
    assert!(a.keys.key_path(keys::Purpose::Ledger).exists());
}
