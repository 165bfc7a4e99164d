//! `quorate github`: a commit of a pull request in a repository of git, and a pull request of a server that plays GitHub's API.

mod api;

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::council::COUNCIL;
use crate::support::{CommandOutput, TestDir, finish, wait_until};
use api::{Api, BOT, SHA, TOKEN, pull};

const HOLDS: &str = "We will never raise prices. Everybody loves it. Studies show that it is the fastest.\n";
const SHIPS: &str = include_str!("../../../../examples/incident-report.md");
const STRICT: &str = "adjudicator: {prompt: 'builtin:adjudicator', verdict_policy: strict}\n";

fn git(place: &TestDir, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(place.root()).env("HOME", place.root()).args(["-c", "user.name=ada"]);
    command.args(["-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"]);
    let output = command.args(arguments).output().expect("git is there");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
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
    write(change);
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-q", "-m", "change"]);
    place
}

fn review(place: &TestDir, more: &[&str]) -> CommandOutput {
    let mut arguments = vec!["github", "review", "drafts/**/*.md"];
    arguments.extend(more);
    let mut command = place.command(&arguments);
    command.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", place.path("summary.md"));
    finish(command.spawn().unwrap())
}

#[test]
fn a_pull_request_brings_texts_and_not_the_council_that_judges_them() {
    let executor = "[defaults]\nexecutor = \"own\"\n[executors.own]\nkind = \"command\"\ncommand = [\"touch\", \"ran\"]\n";
    let base = [("council.yaml", &*strict()), ("drafts/old.md", SHIPS)];
    let place =
        merge(&base, &[("drafts/a/new.md", HOLDS), ("council.yaml", COUNCIL), ("quorate.toml", executor)]);
    let reviewed = review(&place, &[]);
    assert!(reviewed.stdout.contains("policy strict/1"), "{}", reviewed.stdout);
    assert!(reviewed.stdout.contains("the `rubric` executor"), "{}", reviewed.stdout);
    assert!(!reviewed.stdout.contains("old.md"), "{}", reviewed.stdout);
    assert!(!place.path("ran").exists() && !place.path(".quorate").exists());
    assert!(matches!(reviewed.code, 1 | 2), "{reviewed:?}");
}

#[test]
fn verdicts_come_before_findings_and_the_worst_first() {
    let texts = [("drafts/1.md", SHIPS), ("drafts/2.md", HOLDS), ("drafts/3.md", SHIPS), ("other.md", HOLDS)];
    let place = merge(&[], &texts);
    let reviewed = review(&place, &["--reports", "reports"]);
    let lines: Vec<&str> = reviewed.stdout.lines().collect();
    let is_verdict = |line: &&&str| line.contains("title=council%3A");
    assert!(lines[..3].iter().all(|line| is_verdict(&line)), "{lines:#?}");
    assert!(lines[0].contains("file=drafts/2.md") && lines.len() > 3, "{lines:#?}");
    assert_eq!(lines.iter().filter(is_verdict).count(), 3);
    let summary = place.read("summary.md");
    assert!(summary.starts_with("### Quorate: ") && summary.contains("| `drafts/1.md` |"), "{summary}");
    let reviews: Value = serde_json::from_str(&place.read("reports/reviews.json")).unwrap();
    assert_eq!(reviews["exit"], reviewed.code);
    assert_eq!(reviews["reviews"].as_array().unwrap().len(), 3);
    for review in reviews["reviews"].as_array().unwrap() {
        let html = place.read(&format!("reports/{}.html", review["run"].as_str().unwrap()));
        assert!(html.contains(review["verdict"].as_str().unwrap()));
    }
    // As of `quorate review`: milder verdicts pass.
    assert_eq!(review(&place, &["--fail-on", "incomplete"]).code, 0);
}

#[cfg(unix)]
#[test]
fn a_link_of_a_pull_request_is_not_followed() {
    let outside = TestDir::with("secret.md", "We will never tell the password 4711.");
    let place = merge(&[], &[("drafts/fine.md", SHIPS)]);
    std::os::unix::fs::symlink(outside.path("secret.md"), place.path("drafts/link.md")).unwrap();
    std::os::unix::fs::symlink(outside.root(), place.path("reports")).unwrap();
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-q", "--amend", "-m", "change"]);
    let reviewed = review(&place, &["--fail-on", "incomplete"]).assert_code(5);
    assert!(reviewed.stdout.contains("drafts/link.md is no file, but a link"), "{reviewed:?}");
    assert!(place.read("summary.md").contains("| not reviewed | `drafts/link.md` |"));
    assert!(!format!("{reviewed:?}").contains("4711"), "{reviewed:?}");
    // A report would be written where the link leads.
    let refused = review(&place, &["--reports", "reports"]).assert_code(5);
    assert!(refused.stdout.contains("out of the workspace"), "{refused:?}");
    assert!(!outside.path("reviews.json").exists());
}

#[test]
fn what_cannot_be_reviewed_fails() {
    let place = merge(&[], &[("drafts/fine.md", SHIPS), ("drafts/image.md", "a\0b")]);
    let reviewed = review(&place, &[]).assert_code(5);
    let at_file = "::error file=drafts/image.md,line=1,col=1,title=quorate%3Aartifact_binary::";
    assert!(reviewed.stdout.contains(at_file), "{reviewed:?}");
    assert!(place.read("summary.md").contains("| not reviewed | `drafts/image.md` |"));
    let nothing = merge(&[], &[("drafts/fine.txt", SHIPS)]);
    review(&nothing, &[]).assert_code(0).assert_stderr_contains("no text that the patterns choose");
    // Without its base a commit changes everything, or nothing.
    review(&nothing, &["--base", "HEAD~7"]).assert_code(5).assert_stdout_contains("github_unusable");
    review(&TestDir::new(), &[]).assert_code(5).assert_stdout_contains("fetch-depth: 2");
}

/// A checkout of the base, and the event of a workflow that has run for a pull request from this repository.
fn base(head: &str) -> TestDir {
    let place = TestDir::with("council.yaml", strict());
    let run = json!({"event": "pull_request", "head_sha": SHA, "head_branch": "launch", "head_repository": {"full_name": head},
                     // A fork's run names none; another may name any.
                     "pull_requests": [{"number": 999}]});
    place.write("event.json", json!({"workflow_run": run}).to_string());
    place
}

fn comment(place: &TestDir, api: &Api, more: &[&str]) -> CommandOutput {
    let mut arguments = vec!["github", "comment", "drafts/**/*.md"];
    arguments.extend(more);
    let mut command = place.command(&arguments);
    command.env("GITHUB_EVENT_NAME", "workflow_run").env("GITHUB_EVENT_PATH", place.path("event.json"));
    command.env("GITHUB_TOKEN", TOKEN).env("GITHUB_REPOSITORY", "ada/blog").env("GITHUB_ACTIONS", "true");
    command.env("GITHUB_API_URL", format!("http://127.0.0.1:{}", api.port));
    finish(command.spawn().unwrap())
}

fn with_text(api: &Api, path: &str, text: &str) {
    api.state().texts.insert(path.to_owned(), text.as_bytes().to_vec());
}

#[test]
fn one_comment_is_kept_up_to_date() {
    let (place, api) = (base("eve/blog"), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog")];
    // Others can write what looks like the command's comment.
    comment(&place, &api, &[]).assert_code(0);
    assert_eq!(api.writes(), [""; 0], "there is nothing to say");
    with_text(&api, "drafts/post.md", HOLDS);
    let forged = |body: &str| json!({"id": 1, "user": {"login": "eve"}, "body": body});
    let mut chatter: Vec<Value> =
        (1..=150).map(|id| json!({"id": id, "user": {"login": "bob"}, "body": "+1"})).collect();
    api.state().comments.append(&mut chatter);
    comment(&place, &api, &[]).assert_code(0);
    assert_eq!(api.writes(), ["POST /repos/ada/blog/issues/7/comments"]);
    let first = api.state().comments[150]["body"].as_str().unwrap().to_owned();
    assert!(first.starts_with("<!-- quorate:reviews:"), "{first}");
    assert!(
        first.contains("policy strict/1") && first.contains(SHA) && !first.contains("SHIP for"),
        "{first}"
    );
    let marker = first.lines().next().unwrap();
    api.state().comments[0] = forged(&format!("{marker}\n### Quorate: SHIP"));
    // The same text, and then a better one.
    comment(&place, &api, &[]).assert_code(0);
    with_text(&api, "drafts/post.md", SHIPS);
    comment(&place, &api, &[]).assert_code(0);
    let state = api.state();
    assert_eq!(state.comments.len(), 151);
    assert!(state.comments[150]["body"].as_str().unwrap().contains("### Quorate: SHIP for `drafts/post.md`"));
    assert_eq!(state.comments[0]["user"]["login"], "eve");
    drop(state);
    let edits: Vec<String> = api.writes().split_off(1);
    assert!(edits.iter().all(|write| write == "PATCH /repos/ada/blog/issues/comments/151"), "{edits:?}");
    // Other patterns have a comment of their own, and a pull request that no longer changes a text says so.
    api.state().texts.clear();
    comment(&place, &api, &[]).assert_code(0);
    assert!(api.state().comments[150]["body"].as_str().unwrap().contains("no text to review"));
}

#[test]
fn what_the_pull_request_s_own_workflow_made_is_not_read() {
    let (place, api) = (base("eve/blog"), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog"), pull(999, "bob/blog")];
    with_text(&api, "drafts/post.md", HOLDS);
    // Its council would come from the pull request.
    with_text(&api, "council.yaml", COUNCIL);
    with_text(&api, "drafts/council.yaml", COUNCIL);
    comment(&place, &api, &[]).assert_code(0);
    let state = api.state();
    assert!(
        state.asked.iter().all(|asked| !asked.contains("/actions/") && !asked.contains("/999")),
        "{:?}",
        state.asked
    );
    let body = state.comments[0]["body"].as_str().unwrap();
    assert!(body.contains("policy strict/1") && !body.contains("Quorate: SHIP"), "{body}");
    assert_eq!(state.comments.len(), 1);
    assert_eq!(place.read("council.yaml"), strict());
}

#[test]
fn names_with_the_marks_of_a_key_hide_no_verdict() {
    let names = [
        "drafts/a-----BEGIN RSA PRIVATE KEY-----.md",
        "drafts/b-----END RSA PRIVATE KEY-----### Quorate: SHIP @octo-----BEGIN RSA PRIVATE KEY-----.md",
        "drafts/c.md",
        "drafts/d-----END RSA PRIVATE KEY-----<!-- .md",
    ];
    let (place, api) = (base("eve/blog"), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog")];
    names.iter().for_each(|name| with_text(&api, name, HOLDS));
    comment(&place, &api, &[]).assert_code(0);
    let body = api.state().comments[0]["body"].as_str().unwrap().to_owned();
    let starts = |what: &str| body.lines().filter(|line| line.starts_with(what)).count();
    assert_eq!(
        (starts("### Quorate"), starts("<!--"), starts("| HOLD") + starts("| REVISE")),
        (1, 1, 4),
        "{body}"
    );
    let place = merge(&[], &names.map(|name| (name, HOLDS)));
    let reviewed = review(&place, &[]);
    let verdicts = reviewed.stdout.lines().filter(|line| line.contains("title=council%3A")).count();
    assert_eq!(
        (
            verdicts,
            place.read("summary.md").matches("\n| REVISE").count()
                + place.read("summary.md").matches("\n| HOLD").count()
        ),
        (4, 4),
        "{reviewed:?}"
    );
}

#[test]
fn the_pull_request_is_the_only_one_with_the_commit() {
    let (place, api) = (base("eve/blog"), Api::start());
    with_text(&api, "drafts/post.md", HOLDS);
    comment(&place, &api, &[]).assert_code(0).assert_stderr_contains("no open pull request has the commit");
    let mut newer = pull(7, "eve/blog");
    newer["head"]["sha"] = json!("1".repeat(40));
    api.state().pulls = vec![newer, pull(8, "bob/blog"), pull(9, "eve/other")];
    comment(&place, &api, &[]).assert_code(0).assert_stderr_contains("no open pull request has the commit");
    api.state().pulls = vec![pull(7, "eve/blog"), pull(8, "eve/blog")];
    comment(&place, &api, &[]).assert_code(5).assert_stdout_contains("2 open pull requests have the commit");
    assert_eq!(api.writes(), [""; 0]);
    // A commit that is pushed while the texts are listed, or while they are reviewed, has a run of its own.
    api.state().pulls = vec![pull(7, "eve/blog")];
    for reads in [0, 1] {
        api.state().reads_until_push = Some(reads);
        comment(&place, &api, &[]).assert_code(0).assert_stderr_contains("has a newer commit");
    }
    assert_eq!(api.writes(), [""; 0]);
}

#[test]
fn a_fork_s_text_costs_only_what_a_maintainer_allows() {
    let (place, api, model) = (base("eve/blog"), Api::start(), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog")];
    with_text(&api, "drafts/post.md", HOLDS);
    let executor = format!("http://127.0.0.1:{}/v1#judge", model.port);
    let asked = || model.state().asked.len();
    let uncapped = comment(&place, &api, &["--executor", &executor]).assert_code(5);
    uncapped.assert_stdout_contains("needs a cap");
    let capped = ["--executor", &executor, "--max-calls", "9"];
    comment(&place, &api, &capped)
        .assert_code(0)
        .assert_stderr_contains("only once it has the label `quorate`");
    assert_eq!((asked(), api.writes().len()), (0, 0));
    // A label is not spent on a review that cannot begin.
    api.state().pulls[0]["labels"] = json!([{"name": "Quorate"}]);
    let impossible = ["--executor", "anthropic", "--max-calls", "9"];
    comment(&place, &api, &impossible).assert_code(5).assert_stdout_contains("ANTHROPIC_API_KEY");
    assert_eq!(api.writes(), [""; 0]);
    api.state().pulls[0]["labels"] = json!([{"name": "quorate"}]);
    comment(&place, &api, &capped);
    assert!(asked() > 0, "the model is asked");
    assert_eq!(api.writes()[0], "DELETE /repos/ada/blog/issues/7/labels/quorate");
    let before = asked();
    comment(&place, &api, &capped).assert_code(0).assert_stderr_contains("only once it has the label");
    assert_eq!(asked(), before, "a label is for one review");
    // A branch of the repository itself needs none.
    let place = base("ada/blog");
    api.state().pulls = vec![pull(7, "ada/blog")];
    comment(&place, &api, &capped);
    assert!(asked() > before, "the model is asked");
}

#[test]
fn every_text_s_council_counts_for_what_a_review_may_cost() {
    let (place, api) = (base("eve/blog"), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog")];
    with_text(&api, "drafts/a.md", HOLDS);
    with_text(&api, "drafts/z/post.md", HOLDS);
    place.write("drafts/z/council.yaml", format!("{COUNCIL}runtime: {{type: ollama, model: judge}}\n"));
    comment(&place, &api, &[]).assert_code(5).assert_stdout_contains("needs a cap");
    place.write("quorate.toml", "[budget]\ncalls = 9\n");
    // That would be for each text.
    comment(&place, &api, &[]).assert_code(5).assert_stdout_contains("needs a cap");
    comment(&place, &api, &["--max-calls", "9"]).assert_code(0).assert_stderr_contains("has the label");
    assert_eq!(api.writes(), [""; 0]);
    assert!(!place.path(".quorate").exists(), "nothing was reviewed");
}

#[test]
fn a_cap_is_for_all_texts_together() {
    let texts: Vec<String> = (1..=4).map(|at| format!("drafts/{at}.md")).collect();
    let texts: Vec<(&str, &str)> = texts.iter().map(|path| (&**path, SHIPS)).collect();
    let place = merge(&[], &texts);
    let reviewed = review(&place, &["--max-calls", "18", "--reports", "reports"]).assert_code(3);
    let reviews: Value = serde_json::from_str(&place.read("reports/reviews.json")).unwrap();
    let reviews = reviews["reviews"].as_array().unwrap();
    let calls: u64 = reviews.iter().map(|review| review["spent"]["calls"].as_u64().unwrap()).sum();
    assert_eq!(calls, 18, "{reviewed:?}");
    assert_eq!(reviews.iter().filter(|review| review["verdict"] == "SHIP").count(), 2);
    assert_eq!(reviews.iter().filter(|review| review["verdict"] == "INCOMPLETE").count(), 2);
}

#[test]
fn an_earlier_comment_is_withdrawn_where_there_is_no_new_review() {
    let (place, api) = (base("eve/blog"), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog")];
    with_text(&api, "drafts/post.md", SHIPS);
    let says = |words: &str| {
        let state = api.state();
        let body = state.comments[0]["body"].as_str().unwrap();
        assert_eq!(state.comments.len(), 1);
        assert!(body.contains(words), "{body}");
        assert!(words.contains("SHIP") || !body.contains("SHIP"), "{body}");
    };
    comment(&place, &api, &[]).assert_code(0).assert_stdout_contains("SHIP drafts/post.md");
    says("Quorate: SHIP");
    let model = ["--executor", "http://127.0.0.1:1/v1#judge", "--max-calls", "9"];
    comment(&place, &api, &model).assert_code(0);
    says("only once it has the label");
    comment(&place, &api, &[]).assert_code(0);
    says("Quorate: SHIP");
    api.state().pulls.push(pull(8, "eve/blog"));
    comment(&place, &api, &[]).assert_code(5);
    says("2 open pull requests have the commit");
    api.state().pulls.pop();
    comment(&place, &api, &[]).assert_code(0);
    (0..201).for_each(|at| with_text(&api, &format!("drafts/{at}.md"), SHIPS));
    comment(&place, &api, &[]).assert_code(5);
    says("more than 200 texts are changed");
}

#[test]
fn a_link_of_a_pull_request_is_no_text() {
    let (place, api) = (base("eve/blog"), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog")];
    with_text(&api, "drafts/link.md", "../README.md");
    api.state().links.push("drafts/link.md".to_owned());
    comment(&place, &api, &[]).assert_code(5).assert_stdout_contains("no file, but a link");
    assert!(
        api.state().comments[0]["body"].as_str().unwrap().contains("| not reviewed | `drafts/link.md` |")
    );
    // Whether it is a link is not known.
    let api = Api::start();
    api.state().pulls = vec![pull(7, "eve/blog")];
    with_text(&api, "drafts/post.md", SHIPS);
    api.state().unlisted.push("drafts/post.md".to_owned());
    comment(&place, &api, &[]).assert_code(5);
    assert!(!api.state().comments[0]["body"].as_str().unwrap().contains("SHIP"));
}

#[test]
fn a_comment_that_fails_is_tried_again() {
    let (place, api) = (base("eve/blog"), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog")];
    api.state().failures = 1;
    with_text(&api, "drafts/post.md", SHIPS);
    comment(&place, &api, &[]).assert_code(0);
    assert_eq!(api.state().comments.len(), 1);
    api.state().failing_reads = 2;
    with_text(&api, "drafts/post.md", HOLDS);
    comment(&place, &api, &[]).assert_code(0);
    assert!(!api.state().comments[0]["body"].as_str().unwrap().contains("SHIP"));
    api.state().failing_reads = 3;
    comment(&place, &api, &[]).assert_code(5).assert_stdout_contains("503");
}

#[test]
fn the_pull_request_s_own_commit_is_no_base() {
    let place = merge(&[], &[("drafts/post.md", SHIPS)]);
    let reviewed = || {
        let mut command = place.command(&["github", "review", "drafts/*.md"]);
        finish(command.env("GITHUB_EVENT_NAME", "pull_request").spawn().unwrap())
    };
    reviewed().assert_code(5).assert_stderr_contains("not GitHub's merge");
    git(&place, &["checkout", "-q", "-b", "base", "HEAD^1"]);
    git(&place, &["merge", "-q", "--no-ff", "-m", "merge", "@{-1}"]);
    reviewed().assert_code(0).assert_stdout_contains("SHIP");
}

#[test]
fn a_pattern_that_matches_no_path_is_refused() {
    let place = merge(&[], &[("drafts/fine.md", HOLDS)]);
    for pattern in
        ["", " drafts/*.md", "drafts/*.md\r", "./drafts/*.md", "/drafts/*.md", "../*", "drafts/", "!drafts/*"]
    {
        let refused = place.run(&["github", "review", pattern]).assert_code(64);
        refused.assert_stderr_contains("matches no path of a repository");
    }
}

#[test]
fn the_council_of_the_base_is_as_it_was_committed() {
    let base = [("council.yaml", &*strict()), (".gitattributes", "* filter=odd\n"), ("drafts/old.md", SHIPS)];
    let place = merge(&base, &[("drafts/new.md", HOLDS)]);
    let strict = |place: &TestDir| {
        let reviewed = review(place, &[]);
        assert!(reviewed.stdout.contains("policy strict/1"), "{reviewed:?}");
    };
    git(&place, &["config", "filter.odd.smudge", "touch ran; cat"]);
    git(&place, &["config", "filter.odd.required", "true"]);
    strict(&place);
    assert!(!place.path("ran").exists(), "no filter runs");
    git(&place, &["config", "--remove-section", "filter.odd"]);
    git(&place, &["sparse-checkout", "set", "--no-cone", "/drafts/"]);
    assert!(!place.path("council.yaml").exists());
    strict(&place);
}

#[cfg(unix)]
#[test]
fn a_signal_ends_it_and_leaves_nothing() {
    let texts: Vec<String> = (0..150).map(|at| format!("drafts/{at}.md")).collect();
    let texts: Vec<(&str, &str)> = texts.iter().map(|path| (&**path, HOLDS)).collect();
    let place = merge(&[], &texts);
    let temporary = TestDir::new();
    for at in 0..12 {
        let mut command = place.command(&["github", "review", "drafts/*.md"]);
        let child = command.env("TMPDIR", temporary.root()).spawn().unwrap();
        // It has begun once its directories are there.
        wait_until(Duration::from_secs(30), "it begins", || {
            temporary.root().read_dir().unwrap().count() >= 2
        });
        std::thread::sleep(Duration::from_millis(at * 37));
        rustix::process::kill_process(
            rustix::process::Pid::from_child(&child),
            rustix::process::Signal::TERM,
        )
        .unwrap();
        finish(child).assert_code(130);
        assert_eq!(temporary.root().read_dir().unwrap().count(), 0);
    }
}

#[test]
fn a_token_of_another_user_would_add_a_comment_each_time() {
    let (place, api) = (base("ada/blog"), Api::start());
    api.state().pulls = vec![pull(7, "ada/blog")];
    api.state().login = "ada".to_owned();
    with_text(&api, "drafts/post.md", SHIPS);
    comment(&place, &api, &[]).assert_code(5).assert_stdout_contains("--author");
    comment(&place, &api, &["--author", "ada"]).assert_code(0);
    assert_eq!(api.state().comments.len(), 1);
    assert_ne!(api.state().comments[0]["user"]["login"], BOT);
}

#[test]
fn what_lacks_or_fails_is_said() {
    let (place, api) = (base("ada/blog"), Api::start());
    let mut command = place.command(&["github", "comment", "*.md"]);
    command.env("GITHUB_EVENT_NAME", "pull_request").env("GITHUB_EVENT_PATH", place.path("event.json"));
    finish(command.spawn().unwrap()).assert_code(5).assert_stderr_contains("quorate:github_unusable");
    place.write("event.json", "{\"workflow_run\": 1}");
    comment(&place, &api, &[]).assert_code(5).assert_stdout_contains("cannot read the event");
    let place = base("ada/blog");
    api.state().pulls = vec![pull(7, "ada/blog")];
    with_text(&api, "drafts/huge.md", &"a".repeat(3 << 20));
    comment(&place, &api, &[]).assert_code(5);
    assert!(
        api.state().comments[0]["body"].as_str().unwrap().contains("| not reviewed | `drafts/huge.md` |")
    );
    let mut command = place.command(&["github", "comment", "*.md"]);
    command.env("GITHUB_EVENT_NAME", "workflow_run").env("GITHUB_EVENT_PATH", place.path("event.json"));
    command.env("GITHUB_TOKEN", "wrong").env("GITHUB_REPOSITORY", "ada/blog");
    command.env("GITHUB_API_URL", format!("http://127.0.0.1:{}", api.port));
    let refused = finish(command.spawn().unwrap()).assert_code(5);
    refused
        .assert_stderr_contains("GitHub answers 401 Bad credentials")
        .assert_stderr_contains("github_failed");
    // The token goes to nothing that could read it on the way.
    let mut command = place.command(&["github", "comment", "*.md"]);
    command.env("GITHUB_EVENT_NAME", "workflow_run").env("GITHUB_EVENT_PATH", place.path("event.json"));
    command
        .env("GITHUB_TOKEN", TOKEN)
        .env("GITHUB_REPOSITORY", "ada/blog")
        .env("GITHUB_API_URL", "http://api.example");
    finish(command.spawn().unwrap()).assert_code(5).assert_stderr_contains("no https address");
}
