//! Runs that were recorded in another ledger: shown unchanged, and resumed only in the ledger that recorded them.

use std::time::Duration;

use crate::support;
use support::council::all_ship;
use support::{TestDir, wait_until};

/// Imports what a place has recorded.
fn imported(theirs: &TestDir) -> TestDir {
    let export = theirs.run(&["ledger", "export"]).assert_code(0).stdout;
    let ours = TestDir::with("theirs.jsonl", export);
    ours.write("their.pub", theirs.run(&["keys", "export", "ledger"]).assert_code(0).stdout);
    ours.run(&["ledger", "import", "theirs.jsonl", "--key", "their.pub"]).assert_code(0);
    ours
}

/// No view of the run, in any format, offers to resume it.
#[track_caller]
fn nothing_is_said_of_resuming(theirs: &TestDir, form: &str) {
    let run = theirs.only_run();
    assert!(theirs.run(&["show", &run, "--format", form]).stdout.contains("quorate resume"), "{form}");
    let ours = imported(theirs);
    let shown = ours.run(&["show", &run, "--format", form]);
    assert!(!shown.stdout.contains("quorate resume"), "{form}: {}", shown.stdout);
    ours.run(&["resume", &run]).assert_code(5).assert_stderr_contains("quorate:run_imported");
}

#[test]
fn an_imported_run_that_is_open_is_not_said_to_be_resumable() {
    let theirs = TestDir::scripted_slowly(&all_ship(), "delay = \"60s\"");
    let mut child = theirs.start(&["review", "draft.md"]);
    wait_until(Duration::from_secs(60), "the run is recorded", || {
        theirs.path(".quorate/ledger.db").exists() && !theirs.runs().is_empty()
    });
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    for form in ["human", "markdown", "github"] {
        nothing_is_said_of_resuming(&theirs, form);
    }
}

#[test]
fn an_imported_run_that_is_incomplete_is_not_said_to_be_resumable() {
    let theirs = TestDir::scripted(&all_ship());
    theirs.run(&["review", "draft.md", "--max-calls", "2"]);
    nothing_is_said_of_resuming(&theirs, "human");
}
