//! What a council learns and leaves behind: the log's lines, earlier verdicts as priors, the audit's counts, and
//! redaction in every one of them.

use crate::support;
use serde_json::{Value, json};
use support::TestDir;
use support::council::{COUNCIL, ROSTER, all_ship, all_ship_except};

#[test]
fn a_line_has_the_keys_of_both_schemas() {
    // C10, D6
    let place = TestDir::scripted(&all_ship_except(json!({
        "r1/skeptic": {"would_block": true, "score": 2, "verdict": "revise", "findings": [{"quote": "Tuesday", "issue": "Which one?"}]},
        "adjudicate": {"verdict": "SHIP", "reasoning": "Fine.", "revision_brief": "Name the date.", "dissent_summary": "None."},
    })));
    place.run(&["review", "draft.md", "--type", "memo", "--tier", "3"]).assert_code(0);
    let log = place.log();
    assert_eq!(log.len(), 1);
    let line = &log[0];
    let keys = |value: &Value, keys: &[&str]| {
        for key in keys {
            assert!(value.get(key).is_some(), "{key} is missing in {value}");
        }
    };
    keys(line, &["v", "ts", "artifact", "artifact_type", "round1", "round2", "adjudicator"]);
    keys(
        &line["adjudicator"],
        &[
            "final_verdict",
            "reasoning",
            "revision_brief",
            "dissent_summary",
            "applied_compounding",
            "prior_verdicts_consulted",
        ],
    );
    keys(
        line,
        &[
            "verdict",
            "artifact_path",
            "artifact_sha256",
            "span_id",
            "tier",
            "revision_brief",
            "reasoning",
            "deliberators",
            "event",
        ],
    );
    assert_eq!((&line["v"], &line["tier"], &line["artifact_type"]), (&json!(2), &json!(3), &json!("memo")));
    assert_eq!((&line["verdict"], &line["adjudicator"]["final_verdict"]), (&json!("SHIP"), &json!("SHIP")));
    let ts = line["ts"].as_str().unwrap();
    assert!(ts.len() == 24 && ts.ends_with('Z') && &ts[10..11] == "T", "{ts}");
    for round in ["round1", "round2"] {
        let entries = line[round].as_array().unwrap();
        assert_eq!(
            entries.iter().map(|entry| entry["deliberator"].as_str().unwrap()).collect::<Vec<_>>(),
            ROSTER
        );
        keys(&entries[0], &["would_block"]);
    }
    assert_eq!(line["round1"][0]["findings"][0]["quote"], "Tuesday");
    for member in ROSTER {
        keys(
            &line["deliberators"][member],
            &[
                "r1_score",
                "r1_would_block",
                "r2_score",
                "r2_would_block",
                "r2_irreducible",
                "schema_failed",
                "error",
            ],
        );
    }
    assert_eq!(line["deliberators"]["skeptic"]["r1_would_block"], true);
    assert_eq!(line["deliberators"]["skeptic"]["r2_would_block"], false);
}

#[test]
fn a_second_review_of_a_type_reads_the_first_and_incomplete_ones_do_not_count() {
    let place = TestDir::scripted(&all_ship());
    let consulted =
        |arguments: &[&str]| place.review(arguments)["prior_verdicts_consulted"].as_u64().unwrap();
    assert_eq!(consulted(&["draft.md", "--type", "memo"]), 0);
    assert_eq!(consulted(&["draft.md", "--type", "memo"]), 1);
    assert_eq!(consulted(&["draft.md", "--type", "post"]), 0);
    // C10: INCOMPLETE is logged and does not count as a prior
    assert_eq!(place.review(&["draft.md", "--type", "post", "--max-calls", "2"])["verdict"], "INCOMPLETE");
    assert_eq!(place.log().last().unwrap()["verdict"], "INCOMPLETE");
    assert_eq!(consulted(&["draft.md", "--type", "post"]), 1);
    // C1: five at the most
    for earlier in 2..8 {
        assert_eq!(consulted(&["draft.md", "--type", "memo"]), earlier.min(5));
    }
}

#[test]
fn lines_of_the_public_tool_are_priors_and_are_counted() {
    // D6, C10; the second has no time zone, the third no verdict, the fourth is another event
    let place = TestDir::scripted(&all_ship());
    let lines = [
        json!({"v": 2, "agent": "council", "span_id": "council-1", "event": "verdict", "ts": "2026-05-15T10:23:11+00:00", "artifact_path": "a.md",
            "artifact_type": "memo", "tier": 1, "verdict": "HOLD", "elapsed_seconds": 120.5, "revision_brief": "Show the data.",
            "deliberators": {
                "skeptic": {"r1_score": 2, "r1_would_block": false, "r2_score": 2, "r2_would_block": true, "r2_irreducible": true, "schema_failed": false, "error": null},
                "evidence": {"r1_score": null, "r1_would_block": false, "r2_score": null, "r2_would_block": false, "r2_irreducible": false, "schema_failed": true, "error": "TimeoutError: 60 s"}}}),
        json!({"v": 2, "ts": "2026-05-16T10:23:11", "artifact_type": "memo", "verdict": "revise", "deliberators": {}}),
        json!({"v": 2, "ts": "2026-05-16T10:23:11Z", "artifact_type": "memo"}),
        json!({"v": 2, "ts": "2026-05-16T10:23:11Z", "event": "sweep_complete", "artifact_type": "memo", "verdict": "SHIP"}),
        json!({"v": 2, "ts": "2026-05-17T10:23:11Z", "event": "verdict", "artifact_type": "memo", "verdict": "SHIP", "parth_override": true}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.write(".quorate/council_log.jsonl", text);
    let report = place.review(&["draft.md", "--type", "memo"]);
    assert_eq!(report["prior_verdicts_consulted"], 3);
    let audit = place.run(&["audit", "--format", "json"]).assert_code(0).json();
    assert_eq!(audit["verdicts"]["memo"]["HOLD"], 1);
    assert_eq!(audit["verdicts"]["memo"]["REVISE"], 1);
    assert_eq!(audit["verdicts"]["memo"]["SHIP"], 2, "ours, and the one that a person decided");
    assert_eq!(audit["overrides"], 1);
    let skeptic =
        audit["deliberators"].as_array().unwrap().iter().find(|one| one["id"] == "skeptic").unwrap();
    assert_eq!(skeptic["reviews"], 2, "{skeptic}");
    let only = place.run(&["audit", "--since", "7d", "--format", "json"]).assert_code(0).json();
    assert_eq!(only["reviews"], 1);
    let hold = place.run(&["audit", "--verdict", "hold", "--format", "json"]).assert_code(0).json();
    assert_eq!(hold["reviews"], 1);
    for format in ["human", "markdown"] {
        assert!(place.run(&["audit", "--format", format]).assert_code(0).stdout.contains("memo"));
    }
}

#[test]
fn what_a_line_claims_cannot_break_the_audit() {
    let place = TestDir::scripted(&all_ship());
    let absurd = json!({"artifact_type": "x", "verdict": "SHIP", "elapsed_seconds": 1e300, "ts": "9999-12-31T23:59:59Z", "calls": 4_294_967_295_u32});
    let negative = json!({"artifact_type": "x", "verdict": "SHIP", "elapsed_seconds": -1e300, "ts": "0001-01-01T00:00:00Z", "calls": -1});
    let odd = json!({"artifact_type": ["x"], "verdict": {"a": 1}, "round1": 5, "deliberators": [], "ts": 12});
    place.write(
        ".quorate/council_log.jsonl",
        format!("{absurd}\n{absurd}\n{absurd}\n{negative}\n{odd}\n[1]\n"),
    );
    for format in ["json", "human", "markdown"] {
        place.run(&["audit", "--format", format]).assert_code(0);
    }
    let audit = place.run(&["audit", "--format", "json"]).assert_code(0).json();
    assert_eq!((&audit["reviews"], &audit["corrupt_lines"]), (&json!(5), &json!(1)));
    assert_eq!(place.review(&["draft.md", "--type", "x"])["prior_verdicts_consulted"], 4);
}

/// Every file below a directory that has the words in it, raw.
fn holding(dir: &std::path::Path, words: &str, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            holding(&path, words, found);
        } else if std::fs::read(&path)
            .expect("a file")
            .windows(words.len())
            .any(|window| window == words.as_bytes())
        {
            found.push(path);
        }
    }
}

#[test]
fn a_secret_is_nowhere_afterwards() {
    // X10: in no field and in no sink
    let place = TestDir::scripted(&all_ship_except(json!({
        "r1/skeptic": {"would_block": false, "notes": "I saw sk-aaaaaaaaaaaa.", "findings": [{"quote": "sk-aaaaaaaaaaaa", "issue": "sk-aaaaaaaaaaaa"}]},
        "r1/evidence": {"$fail": "crashed with sk-aaaaaaaaaaaa in its hand"},
        "r2/strategy": ["no JSON, but sk-aaaaaaaaaaaa", {"would_block": false, "irreducible": false, "sk-aaaaaaaaaaaa": "as a key"}],
        "adjudicate": {"verdict": "SHIP", "reasoning": "sk-aaaaaaaaaaaa is fine.", "revision_brief": "sk-aaaaaaaaaaaa"},
    })));
    place.write("council.yaml", format!("{COUNCIL}logging: {{redact_patterns: ['sk-[a-z]{{12}}']}}\n"));
    let text = "The key is sk-aaaaaaaaaaaa, twice: sk-aaaaaaaaaaaa.\n";
    place.write(".quorate/council_log.jsonl", "");
    let run = place
        .run_with_stdin(&["review", "-", "--format", "json"], text.as_bytes())
        .assert_code(0)
        .json()["run"]
        .as_str()
        .unwrap()
        .to_owned();
    place
        .run(&[
            "override",
            &run,
            "--by",
            "ada",
            "--verdict",
            "hold",
            "--reason",
            "it has sk-aaaaaaaaaaaa in it",
        ])
        .assert_code(0);
    let mut said = String::new();
    for format in ["human", "json", "markdown", "sarif", "github"] {
        said.push_str(&place.run(&["show", &run, "--format", format]).assert_code(0).stdout);
    }
    place.run(&["replay", &run]).assert_code(0);
    place.write("answers.json", "{}");
    let mut found = Vec::new();
    holding(place.root(), "sk-aaaaaaaaaaaa", &mut found);
    assert_eq!(found, Vec::<std::path::PathBuf>::new());
    assert!(!said.contains("sk-aaaaaaaaaaaa") && said.contains("[REDACTED]"));
}

#[test]
fn a_secret_that_json_spells_otherwise_is_still_one() {
    // X10: the record holds the parsed answer
    let place = TestDir::scripted(&all_ship_except(json!({
        "r1/skeptic": r#"{"would_block": false, "notes": "\u0073k-aaaaaaaaaaaa"}"#,
    })));
    place.write("council.yaml", format!("{COUNCIL}logging: {{redact_patterns: ['sk-[a-z]{{12}}']}}\n"));
    let ran = place.run(&["review", "draft.md", "--format", "json"]).assert_code(0);
    let mut found = Vec::new();
    holding(place.root(), "sk-aaaaaaaaaaaa", &mut found);
    assert_eq!(found, Vec::<std::path::PathBuf>::new());
    assert!(!ran.stdout.contains("sk-aaaaaaaaaaaa"));
}

#[test]
fn a_secret_in_a_foreign_line_is_not_recorded_again() {
    // X10: priors are in run.opened and in the adjudicator's prompt
    let place = TestDir::scripted(&all_ship());
    place.write(
        "council.yaml",
        format!("{COUNCIL}logging: {{log_path: others.jsonl, redact_patterns: ['sk-[a-z]{{12}}']}}\n"),
    );
    place.write(
        "others.jsonl",
        "{\"artifact_type\": \"memo\", \"verdict\": \"HOLD\", \"reasoning\": \"it had sk-aaaaaaaaaaaa\"}\n",
    );
    assert_eq!(place.review(&["draft.md", "--type", "memo"])["prior_verdicts_consulted"], 1);
    let mut found = Vec::new();
    holding(&place.path(".quorate"), "sk-aaaaaaaaaaaa", &mut found);
    assert_eq!(found, Vec::<std::path::PathBuf>::new());
}
