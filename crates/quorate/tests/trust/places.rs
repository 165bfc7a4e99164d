//! What a checkout would have written or read outside of itself, by names, by links, and by paths that are not there yet.

use std::os::unix::fs::symlink;

use super::support::Place;
use super::{checkout, refused, run};

/// A runtime of a checkout, whose one participant says what a script has.
fn swarm(script: &str, conversation: &str, state: &str) -> String {
    format!(
        "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: talk
participants:
  - {{id: ada, executor: script, role: Help., config: {{path: {script}}}}}
substrate: {{kind: file, path: {conversation}}}
dispatcher: {{kind: round-robin}}
state: {{kind: fs, dir: {state}}}
"
    )
}

const SAYS: &str = r#"{"_": {"content": "hi", "stateUpdate": {"v": 1, "files": {}}}}"#;
const SAY: [&str; 5] = ["run", "swarm.yaml", "--once", "--say", "hello"];

fn outside(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path("outside")).expect("a directory");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

fn with_swarm(script: &str, conversation: &str, state: &str) -> Place {
    let place = checkout(&[("swarm.yaml", &swarm(script, conversation, state)), ("a.json", SAYS)]);
    std::fs::create_dir(place.path("outside")).expect("a directory");
    place.write("outside/secret.md", "The reader's own.\n");
    place
}

#[test]
fn a_runtime_writes_nothing_outside_of_a_checkout() {
    for (conversation, state) in [
        ("../outside/talk.md", "st"),
        ("talk.md", "../outside"),
        ("new/../../outside/talk.md", "st"),
        ("talk.md", "new/../../outside/st"),
    ] {
        let place = with_swarm("a.json", conversation, state);
        refused(&place, &SAY, "swarm.yaml");
        if state == "st" {
            refused(&place, &["say", "swarm.yaml", "hello"], "swarm.yaml");
        }
        assert_eq!(outside(&place), ["secret.md"], "{conversation}, {state}");
        // What is trusted is done.
        run(&place, &["run", "swarm.yaml", "--once", "--say", "hello", "--trust"]).expect(0);
        assert_ne!(outside(&place), ["secret.md"], "{conversation}, {state}");
    }
}

#[test]
fn a_link_leads_no_conversation_and_no_state_out_of_a_checkout() {
    for (link, to) in [("talk.md", "../outside/talk.md"), ("st", "../outside")] {
        let place = with_swarm("a.json", "talk.md", "st");
        symlink(to, place.path(&format!("repo/{link}"))).expect("a link");
        for arguments in [&SAY[..], &["say", "swarm.yaml", "hello"], &["check", "swarm.yaml"]] {
            let refused = run(&place, arguments);
            let said = refused.stdout + &refused.stderr;
            assert!(said.contains("path_outside") && said.contains("by a link"), "{arguments:?}: {said}");
        }
        assert_eq!(outside(&place), ["secret.md"], "{link}");
    }
}

#[test]
fn a_script_takes_no_answers_from_outside() {
    for script in ["../outside", "link", "new/../../outside"] {
        let place = with_swarm(script, "talk.md", "st");
        std::fs::create_dir(place.path("repo/new")).expect("a directory");
        symlink("../outside", place.path("repo/link")).expect("a link");
        refused(&place, &SAY, "swarm.yaml");
    }
    let place = with_swarm("answers", "talk.md", "st");
    std::fs::create_dir(place.path("repo/answers")).expect("a directory");
    symlink("../../outside/secret.md", place.path("repo/answers/_.md")).expect("a link");
    run(&place, &SAY);
    assert!(!place.read("repo/talk.md").contains("The reader's own"));
}

#[test]
fn a_ledger_leads_nowhere_by_a_directory_that_is_not_there_yet() {
    let place = checkout(&[("quorate.toml", "ledger = \"new/../link/l.db\"\n")]);
    std::fs::create_dir(place.path("outside")).expect("a directory");
    symlink("../outside", place.path("repo/link")).expect("a link");
    refused(&place, &["review", "draft.md"], "quorate.toml");
    assert_eq!(outside(&place), [""; 0]);
}

#[test]
fn a_link_leads_no_key_out_of_a_checkout() {
    let place = checkout(&[("quorate.toml", "")]);
    std::fs::create_dir(place.path("outside")).expect("a directory");
    std::fs::create_dir(place.path("repo/.quorate")).expect("a directory");
    symlink("../../outside", place.path("repo/.quorate/keys")).expect("a link");
    for arguments in [&["keys", "init"][..], &["review", "draft.md"]] {
        run(&place, arguments).expect(5).says("a link leads out of the workspace");
    }
    assert_eq!(outside(&place), [""; 0]);
}

#[test]
fn a_sweep_shows_members_nothing_from_outside() {
    let place = checkout(&[("drafts/own_blog_post.md", "The meeting moved to Tuesday at ten.\n")]);
    place.write("outside/secret.md", "The reader's own words about the meeting.\n");
    run(&place, &["init", "council", "."]).expect(0);
    let council = place.read("repo/council.yaml");
    let head = council.split("watch:").next().unwrap_or_default().to_owned();
    let watching = |folder: &str| format!("{head}watch: {{paths: [{folder}]}}\n");
    place.write("repo/council.yaml", watching("../outside"));
    refused(&place, &["sweep", "--since", "all", "--dry-run"], "council.yaml");
    place.write("repo/council.yaml", watching("drafts"));
    symlink("../../outside/secret.md", place.path("repo/drafts/link_blog_post.md")).expect("a link");
    let swept = run(&place, &["sweep", "--since", "all", "--dry-run"]);
    assert!(
        swept.stdout.contains("own_blog_post.md") && !swept.stdout.contains("link_blog_post.md"),
        "{}",
        swept.stdout
    );
    swept.says("leads out of the watched folder");
}
