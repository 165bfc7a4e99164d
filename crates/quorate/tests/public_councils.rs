//! Councils as people have them for the public Python tool, through the real binary.

#![expect(clippy::disallowed_methods, reason = "tests start processes and look at files")]

mod support;

use serde_json::{Value, json};
use support::Place;
use support::council::{COUNCIL, ships, ships_but};

/// `verdict_policy` as the public tool's example has it.
const DESCRIBED: &str =
    "builtin:adjudicator, verdict_policy: {ship: nobody blocks, revise: 1-2 would_block, hold: 3+}}";

fn described() -> String {
    COUNCIL.replace("builtin:adjudicator}", DESCRIBED)
}

#[test]
fn a_described_policy_revises_what_the_public_tool_revises() {
    // C13
    let one_block = ships_but(json!({"r2/skeptic": {"would_block": true, "irreducible": false}}));
    let two_blocks = ships_but(json!({
        "r2/skeptic": {"would_block": true, "irreducible": false},
        "r2/evidence": {"would_block": true, "irreducible": false},
    }));
    let dissent = ships_but(json!({"r2/skeptic": {"would_block": false, "irreducible": true}}));
    for (answers, code) in [(one_block, 1), (two_blocks, 1), (dissent, 2), (ships(), 0)] {
        let place = Place::scripted(&answers);
        place.write("council.yaml", described());
        let report = place.run(&["review", "draft.md", "--format", "json"]).expect(code).json();
        assert_eq!(report["policy"], "strict/1");
        // What a person says now holds.
        place.run(&["review", "draft.md", "--policy", "seed"]).expect(0);
    }
    for mapping in ["{\"1-2 would_block\": revise}", "{}"] {
        let place = Place::scripted(&ships());
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
    ships_but(json!({
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
    let place = Place::scripted(&public_answers());
    place.write("council.yaml", described());
    let report = place.run(&["review", "draft.md", "--format", "json"]).expect(1).json();
    // The adjudicator says nothing of what to change: the members' own words stand.
    assert_eq!(report["revision_brief"], "skeptic: Link the price list.");
    assert_eq!(report["findings"][0]["quote"], "moved to Tuesday");
    assert_eq!(
        (&report["findings"][0]["issue"], &report["findings"][0]["grounded"]),
        (&json!("V1"), &json!(true))
    );
    let run = report["run"].as_str().expect("an id");
    for format in ["human", "markdown"] {
        let shown = place.run(&["show", run, "--format", format]).expect(0).stdout;
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
        let place = Place::with("draft.md", "The meeting moved to Tuesday.\n");
        place.write("judge.sh", JUDGE);
        place.write(
            "council.yaml",
            format!("{COUNCIL}runtime: {{type: agent-cli, command: /bin/sh, args: [judge.sh]}}\nprotocol: {{cross_read: {cross_read}}}\n"),
        );
        place.run(&["review", "draft.md"]).expect(0);
        let prompt = place.read("judge.sh.prompt");
        for said in ["The price has no source.", "A buyer asks.", "Two gaps.", "Link the list."] {
            // Once in each round, from each of four.
            assert_eq!(prompt.matches(said).count(), 8, "{cross_read}: {said}");
        }
    }
}

#[test]
fn the_mock_takes_the_keys_of_its_own_example() {
    let place = Place::with("draft.md", "The meeting moved to Tuesday.\n");
    let runtime = "runtime: {type: mock_cli, binary: '', model: some-model, flags: [], invocation_pattern: stdin, timeout_seconds: 30}\n";
    place.write("council.yaml", format!("{COUNCIL}{runtime}"));
    place.run(&["check", "council.yaml"]).expect(0);
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
