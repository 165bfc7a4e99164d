//! `quorate github comment`.

use serde_json::{Value, json};

use super::api::{Api, BOT, SHA, TOKEN, pull};
use super::{HOLDS, SHIPS, base, comment, comment_command, merge, review, strict, with_text};
use crate::support::council::COUNCIL;
use crate::support::{finish, has_program};

#[test]
fn one_comment_is_kept_up_to_date() {
    if !has_program("git") {
        return;
    }
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
    assert_eq!(edits.len(), 2, "verdicts of the same commit are not taken back first: {edits:?}");
    assert!(edits.iter().all(|write| write == "PATCH /repos/ada/blog/issues/comments/151"), "{edits:?}");
    // Other patterns have a comment of their own, and the comment reports when a pull request no longer changes a text.
    api.state().texts.clear();
    comment(&place, &api, &[]).assert_code(0);
    assert!(api.state().comments[150]["body"].as_str().unwrap().contains("no text to review"));
}

#[test]
fn what_the_pull_request_s_own_workflow_made_is_not_read() {
    if !has_program("git") {
        return;
    }
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
    if !has_program("git") {
        return;
    }
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
    if !has_program("git") {
        return;
    }
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
fn an_earlier_comment_is_withdrawn_where_there_is_no_new_review() {
    if !has_program("git") {
        return;
    }
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
    // Its verdict is of this very commit.
    comment(&place, &api, &model).assert_code(0).assert_stderr_contains("only once it has the label");
    says("Quorate: SHIP");
    api.age_comments();
    comment(&place, &api, &model).assert_code(0);
    says("only once it has the label");
    comment(&place, &api, &[]).assert_code(0);
    says("Quorate: SHIP");
    api.age_comments();
    api.state().pulls.push(pull(8, "eve/blog"));
    comment(&place, &api, &[]).assert_code(5);
    says("2 open pull requests have the commit");
    api.state().pulls.pop();
    comment(&place, &api, &[]).assert_code(0);
    api.age_comments();
    (0..201).for_each(|at| with_text(&api, &format!("drafts/{at}.md"), SHIPS));
    comment(&place, &api, &[]).assert_code(5);
    says("more than 200 texts are changed");
}

#[test]
fn a_link_of_a_pull_request_is_no_text() {
    if !has_program("git") {
        return;
    }
    let (place, api) = (base("eve/blog"), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog")];
    with_text(&api, "drafts/link.md", "../README.md");
    api.state().links.push("drafts/link.md".to_owned());
    comment(&place, &api, &[]).assert_code(5).assert_stdout_contains("drafts/link.md is a link");
    assert!(
        api.state().comments[0]["body"].as_str().unwrap().contains("| not reviewed | `drafts/link.md` |")
    );
    // In a large repository not all files are listed.
    let api = Api::start();
    api.state().pulls = vec![pull(7, "eve/blog")];
    with_text(&api, "drafts/de/post.md", SHIPS);
    with_text(&api, "drafts/de/link.md", SHIPS);
    api.state().unlisted = vec!["drafts/de/post.md".to_owned(), "drafts/de/link.md".to_owned()];
    api.state().links.push("drafts/de/link.md".to_owned());
    comment(&place, &api, &[]).assert_code(5);
    let body = api.state().comments[0]["body"].as_str().unwrap().to_owned();
    assert!(body.contains("| SHIP | `drafts/de/post.md` |"), "{body}");
    assert!(body.contains("| not reviewed | `drafts/de/link.md` |"), "{body}");
}

#[test]
fn a_comment_that_fails_is_tried_again() {
    if !has_program("git") {
        return;
    }
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
    // GitHub says when.
    api.state().failing_reads = 3;
    api.state().retry_after = Some(0);
    comment(&place, &api, &[]).assert_code(0);
    api.state().failing_reads = 4;
    comment(&place, &api, &[]).assert_code(5).assert_stdout_contains("503");
    api.state().retry_after = None;
    // A forbidden request is not repeated.
    api.age_comments();
    api.state().is_forbidden = true;
    let before = api.state().asked.len();
    comment(&place, &api, &[]).assert_code(5).assert_stdout_contains("Resource not accessible");
    let asked = api.state().asked.split_off(before);
    let patches = asked.iter().filter(|asked| asked.starts_with("PATCH")).count();
    assert_eq!(patches, 1, "{asked:?}");
}

#[test]
fn a_token_of_another_user_would_add_a_comment_each_time() {
    if !has_program("git") {
        return;
    }
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
    if !has_program("git") {
        return;
    }
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
    finish(command.spawn().unwrap()).assert_code(5).assert_stderr_contains("not an https address");
}

#[test]
fn a_link_in_place_of_a_folder_cannot_be_reviewed() {
    if !has_program("git") {
        return;
    }
    let (place, api) = (base("eve/blog"), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog")];
    api.state().folders.push("drafts".to_owned());
    comment(&place, &api, &[]).assert_code(5).assert_stdout_contains("drafts is a link");
    assert!(api.state().comments[0]["body"].as_str().unwrap().contains("not reviewed for `drafts`"));
    api.state().folders = vec!["other".to_owned()];
    comment(&place, &api, &[]).assert_code(0).assert_stdout_contains("no file of the repository matches");
}

#[test]
fn every_comment_with_the_mark_says_the_same() {
    if !has_program("git") {
        return;
    }
    let (place, api) = (base("eve/blog"), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog")];
    with_text(&api, "drafts/post.md", SHIPS);
    comment(&place, &api, &[]).assert_code(0);
    let mut second = api.state().comments[0].clone();
    second["id"] = json!(2);
    api.state().comments.push(second);
    with_text(&api, "drafts/post.md", HOLDS);
    comment(&place, &api, &[]).assert_code(0);
    let state = api.state();
    assert_eq!(state.comments[0]["body"], state.comments[1]["body"]);
    assert!(!state.comments[1]["body"].as_str().unwrap().contains("SHIP"));
}

#[cfg(unix)]
#[test]
fn an_interrupted_review_leaves_no_earlier_verdict() {
    if !has_program("git") {
        return;
    }
    let (place, api) = (base("ada/blog"), Api::start());
    api.state().pulls = vec![pull(7, "ada/blog")];
    with_text(&api, "drafts/post.md", SHIPS);
    comment(&place, &api, &[]).assert_code(0);
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::KILL] {
        // A model that does not answer.
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let model = format!("http://{}/v1#judge", listener.local_addr().unwrap());
        let arguments = ["drafts/**/*.md", "--executor", &model, "--max-calls", "9"];
        let child = comment_command(&place, &api, &arguments).spawn().unwrap();
        let asked = listener.accept().unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
        let ended = finish(child);
        drop(asked);
        let body = api.state().comments[0]["body"].as_str().unwrap().to_owned();
        let (code, says) = match signal {
            rustix::process::Signal::TERM => (130, "the review was interrupted"),
            _ => (ended.code, "### Quorate: under review"),
        };
        ended.assert_code(code);
        assert!(body.contains(says) && !body.contains("SHIP"), "{body}");
    }
}

#[test]
fn what_github_does_not_list_is_missed() {
    if !has_program("git") {
        return;
    }
    let (place, api) = (base("eve/blog"), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog")];
    with_text(&api, "drafts/post.md", SHIPS);
    api.state().changed_files = Some(2);
    comment(&place, &api, &[]).assert_code(5).assert_stdout_contains("GitHub lists 1 of 2 changed files");
    api.state().changed_files = Some(1);
    comment(&place, &api, &[]).assert_code(0);
    // A page can be shorter than asked for.
    with_text(&api, "drafts/second.md", SHIPS);
    api.state().changed_files = Some(2);
    api.state().per_page = Some(1);
    comment(&place, &api, &[]).assert_code(0).assert_stdout_contains("SHIP drafts/second.md");
    assert_eq!(api.state().comments.len(), 1);
    // The content is not all of it.
    api.state().cuts_content = true;
    comment(&place, &api, &[]).assert_code(5).assert_stdout_contains("bytes and not");
}

#[test]
fn a_verdict_is_told_where_it_is_not_known_to_be_outdated() {
    if !has_program("git") {
        return;
    }
    let (place, api) = (base("eve/blog"), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog")];
    with_text(&api, "drafts/post.md", SHIPS);
    api.state().reads_until_failure = Some(1);
    api.state().retry_after = Some(0);
    comment(&place, &api, &[]).assert_code(0).assert_stdout_contains("SHIP drafts/post.md");
    assert!(api.state().comments[0]["body"].as_str().unwrap().contains(SHA));
}

#[test]
fn the_order_of_patterns_and_the_case_of_an_author_make_no_new_comment() {
    if !has_program("git") {
        return;
    }
    let (place, api) = (base("eve/blog"), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog")];
    with_text(&api, "drafts/post.md", SHIPS);
    for arguments in [["drafts/*.md", "posts/*.md"], ["posts/*.md", "drafts/*.md"]] {
        let arguments = [&arguments[..], &["--author", "GitHub-Actions[Bot]"]].concat();
        finish(comment_command(&place, &api, &arguments).spawn().unwrap()).assert_code(0);
    }
    assert_eq!(api.state().comments.len(), 1);
}
