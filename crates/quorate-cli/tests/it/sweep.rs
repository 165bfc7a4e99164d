//! `quorate sweep` through the real binary: what is due, what is passed over and why, and how often.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::support;
use serde_json::{Value, json};
use support::council::{COUNCIL, all_ship, all_ship_except};
use support::{CommandOutput, TestDir, finish, wait_until};

const RULES: &str = "\
tier_classifier: {default_tier: 2}
tier_rules:
  tier_1: {post: ['*post*']}
  tier_3: {brief: ['briefs/*']}
watch: {paths: [./drafts/, ./briefs/]}
";

fn place() -> TestDir {
    let place = TestDir::scripted(&all_ship());
    place.write("council.yaml", format!("{COUNCIL}{RULES}"));
    place
}

/// What became of each file.
fn fates(ran: &CommandOutput) -> BTreeMap<String, String> {
    let swept = ran.json();
    let files = swept["files"].as_array().expect("files").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    files.map(|one| (text(&one["path"]), text(&one["fate"]))).collect()
}

fn sweep(place: &TestDir, arguments: &[&str]) -> CommandOutput {
    place.run(&[&["sweep", "--format", "json"], arguments].concat())
}

fn count(fates: &BTreeMap<String, String>, outcome: &str) -> usize {
    fates.values().filter(|one| *one == outcome).count()
}

#[test]
fn tiers_decide_and_what_was_judged_is_not_judged_again() {
    // C6
    let place = place();
    place.write("drafts/post-1.md", "One.\n");
    place.write("drafts/deep/post-2.md", "Two.\n");
    place.write("drafts/note.md", "Three.\n");
    place.write("drafts/.hidden/post.md", "Four.\n");
    place.write("elsewhere/post.md", "Five.\n");
    let swept = sweep(&place, &[]).assert_code(0);
    assert_eq!(swept.json()["files"][0]["tier"], 1);
    let expected = [
        ("drafts/deep/post-2.md", "judged"),
        ("drafts/note.md", "tier_skipped"),
        ("drafts/post-1.md", "judged"),
    ];
    let expected: BTreeMap<_, _> =
        expected.map(|(path, outcome)| (path.to_owned(), outcome.to_owned())).into();
    assert_eq!(fates(&swept), expected);
    assert_eq!((place.log().len(), place.runs().len()), (2, 2));
    assert_eq!(place.log()[0]["artifact_type"], "post");

    let again = || fates(&sweep(&place, &[]).assert_code(0));
    assert_eq!(count(&again(), "already_judged"), 2);
    place.write("drafts/post-1.md", "One, changed.\n");
    assert_eq!(again()["drafts/post-1.md"], "judged");
    place.write("skeptic.md", "# Skeptic\n\nDoubt.\n");
    place.write("council.yaml", format!("{COUNCIL}{RULES}").replace("builtin:skeptic", "skeptic.md"));
    assert_eq!(count(&again(), "judged"), 2, "another prompt is another council");
    place.write("skeptic.md", "# Skeptic\n\nDoubt more.\n");
    assert_eq!(count(&again(), "judged"), 2);
    assert_eq!(count(&again(), "already_judged"), 2);
    assert_eq!(count(&fates(&sweep(&place, &["--force"]).assert_code(0)), "judged"), 2);
    assert_eq!(count(&fates(&sweep(&place, &["--policy", "strict"]).assert_code(0)), "judged"), 2);
}

#[test]
fn a_review_counts_for_the_next_sweep_and_incomplete_does_not() {
    let place = place();
    place.write("drafts/post-1.md", "One.\n");
    place.write("drafts/post-2.md", "Two.\n");
    place.run(&["review", "drafts/post-1.md"]).assert_code(0);
    place.run(&["review", "drafts/post-2.md", "--max-calls", "3"]).assert_code(3);
    let fates = fates(&sweep(&place, &[]).assert_code(0));
    assert_eq!((&*fates["drafts/post-1.md"], &*fates["drafts/post-2.md"]), ("already_judged", "judged"));
}

#[test]
fn one_in_five_is_stable() {
    // C6
    let place = place();
    for number in 0..60 {
        place.write(&format!("briefs/{number}.md"), format!("Brief {number}.\n"));
    }
    let first = fates(&sweep(&place, &["--dry-run"]).assert_code(0));
    let due = count(&first, "due");
    assert!((3..=25).contains(&due), "{due} of 60");
    assert_eq!(due + count(&first, "not_sampled"), 60);
    assert_eq!(fates(&sweep(&place, &["--dry-run"]).assert_code(0)), first);
    for (path, outcome) in first.iter().take(10) {
        let code = place.run(&["review", path, "--tiered"]).code;
        assert_eq!(code, if outcome == "due" { 0 } else { 6 }, "{path}: a review says the same");
    }
}

#[test]
fn a_dry_run_asks_no_participant_and_writes_nothing() {
    let place = place();
    place.write("drafts/post.md", "One.\n");
    place.answers(&json!({}));
    assert_eq!(fates(&sweep(&place, &["--dry-run"]).assert_code(0))["drafts/post.md"], "due");
    assert!(place.log().is_empty() && place.runs().is_empty());
    assert!(place.run(&["sweep", "--dry-run"]).assert_code(0).stdout.contains("due"));
}

#[test]
fn since_looks_at_when_a_file_was_changed() {
    let place = place();
    place.write("drafts/post-new.md", "New.\n");
    place.write("drafts/post-old.md", "Old.\n");
    let old = std::fs::File::open(place.path("drafts/post-old.md")).unwrap();
    old.set_modified(SystemTime::now() - Duration::from_secs(3 * 86_400)).unwrap();
    let due =
        |since: &str| count(&fates(&sweep(&place, &["--dry-run", "--since", since]).assert_code(0)), "due");
    assert_eq!((due("24h"), due("7d"), due("all"), due("2000-01-01"), due("2999-01-01")), (1, 2, 2, 2, 0));
    assert_eq!(count(&fates(&sweep(&place, &["--dry-run"]).assert_code(0)), "due"), 1, "24h is the default");
}

#[test]
fn more_than_two_hundred_files_are_all_judged() {
    let place = place();
    for number in 0..210 {
        place.write(&format!("drafts/post-{number}.md"), format!("Post {number}.\n"));
    }
    let fates = fates(&sweep(&place, &["--jobs", "16"]).assert_code(0));
    assert_eq!((count(&fates, "judged"), place.log().len()), (210, 210));
    assert_eq!(place.runs().len(), 210);
}

#[test]
fn what_cannot_be_read_is_said_and_the_rest_is_judged() {
    let place = place();
    place.write("drafts/post.md", "One.\n");
    place.write("drafts/post.bin", b"\0\0");
    std::os::unix::fs::symlink("nowhere", place.path("drafts/post-gone.md")).unwrap();
    std::os::unix::fs::symlink(".", place.path("drafts/loop")).unwrap();
    let swept = sweep(&place, &[]).assert_code(3);
    swept.assert_stderr_contains("quorate:watch_unreadable").assert_stderr_contains("briefs");
    let fates = fates(&swept);
    assert_eq!((&*fates["drafts/post.md"], &*fates["drafts/post.bin"]), ("judged", "failed"));
    assert_eq!(fates.len(), 2);
}

#[test]
fn watched_folders_of_which_none_is_there_are_not_a_clean_sweep() {
    let place = place();
    let swept = sweep(&place, &[]).assert_code(3);
    swept.assert_stderr_contains("quorate:watch_unreadable");
    let fates = fates(&swept);
    assert_eq!((fates.len(), count(&fates, "failed")), (2, 2));
    sweep(&place, &["--dry-run"]).assert_code(3);
    // One of them may be missing.
    place.write("drafts/post.md", "One.\n");
    sweep(&place, &[]).assert_code(0);
}

#[test]
fn nothing_to_watch_is_refused() {
    let place = TestDir::scripted(&all_ship());
    place.run(&["sweep"]).assert_code(5);
    place.write("council.yaml", COUNCIL);
    place.run(&["sweep"]).assert_code(5).assert_stderr_contains("watch");
}

#[test]
fn verdicts_do_not_decide_the_exit_code_and_incomplete_does() {
    let place = place();
    place.write("drafts/post.md", "One.\n");
    place.answers(&all_ship_except(json!({"adjudicate": {"verdict": "HOLD", "reasoning": "No."}})));
    assert_eq!(sweep(&place, &[]).assert_code(0).json()["files"][0]["verdict"], "HOLD");
    place.answers(&all_ship_except(json!({"adjudicate": {"$fail": "down"}})));
    let swept = sweep(&place, &["--force"]).assert_code(3);
    assert_eq!(swept.json()["files"][0]["verdict"], "INCOMPLETE");
    assert!(place.run(&["sweep", "--force"]).assert_code(3).stdout.contains("INCOMPLETE"));
}

#[test]
fn the_same_words_twice_are_judged_once() {
    let place = place();
    place.write("drafts/post-1.md", "Same.\n");
    place.write("drafts/post-2.md", "Same.\n");
    let fates = fates(&sweep(&place, &[]).assert_code(0));
    assert_eq!((count(&fates, "judged"), count(&fates, "already_judged")), (1, 1));
}

#[test]
fn two_sweeps_at_once_both_complete() {
    let place = TestDir::scripted_slowly(&all_ship(), "delay = \"2ms\"");
    place.write("council.yaml", format!("{COUNCIL}{RULES}"));
    for number in 0..8 {
        place.write(&format!("drafts/post-{number}.md"), format!("Post {number}.\n"));
    }
    let both: Vec<_> = (0..2).map(|_| place.start(&["sweep", "--format", "json"])).collect();
    let judged: usize =
        both.into_iter().map(|child| count(&fates(&finish(child).assert_code(0)), "judged")).sum();
    assert!((8..=16).contains(&judged), "{judged}");
    assert_eq!((place.runs().len(), place.log().len()), (judged, judged));
    let mut logged: Vec<String> = place.log().iter().map(|line| line["run"].to_string()).collect();
    logged.sort();
    logged.dedup();
    assert_eq!(logged.len(), judged);
}

#[test]
fn an_interrupted_sweep_goes_on_where_it_was() {
    let place = TestDir::scripted_slowly(&all_ship(), "delay = \"40ms\"");
    place.write("council.yaml", format!("{COUNCIL}{RULES}"));
    for number in 0..6 {
        place.write(&format!("drafts/post-{number}.md"), format!("Post {number}.\n"));
    }
    let child = place.start(&["sweep", "--jobs", "2"]);
    wait_until(Duration::from_secs(20), "the first verdict", || !place.log().is_empty());
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    finish(child).assert_code(130).assert_stderr_contains("interrupted");
    let before = place.log().len();
    let rest = fates(&sweep(&place, &[]).assert_code(0));
    // An outcome that had no line yet when the sweep was interrupted is logged by the next start, and counts as judged.
    let already = count(&rest, "already_judged");
    assert!(already >= before, "{already} of {before}");
    assert_eq!(already + count(&rest, "judged"), 6);
    assert_eq!((place.log().len(), place.runs().len()), (6, 6), "no run is left open and none is held twice");
}

#[test]
fn members_that_are_asked_again_do_not_stall_a_sweep() {
    let place = TestDir::scripted(&all_ship_except(json!({
        "r1/skeptic": ["no JSON", {"would_block": false}],
        "r1/strategy": ["no JSON", {"would_block": false}],
        "r2/evidence": ["no JSON", {"would_block": false, "irreducible": false}],
    })));
    place.write("council.yaml", format!("{COUNCIL}{RULES}"));
    for number in 0..20 {
        place.write(&format!("drafts/post-{number}.md"), format!("Post {number}.\n"));
    }
    assert_eq!(count(&fates(&sweep(&place, &["--jobs", "8"]).assert_code(0)), "judged"), 20);
}
