//! Several texts in one review, patterns, and what every command takes: help, version, quiet, colour.

use crate::support;
use serde_json::{Value, json};
use support::TestDir;
use support::council::{all_ship, all_ship_except};

const SHIPS: &str = include_str!("../../../../examples/incident-report.md");
const REVISES: &str = include_str!("../../../../examples/launch-post.md");
const HOLDS: &str = include_str!("../../../../examples/pricing-promise.md");

fn posts() -> TestDir {
    let place = TestDir::new();
    place.write("posts/a.md", SHIPS);
    place.write("posts/b.md", HOLDS);
    place.write("posts/c.md", REVISES);
    place
}

fn verdicts(reviews: &Value) -> Vec<(&str, &str)> {
    let text = |value: &'_ Value| -> &'static str { value.as_str().unwrap_or("-").to_owned().leak() };
    let reviews = reviews["reviews"].as_array().expect("a list");
    reviews.iter().map(|one| (text(&one["artifact"]), text(&one["verdict"]))).collect()
}

#[test]
fn each_text_has_its_verdict_and_the_worst_is_the_exit_code() {
    let place = posts();
    let named = ["review", "posts/a.md", "posts/b.md", "posts/c.md", "--format", "json"];
    let reviews = place.run(&named).assert_code(2).json();
    assert_eq!((&reviews["schema"], &reviews["exit"]), (&json!("quorate.reviews/v1"), &json!(2)));
    let all = [("posts/a.md", "SHIP"), ("posts/b.md", "HOLD"), ("posts/c.md", "REVISE")];
    assert_eq!(verdicts(&reviews), all);
    assert_eq!(place.runs().len(), 3, "each is a run of its own");
    assert_eq!(place.log().len(), 3);

    place
        .run(&["review", "posts/a.md", "posts/c.md"])
        .assert_code(1)
        .assert_stderr_contains("REVISE      posts/c.md");
    place.run(&["review", "posts/a.md", "posts/a.md", "posts/c.md", "--fail-on", "hold"]).assert_code(0);
    let twice = place.run(&["review", "posts/a.md", "posts/a.md", "--format", "json"]).assert_code(0).json();
    assert_eq!(
        (&twice["schema"], verdicts(&twice)),
        (&json!("quorate.reviews/v1"), vec![("posts/a.md", "SHIP")])
    );
    let sarif = place.run(&["review", "posts/a.md", "posts/c.md", "--format", "sarif"]).assert_code(1).json();
    assert_eq!(sarif["runs"].as_array().map(Vec::len), Some(2));
    let human = place.run(&["review", "posts/a.md", "posts/b.md"]).assert_code(2).stdout;
    let mut heads: Vec<&str> =
        human.lines().filter_map(|line| line.split_once("  (rubric: ")).map(|(word, _)| word).collect();
    // Long output has its verdict at both ends.
    heads.dedup();
    assert_eq!(heads, ["SHIP", "HOLD"], "{human}");
}

#[test]
fn a_file_stands_for_its_newest_run() {
    let place = posts();
    for text in [HOLDS, SHIPS] {
        place.write("draft.md", text);
        place.run(&["review", "draft.md"]);
    }
    place.run(&["review", "posts/c.md"]);
    let shown = place.run(&["show", "./draft.md", "--format", "json"]).assert_code(0).json();
    assert_eq!((&shown["artifact"], &shown["verdict"]), (&json!("draft.md"), &json!("SHIP")));
    let compared = place.run(&["compare", "draft.md", "--format", "json"]).assert_code(0).json();
    assert_eq!(
        (&compared["a"]["verdict"], &compared["b"]["run"]),
        (&json!("HOLD"), &shown["run"]),
        "{compared:#}"
    );
    place.run(&["show", "posts/a.md"]).assert_code(4).assert_stderr_contains("quorate:run_unknown");
}

#[test]
fn a_file_of_that_name_in_another_folder_is_another_file() {
    let place = TestDir::with("quorate.toml", "");
    for folder in ["docs", "blog", "new"] {
        place.write(&format!("{folder}/post.md"), if folder == "blog" { HOLDS } else { SHIPS });
    }
    place.run_in("docs", &["review", "./post.md"]).assert_code(0);
    place.run_in("blog", &["review", "post.md"]).assert_code(2);
    let shown = |folder: &str, file: &str| place.run_in(folder, &["show", file, "--format", "json"]);
    for (folder, file, verdict) in
        [("docs", "post.md", "SHIP"), ("blog", "../docs/post.md", "SHIP"), (".", "blog/post.md", "HOLD")]
    {
        assert_eq!(shown(folder, file).json()["verdict"], verdict, "{folder} {file}");
    }
    shown("new", "post.md").assert_code(4);
    let decide = ["override", "post.md", "--verdict", "hold", "--reason", "r", "--by", "ada"];
    place.run_in("docs", &decide).assert_code(0);
    assert_eq!(shown("docs", "post.md").json()["override"]["verdict"], "HOLD");
    assert_eq!(shown("blog", "post.md").json()["override"], json!(null));
}

#[test]
fn a_pattern_that_no_shell_expanded_is_expanded() {
    let place = posts();
    place.write("posts/deep/d.md", SHIPS);
    place.write("posts/.hidden.md", SHIPS);
    place.write("elsewhere.md", SHIPS);
    std::os::unix::fs::symlink(place.path("elsewhere.md"), place.path("posts/link.md")).unwrap();
    let named = |pattern: &str| {
        let ran = place.run(&["review", pattern, "--format", "json"]);
        verdicts(&ran.json()).iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(named("posts/*.md"), ["posts/a.md", "posts/b.md", "posts/c.md"]);
    assert_eq!(named("./posts/[ab].md"), ["./posts/a.md", "./posts/b.md"]);
    assert_eq!(named("posts/**/d.md"), ["posts/deep/d.md"], "one that a pattern matches is a list, too");
    let ran = place.run(&["review", "posts/*.md"]).assert_code(2);
    ran.assert_stderr_contains("skipped posts/link.md: it is a link that leads out of the folder");
    place.run(&["review", "posts/link.md"]).assert_code(0);
    place.write("posts/[1].md", SHIPS);
    let alone = place.review(&["posts/[1].md"]);
    assert_eq!(alone["verdict"], "SHIP", "a file of that name is that file: {alone}");
    place
        .run(&["review", "drafts/*.md"])
        .assert_refused(64, "quorate:usage")
        .assert_stderr_contains("`drafts/*.md`");
    place.run(&["review", "posts/[.md"]).assert_refused(64, "quorate:usage");
    place.run(&["review", "-", "-"]).assert_code(64).assert_stderr_contains("named twice");
}

#[test]
fn what_is_missing_refuses_all_before_anybody_is_asked() {
    let place = posts();
    place
        .run(&["review", "posts/a.md", "posts/gone.md"])
        .assert_refused(4, "quorate:artifact_missing")
        .assert_stderr_contains("posts/gone.md");
    place.write("other/quorate.toml", "[defaults]\nexecutor = \"nobody\"\n");
    place.write("other/x.md", SHIPS);
    place.run(&["review", "posts/a.md", "other/x.md"]).assert_code(5).assert_stderr_contains("`nobody`");
    assert!(!place.path(".quorate").exists(), "nothing was begun");
}

#[test]
fn what_its_tier_skips_is_milder_than_any_verdict_but_ship() {
    let place = posts();
    let ran = place
        .run(&["review", "posts/a.md", "posts/b.md", "--tiered", "--format", "json"])
        .assert_code(6)
        .json();
    assert_eq!(ran["reviews"][0]["skipped"]["tier"], 2);
    assert_eq!(ran["reviews"][1]["exit"], 6);
}

#[test]
fn a_review_fits_its_limit_and_full_shows_the_rest() {
    let quote = "The meeting moved";
    let finding = |at: usize| json!({"quote": quote, "issue": format!("Issue {at}, which goes on for a while."), "fix": format!("Fix {at}.")});
    let findings: Vec<Value> = (0..40).map(finding).collect();
    let brief = "Do this. ".repeat(100);
    let place = TestDir::scripted(&all_ship_except(json!({
        "r2": {"would_block": false, "irreducible": false, "score": 4, "findings": findings},
        "adjudicate": {"verdict": "SHIP", "reasoning": "R. ".repeat(200), "revision_brief": brief, "dissent_summary": "No."},
    })));
    let short = place.run(&["review", "draft.md"]).assert_code(0).stdout;
    assert!(short.lines().count() <= 60, "{short}");
    assert_eq!(short.matches("Fix 3.").count(), 1, "{short}");
    let run = place.only_run();
    assert!(short.contains(&format!("quorate show {run}")), "{short}");
    let full = place.run(&["review", "draft.md", "--full"]).assert_code(0).stdout;
    let shown = place.run(&["show", &run, "--full"]).assert_code(0).stdout;
    assert!(shown.contains("ledger .quorate/ledger.db") && shown.contains("built-in"), "{shown}");
    for text in [full, shown] {
        assert!(
            text.contains("Reasoning") && text.contains("what changed") && text.contains("Fix 39."),
            "{text}"
        );
    }
}

#[test]
fn every_command_has_help_a_version_and_the_common_flags() {
    let place = TestDir::scripted(&all_ship());
    let help = place.run(&["help", "review"]).assert_code(0).stdout;
    assert_eq!(help, place.run(&["review", "--help"]).assert_code(0).stdout);
    assert!(place.run(&["help", "ledger", "verify"]).assert_code(0).stdout.contains("quorate ledger verify"));
    let version = env!("CARGO_PKG_VERSION");
    for command in [&["--version"][..], &["review", "--version"], &["ledger", "verify", "-V"]] {
        let said = place.run(command).assert_code(0).stdout;
        assert!(said.trim_end().ends_with(version), "{command:?}: {said}");
    }
    let loud = place.run(&["init", "council", "one"]).assert_code(0);
    let quiet = place.run(&["init", "council", "two", "-q"]).assert_code(0);
    assert!(loud.stderr.contains("next: ") && quiet.stderr.is_empty(), "{}", quiet.stderr);
    assert!(!quiet.stdout.is_empty());
    place
        .run(&["review", "gone.md", "--quiet"])
        .assert_refused(4, "quorate:artifact_missing")
        .assert_stderr_contains("gone.md");
}

#[test]
fn the_flag_for_colours_wins_over_no_color() {
    // `Place` sets NO_COLOR.
    let place = TestDir::scripted(&all_ship());
    let coloured = |arguments: &[&str]| {
        let ran = place.run(arguments);
        format!("{}{}", ran.stdout, ran.stderr).contains('\u{1b}')
    };
    assert!(!coloured(&["review", "draft.md"]));
    assert!(coloured(&["review", "draft.md", "--color", "always"]));
    assert!(coloured(&["--color=always", "help"]));
    assert!(coloured(&["--color=always", "review", "--no-such-flag"]));
    let mut command = place.command(&["review", "draft.md", "--color", "never"]);
    command.env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1");
    let ran = support::CommandOutput::from_output(command.output().unwrap());
    assert!(!ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
    place.run(&["review", "draft.md", "--color", "sometimes"]).assert_code(64);
}
