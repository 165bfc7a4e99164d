//! `quorate github`: a commit of a pull request in a repository of git, and a pull request of a server that plays GitHub's API.

mod api;
mod comment;
mod cost;
mod review;

use std::process::Command;

use serde_json::json;

use crate::support::council::COUNCIL;
use crate::support::{CommandOutput, TestDir, finish};
use api::{Api, SHA, TOKEN};

const HOLDS: &str = "We will never raise prices. Everybody loves it. Studies show that it is the fastest. It works everywhere, \
    for everyone, and it always will. Every customer who tried it last year recommends it to all their friends.\n";
const SHIPS: &str = include_str!("../../../../examples/incident-report.md");
const STRICT: &str = "adjudicator: {prompt: 'builtin:adjudicator', verdict_policy: strict}\n";

fn git(place: &TestDir, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(place.root()).env("HOME", place.root()).args(["-c", "user.name=ada"]);
    command.args(["-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"]);
    let output = command.args(arguments).output().expect("git is there");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// A council whose policy is strict and whose members are the rubric's.
fn strict() -> String {
    let council =
        COUNCIL.lines().filter(|line| !line.contains("adjudicator")).map(|line| format!("{line}\n"));
    format!("{}{STRICT}", council.collect::<String>())
}

/// The checked out merge of a pull request: `base` is what the branch has, `change` what the pull request brings.
fn merge(base: &[(&str, &str)], change: &[(&str, &str)]) -> TestDir {
    let place = TestDir::new();
    let write = |files: &[(&str, &str)]| files.iter().for_each(|(name, text)| place.write(name, text));
    git(&place, &["init", "-q"]);
    write(base);
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-q", "--allow-empty", "-m", "base"]);
    git(&place, &["checkout", "-q", "-b", "change"]);
    write(change);
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-q", "-m", "change"]);
    git(&place, &["checkout", "-q", "main"]);
    git(&place, &["merge", "-q", "--no-ff", "-m", "merge", "change"]);
    place
}

fn review(place: &TestDir, more: &[&str]) -> CommandOutput {
    let mut arguments = vec!["github", "review", "drafts/**/*.md"];
    arguments.extend(more);
    let mut command = place.command(&arguments);
    command.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", place.path("summary.md"));
    finish(command.spawn().unwrap())
}

/// A checkout of the base, and the event of a workflow that has run for a pull request from a repository.
fn base(head: &str) -> TestDir {
    let place = TestDir::with("council.yaml", strict());
    let run = json!({"event": "pull_request", "head_sha": SHA, "head_branch": "launch", "head_repository": {"full_name": head},
                     // A fork's run names none; another may name any.
                     "pull_requests": [{"number": 999}]});
    place.write("event.json", json!({"workflow_run": run}).to_string());
    place
}

fn comment(place: &TestDir, api: &Api, more: &[&str]) -> CommandOutput {
    let mut arguments = vec!["drafts/**/*.md"];
    arguments.extend(more);
    finish(comment_command(place, api, &arguments).spawn().unwrap())
}

fn comment_command(place: &TestDir, api: &Api, arguments: &[&str]) -> Command {
    let mut command = place.command(&[&["github", "comment"], arguments].concat());
    command.env("GITHUB_EVENT_NAME", "workflow_run").env("GITHUB_EVENT_PATH", place.path("event.json"));
    command.env("GITHUB_TOKEN", TOKEN).env("GITHUB_REPOSITORY", "ada/blog").env("GITHUB_ACTIONS", "true");
    command.env("GITHUB_API_URL", format!("http://127.0.0.1:{}", api.port));
    command
}

fn with_text(api: &Api, path: &str, text: &str) {
    api.state().texts.insert(path.to_owned(), text.as_bytes().to_vec());
}
