//! Councils as people have them for the public Python tool, through the real binary.

use crate::support;
use serde_json::{Value, json};
use support::TestDir;
use support::council::{COUNCIL, all_ship, all_ship_except};

/// `verdict_policy` as the public tool's example has it.
const DESCRIBED: &str =
    "builtin:adjudicator, verdict_policy: {ship: nobody blocks, revise: 1-2 would_block, hold: 3+}}";

fn described() -> String {
    COUNCIL.replace("builtin:adjudicator}", DESCRIBED)
}

#[test]
fn a_described_policy_revises_what_the_public_tool_revises() {
    // C13
    let one_block = all_ship_except(json!({"r2/skeptic": {"would_block": true, "irreducible": false}}));
    let two_blocks = all_ship_except(json!({
        "r2/skeptic": {"would_block": true, "irreducible": false},
        "r2/evidence": {"would_block": true, "irreducible": false},
    }));
    let dissent = all_ship_except(json!({"r2/skeptic": {"would_block": false, "irreducible": true}}));
    for (answers, code) in [(one_block, 1), (two_blocks, 1), (dissent, 2), (all_ship(), 0)] {
        let place = TestDir::scripted(&answers);
        place.write("council.yaml", described());
        let report = place.run(&["review", "draft.md", "--format", "json"]).assert_code(code).json();
        assert_eq!(report["policy"], "strict/1");
        // A flag overrides the file.
        place.run(&["review", "draft.md", "--policy", "seed"]).assert_code(0);
    }
    for mapping in ["{\"1-2 would_block\": revise}", "{}"] {
        let place = TestDir::scripted(&all_ship());
        place.write(
            "council.yaml",
            COUNCIL.replace(
                "builtin:adjudicator}",
                &format!("builtin:adjudicator, verdict_policy: {mapping}}}"),
            ),
        );
        assert_eq!(place.review(&["draft.md"])["policy"], "strict/1", "{mapping}");
    }
}

/// Answers in the form that the public tool's prompts ask for.
fn public_answers() -> Value {
    all_ship_except(json!({
        "r1/skeptic": {
            "role": "skeptic", "round": 1, "score": 2, "would_block": true, "irreducible": false,
            "top_3_issues": ["The price has no source."],
            "top_3_failure_modes": ["A buyer asks for the price list."],
            "notes": "Two gaps, both fixable.",
            "revision_brief": "Link the price list.",
        },
        "r2/skeptic": {"role": "skeptic", "round": 2, "score": 2, "would_block": true, "irreducible": false},
        "r1/voice_identity": {
            "score": 3, "would_block": true,
            "voice_violations": [{"line": 1, "rule": "V1", "snippet": "moved to Tuesday", "fix": "Say when."}],
        },
        "adjudicate": {"verdict": "REVISE", "reasoning": "One block.", "revision_brief": null},
    }))
}

#[test]
fn what_public_prompts_ask_for_reaches_brief_log_and_output() {
    let place = TestDir::scripted(&public_answers());
    place.write("council.yaml", described());
    let report = place.run(&["review", "draft.md", "--format", "json"]).assert_code(1).json();
    // The adjudicator says nothing of what to change: the members' own words stand.
    assert_eq!(report["revision_brief"], "skeptic: Link the price list.");
    assert_eq!(report["findings"][0]["quote"], "moved to Tuesday");
    assert_eq!(
        (&report["findings"][0]["issue"], &report["findings"][0]["grounded"]),
        (&json!("V1"), &json!(true))
    );
    let run = report["run"].as_str().expect("an id");
    for format in ["human", "markdown"] {
        let shown = place.run(&["show", run, "--full", "--format", format]).assert_code(0).stdout;
        for said in [
            "The price has no source.",
            "A buyer asks for the price list.",
            "Two gaps, both fixable.",
            "Link the price list.",
        ] {
            assert!(shown.contains(said), "{said}: {shown}");
        }
    }
    let line = &place.log()[0];
    assert_eq!(
        line["deliberators"]["skeptic"]["top_issues"],
        json!(["The price has no source.", "A buyer asks for the price list."])
    );
    assert_eq!(line["deliberators"]["voice_identity"]["top_issues"], json!(["V1"]));
    assert_eq!(line["round1"][0]["notes"], "Two gaps, both fixable.");
    assert_eq!(line["revision_brief"], "skeptic: Link the price list.");
}

/// A judge that keeps the adjudicator's prompt.
const JUDGE: &str = r#"#!/bin/sh
prompt=$(cat)
case "$prompt" in
*"All rounds are over"*)
  printf '%s' "$prompt" > "$0.prompt"
  echo '{"verdict": "SHIP", "reasoning": "Nothing."}' ;;
*)
  echo '{"score": 3, "would_block": false, "irreducible": false, "top_3_issues": ["The price has no source."],
    "top_3_failure_modes": ["A buyer asks."], "notes": "Two gaps.", "revision_brief": "Link the list."}' ;;
esac
"#;

#[test]
fn the_adjudicator_reads_what_public_prompts_ask_for() {
    for cross_read in ["true", "false", "findings"] {
        let place = TestDir::with("draft.md", "The meeting moved to Tuesday.\n");
        place.write("judge.sh", JUDGE);
        place.write(
            "council.yaml",
            format!("{COUNCIL}runtime: {{type: agent-cli, command: /bin/sh, args: [judge.sh]}}\nprotocol: {{cross_read: {cross_read}}}\n"),
        );
        place.run(&["review", "draft.md"]).assert_code(0);
        let prompt = place.read("judge.sh.prompt");
        for said in ["The price has no source.", "A buyer asks.", "Two gaps.", "Link the list."] {
            // Once in each round, from each of four.
            assert_eq!(prompt.matches(said).count(), 8, "{cross_read}: {said}");
        }
    }
}

#[test]
fn the_mock_takes_the_keys_of_its_own_example() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday.\n");
    let runtime = "runtime: {type: mock_cli, binary: '', model: some-model, flags: [], invocation_pattern: stdin, timeout_seconds: 30}\n";
    place.write("council.yaml", format!("{COUNCIL}{runtime}"));
    place.run(&["check", "council.yaml"]).assert_code(0);
    assert_eq!(place.review(&["draft.md"])["executor"], "mock_cli");
    place.write(
        "council.yaml",
        format!("{COUNCIL}{}", runtime.replace("binary", "binry").replace("model:", "modle:")),
    );
    for arguments in [&["check", "council.yaml"][..], &["review", "draft.md"]] {
        let ran = place.run(arguments);
        let said = ran.stdout.clone() + &ran.stderr;
        assert!(ran.code != 0 && said.contains("unknown keys `binry`, `modle`"), "{said}");
    }
}

/// A line as the public tool writes it.
fn public_line(day: u32, verdict: &str, overridden: bool) -> String {
    let line = json!({
        "v": 2, "span_id": format!("council-{day}-{verdict}"), "event": "verdict", "agent": "council",
        "ts": format!("2026-05-{day:02}T10:00:00Z"), "artifact_type": "post", "verdict": verdict,
        "reasoning": "Because.", "parth_override": overridden, "tokens": {"total": 1000},
        "deliberators": {"skeptic": {"r1_score": 2, "r1_would_block": true, "r2_score": 3, "r2_would_block": false,
            "r2_irreducible": false, "schema_failed": false, "reprompts": 1, "error": null}},
    });
    format!("{line}\n")
}

#[test]
fn lines_that_were_overridden_keep_their_verdict_and_are_priors() {
    let place = TestDir::scripted(&all_ship());
    place.write("council.yaml", format!("{COUNCIL}logging: {{log_path: log.jsonl}}\n"));
    place.write("log.jsonl", public_line(11, "HOLD", true) + &public_line(12, "REVISE", false));
    let report = place.review(&["draft.md", "--type", "post"]);
    assert_eq!(report["prior_verdicts_consulted"], 2);
    let audit = place.run(&["audit", "--format", "json"]).assert_code(0).json();
    assert_eq!((&audit["reviews"], &audit["overrides"]), (&json!(3), &json!(1)));
    assert_eq!(audit["verdicts"]["post"], json!({"HOLD": 1, "REVISE": 1, "SHIP": 1}));
}

#[test]
fn a_review_that_was_overridden_twice_counts_once() {
    let place = TestDir::scripted(&all_ship());
    let run = place.review(&["draft.md"])["run"].as_str().expect("an id").to_owned();
    for verdict in ["hold", "revise"] {
        place
            .run(&["override", &run, "--by", "ada", "--verdict", verdict, "--reason", "Legal agrees."])
            .assert_code(0);
    }
    let audit = place.run(&["audit", "--format", "json"]).assert_code(0).json();
    assert_eq!(
        (&audit["reviews"], &audit["overrides"], &audit["override_rate"]),
        (&json!(1), &json!(1), &json!(1.0))
    );
}

#[test]
fn any_log_is_audited_by_itself() {
    let place = TestDir::new();
    let weeks = [(4, ["SHIP"; 5]), (11, ["SHIP", "SHIP", "SHIP", "REVISE", "REVISE"]), (18, ["HOLD"; 5])];
    let lines = weeks
        .iter()
        .flat_map(|(day, verdicts)| verdicts.iter().map(|verdict| public_line(*day, verdict, false)));
    place.write("there/council_log.jsonl", lines.collect::<String>());
    let log = ["audit", "--log", "there/council_log.jsonl"];
    let audit = place.run(&[&log[..], &["--format", "json"]].concat()).assert_code(0).json();
    assert_eq!((&audit["reviews"], &audit["tokens"]), (&json!(15), &json!(15_000)));
    let skeptic = &audit["deliberators"][0];
    assert_eq!(
        (&skeptic["avg_r1_score"], &skeptic["avg_r2_score"], &skeptic["reprompts"]),
        (&json!(2.0), &json!(3.0), &json!(15))
    );
    assert_eq!(
        audit["drift"],
        json!([{"artifact_type": "post", "direction": "tightening", "weeks": ["2026-05-04", "2026-05-11", "2026-05-18"],
            "means": [1.0, 0.8, 0.0]}])
    );
    // The line may be wrapped there.
    let human = place.run(&log).assert_code(0).stdout.replace('\n', " ");
    assert!(human.contains("post is tightening"), "{human}");
    // A report goes to a file, and not over what it was counted from.
    let said =
        place.run(&[&log[..], &["--format", "markdown", "--output", "audit.md"]].concat()).assert_code(0);
    assert!(said.stdout.is_empty() && place.read("audit.md").contains("| skeptic | 15 |"), "{said:?}");
    place.run(&[&log[..], &["--out", "audit.md"]].concat()).assert_code(0);
    place
        .run(&[&log[..], &["--output", "there/../there/council_log.jsonl"]].concat())
        .assert_refused(5, "quorate:file_unwritable");
    place
        .run(&["audit", "--log", "nowhere.jsonl"])
        .assert_refused(4, "quorate:file_unreadable")
        .assert_stderr_contains("nowhere.jsonl");
    assert!(!place.path(".quorate").exists(), "no ledger is made");
    // Nor over a ledger, wherever it lies.
    let place = TestDir::scripted(&all_ship());
    place.run(&["review", "draft.md", "--ledger", "kept.db"]).assert_code(0);
    let before = std::fs::read(place.path("kept.db")).expect("a ledger");
    place
        .run(&["audit", "--ledger", "kept.db", "--output", "kept.db"])
        .assert_refused(5, "quorate:file_unwritable");
    place.run(&["audit", "--ledger", "kept.db", "--output", "quorate.toml"]).assert_code(5);
    assert_eq!(std::fs::read(place.path("kept.db")).expect("a ledger").len(), before.len());
}

/// A judge that says what its answer took.
const METERED: &str = r#"#!/bin/sh
cat > /dev/null
echo '{"type": "result", "subtype": "success", "is_error": false, "usage": {"input_tokens": 10, "output_tokens": 5},
  "result": "{\"verdict\": \"SHIP\", \"reasoning\": \"Fine.\", \"would_block\": false, \"irreducible\": false}"}'
"#;

#[test]
fn log_lines_say_what_was_spent_in_tokens() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday.\n");
    place.write("judge.sh", METERED);
    let runtime = "runtime: {type: agent-cli, command: /bin/sh, args: [judge.sh], output: claude-json}\n";
    place.write("council.yaml", format!("{COUNCIL}{runtime}"));
    place.run(&["review", "draft.md"]).assert_code(0);
    assert_eq!(place.log()[0]["tokens"], json!({"total": 135, "in": 90, "out": 45}));
    let audit = place.run(&["audit", "--format", "json"]).assert_code(0).json();
    assert_eq!((&audit["tokens"], &audit["tokens_per_review"]), (&json!(135), &json!(135.0)));
    // A missing count is null, not zero.
    let silent = TestDir::scripted(&all_ship());
    silent.run(&["review", "draft.md"]).assert_code(0);
    assert_eq!(silent.log()[0]["tokens"], Value::Null);
    assert_eq!(silent.run(&["audit", "--format", "json"]).assert_code(0).json()["tokens"], Value::Null);
}

#[test]
fn context_documents_are_tried_from_the_working_directory() {
    let place = TestDir::scripted(&all_ship());
    let council = COUNCIL.replace("builtin:skeptic}", "builtin:skeptic, context_refs: [docs/voice.md]}");
    place.write("cfg/council.yaml", &council);
    let review = ["review", "draft.md", "--config", "cfg/council.yaml"];
    place.run(&review).assert_code(5).assert_stderr_contains("docs/voice.md");
    place.write("docs/voice.md", "Short sentences.\n");
    place.run(&review).assert_code(0);
    place.run(&["check", "cfg/council.yaml"]).assert_code(0);
    // Beside the council comes first, and only the working directory is searched.
    place.run_in("cfg", &["review", "../draft.md", "--config", "council.yaml"]).assert_code(5);
    // A link that leads out of the workspace is not followed.
    let outside = TestDir::with("secret.md", "The secret.\n");
    std::fs::remove_file(place.path("docs/voice.md")).expect("it was there");
    std::os::unix::fs::symlink(outside.path("secret.md"), place.path("docs/voice.md")).expect("a link");
    place.run(&review).assert_code(5).assert_stderr_contains("quorate:context_missing");
    place.write(
        "cfg/council.yaml",
        council.replace("docs/voice.md", outside.path("secret.md").to_str().expect("a path")),
    );
    let mut untrusted = place.command(&review);
    untrusted.env_remove("QUORATE_TRUST");
    support::finish(untrusted.spawn().expect("the binary runs"))
        .assert_code(5)
        .assert_stderr_contains("quorate:workspace_untrusted");
}

#[test]
fn tier_rules_may_stand_in_a_file_of_the_workspace() {
    let place = TestDir::scripted(&all_ship());
    place.write("council.yaml", format!("{COUNCIL}tier_rules: ./rules.yaml\n"));
    place.write("rules.yaml", "tier_1:\n  note: ['draft*']\n");
    let report = place.review(&["draft.md"]);
    assert_eq!((&report["artifact_type"], &report["tier"]), (&json!("note"), &json!(1)));
    place.write("rules.yaml", "tier_1: {note: 'draft*'}\n");
    place.run(&["review", "draft.md"]).assert_code(5).assert_stderr_contains("rules.yaml:1");
    // Diagnostics quote a file's lines, so it has to be the workspace's.
    std::fs::remove_file(place.path("rules.yaml")).expect("it was there");
    std::os::unix::fs::symlink("/etc/passwd", place.path("rules.yaml")).expect("a link");
    for written in ["./rules.yaml", "/etc/passwd", "../../../../../../etc/passwd"] {
        place.write("council.yaml", format!("{COUNCIL}tier_rules: {written}\n"));
        for arguments in [&["review", "draft.md"][..], &["check", "council.yaml"], &["trust", "--list"]] {
            let ran = place.run(arguments);
            assert!(!(ran.stdout.clone() + &ran.stderr).contains("root:"), "{ran:?}");
        }
        place.run(&["review", "draft.md"]).assert_code(5).assert_stderr_contains("outside of the workspace");
    }
}

const WATCH: &str = "tier_rules: {tier_1: {post: ['*post*']}}\nwatch: {paths: [./drafts/]}\n";

#[test]
fn a_sweep_shows_the_first_issue_of_each_file() {
    let place = TestDir::scripted(&all_ship_except(json!({
        "r2/skeptic": {"would_block": true, "irreducible": true,
            "findings": [{"quote": "Tuesday", "issue": "Which one?", "fix": "Give the date."}]},
    })));
    place.write("council.yaml", described() + WATCH);
    place.write("drafts/post.md", "It moved to Tuesday.\n");
    let swept = place.run(&["sweep", "--format", "json"]).assert_code(0).json();
    assert_eq!(swept["files"][0]["fix_first"], "line 1: Give the date.");
    let said = place.run(&["sweep", "--force"]).assert_code(0).stdout;
    assert!(said.starts_with("HOLD  drafts/post.md  1:13 Which one?"), "{said}");
}

#[test]
fn an_interrupted_sweep_prints_the_verdicts_that_it_has() {
    let place = TestDir::scripted_slowly(&all_ship(), "delay = \"60ms\"");
    place.write("council.yaml", format!("{COUNCIL}{WATCH}"));
    for number in 0..8 {
        place.write(&format!("drafts/post-{number}.md"), format!("Post {number}.\n"));
    }
    let child = place.start(&["sweep", "--jobs", "1", "--format", "json"]);
    support::wait_until(std::time::Duration::from_secs(20), "two verdicts", || place.log().len() >= 2);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is there");
    let swept = support::finish(child).assert_code(130).json();
    let judged = swept["files"].as_array().expect("a list");
    assert!(!judged.is_empty() && judged.iter().all(|one| one["verdict"] == "SHIP"), "{swept}");
}

/// The words of a listing of runs.
fn listed(place: &TestDir, arguments: &[&str]) -> Vec<(String, String)> {
    let listed = place.run(&[&["runs", "--format", "json"], arguments].concat()).assert_code(0).json();
    let text = |one: &Value, key: &str| one[key].as_str().unwrap_or("open").to_owned();
    let runs = listed["runs"].as_array().expect("a list").iter();
    runs.map(|one| (text(one, "artifact"), text(one, "verdict"))).collect()
}

#[test]
fn runs_are_listed_by_verdict_type_and_time() {
    let place = TestDir::scripted(&all_ship());
    place.run(&["review", "draft.md", "--type", "post"]).assert_code(0);
    place.answers(&all_ship_except(json!({"adjudicate": {"verdict": "HOLD", "reasoning": "No."}})));
    place.write("memo.md", "A memo.\n");
    place.run(&["review", "memo.md", "--type", "memo"]).assert_code(2);
    let run = |path: &str, verdict: &str| (path.to_owned(), verdict.to_owned());
    assert_eq!(listed(&place, &["--verdict", "Hold"]), [run("memo.md", "HOLD")]);
    assert_eq!(listed(&place, &["--type", "post"]), [run("draft.md", "SHIP")]);
    assert_eq!(listed(&place, &["--type", "post", "--verdict", "hold"]), []);
    assert_eq!(listed(&place, &["--since", "1h"]).len(), 2);
    assert_eq!(listed(&place, &["--since", "2099-01-01"]), []);
    assert_eq!(listed(&place, &["--verdict", "open"]), []);
    assert!(place.run(&["runs", "--type", "none"]).assert_code(0).stdout.contains("No run fits."));
}

#[test]
fn an_open_run_whose_draft_changed_is_closed_as_superseded() {
    let place = TestDir::scripted_slowly(&all_ship(), "delay = \"400ms\"");
    let mut child = place.start(&["review", "draft.md"]);
    support::wait_until(std::time::Duration::from_secs(20), "a run", || {
        place.path(".quorate/ledger.db").exists() && place.runs().len() == 1
    });
    child.kill().expect("it is there");
    child.wait().expect("it ended");
    let open = place.only_run();
    assert_eq!(listed(&place, &["--verdict", "open"]).len(), 1);
    // The same text is still to be gone on with.
    place.write("quorate.toml", place.read("quorate.toml").replace("delay = \"400ms\"", ""));
    place.run(&["review", "other.md"]).assert_code(4);
    place.write("draft.md", "It moved to Wednesday.\n");
    place.run(&["review", "draft.md"]).assert_code(0);
    assert_eq!(listed(&place, &["--verdict", "open"]), []);
    assert_eq!(
        listed(&place, &["--verdict", "superseded"]),
        [("draft.md".to_owned(), "SUPERSEDED".to_owned())]
    );
    let shown = place.run(&["show", &open, "--full"]).assert_code(0).stdout;
    let is_verdict = |line: &str| line.starts_with("SUPERSEDED");
    assert!(shown.lines().any(is_verdict) && !shown.contains("resume"), "{shown}");
    place.run(&["resume", &open]).assert_code(5).assert_stderr_contains("SUPERSEDED");
    place.run(&["replay", &open]).assert_code(0);
    place.run(&["ledger", "verify"]).assert_code(0);
    // It is not a review.
    assert_eq!(place.run(&["audit", "--format", "json"]).assert_code(0).json()["reviews"], 1);
}
