//! Protected files: no path in a configuration, a manifest or a command line can overwrite the ledger, its keys, its witness,
//! its log, the keyring, the configuration, Git's folder or a file with other content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::support;
use support::TestDir;
use support::council::{COUNCIL, all_ship};

/// A workspace with a ledger, keys, a keyring, a repository's folder, and files of its own, without any run yet.
fn workspace() -> TestDir {
    let place = TestDir::scripted(&all_ship());
    place.write("council.yaml", COUNCIL);
    place.run(&["keys", "init"]).assert_code(0);
    place.run(&["review", "draft.md"]).assert_code(0);
    place.write(".git/config", "[core]\n\tbare = false");
    place.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 0");
    place.write("notes.txt", "the first\nthe last, without an end");
    place.write("draft.md", "Another meeting, on Friday. Without an end");
    place
}

/// The bytes of every file but the ledger's own, which others may have opened meanwhile.
fn bytes(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(dir: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in std::fs::read_dir(dir).expect("a folder").flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => walk(&path, found),
                false if path.to_string_lossy().contains("ledger.db-") => {}
                false => drop(found.insert(path.clone(), std::fs::read(&path).expect("readable"))),
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(root, &mut found);
    found
}

/// Runs a command that is refused with a code, and changes nothing.
#[track_caller]
fn refuses(place: &TestDir, arguments: &[&str], code: &str) {
    let before = bytes(place.root());
    let ran = place.run(arguments);
    assert_eq!(ran.code, 5, "{arguments:?}: {ran:?}");
    assert!(format!("{}{}", ran.stdout, ran.stderr).contains(code), "{arguments:?}: {ran:?}");
    let after = bytes(place.root());
    assert!(before == after, "{arguments:?}: something was written");
}

const KEPT: [&str; 12] = [
    ".quorate/ledger.db",
    ".quorate/ledger.db-wal",
    "./sub/../.quorate/ledger.db",
    ".quorate/keys/ledger.ed25519",
    ".quorate/keys/new",
    ".quorate/.gitignore",
    "quorate.toml",
    "keyring.toml",
    "council.yaml",
    ".git/config",
    ".git/hooks/pre-commit",
    ".git/hooks/post-commit",
];

#[test]
fn a_log_is_appended_to_nothing_that_is_kept() {
    let place = workspace();
    for log in KEPT {
        place.write("council.yaml", format!("{COUNCIL}logging: {{log_path: {log}}}\n"));
        refuses(&place, &["review", "draft.md"], "quorate:file_unwritable");
        refuses(&place, &["show", "latest"], "quorate:file_unwritable");
        let checked = place.run(&["check", "council.yaml"]).assert_code(1);
        let said = format!("{}{}", checked.stdout, checked.stderr);
        assert!(
            said.contains("quorate:file_unwritable") && said.contains("logging.log_path"),
            "{log}: {said}"
        );
    }
}

#[test]
fn a_log_is_appended_to_no_file_of_something_else() {
    let place = workspace();
    place.write("other.md", "Another meeting, on Friday.");
    place.write("data.json", "{\"name\":\"a package\"}");
    place.write("talk.jsonl", "{\"v\":1,\"ts\":\"2026-05-18T14:23:11Z\",\"event\":\"message\"}\n");
    place.run(&["ledger", "export", "--out", "export.jsonl"]).assert_code(0);
    for log in ["notes.txt", "draft.md", "data.json", "answers.json", "talk.jsonl", "export.jsonl"] {
        place.write("council.yaml", format!("{COUNCIL}logging: {{log_path: {log}}}\n"));
        refuses(&place, &["review", "other.md"], "quorate:log_unwritable");
        let checked = place.run(&["check", "council.yaml"]).assert_code(1);
        let said = format!("{}{}", checked.stdout, checked.stderr);
        assert!(said.contains("quorate:log_unwritable") && said.contains(log), "{said}");
    }
    assert!(!place.path(".quorate/aside").exists());
    // A log with a line that cannot be read among others is one.
    place.write("own.jsonl", "lost\n{\"v\":2,\"verdict\":\"HOLD\"}\n");
    place.write("council.yaml", format!("{COUNCIL}logging: {{log_path: own.jsonl}}\n"));
    place.run(&["check", "council.yaml"]).assert_code(0);
    place.run(&["review", "draft.md"]).assert_code(0);
    assert_eq!(place.read("own.jsonl").lines().count(), 3);
}

#[test]
fn what_a_judgement_is_recorded_to_is_not_judged() {
    let place = workspace();
    let line = "{\"v\":2,\"verdict\":\"HOLD\"}\n";
    for name in ["log.jsonl", "./sub/../log.jsonl"] {
        place.write("log.jsonl", line);
        place.write("sub/other.md", "Another meeting.");
        place.write("council.yaml", format!("{COUNCIL}logging: {{log_path: log.jsonl}}\n"));
        refuses(&place, &["review", name], "quorate:file_unwritable");
        refuses(&place, &["review", "draft.md", name], "quorate:file_unwritable");
    }
    place.run(&["review", "draft.md"]).assert_code(0);
}

#[test]
fn an_audit_of_a_log_alone_is_written_over_nothing_that_is_kept() {
    let place = workspace();
    let audit = |output: &str| {
        ["audit", "--log", ".quorate/council_log.jsonl", "--output", output].map(str::to_owned)
    };
    std::fs::copy(place.path(".quorate/ledger.db"), place.path("copy.db")).expect("copied");
    std::fs::copy(place.path(".quorate/keys/ledger.ed25519"), place.path("copy.key")).expect("copied");
    for output in KEPT.into_iter().chain(["copy.db", "copy.key", ".quorate/council_log.jsonl"]) {
        refuses(&place, &audit(output).each_ref().map(String::as_str), "quorate:file_unwritable");
    }
    place.run(&audit("audit.md").each_ref().map(String::as_str)).assert_code(0);
}

#[test]
fn no_files_are_put_into_gits_folder_or_beside_a_ledger() {
    let place = workspace();
    place.write("kit/files/hook", "#!/bin/sh\n");
    place.write(
        "kit/profile.json",
        r#"{"schema": "agentproto/runtime-profile/v1", "slug": "runtime-profile/kit", "version": "0.1.0", "name": "Kit",
            "description": "One file", "files": [{"src": "hook", "dest": "pre-push", "strategy": "overwrite"}]}"#,
    );
    for folder in [".git", ".git/hooks", "sub/../.git/hooks", ".quorate", ".quorate/keys"] {
        place.write("sub/there", "");
        refuses(&place, &["provision", "install", "kit", "--into", folder], "quorate:file_unwritable");
        refuses(&place, &["init", "council", &format!("{folder}/new")], "quorate:file_unwritable");
        refuses(&place, &["man", "--out", folder], "quorate:file_unwritable");
    }
    place.run(&["provision", "install", "kit", "--into", "sub"]).assert_code(0);
}

#[cfg(unix)]
#[test]
fn another_name_of_what_is_kept_is_found_out() {
    use std::os::unix::fs::symlink;
    let place = workspace();
    for (to, name) in [
        (".quorate/ledger.db", "a"),
        (".quorate/keys/ledger.ed25519", "b"),
        ("quorate.toml", "c"),
        ("keyring.toml", "d"),
    ] {
        std::fs::hard_link(place.path(to), place.path(&format!("{name}.hard"))).expect("linked");
        symlink(place.path(to), place.path(&format!("{name}.soft"))).expect("linked");
        for log in ["hard", "soft"].map(|kind| format!("{name}.{kind}")) {
            place.write("council.yaml", format!("{COUNCIL}logging: {{log_path: {log}}}\n"));
            refuses(&place, &["review", "draft.md"], "quorate:file_unwritable");
        }
    }
    place.write("council.yaml", COUNCIL);
    for out in ["a.hard", "b.hard", "c.hard", ".git/config"] {
        refuses(&place, &["ledger", "export", "--out", out], "quorate:file_unwritable");
        refuses(&place, &["audit", "--output", out], "quorate:file_unwritable");
    }
}

#[test]
fn a_witness_is_appended_to_nothing_else() {
    let place = workspace();
    place.write("other.md", "Another meeting, on Friday.");
    let config = place.read("quorate.toml");
    for witness in KEPT.into_iter().chain([".quorate/council_log.jsonl"]) {
        place.write("quorate.toml", format!("{config}[ledger]\nwitness = \"{witness}\"\n"));
        refuses(&place, &["ledger", "checkpoint"], "quorate:file_unwritable");
        let checked = place.run(&["check", "quorate.toml"]).assert_code(1);
        assert!(checked.stdout.contains("quorate:file_unwritable"), "{witness}: {}", checked.stdout);
    }
    for witness in ["notes.txt", "draft.md"] {
        place.write("quorate.toml", format!("{config}[ledger]\nwitness = \"{witness}\"\n"));
        refuses(&place, &["review", "other.md"], "quorate:witness_unreadable");
        let before = place.read(witness);
        place.run(&["ledger", "checkpoint"]).assert_stderr_contains("text other than checkpoints");
        assert_eq!(place.read(witness), before);
        let checked = place.run(&["check", "quorate.toml"]).assert_code(1);
        assert!(checked.stdout.contains("quorate:witness_unreadable"), "{}", checked.stdout);
    }
    place.write("quorate.toml", format!("{config}[ledger]\nwitness = \"witness.txt\"\n"));
    place.run(&["check", "quorate.toml"]).assert_code(0);
    place.run(&["ledger", "checkpoint"]).assert_code(0);
    assert!(place.read("witness.txt").contains('\u{2014}'));
    place.run(&["check", "quorate.toml"]).assert_code(0);
}

#[test]
fn no_two_files_of_a_configuration_are_one() {
    let place = workspace();
    let config = place.read("quorate.toml");
    for table in [
        "[ledger]\npath = \".git/ledger.db\"\n",
        "[ledger]\npath = \".quorate/keys/ledger.ed25519\"\n",
        "[ledger]\npath = \".quorate/council_log.jsonl\"\n",
        "[ledger]\npath = \"council.yaml\"\n",
        "[ledger]\npath = \"keyring.toml\"\n",
        "[keys]\nkeyring = \"quorate.toml\"\n",
        "[keys]\nkeyring = \".git/keyring.toml\"\n",
        "[keys]\nkeyring = \".quorate/ledger.db\"\n",
        "[ledger]\nwitness = \"one.txt\"\n[keys]\nkeyring = \"one.txt\"\n",
    ] {
        place.write("quorate.toml", format!("{config}{table}"));
        refuses(&place, &["review", "draft.md"], "quorate:file_unwritable");
        let checked = place.run(&["check", "quorate.toml"]).assert_code(1);
        assert!(checked.stdout.contains("quorate:file_unwritable"), "{table}: {}", checked.stdout);
    }
}

/// A runtime with the given substrate and state.
fn runtime(place: &TestDir, substrate: &str, state: &str) {
    let text = format!(
        "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: talk\nparticipants:\n  - {{id: ada, executor: rubric, role: You check.}}\n\
         substrate: {substrate}\ndispatcher: {{kind: mention}}\nstate: {state}\n"
    );
    place.write("swarm.yaml", text);
}

#[test]
fn a_runtime_writes_over_nothing_that_is_kept() {
    let place = workspace();
    let say = ["run", "swarm.yaml", "--say", "@ada look at this", "--once"];
    for path in KEPT.into_iter().chain([".quorate/council_log.jsonl"]) {
        for kind in ["file", "sqlite"] {
            runtime(&place, &format!("{{kind: {kind}, path: {path}}}"), "{kind: memory}");
            refuses(&place, &say, "quorate:file_unwritable");
            let checked = place.run(&["check", "swarm.yaml"]).assert_code(1);
            assert!(checked.stdout.contains("swarm.yaml:"), "{path}: {}", checked.stdout);
        }
        runtime(&place, "{kind: memory}", &format!("{{kind: sqlite, path: {path}}}"));
        refuses(&place, &say, "quorate:file_unwritable");
    }
    for dir in [".quorate/keys", ".git", ".git/hooks"] {
        runtime(&place, "{kind: memory}", &format!("{{kind: fs, dir: {dir}}}"));
        refuses(&place, &say, "quorate:file_unwritable");
    }
    runtime(&place, "{kind: memory}", "{kind: memory}");
    for events in KEPT {
        refuses(&place, &[&say[..], &["--events", events]].concat(), "quorate:file_unwritable");
    }
    runtime(&place, "{kind: file, path: talk.md}", "{kind: fs, dir: state}");
    place.run(&[&say[..], &["--events", "events.jsonl"]].concat()).assert_code(0);
}

#[cfg(unix)]
#[test]
fn playbooks_are_not_written_into_gits_folder() {
    let place = workspace();
    place.write("operators/lead/OPERATOR.md", "---\nid: lead\nname: Lead\n---\nYou lead the research.\n");
    place.write(
        "delta.json",
        r#"{"op": "add", "slug": "quote-evidence", "title": "Quote the line.", "body": "Quote the line that a finding is about."}"#,
    );
    std::os::unix::fs::symlink(".git/hooks", place.path("playbooks")).expect("linked");
    let before = bytes(&place.path(".git"));
    let ran = place.run(&["playbook", "propose", "delta.json", "--operator", "lead"]);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(before == bytes(&place.path(".git")), "something was written");
}
