//! `quorate review` through the real binary: verdicts and exit codes, the JSON object, tiers, policies, executors,
//! caps, and where council, ledger and log are looked for.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support;
use serde_json::{Value, json};
use support::TestDir;
use support::council::{COUNCIL, ROSTER, all_ship, all_ship_except};

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[track_caller]
fn has_keys(value: &Value, wanted: &[&str]) {
    let there = keys(value);
    let missing: Vec<_> = wanted.iter().filter(|key| !there.contains(**key)).collect();
    assert!(missing.is_empty(), "{missing:?} are missing in {there:?}");
}

#[test]
fn the_three_examples_get_the_three_verdicts() {
    // C5, C8: without any configuration, verdict first
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let place = TestDir::new();
    for (name, verdict, code) in [
        ("launch-post.md", "REVISE", 1),
        ("incident-report.md", "SHIP", 0),
        ("pricing-promise.md", "HOLD", 2),
    ] {
        place.write(&format!("examples/{name}"), std::fs::read(examples.join(name)).unwrap());
        let ran = place.run(&["review", &format!("examples/{name}")]).assert_code(code);
        let end =
            ran.stdout.rfind(&format!("\n{verdict}  (rubric: content not judged)  ")).expect("a verdict");
        let end = &ran.stdout[end + 1..];
        assert!(end.contains(name) && end.lines().count() <= 5, "{end}");
        assert!(ran.stdout.contains("No model was asked"), "{}", ran.stdout);
        assert!(!ran.stdout.contains('\u{1b}'), "NO_COLOR");
    }
}

#[test]
fn the_json_object_has_every_key_of_the_interface() {
    let place = TestDir::scripted(&all_ship_except(json!({
        "r2/skeptic": {"would_block": true, "irreducible": false, "score": 2,
            "findings": [{"quote": "Tuesday", "issue": "Which one?", "fix": "Give the date."}, {"quote": "Friday", "issue": "Nowhere."}]},
    })));
    let report = place.run(&["review", "draft.md", "--format", "json"]).assert_code(0).json();
    has_keys(
        &report,
        &[
            "run",
            "verdict",
            "exit",
            "artifact",
            "artifact_type",
            "tier",
            "policy",
            "partial",
            "reasoning",
            "revision_brief",
            "deliberators",
            "adjudicator",
            "findings",
            "prior_verdicts_consulted",
            "executor",
            "model_asked",
            "spent",
            "notes",
        ],
    );
    let id = report["run"].as_str().unwrap();
    assert!(id.len() == 13 && id.starts_with('r'), "{id}");
    assert_eq!(
        (&report["verdict"], &report["exit"], &report["policy"]),
        (&json!("SHIP"), &json!(0), &json!("seed/2"))
    );
    assert_eq!((&report["executor"], &report["model_asked"]), (&json!("scripted"), &json!(false)));
    let deliberators = report["deliberators"].as_array().unwrap();
    assert_eq!(
        deliberators.iter().map(|deliberator| deliberator["id"].as_str().unwrap()).collect::<Vec<_>>(),
        ROSTER
    );
    for deliberator in deliberators {
        has_keys(deliberator, &["id", "round1", "round2", "counted"]);
        has_keys(&deliberator["round1"], &["status", "answer"]);
        assert_eq!(
            (&deliberator["round2"]["status"], &deliberator["counted"]),
            (&json!("answered"), &json!("round2"))
        );
    }
    has_keys(&report["adjudicator"], &["status", "answer"]);
    assert_eq!(report["spent"]["calls"], 9);
    // X9: what is quoted is looked up, and what is not there is said to be ungrounded
    let findings = report["findings"].as_array().unwrap();
    has_keys(&findings[0], &["by", "line", "column", "quote", "issue", "fix", "grounded"]);
    assert_eq!(
        (&findings[0]["line"], &findings[0]["column"], &findings[0]["grounded"]),
        (&json!(1), &json!(22), &json!(true))
    );
    assert_eq!((&findings[1]["line"], &findings[1]["grounded"]), (&Value::Null, &json!(false)));
}

#[test]
fn stdout_is_data_and_stderr_is_talk() {
    let place = TestDir::scripted(&all_ship());
    place.write("council.yaml", format!("{COUNCIL}logging: {{archive_dir: ./archive}}\n"));
    let ran = place.run(&["review", "draft.md", "--format", "json"]).assert_code(0);
    assert_eq!(ran.json()["verdict"], "SHIP");
    ran.assert_stderr_contains("quorate:field_without_effect");
    for format in ["human", "markdown", "github"] {
        let ran = place.run(&["review", "draft.md", "--format", format]).assert_code(0);
        assert!(!ran.stdout.contains("field_without_effect"), "{format}: {}", ran.stdout);
    }
}

#[test]
fn standard_input_is_a_draft_like_any_other() {
    let place = TestDir::scripted(&all_ship());
    let ran = place.run_with_stdin(
        &["review", "-", "--type", "memo", "--format", "json"],
        "From a pipe: ünïcode.\n".as_bytes(),
    );
    let report = ran.assert_code(0).json();
    assert_eq!((&report["artifact"], &report["artifact_type"]), (&json!("-"), &json!("memo")));
    let run = report["run"].as_str().unwrap();
    place.run(&["replay", run]).assert_code(0);
    // Standard input cannot be read again, so a resumed run takes the text from the ledger.
    place.answers(&all_ship_except(json!({"adjudicate": {"$fail": "down"}})));
    let stopped =
        place.run_with_stdin(&["review", "-", "--format", "json"], b"Again.\n").assert_code(3).json();
    place.answers(&all_ship_except(json!({"adjudicate": {"$fail": "down"}})));
    place.run(&["resume", stopped["run"].as_str().unwrap()]).assert_code(3);
}

#[test]
fn escape_sequences_of_a_draft_do_not_reach_the_terminal() {
    let place = TestDir::new();
    place.write(
        "draft.md",
        "We will \u{1b}]0;owned\u{7}never\u{1b}[2J raise \u{202e}prices, guaranteed, for ever, and the hall opens at nine on weekdays, so write to us if that does not suit you.\n",
    );
    for format in ["human", "markdown", "github", "sarif", "json"] {
        let ran = place.run(&["review", "draft.md", "--format", format]);
        assert!(!ran.stdout.contains(['\u{1b}', '\u{7}']), "{format}: {:?}", ran.stdout);
    }
}

#[test]
fn what_is_not_seen_in_a_draft_is_shown() {
    let place = TestDir::new();
    let hidden = ['\u{85}', '\u{200b}', '\u{feff}', '\u{ad}', '\u{2060}', '\u{3164}', '\u{202e}'];
    let all: String = hidden.iter().collect();
    place.write("draft.md", format!("We will never{all} raise prices. Parts{all} are 40% cheaper{all} now, for all of us who order them in the hall on a weekday before nine.\n"));
    for format in ["human", "markdown", "github", "sarif", "json"] {
        let ran = place.run(&["review", "draft.md", "--format", format]);
        assert!(!ran.stdout.contains(hidden), "{format}: {:?}", ran.stdout);
        assert!(!ran.stderr.contains(hidden), "{format}: {:?}", ran.stderr);
    }
    let json = place.run(&["review", "draft.md", "--format", "json"]).json();
    assert!(json.to_string().contains('\u{200b}'), "JSON keeps its values: {json}");
}

#[test]
fn a_named_file_is_always_reviewed_and_tiered_obeys() {
    // C6, C5: a skip never looks like SHIP
    let place = TestDir::scripted(&all_ship());
    place.write(
        "council.yaml",
        format!("{COUNCIL}tier_rules:\n  tier_1: {{post: ['*.post.md']}}\n  tier_2: {{note: ['notes/*']}}\n  tier_3: {{brief: ['briefs/*']}}\n"),
    );
    for (name, kind, tier) in [
        ("a.post.md", "post", 1),
        ("notes/a.md", "note", 2),
        ("briefs/a.md", "brief", 3),
        ("b.md", "unclassified", 2),
    ] {
        place.write(name, format!("About {name}.\n"));
        let report = place.run(&["review", name, "--format", "json"]).assert_code(0).json();
        assert_eq!((&report["artifact_type"], &report["tier"]), (&json!(kind), &json!(tier)));
    }
    let skipped = place.run(&["review", "notes/a.md", "--tiered", "--format", "json"]).assert_code(6);
    let json = skipped.json();
    assert_eq!((&json["schema"], &json["exit"]), (&json!("quorate.reviews/v1"), &json!(6)));
    assert_eq!(
        (&json["reviews"][0]["artifact"], &json["reviews"][0]["exit"]),
        (&json!("notes/a.md"), &json!(6))
    );
    skipped.assert_stderr_contains("tier 2");
    let sarif = place.run(&["review", "notes/a.md", "--tiered", "--format", "sarif"]).assert_code(6).json();
    assert_eq!((&sarif["version"], &sarif["runs"]), (&json!("2.1.0"), &json!([])));
    assert_eq!(
        place.run(&["review", "notes/a.md", "--tiered"]).assert_code(6).stdout,
        "",
        "no report is printed"
    );
    assert_eq!(place.run(&["review", "notes/a.md", "--tiered", "--tier", "1"]).code, 0);
    assert_eq!(place.run(&["review", "a.post.md", "--tiered", "--tier", "2"]).code, 6);
    assert_eq!(place.run(&["review", "a.post.md", "--tiered"]).code, 0);
}

#[test]
fn one_in_five_is_the_same_one_however_the_path_is_written() {
    // C6: by path and content, nothing else
    let place = TestDir::scripted(&all_ship());
    place.write("council.yaml", format!("{COUNCIL}tier_rules:\n  tier_3: {{brief: ['briefs/*']}}\n"));
    let mut codes = Vec::new();
    for number in 0..12 {
        let name = format!("briefs/{number}.md");
        place.write(&name, format!("Brief {number}.\n"));
        let code = place.run(&["review", &name, "--tiered"]).code;
        assert!(code == 0 || code == 6, "{code}");
        codes.push(code);
        if number < 4 {
            let absolute = place.path(&name).to_str().unwrap().to_owned();
            for other in [format!("./{name}"), format!("briefs/../{name}"), absolute] {
                assert_eq!(place.run(&["review", &other, "--tiered"]).code, code, "{other}");
            }
            assert_eq!(place.run_in("briefs", &["review", &format!("{number}.md"), "--tiered"]).code, code);
        }
    }
    assert!(codes.contains(&6), "{codes:?}");
}

#[test]
fn policies_differ_where_they_should() {
    // C3
    let one_block = all_ship_except(json!({"r2/skeptic": {"would_block": true, "irreducible": false}}));
    let dissent = all_ship_except(json!({"r2/skeptic": {"would_block": false, "irreducible": true}}));
    for (answers, seed, strict) in [(one_block, 0, 1), (dissent, 0, 2), (all_ship(), 0, 0)] {
        let place = TestDir::scripted(&answers);
        place.run(&["review", "draft.md"]).assert_code(seed);
        let report = place
            .run(&["review", "draft.md", "--policy", "strict", "--format", "json"])
            .assert_code(strict)
            .json();
        assert_eq!(report["policy"], "strict/1");
        place.write(
            "council.yaml",
            COUNCIL.replace("builtin:adjudicator}", "builtin:adjudicator, verdict_policy: strict}"),
        );
        place.run(&["review", "draft.md"]).assert_code(strict);
        place.run(&["review", "draft.md", "--policy", "seed"]).assert_code(seed);
    }
}

#[test]
fn the_executor_is_the_flag_then_the_runtime_then_the_default() {
    // C11
    let place = TestDir::scripted(&all_ship());
    place.write(
        "holds.json",
        all_ship_except(json!({"adjudicate": {"verdict": "HOLD", "reasoning": "No."}})).to_string(),
    );
    let toml = place.read("quorate.toml");
    place.write(
        "quorate.toml",
        format!("{toml}[executors.holder]\nkind = \"script\"\npath = \"holds.json\"\n"),
    );
    let executor = |arguments: &[&str]| {
        let report = place.review(arguments);
        (report["executor"].clone(), report["verdict"].clone())
    };
    assert_eq!(executor(&["draft.md"]), (json!("scripted"), json!("SHIP")));
    place.write("council.yaml", format!("{COUNCIL}runtime: {{type: script, path: holds.json}}\n"));
    assert_eq!(executor(&["draft.md"]).1, "HOLD");
    assert_eq!(executor(&["draft.md", "--executor", "scripted"]), (json!("scripted"), json!("SHIP")));
    assert_eq!(executor(&["draft.md", "--executor", "rubric"]).0, "rubric");
}

#[test]
fn a_cap_on_calls_stops_a_run_that_a_larger_one_takes_on() {
    // X8: a resumed run continues from what was spent
    let place = TestDir::scripted(&all_ship());
    let report =
        place.run(&["review", "draft.md", "--max-calls", "5", "--format", "json"]).assert_code(3).json();
    assert_eq!((&report["verdict"], &report["spent"]["calls"]), (&json!("INCOMPLETE"), &json!(5)));
    let run = report["run"].as_str().unwrap();
    let still = place.run(&["resume", run, "--max-calls", "8", "--format", "json"]).assert_code(3).json();
    assert_eq!(still["spent"]["calls"], 8);
    let done = place.run(&["resume", run, "--max-calls", "9", "--format", "json"]).assert_code(0).json();
    assert_eq!((&done["verdict"], &done["spent"]["calls"]), (&json!("SHIP"), &json!(9)));
    assert_eq!(place.run(&["review", "draft.md", "--max-calls", "0"]).code, 3);
}

#[test]
fn a_deadline_is_one_for_all_attempts_of_a_member() {
    // X4, X5
    let place = TestDir::scripted(&all_ship_except(
        json!({"r1/evidence": {"$timeout": true}, "r2/evidence": {"$timeout": true}}),
    ));
    let report =
        place.run(&["review", "draft.md", "--timeout", "400ms", "--format", "json"]).assert_code(0).json();
    assert_eq!(report["deliberators"][2]["round1"]["status"], "timed_out");
    assert_eq!(
        (&report["partial"], &report["deliberators"][2]["counted"]),
        (&json!(true), &json!("missing"))
    );
    assert!(report["notes"].to_string().contains("evidence"), "X12: {}", report["notes"]);
}

#[test]
fn a_council_is_found_up_to_the_workspace() {
    // M10; without a workspace `councils.rs` says how far
    let place = TestDir::scripted(&all_ship());
    let three = COUNCIL.replace("  - {id: strategy, prompt: builtin:strategy}\n", "");
    place.write("council.yaml", &three);
    place.write("texts/deep/draft.md", "A draft.\n");
    let deliberator_count = |report: &Value| report["deliberators"].as_array().unwrap().len();
    assert_eq!(deliberator_count(&place.review(&["texts/deep/draft.md"])), 3);
    assert!(place.path(".quorate/ledger.db").is_file(), "beside the configuration");
    let report =
        place.run_in("texts/deep", &["review", "draft.md", "--format", "json"]).assert_code(0).json();
    assert_eq!(deliberator_count(&report), 3, "from the artifact up");
}

#[test]
fn the_ledger_is_the_flag_then_the_variable_then_the_host_file() {
    let place = TestDir::scripted(&all_ship());
    place.write("quorate.toml", format!("ledger = \"from-host.db\"\n{}", place.read("quorate.toml")));
    place.run(&["review", "draft.md"]).assert_code(0);
    assert!(place.path("from-host.db").is_file());
    let ran =
        place.command(&["review", "draft.md"]).env("QUORATE_LEDGER", "from-variable.db").output().unwrap();
    assert!(ran.status.success() && place.path("from-variable.db").is_file());
    let mut command = place.command(&["review", "draft.md", "--ledger", "deep/from-flag.db"]);
    assert!(command.env("QUORATE_LEDGER", "nowhere.db").output().unwrap().status.success());
    assert!(place.path("deep/from-flag.db").is_file() && !place.path("nowhere.db").exists());
    assert!(!place.path(".quorate").exists());
}

#[test]
fn the_log_is_where_the_council_says() {
    // relative to the file that says it
    let place = TestDir::scripted(&all_ship());
    place.write("editorial/council.yaml", format!("{COUNCIL}logging: {{log_path: ../logs/council.jsonl}}\n"));
    place.run(&["review", "draft.md", "--config", "editorial/council.yaml"]).assert_code(0);
    assert_eq!(place.read("logs/council.jsonl").lines().count(), 1);
    assert!(place.path("editorial/.quorate/ledger.db").is_file());
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |name: &str| std::fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("editorial/.quorate"), 0o700);
    assert_eq!(place.read("editorial/.quorate/.gitignore"), "*\n");
}

#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_a_file_does_not_block() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    place.review(&["draft.md"]);
    let run = place.only_run();
    place.write("playbooks/there.md", "");
    let explained =
        |said: &str| said.contains("neither a file nor a directory") || said.contains("regular file");
    for (name, arguments) in [
        ("draft.md", &["review", "draft.md"][..]),
        ("council.yaml", &["review", "other.md"]),
        ("ASSEMBLY.md", &["check", "ASSEMBLY.md"]),
        ("proof.json", &["ledger", "check-proof", "proof.json"]),
        ("export.jsonl", &["ledger", "import", "export.jsonl"]),
    ] {
        let _ = std::fs::remove_file(place.path(name));
        let made = std::process::Command::new("mkfifo").arg(place.path(name)).status().expect("mkfifo");
        assert!(made.success());
        place.write("other.md", "Another text.\n");
        let ran = place.run(arguments);
        assert!([4, 5].contains(&ran.code), "{name}: {ran:?}");
        assert!(explained(&ran.stderr) || explained(&ran.stdout), "{name}: {ran:?}");
        std::fs::remove_file(place.path(name)).expect("it is there");
    }
    // What reads a whole folder passes over it, and what a shell hands over may be a pipe.
    let made = std::process::Command::new("mkfifo").arg(place.path("playbooks/pipe.md")).status();
    assert!(made.expect("mkfifo").success());
    place.run(&["check", "."]);
    assert!(place.run(&["show", &run]).stdout.contains(&run));
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", "exec \"$0\" review <(echo 'The meeting moved to Tuesday at ten.')", support::QUORATE]);
    let reviewed = shell.current_dir(place.root()).env("NO_COLOR", "1").output().expect("bash");
    assert!(reviewed.status.code().is_some_and(|code| code <= 3), "{reviewed:?}");
}

#[test]
fn what_members_do_not_see_is_said() {
    let place = TestDir::with(
        "draft.md",
        "# Setup\n\npassword = \"k7Rz2Xk9Lm4Q\"\n\nThen start it, and wait until the lamp is lit; if it does not light up, look at the log and ask the desk.\n",
    );
    for format in ["human", "markdown", "json"] {
        let said = place.run(&["review", "draft.md", "--format", format]).stdout;
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("Not judged: what looks like a secret in line 3;"), "{format}: {said}");
    }
    // Sentences between the marks of a key are not a key: members read them.
    let marked = "Good.\n\n<!-- -----BEGIN PRIVATE KEY----- -->\nEverybody who joins today keeps this price for ever.\n\
                  <!-- -----END PRIVATE KEY----- -->\n";
    place.write("marked.md", marked);
    let reviewed = place.run(&["review", "marked.md"]);
    assert!(reviewed.code <= 3 && !reviewed.stdout.contains("Not judged"), "{reviewed:?}");
}

/// C14: a council's own table decides, its record names the row, the run replays, and `show` names the row.
#[test]
fn a_councils_own_policy_decides_and_replays() {
    let place = TestDir::scripted(&all_ship_except(
        json!({"r2/skeptic": {"would_block": true, "irreducible": false}}),
    ));
    let policy = "policy:\n  - {if: {block_by: [skeptic]}, then: HOLD}\n  - {then: SHIP}\n";
    place.write("council.yaml", format!("{COUNCIL}{policy}"));
    let report = place.run(&["review", "draft.md", "--format", "json"]).assert_code(2).json();
    let id = report["policy"].as_str().expect("a policy");
    assert!(id.starts_with("table/"), "{id}");
    assert!(report["because"].as_str().is_some_and(|because| because.contains(", row 1, makes that HOLD")));
    place.run(&["replay", "latest"]).assert_code(0);
    let shown = place.run(&["show", "latest", "--full"]).assert_code(0).stdout;
    assert!(shown.contains("own policy, row 1"), "{shown}");
    place.run(&["review", "draft.md", "--policy", "lenient"]).assert_code(0);
}
