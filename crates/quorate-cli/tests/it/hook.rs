//! `quorate hook` and `quorate init wiring`: what other tools call, and the files that have them call it.

mod tools;

use std::io::Write as _;
use std::process::Stdio;

use crate::support::council::{COUNCIL, all_ship, all_ship_except};
use crate::support::{CommandOutput, TestDir, finish, wait_until};
use serde_json::{Value, json};

/// A scripted council that watches `drafts/`.
fn place(answers: &Value) -> TestDir {
    let place = TestDir::scripted(answers);
    place.write(
        "council.yaml",
        format!("{COUNCIL}tier_rules: {{tier_1: {{post: [\"post*\", \"other*\", \"fine*\"]}}, tier_2: {{note: [\"note_*\"]}}}}\nwatch: {{paths: [./drafts/]}}\n"),
    );
    place.write("drafts/post.md", "The meeting moved to Tuesday at ten.\n");
    place
}

fn held() -> Value {
    all_ship_except(json!({
        "r1": {"would_block": true, "score": 1, "block_reason": "It promises too much."},
        "r2": {"would_block": true, "irreducible": true, "score": 1, "block_reason": "It promises too much."},
        "adjudicate": {"verdict": "HOLD", "reasoning": "All block it."},
    }))
}

fn hook(place: &TestDir, host: &str, event: &Value) -> CommandOutput {
    place.run_with_stdin(&["hook", host], event.to_string().as_bytes())
}

fn written(place: &TestDir, file: &str) -> Value {
    json!({"hook_event_name": "PostToolUse", "tool_name": "Write", "cwd": place.root(),
           "tool_input": {"file_path": place.path(file), "content": "the first version"}})
}

fn runs(place: &TestDir) -> usize {
    let listed = place.run(&["runs", "--format", "json"]).assert_code(0).json();
    listed["runs"].as_array().unwrap().len()
}

#[test]
fn claude_is_told_what_does_not_pass_and_nothing_else() {
    let place = place(&held());
    let told = hook(&place, "claude", &written(&place, "drafts/post.md")).assert_code(2);
    assert_eq!(told.stdout, "");
    assert!(
        told.stderr.contains("drafts/post.md: HOLD: ") && told.stderr.contains("quorate show "),
        "{}",
        told.stderr
    );
    // The same content is not judged again, whichever tool sends the event.
    hook(&place, "claude", &written(&place, "drafts/post.md")).assert_code(2);
    let event = json!({"hook_event_name": "afterFileEdit", "file_path": "drafts/post.md", "edits": [],
                       "workspace_roots": [place.root()]});
    let told = hook(&place, "cursor", &event).assert_code(0).json();
    assert!(told["additional_context"].as_str().unwrap().starts_with("drafts/post.md: HOLD: "), "{told}");
    assert_eq!(runs(&place), 1);
    // A passing text prints nothing.
    let milder = ["hook", "claude", "--fail-on", "incomplete"];
    let event = written(&place, "drafts/post.md").to_string();
    let passed = place.run_with_stdin(&milder, event.as_bytes()).assert_code(0);
    assert_eq!((&*passed.stdout, &*passed.stderr), ("", ""));
    // A person has the last word, also against a council that ships.
    place
        .run(&["override", "latest", "--verdict", "ship", "--reason", "It is meant so.", "--by", "Ada"])
        .assert_code(0);
    hook(&place, "claude", &written(&place, "drafts/post.md")).assert_code(0);
    assert_eq!(hook(&place, "cursor", &event_of("drafts/post.md", &place)).assert_code(0).stdout, "");
    place
        .run(&["override", "latest", "--verdict", "hold", "--reason", "It is not.", "--by", "Ada"])
        .assert_code(0);
    hook(&place, "claude", &written(&place, "drafts/post.md")).assert_code(2);
    assert_eq!(runs(&place), 1);
    // Other words are another text.
    place.answers(&all_ship());
    place.write("drafts/post.md", "The meeting moved to Tuesday at eleven.\n");
    hook(&place, "claude", &written(&place, "drafts/post.md")).assert_code(0);
    assert_eq!(runs(&place), 2);
}

fn event_of(file: &str, place: &TestDir) -> Value {
    json!({"file_path": file, "workspace_roots": [place.root()]})
}

#[test]
fn what_is_not_watched_or_not_due_is_left_alone() {
    let place = place(&held());
    place.write("notes.md", "Not a draft.\n");
    place.write("drafts/note_1.md", "A note.\n");
    place.write("picture.png", [0xff_u8, 0xd8, 0, 1].as_slice());
    place.write("elsewhere/secret.md", "Of another folder.\n");
    std::os::unix::fs::symlink(place.path("elsewhere/secret.md"), place.path("drafts/link.md")).unwrap();
    for file in
        ["notes.md", "drafts/note_1.md", "picture.png", "drafts/link.md", "drafts/../notes.md", "gone.md"]
    {
        hook(&place, "claude", &written(&place, file)).assert_code(0);
    }
    // A tool that writes no file.
    hook(&place, "claude", &json!({"tool_name": "Bash", "tool_input": {"command": "ls"}})).assert_code(0);
    assert_eq!(runs(&place), 0);
    // A missing file is not a pass.
    hook(&place, "claude", &written(&place, "drafts/gone.md")).assert_code(4);
    std::fs::remove_dir_all(place.path("drafts")).unwrap();
    hook(&place, "claude", &written(&place, "notes.md")).assert_code(5);
}

#[test]
fn what_cannot_be_judged_is_no_verdict() {
    for event in [
        "",
        "[]",
        "null",
        "{",
        "{}",
        "{\"tool_name\": \"Write\", \"tool_input\": null}",
        "{\"tool_input\": {\"file_path\": 7}}",
    ] {
        let place = place(&all_ship());
        let refused = place.run_with_stdin(&["hook", "claude"], event.as_bytes()).assert_code(64);
        assert!(refused.stderr.contains("not an event of Claude Code"), "{}", refused.stderr);
    }
    // Members that fail: said to the person, with a code that blocks nothing and passes nothing.
    let place = place(&json!({"r1": {"would_block": false, "score": 4}}));
    for (host, code) in [("claude", 1), ("cursor", 1)] {
        let told = hook(&place, host, &event_or_written(host, &place)).assert_code(code);
        assert!(told.stderr.contains("INCOMPLETE") && told.stdout.is_empty(), "{}", told.stderr);
    }
    // Configuration that is not trusted, and one that does not hold.
    let event = written(&place, "drafts/post.md").to_string();
    place.write(
        "quorate.toml",
        "[defaults]\nexecutor = \"own\"\n[executors.own]\nkind = \"agent-cli\"\ncommand = \"touch\"\nargs = [\"ran\"]\n",
    );
    let mut untrusted = place.command(&["hook", "claude"]);
    let mut untrusted = untrusted.env_remove("QUORATE_TRUST").stdin(Stdio::piped()).spawn().unwrap();
    untrusted.stdin.take().unwrap().write_all(event.as_bytes()).unwrap();
    let refused = finish(untrusted).assert_code(5);
    assert!(refused.stderr.contains("quorate trust"), "{}", refused.stderr);
    assert!(!place.path("ran").exists());
    place.write("council.yaml", "deliberators: 7\n");
    hook(&place, "claude", &written(&place, "drafts/post.md")).assert_code(5);
}

fn event_or_written(host: &str, place: &TestDir) -> Value {
    match host {
        "claude" => written(place, "drafts/post.md"),
        _ => event_of("drafts/post.md", place),
    }
}

#[test]
fn named_files_pass_or_fail_together() {
    let place = place(&held());
    place.write("drafts/note_1.md", "A note.\n");
    place.write("other.md", "Named, and not watched.\n");
    let hook = |files: &[&str]| place.run(&[&["hook", "pre-commit"], files].concat());
    // Its tier is not due in a sweep; a file that is named is reviewed.
    assert!(hook(&["drafts/note_1.md"]).assert_code(1).stdout.contains("drafts/note_1.md: HOLD: "));
    let failed = hook(&["drafts/post.md", "other.md"]).assert_code(1);
    for file in ["drafts/post.md", "other.md"] {
        assert!(failed.stdout.contains(&format!("{file}: HOLD: ")), "{}", failed.stdout);
    }
    let (_, command) = failed.stdout.split_once("`quorate ").expect("the command");
    let shown: Vec<&str> = command.split('`').next().unwrap().split(' ').collect();
    place.run(&shown).assert_code(0);
    // An unreadable file fails, and the others are still reviewed.
    place.answers(&all_ship());
    place.write("fine.md", "All is well.\n");
    let failed = hook(&["gone.md", "fine.md"]).assert_code(1);
    assert_eq!(failed.stdout, "SHIP fine.md\n");
    assert!(failed.stderr.contains("quorate:artifact_missing"), "{}", failed.stderr);
}

#[test]
fn wiring_touches_nothing_that_exists_and_leaves_nothing_behind() {
    for tool in ["claude", "claude-plugin", "codex", "cursor", "github", "gitlab", "pre-commit"] {
        let place = TestDir::with("kept/file.txt", "kept");
        place.write("agents/writer/prompt.md", "Write short sentences.\n");
        let wired = place.run(&["init", "wiring", tool]).assert_code(0);
        let files: Vec<&str> = wired.stdout.lines().collect();
        assert!(!files.is_empty());
        place.run(&["check", "--modularity", "."]).assert_code(0);
        // A second time nothing is written.
        assert_eq!(place.run(&["init", "wiring", tool]).assert_code(0).stdout, "");
        // What was changed stays, also when it is removed; the rest goes, with the folders that it had.
        let own = format!("{}\n# mine\n", place.read(files[0]));
        place.write(files[0], &own);
        let again = place.run(&["init", "wiring", tool]).assert_code(0);
        assert!(again.stderr.contains("exists and is not changed; add this to it"), "{}", again.stderr);
        let removed = place.run(&["init", "wiring", tool, "--remove"]).assert_code(0);
        assert!(
            removed.stderr.contains("which was changed: remove the parts that call quorate"),
            "{}",
            removed.stderr
        );
        assert_eq!(removed.stdout.lines().count(), files.len() - 1);
        assert_eq!(place.read(files[0]), own);
        std::fs::remove_file(place.path(files[0])).unwrap();
        place.run(&["init", "wiring", tool]).assert_code(0);
        place.run(&["init", "wiring", tool, "--remove"]).assert_code(0);
        let left: Vec<_> = files.iter().filter(|file| place.path(file).exists()).collect();
        assert!(left.is_empty(), "{left:?}");
        let first = std::path::Path::new(files[files.len() - 1]).components().next().unwrap();
        let folder = place.path(first.as_os_str().to_str().unwrap());
        // The first folder of a changed file was emptied by hand, and not by the command.
        assert!(!folder.is_dir() || folder.read_dir().unwrap().next().is_none(), "{}", folder.display());
    }
}

#[test]
fn wiring_follows_no_link_out_of_the_project() {
    let (place, elsewhere) = (TestDir::new(), TestDir::new());
    std::os::unix::fs::symlink(elsewhere.root(), place.path(".claude")).unwrap();
    place.run(&["init", "wiring", "claude"]).assert_code(5);
    assert!(elsewhere.root().read_dir().unwrap().next().is_none());
    assert!(!place.path(".mcp.json").exists(), "nothing was written");
    // `--remove` does not follow a link either.
    elsewhere.run(&["init", "wiring", "claude"]).assert_code(0);
    std::fs::remove_file(place.path(".claude")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(".claude"), place.path(".claude")).unwrap();
    place.run(&["init", "wiring", "claude", "--remove"]).assert_code(5);
    assert!(elsewhere.path(".claude/settings.json").is_file());
}

#[test]
fn what_is_read_in_a_root_is_not_written_elsewhere() {
    let place = TestDir::new();
    place.write(".git/HEAD", "ref: refs/heads/main\n");
    place.write("blog/draft.md", "Hello.\n");
    for tool in ["github", "gitlab", "pre-commit"] {
        let refused = place.run(&["init", "wiring", tool, "blog"]).assert_code(64);
        refused.assert_stderr_contains(&format!("`quorate init wiring {tool} {}`", place.root().display()));
        place.run(&["init", "wiring", tool]).assert_code(0);
    }
    // A project of an editor can be a folder.
    place.run(&["init", "wiring", "claude", "blog"]).assert_code(0);
    assert!(place.path("blog/.mcp.json").is_file() && !place.path("blog/.github").exists());
}

#[test]
fn a_persons_decision_on_a_text_outlives_other_reviews_of_it() {
    let place = place(&all_ship());
    let hook = |code: i32| place.run(&["hook", "pre-commit", "drafts/post.md"]).assert_code(code);
    let decide = |verdict: &str| {
        place
            .run(&["override", "latest", "--verdict", verdict, "--reason", "So it is.", "--by", "Ada"])
            .assert_code(0);
    };
    hook(0);
    decide("hold");
    assert!(hook(1).stdout.starts_with("HOLD (by Ada): So it is.\n"));
    let event = written(&place, "drafts/post.md").to_string();
    let told = place.run_with_stdin(&["hook", "claude"], event.as_bytes()).assert_code(2);
    assert!(told.stderr.starts_with("HOLD (by Ada): So it is.\n"), "{}", told.stderr);
    // A later review of the text does not lift that, with the same executor or another.
    place.run(&["review", "drafts/post.md"]).assert_code(0);
    place.run(&["review", "drafts/post.md", "--executor", "rubric"]);
    hook(1);
    place.run(&["hook", "pre-commit", "drafts/post.md", "--executor", "rubric"]).assert_code(1);
    // Its last decision counts, and under the name that the text has now.
    decide("ship");
    place.write("drafts/post_2.md", place.read("drafts/post.md"));
    let passed = place.run(&["hook", "pre-commit", "drafts/post_2.md"]).assert_code(0);
    assert_eq!(passed.stdout, "SHIP (by Ada) drafts/post_2.md\n");
}

#[test]
fn a_ledger_that_came_with_a_checkout_lets_nothing_pass() {
    let elsewhere = place(&held());
    elsewhere.run(&["hook", "pre-commit", "drafts/post.md"]).assert_code(1);
    elsewhere
        .run(&["override", "latest", "--verdict", "ship", "--reason", "x", "--by", "Boss"])
        .assert_code(0);
    let place = place(&held());
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .args([elsewhere.path(".quorate"), place.path(".quorate")])
        .status()
        .unwrap();
    assert!(copied.success());
    for _ in 0..2 {
        let refused = place.run(&["hook", "pre-commit", "drafts/post.md"]).assert_code(1);
        assert!(refused.stderr.contains("quorate:ledger_unknown"), "{}", refused.stderr);
        hook(&place, "claude", &written(&place, "drafts/post.md")).assert_code(5);
    }
    // Nor does another command, which writes to it and keeps its checkpoint.
    place.write("other.md", "The meeting moved to Monday.\n");
    place.run(&["review", "other.md"]);
    let refused = place.run(&["hook", "pre-commit", "drafts/post.md"]).assert_code(1);
    assert!(refused.stderr.contains("quorate:ledger_unknown"), "{}", refused.stderr);
    // A person who has looked at it accepts it.
    place.run(&["ledger", "checkpoint"]).assert_code(0);
    place.run(&["hook", "pre-commit", "drafts/post.md"]).assert_code(0);
}

#[test]
fn one_text_is_judged_once_by_hooks_and_sweeps_at_once() {
    let place = place(&held());
    let hooks: Vec<_> = (0..3).map(|_| place.start(&["hook", "pre-commit", "drafts/post.md"])).collect();
    for hook in hooks {
        crate::support::finish(hook).assert_code(1);
    }
    assert_eq!(place.runs().len(), 1);
    for number in 0..3 {
        place.write(&format!("drafts/post-{number}.md"), format!("Meeting {number} moved to Friday.\n"));
    }
    let sweeps: Vec<_> = (0..2).map(|_| place.start(&["sweep", "--since", "all"])).collect();
    for sweep in sweeps {
        crate::support::finish(sweep);
    }
    let judged = place.runs();
    let texts: std::collections::BTreeSet<String> =
        judged.iter().map(|run| run["artifact"].to_string()).collect();
    assert_eq!((judged.len(), texts.len()), (4, 4), "{judged:?}");
}

#[test]
fn names_of_files_forge_no_lines() {
    let place = place(&held());
    let name = "drafts/post\u{1b}[31m\nSHIP other.md";
    place.write(name, "The meeting moved to Friday.\n");
    let failed = place.run(&["hook", "pre-commit", name]).assert_code(1);
    assert!(!failed.stdout.contains('\u{1b}') && !failed.stdout.contains("\nSHIP"), "{}", failed.stdout);
    let hidden =
        place.run_with_stdin(&["hook", "claude"], written(&place, "no\u{1b}[31m.md").to_string().as_bytes());
    assert!(!hidden.stderr.contains('\u{1b}'), "{}", hidden.stderr);
}

#[test]
fn a_first_run_that_is_killed_leaves_a_ledger_that_is_known() {
    let place = place(&all_ship());
    let settings = place.read("quorate.toml");
    place.write("quorate.toml", format!("{settings}delay = \"60s\"\n"));
    let mut killed = place.start(&["hook", "pre-commit", "drafts/post.md"]);
    wait_until(std::time::Duration::from_secs(30), "the run is opened", || {
        place.run(&["runs", "--format", "json"]).stdout.contains("post.md")
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    place.write("quorate.toml", settings);
    place.run(&["hook", "pre-commit", "drafts/post.md"]).assert_code(0);
}
