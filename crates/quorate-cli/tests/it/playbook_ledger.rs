//! Playbooks whose files are not what the ledger has of them: copied from elsewhere, put back, rewritten, or removed.

use crate::support::TestDir;
use crate::support::playbooks::workspace;
use quorate_playbook::history;
use serde_json::json;
use workspace::{SCORER, assert_all_refused, delta, prompt, propose, scorer};

const FILE: &str = "playbooks/operator/alice/cite.md";
const HISTORY: &str = "playbooks/operator/alice/cite.history.md";

/// A workspace in which the playbook is active as version 2, with a text of its own.
fn active(body: &str) -> TestDir {
    let place = workspace::workspace(SCORER);
    scorer(&place, 0.0, 1.0);
    propose(&place, &delta("cite", json!({"body": body}))).assert_code(0);
    place.run(&["playbook", "promote", "cite", "--gate", "scorer"]).assert_code(0);
    place
}

fn copy(from: &TestDir, to: &TestDir) {
    for file in [FILE, HISTORY] {
        to.write(file, from.read(file));
    }
}

fn remove(place: &TestDir, files: &[&str]) {
    for file in files {
        std::fs::remove_file(place.path(file)).expect("the file exists");
    }
}

#[track_caller]
fn assert_not_woven(place: &TestDir, words: &str) {
    assert!(!prompt(place).contains(words), "{}", prompt(place));
    assert_all_refused(place, &["history_mutation", "ledger", "quorate playbook repair"]);
    for looked in ["list", "show cite", "history cite"] {
        let arguments: Vec<&str> = ["playbook"].into_iter().chain(looked.split(' ')).collect();
        place.run(&arguments).assert_code(0).assert_stderr_contains("history_mutation");
    }
    let doctor = place.run(&["doctor"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_compared = ["the ledger has version", "in the ledger; `quorate check .`"];
    let is_compared = is_compared.iter().any(|words| doctor.contains(words));
    assert!(doctor.contains("bad playbooks") && is_compared, "{doctor}");
}

#[test]
fn files_of_another_workspace_are_not_woven() {
    // B7
    let other = active("Name the shelf.");
    // Here it is in shadow, as version 1.
    let place = workspace::workspace(SCORER);
    propose(&place, &delta("cite", json!({}))).assert_code(0);
    copy(&other, &place);
    assert_not_woven(&place, "Name the shelf");
    // As many versions, of another text.
    let place = active("Name the room.");
    assert!(prompt(&place).contains("Name the room"));
    copy(&other, &place);
    assert_not_woven(&place, "Name the shelf");
    // A change that agents do not see is no way around it.
    place.write(FILE, other.read(FILE).replace("About cite.", "About citing."));
    place.run(&["playbook", "repair"]).assert_code(0).assert_stdout_contains("back in shadow");
    assert!(!prompt(&place).contains("Name the shelf"));
    place.run(&["check", "."]).assert_code(0);
    // Nor is a rollback to what the other workspace has promoted.
    for version in ["1", "2"] {
        place
            .run(&["playbook", "rollback", "cite", "--to", version])
            .assert_code(5)
            .assert_stderr_contains("history_mutation");
    }
    assert!(!prompt(&place).contains("Name the shelf"));
    // Where the ledger knows nothing of it, nothing is contradicted.
    let place = workspace::workspace(SCORER);
    copy(&other, &place);
    assert!(prompt(&place).contains("Name the shelf"));
}

#[test]
fn an_older_version_is_not_woven_when_its_files_are_restored() {
    // B7
    let place = active("Name the shelf.");
    let kept = [FILE, HISTORY].map(|file| place.read(file));
    place.run(&["playbook", "shadow", "cite"]).assert_code(0);
    let revised = json!({"op": "revise", "slug": "cite", "body": "Name the room.", "summary": "Rooms."});
    propose(&place, &revised).assert_code(0);
    place.run(&["playbook", "promote", "cite", "--gate", "scorer"]).assert_code(0);
    for (file, text) in [FILE, HISTORY].iter().zip(&kept) {
        place.write(file, text);
    }
    assert_not_woven(&place, "Name the shelf");
    // A proposal does not count before it is accepted.
    place.run(&["playbook", "rollback", "cite", "--to", "1"]).assert_code(5);
    place.run(&["playbook", "repair"]).assert_code(0);
    assert!(!prompt(&place).contains("Name the shelf"));
    place.run(&["playbook", "promote", "cite", "--gate", "scorer"]).assert_code(0);
    assert!(prompt(&place).contains("Name the shelf"));
}

#[test]
fn a_rewritten_version_is_not_rolled_back_to() {
    // B7
    let place = workspace::workspace("");
    propose(&place, &delta("cite", json!({"body": "Name the shelf."}))).assert_code(0);
    let revised = json!({"op": "revise", "slug": "cite", "body": "Name the room.", "summary": "Rooms."});
    propose(&place, &revised).assert_code(0);
    let mut versions = history::parse(&place.read(HISTORY)).expect("it is whole");
    versions[0].text = versions[0].text.replace("status: shadow", "status: active");
    let rewritten = versions.iter().fold(String::new(), |text, version| {
        history::append(&text, "cite", version).expect("it is the next version")
    });
    place.write(HISTORY, rewritten);
    place
        .run(&["playbook", "rollback", "cite", "--to", "1"])
        .assert_code(5)
        .assert_stderr_contains("rewritten");
    assert!(!prompt(&place).contains("Name the shelf"));
}

#[test]
fn an_archived_playbook_does_not_come_back_by_its_files() {
    // B7
    let place = active("Name the shelf.");
    let kept = [FILE, HISTORY].map(|file| place.read(file));
    place.run(&["playbook", "archive", "cite"]).assert_code(0);
    remove(&place, &[FILE, HISTORY]);
    place.run(&["playbook", "repair"]).assert_code(0);
    place.run(&["check", "."]).assert_code(0);
    // Another one may have its slug.
    propose(&place, &delta("cite", json!({"body": "Name the room."}))).assert_code(0);
    place.run(&["check", "."]).assert_code(0);
    for (file, text) in [FILE, HISTORY].iter().zip(kept) {
        place.write(file, text);
    }
    assert_not_woven(&place, "Name the shelf");
}

#[test]
fn a_playbook_whose_files_were_removed_is_named() {
    // B7
    let place = active("Name the shelf.");
    let kept = [FILE, HISTORY].map(|file| place.read(file));
    // Its file alone.
    remove(&place, &[FILE]);
    place.run(&["weave", "alice"]).assert_code(0).assert_stderr_contains("playbook_gone");
    place.run(&["playbook", "repair"]).assert_code(0);
    assert!(prompt(&place).contains("Name the shelf"));
    // Another refused file does not hide the missing file.
    place.write("playbooks/other.md", "---\nschema: playbooks/v1\nslug: other\n---\nName.\n");
    let removed = place.read(FILE);
    remove(&place, &[FILE]);
    place.run(&["weave", "alice"]).assert_code(0).assert_stderr_contains("playbook_gone");
    place.write(FILE, removed.replace("kind: overlay", "kind: over"));
    let woven = place.run(&["weave", "alice"]).assert_code(0);
    assert!(
        woven.stderr.contains("playbook_invalid") && !woven.stderr.contains("playbook_gone"),
        "{woven:?}"
    );
    place.write(FILE, removed);
    remove(&place, &["playbooks/other.md"]);
    // Its history with it.
    remove(&place, &[FILE, HISTORY]);
    let checked = place.run(&["check", "."]).stdout;
    assert!(checked.contains("playbook_gone") && checked.contains("playbook_index_stale"), "{checked}");
    place.run(&["weave", "alice"]).assert_code(0).assert_stderr_contains("playbook_gone");
    place.run(&["playbook", "list"]).assert_code(0).assert_stderr_contains("playbook_gone");
    // The index is rewritten, once.
    place.run(&["playbook", "repair"]).assert_code(0).assert_stdout_contains("updated the index");
    place.run(&["playbook", "repair"]).assert_code(0).assert_stdout_contains("nothing");
    let checked = place.run(&["check", "."]).stdout;
    assert!(checked.contains("playbook_gone") && !checked.contains("playbook_index_stale"), "{checked}");
    // All of the folder.
    std::fs::remove_dir_all(place.path("playbooks")).expect("the folder exists");
    let checked = place.run(&["check", "."]).stdout;
    assert!(checked.contains("playbook_gone"), "{checked}");
    // An explicit archive is final: its files do not bring it back.
    place.run(&["playbook", "archive", "cite", "--reason", "It was removed."]).assert_code(0);
    let checked = place.run(&["check", "."]).assert_code(0).stdout;
    assert!(!checked.contains("playbook_gone"), "{checked}");
    for (file, text) in [FILE, HISTORY].iter().zip(kept) {
        place.write(file, text);
    }
    assert_not_woven(&place, "Name the shelf");
}

#[test]
fn what_a_killed_process_was_writing_is_removed_by_repair() {
    // B8
    let place = active("Name the shelf.");
    let left = ["playbooks/.tmpA1b2C3", "playbooks/operator/alice/.tmpzZ09aa"];
    let kept = ["playbooks/.tmp-notes", "playbooks/.tmpA1b2C3.md", "operators/.tmpA1b2C3"];
    for file in left.iter().chain(&kept) {
        place.write(file, "---\n");
    }
    place.run(&["playbook", "repair"]).assert_code(0).assert_stdout_contains("removed 2 temporary files");
    assert!(left.iter().all(|file| !place.path(file).exists()));
    assert!(kept.iter().all(|file| place.path(file).exists()));
    place.run(&["playbook", "repair"]).assert_code(0).assert_stdout_contains("nothing to repair");
    assert!(prompt(&place).contains("Name the shelf"));
}
