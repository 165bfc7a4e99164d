//! `quorate github review`.

use std::time::Duration;

use serde_json::Value;

use super::api::SHA;
use super::{HOLDS, SHIPS, git, merge, review, strict};
use crate::support::council::COUNCIL;
use crate::support::{TestDir, finish, has_program, wait_until};

#[test]
fn a_pull_request_brings_texts_and_not_the_council_that_judges_them() {
    if !has_program("git") {
        return;
    }
    let executor = "[defaults]\nexecutor = \"own\"\n[executors.own]\nkind = \"agent-cli\"\ncommand = \"touch\"\nargs = [\"ran\"]\n";
    let base = [("council.yaml", &*strict()), ("drafts/old.md", SHIPS)];
    let place =
        merge(&base, &[("drafts/a/new.md", HOLDS), ("council.yaml", COUNCIL), ("quorate.toml", executor)]);
    let reviewed = review(&place, &["--trust"]);
    assert!(reviewed.stdout.contains("policy strict/1"), "{}", reviewed.stdout);
    assert!(reviewed.stdout.contains("the `rubric` executor"), "{}", reviewed.stdout);
    assert!(!reviewed.stdout.contains("old.md"), "{}", reviewed.stdout);
    assert!(!place.path("ran").exists() && !place.path(".quorate").exists());
    assert!(matches!(reviewed.code, 1 | 2), "{reviewed:?}");
}

#[test]
fn verdicts_come_before_findings_and_the_worst_first() {
    if !has_program("git") {
        return;
    }
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
    if !has_program("git") {
        return;
    }
    let outside = TestDir::with("secret.md", "We will never tell the password 4711.");
    let place = merge(&[], &[("drafts/fine.md", SHIPS)]);
    std::os::unix::fs::symlink(outside.path("secret.md"), place.path("drafts/link.md")).unwrap();
    std::os::unix::fs::symlink(outside.root(), place.path("reports")).unwrap();
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-q", "--amend", "-m", "change"]);
    let reviewed = review(&place, &["--fail-on", "incomplete"]).assert_code(5);
    assert!(reviewed.stdout.contains("drafts/link.md is a link"), "{reviewed:?}");
    assert!(place.read("summary.md").contains("| not reviewed | `drafts/link.md` |"));
    assert!(!format!("{reviewed:?}").contains("4711"), "{reviewed:?}");
    // A report would be written where the link leads.
    let refused = review(&place, &["--reports", "reports"]).assert_code(5);
    assert!(refused.stdout.contains("out of the workspace"), "{refused:?}");
    assert!(!outside.path("reviews.json").exists());
}

#[test]
fn what_cannot_be_reviewed_fails() {
    if !has_program("git") {
        return;
    }
    let place = merge(&[], &[("drafts/fine.md", SHIPS), ("drafts/image.md", "a\0b")]);
    let reviewed = review(&place, &[]).assert_code(5);
    let at_file = "::error file=drafts/image.md,line=1,col=1,title=quorate%3Aartifact_binary::";
    assert!(reviewed.stdout.contains(at_file), "{reviewed:?}");
    assert!(place.read("summary.md").contains("| not reviewed | `drafts/image.md` |"));
    let nothing = merge(&[], &[("drafts/fine.txt", SHIPS)]);
    review(&nothing, &[]).assert_code(0).assert_stderr_contains("no text that the patterns choose");
    // Without its base a commit changes everything, or nothing.
    review(&nothing, &["--base", "HEAD~7"]).assert_code(5).assert_stdout_contains("github_unusable");
    review(&TestDir::new(), &[]).assert_code(5).assert_stdout_contains("a checkout of the pull request");
    let shallow = TestDir::new();
    git(&shallow, &["clone", "-q", "--depth=1", &format!("file://{}", place.root().display()), "."]);
    review(&shallow, &[]).assert_code(5).assert_stdout_contains("fetch-depth: 2");
}

#[test]
fn a_cap_is_for_all_texts_together() {
    if !has_program("git") {
        return;
    }
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
fn the_pull_request_s_own_commit_is_no_base() {
    if !has_program("git") {
        return;
    }
    let place = merge(&[], &[("drafts/post.md", SHIPS)]);
    let in_event = |event: &str, commit: &str| {
        let mut command = place.command(&["github", "review", "drafts/*.md"]);
        finish(command.env("GITHUB_EVENT_NAME", event).env("GITHUB_SHA", commit).spawn().unwrap())
    };
    let merged = git(&place, &["rev-parse", "HEAD"]);
    in_event("pull_request", merged.trim()).assert_code(0).assert_stdout_contains("SHIP");
    // A pull request can have merges of its own.
    in_event("pull_request", SHA).assert_code(5).assert_stderr_contains("not GitHub's merge");
    in_event("push", merged.trim()).assert_code(5).assert_stderr_contains("in an event `push`");
    git(&place, &["checkout", "-q", "change"]);
    review(&place, &[]).assert_code(5).assert_stdout_contains("not GitHub's merge");
    review(&place, &["--base", "main^1"]).assert_code(0).assert_stdout_contains("SHIP");
    review(&place, &["--base", "^main"]).assert_code(5).assert_stdout_contains("expected one object");
    // The parents that `.git/info/grafts` names are not those that were committed.
    git(&place, &["checkout", "-q", "main"]);
    place.write(".git/info/grafts", format!("{} {}\n", merged.trim(), merged.trim()));
    review(&place, &[]).assert_code(0).assert_stdout_contains("SHIP");
}

#[test]
fn a_link_or_repository_in_place_of_a_folder_cannot_be_reviewed() {
    if !has_program("git") {
        return;
    }
    let place = merge(&[("drafts/a.md", SHIPS), ("real/a.md", SHIPS)], &[("other.md", SHIPS)]);
    git(&place, &["rm", "-q", "-r", "drafts"]);
    git(&place, &["update-index", "--add", "--cacheinfo", &format!("160000,{SHA},drafts")]);
    git(&place, &["commit", "-q", "--amend", "-m", "change"]);
    let reviewed = review(&place, &["--fail-on", "incomplete"]).assert_code(5);
    assert!(reviewed.stdout.contains("drafts is a link or another repository, not a file"), "{reviewed:?}");
    // A link elsewhere is not reviewed.
    finish(place.command(&["github", "review", "real/*.md"]).spawn().unwrap()).assert_code(0);
}

#[test]
fn what_differs_from_any_common_commit_is_changed() {
    if !has_program("git") {
        return;
    }
    let place = TestDir::new();
    let commit = |text: &str| {
        place.write("drafts/a.md", text);
        git(&place, &["add", "-A"]);
        git(&place, &["commit", "-q", "--allow-empty", "-m", "commit"]);
    };
    git(&place, &["init", "-q"]);
    commit(HOLDS);
    // Both are merged into each other; then the topic takes the base's better text back.
    git(&place, &["checkout", "-q", "-b", "topic"]);
    git(&place, &["commit", "-q", "--allow-empty", "-m", "topic"]);
    git(&place, &["checkout", "-q", "main"]);
    commit(SHIPS);
    git(&place, &["branch", "better"]);
    git(&place, &["merge", "-q", "--no-ff", "-m", "merge", "topic"]);
    git(&place, &["checkout", "-q", "topic"]);
    git(&place, &["merge", "-q", "--no-ff", "-m", "merge", "better"]);
    commit(HOLDS);
    assert_eq!(git(&place, &["merge-base", "--all", "main", "topic"]).lines().count(), 2);
    let reviewed = review(&place, &["--base", "main"]);
    assert!(reviewed.stdout.contains("file=drafts/a.md"), "{reviewed:?}");
    assert!(matches!(reviewed.code, 1 | 2), "{reviewed:?}");
}

#[test]
fn what_cannot_be_written_is_known_before_anything_is_asked() {
    if !has_program("git") {
        return;
    }
    let place = merge(&[], &[("drafts/a.md", SHIPS), ("reports", "no folder")]);
    let refused = review(&place, &["--reports", "reports"]).assert_code(5);
    assert!(refused.stdout.contains("cannot write") && !refused.stdout.contains("council%3A"), "{refused:?}");
}

#[test]
fn a_person_reads_reviews_and_not_commands() {
    if !has_program("git") {
        return;
    }
    let place = merge(&[], &[("drafts/a.md", HOLDS)]);
    let reviewed = place.run(&["github", "review", "drafts/*.md"]);
    assert!(
        !reviewed.stdout.contains("::") && reviewed.stdout.contains("Next: change what drafts/a.md claims"),
        "{reviewed:?}"
    );
    // Its ledger is gone.
    assert!(!reviewed.stdout.contains("ledger"), "{reviewed:?}");
}

#[test]
fn a_pointer_to_a_text_is_not_judged() {
    if !has_program("git") {
        return;
    }
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n";
    let place = merge(&[], &[("drafts/a.md", pointer)]);
    review(&place, &[]).assert_code(5).assert_stdout_contains("Git LFS pointer");
}

#[test]
fn a_path_with_the_characters_of_a_pattern_is_reviewed() {
    if !has_program("git") {
        return;
    }
    let names = [
        "app/[slug]/page.md",
        "app/[post-id]/page.md",
        "app/[...all]/page.md",
        "docs/{a}.md",
        "docs/what*.md",
    ];
    let texts = names.map(|name| (name, HOLDS));
    let place = merge(&[], &[&texts[..], &[("drafts/a.md", HOLDS)]].concat());
    let run = |patterns: &[&str]| {
        let mut command = place.command(&[&["github", "review"], patterns].concat());
        finish(command.env("GITHUB_ACTIONS", "true").spawn().unwrap())
    };
    for name in names {
        let reviewed = run(&[name]);
        assert!(matches!(reviewed.code, 1 | 2), "{name}: {reviewed:?}");
        assert!(reviewed.stdout.contains(&format!("file={name},")), "{name}: {reviewed:?}");
        assert!(!reviewed.stdout.contains("pattern_unmatched"), "{name}: {reviewed:?}");
    }
    let all = run(&[&names[..], &["drafts/*.md"]].concat());
    assert_eq!(all.stdout.matches("title=council%3A").count(), names.len() + 1, "{all:?}");
    // One that names no file has to be a pattern.
    run(&["app/[post-id]/other.md", "drafts/*.md"]).assert_code(64);
    // In a folder of the checkout, paths are from its root as well.
    let mut command = place.command_in("app", &["github", "review", "drafts/*.md"]);
    let reviewed = finish(command.env("GITHUB_ACTIONS", "true").spawn().unwrap());
    assert!(reviewed.stdout.contains("file=drafts/a.md,"), "{reviewed:?}");
}

#[test]
fn patterns_that_match_nothing_are_told() {
    if !has_program("git") {
        return;
    }
    let place = merge(&[("posts/a.md", SHIPS)], &[("drafts/a.md", SHIPS)]);
    let run = |patterns: &[&str]| {
        let mut command = place.command(&[&["github", "review"], patterns].concat());
        finish(command.env("GITHUB_ACTIONS", "true").spawn().unwrap()).assert_code(0)
    };
    for pattern in ["'drafts/*.md'", "drafts/*.md posts/*.md", "drafts", "~/drafts/*.md"] {
        let warned = run(&[pattern, "drafts/*.md"]);
        let warning = format!(
            "::warning title=quorate%3Apattern_unmatched::no file of the repository matches `{pattern}`"
        );
        assert!(warned.stdout.contains(&warning), "{warned:?}");
        assert_eq!(warned.stdout.matches("pattern_unmatched").count(), 1, "{warned:?}");
    }
    // Unchanged files are there all the same.
    assert!(!run(&["posts/*.md", "drafts/*.md"]).stdout.contains("pattern_unmatched"));
    git(&place, &["rm", "-q", "posts/a.md"]);
    git(&place, &["commit", "-q", "--amend", "-m", "the last post is removed"]);
    assert!(!run(&["posts/*.md"]).stdout.contains("pattern_unmatched"));
}

#[test]
fn what_ends_before_any_review_is_in_the_summary() {
    if !has_program("git") {
        return;
    }
    let place = merge(&[], &[("drafts/a.md", SHIPS)]);
    review(&place, &["--base", "none"]).assert_code(5);
    let summary = place.read("summary.md");
    assert!(summary.starts_with("### Quorate: not reviewed\n") && summary.contains("rev-parse"), "{summary}");
}

#[test]
fn a_ledger_that_is_removed_resumes_nothing() {
    if !has_program("git") {
        return;
    }
    let place = merge(&[], &[("drafts/a.md", SHIPS)]);
    let reviewed = review(&place, &["--max-calls", "3"]).assert_code(3);
    let all = format!("{reviewed:?}{}", place.read("summary.md"));
    assert!(all.contains("INCOMPLETE") && !all.contains("quorate resume"), "{all}");
}

#[test]
fn a_pattern_that_matches_no_path_is_refused() {
    if !has_program("git") {
        return;
    }
    let place = merge(&[], &[("drafts/fine.md", HOLDS)]);
    for pattern in
        ["", " drafts/*.md", "drafts/*.md\r", "./drafts/*.md", "/drafts/*.md", "../*", "drafts/", "!drafts/*"]
    {
        let refused = place.run(&["github", "review", pattern]).assert_code(64);
        let why = if pattern.is_empty() { "a pattern is empty" } else { "matches no path of a repository" };
        refused.assert_stderr_contains(why);
    }
    // As GitHub's own filters of paths have it.
    let refused = place.run(&["github", "review", "drafts/**.md"]).assert_code(64);
    refused.assert_stderr_contains("write 'drafts/**/*.md'");
}

#[test]
fn the_council_of_the_base_is_as_it_was_committed() {
    if !has_program("git") {
        return;
    }
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
    if !has_program("git") {
        return;
    }
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

#[cfg(unix)]
#[test]
fn a_signal_ends_git_too() {
    if !has_program("git") {
        return;
    }
    let place = merge(&[], &[("drafts/a.md", SHIPS)]);
    let (programs, temporary) = (TestDir::new(), TestDir::new());
    // Git, but slow to list a tree.
    let git = "#!/bin/sh\ncase \"$*\" in *ls-tree*) echo $$ > \"$STARTED\"; exec sleep 60;; esac\nexec env PATH=\"$OLD_PATH\" git \"$@\"\n";
    programs.write("git", git);
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(programs.path("git"), executable).unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut command = place.command(&["github", "review", "drafts/*.md"]);
    command.env("PATH", format!("{}:{path}", programs.root().display())).env("OLD_PATH", &path);
    command.env("STARTED", programs.path("started")).env("TMPDIR", temporary.root());
    let child = command.spawn().unwrap();
    wait_until(Duration::from_secs(30), "git lists", || {
        std::fs::read_to_string(programs.path("started")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    let pid: i32 = programs.read("started").trim().parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .unwrap();
    finish(child).assert_code(130);
    assert_eq!(temporary.root().read_dir().unwrap().count(), 0);
    let git = rustix::process::Pid::from_raw(pid).unwrap();
    wait_until(Duration::from_secs(5), "git has ended", || rustix::process::test_kill_process(git).is_err());
}
