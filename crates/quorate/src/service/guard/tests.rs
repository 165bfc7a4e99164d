//! Protected paths, under each name that a file can have.

use std::path::Path;

use super::{Guard, Role};

/// A workspace with a ledger, its keys, a log, and a repository's folder.
fn workspace() -> (tempfile::TempDir, Guard) {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().canonicalize().expect("there");
    for folder in [".quorate/keys", ".git/hooks", "sub"] {
        std::fs::create_dir_all(root.join(folder)).expect("made");
    }
    for file in
        [".quorate/ledger.db", ".quorate/keys/ledger.ed25519", "log.jsonl", "quorate.toml", "notes.txt"]
    {
        crate::service::disk::write_new(&root.join(file), "").expect("written");
    }
    let guard = Guard {
        files: vec![
            (Role::Ledger, root.join(".quorate/ledger.db")),
            (Role::Ledger, root.join(".quorate/ledger.db-wal")),
            (Role::Log, root.join("log.jsonl")),
            (Role::Configuration, root.join("quorate.toml")),
            (Role::Keyring, root.join("keyring.toml")),
        ],
        folders: vec![(Role::Keys, root.join(".quorate/keys"))],
    };
    (dir, guard)
}

fn why(guard: &Guard, root: &Path, path: &str) -> Option<&'static str> {
    guard.occupant(&root.join(path), None)
}

#[test]
fn what_is_kept_is_taken_however_it_is_spelled() {
    let (dir, guard) = workspace();
    for (path, taken) in [
        (".quorate/ledger.db", "the ledger is there"),
        ("sub/../.quorate/ledger.db", "the ledger is there"),
        (".quorate/ledger.db-wal", "the ledger is there"),
        (".quorate/ledger.db-shm", "a ledger is there"),
        (".quorate/.gitignore", "a ledger is there"),
        (".quorate/aside/piece", "a ledger is there"),
        ("elsewhere/.quorate/keys/new", "a ledger is there"),
        (".quorate/keys/new", "the ledger's keys are there"),
        ("keyring.toml", "the keyring is there"),
        ("sub/quorate.toml", "a configuration belongs there"),
        ("sub/council.yml", "a configuration belongs there"),
        (".git/config", "that is Git's own folder"),
        (".GIT/hooks/pre-commit", "that is Git's own folder"),
        ("sub/.git", "that is Git's own folder"),
    ] {
        assert_eq!(why(&guard, dir.path(), path), Some(taken), "{path}");
    }
    for free in
        ["notes.txt", "sub/log.jsonl", ".quorate/council_log.jsonl", ".gitignore", "new/a/b", "ledger.db"]
    {
        assert_eq!(why(&guard, dir.path(), free), None, "{free}");
    }
}

#[test]
fn what_is_kept_is_free_for_what_it_is_alone() {
    let (dir, guard) = workspace();
    let occupant = |path: &str, role| guard.occupant(&dir.path().join(path), Some(role));
    assert_eq!(occupant("log.jsonl", Role::Log), None);
    assert_eq!(occupant("log.jsonl", Role::Witness), Some("the log is there"));
    assert_eq!(occupant(".quorate/ledger.db", Role::Ledger), None);
    assert_eq!(occupant(".quorate/ledger.db", Role::Log), Some("the ledger is there"));
    assert_eq!(occupant("quorate.toml", Role::Configuration), None);
}

#[cfg(unix)]
#[test]
fn links_of_both_kinds_are_found() {
    use std::os::unix::fs::symlink;
    let (dir, guard) = workspace();
    let root = dir.path();
    for (to, name, taken) in [
        (".quorate/ledger.db", "ledger", "the ledger is there"),
        (".quorate/keys/ledger.ed25519", "key", "the ledger's keys are there"),
        ("quorate.toml", "config", "the configuration is there"),
    ] {
        std::fs::hard_link(root.join(to), root.join(format!("{name}.hard"))).expect("linked");
        symlink(root.join(to), root.join(format!("{name}.soft"))).expect("linked");
        for end in ["hard", "soft"] {
            assert_eq!(why(&guard, root, &format!("{name}.{end}")), Some(taken), "{name}.{end}");
        }
    }
    symlink(".git/hooks", root.join("hooks")).expect("linked");
    assert_eq!(why(&guard, root, "hooks/pre-commit"), Some("that is Git's own folder"));
    // A dangling link.
    symlink(".quorate/ledger.db-wal", root.join("dangling")).expect("linked");
    assert_eq!(why(&guard, root, "dangling"), Some("the ledger is there"));
    std::fs::hard_link(root.join("notes.txt"), root.join("sub/notes")).expect("linked");
    assert_eq!(why(&guard, root, "sub/notes"), None);
}
