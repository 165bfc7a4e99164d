//! Members that are asked several times for each answer (`samples`): the verdict, the record, the views, the estimate, the
//! budget and a resumed run.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::council::{COUNCIL, all_ship, all_ship_except};
use crate::support::{TestDir, assembly, records, wait_until};

/// A council of four whose skeptic is asked three times, and an executor with these answers.
fn sampled(answers: &Value, settings: &str) -> TestDir {
    let place = TestDir::scripted_slowly(answers, settings);
    let skeptic = "{id: skeptic, prompt: builtin:skeptic}";
    place.write(
        "council.yaml",
        COUNCIL.replace(skeptic, "{id: skeptic, prompt: builtin:skeptic, samples: 3}"),
    );
    place
}

fn position(block: bool, note: &str) -> Value {
    json!({"would_block": block, "irreducible": false, "notes": note})
}

/// Two of the skeptic's three samples block in round 2.
fn split() -> Value {
    all_ship_except(json!({
        "r2/skeptic#1": position(false, "fine"),
        "r2/skeptic#2": position(true, "second"),
        "r2/skeptic#3": position(true, "third"),
    }))
}

fn consultations(place: &TestDir, run: &Value, member: &str) -> Vec<Value> {
    let all = records::records(&place.path(".quorate/ledger.db"), run.as_str().unwrap());
    let all = records::of_kind(&all, "consultation");
    all.into_iter().filter(|one| one["member"] == member).collect()
}

#[test]
fn the_answer_of_most_samples_counts_and_every_view_shows_the_spread() {
    let place = sampled(&split(), "");
    let review = ["review", "draft.md", "--policy", "strict", "--format", "json"];
    let output = place.run(&review).assert_code(1);
    output.assert_stderr_contains("asking for each answer: 3 samples of skeptic");
    let report = output.json();
    assert_eq!((&report["verdict"], &report["spent"]["calls"]), (&json!("REVISE"), &json!(13)));
    let skeptic = &report["deliberators"][0];
    let spread = json!({
        "asked": 3, "answered": 3, "agree": 2, "chosen": 2,
        "spread": {
            "would_block": {"false": 1, "true": 2}, "irreducible": {"false": 3}, "verdict": {"none": 3},
        },
    });
    assert_eq!(skeptic["round2"]["samples"], spread);
    assert_eq!(skeptic["round2"]["answer"]["notes"], "second");
    assert_eq!(skeptic["round1"]["samples"]["agree"], 3);
    assert!(report["deliberators"][1]["round1"].get("samples").is_none());
    assert!(report["adjudicator"].get("samples").is_none());
    let notes = report["notes"].to_string();
    assert!(notes.contains("skeptic, round 2: 2 of 3 samples block."), "{notes}");

    let recorded = consultations(&place, &report["run"], "skeptic");
    assert_eq!((&recorded[1]["samples"], &recorded[1]["attempts"]), (&spread, &json!(3)));
    let run = report["run"].as_str().unwrap();
    for format in [&["show", run, "--full"][..], &["show", run, "--format", "markdown", "--full"]] {
        place.run(format).assert_code(0).assert_stdout_contains("2 of 3 samples block");
    }
    place.run(&["replay", run]).assert_code(0);
    place.run(&["ledger", "verify"]).assert_code(0);
}

// X5
#[test]
fn failed_samples_never_approve_and_the_report_lists_the_reasons() {
    let fail = json!({"$fail": "HTTP 503"});
    for (second, third, verdict, reason) in [
        (
            fail.clone(),
            position(false, ""),
            "SHIP",
            "sample 2 has no answer and counts as the strictest: HTTP",
        ),
        (fail.clone(), position(true, ""), "REVISE", "1 of 3 samples block; sample 2 has no answer"),
        (
            json!("no JSON"),
            position(false, ""),
            "SHIP",
            "sample 2 has no answer and counts as the strictest: no JSON",
        ),
        (
            fail.clone(),
            fail,
            "INCOMPLETE",
            "1 of 3 samples answered, and more than half must; sample 2: HTTP",
        ),
    ] {
        let place = sampled(&all_ship_except(json!({"r1/skeptic#2": second, "r1/skeptic#3": third})), "");
        let council = std::fs::read_to_string(place.path("council.yaml")).unwrap();
        let protocol = "protocol: {rounds: 1, min_deliberators_for_verdict: 4}\n";
        place.write("council.yaml", council + protocol);
        let review = ["review", "draft.md", "--policy", "strict", "--format", "json"];
        let output = place.run(&review);
        let report = output.json();
        assert_eq!(report["verdict"], verdict, "{report}");
        assert!(report.to_string().contains(reason), "{reason}: {report}");
    }
}

#[test]
fn every_place_for_samples_is_read_and_other_numbers_are_refused() {
    let place = sampled(&all_ship(), "");
    for (wrong, expected) in [
        ("0", "it has to be at least 1"),
        ("10", "it can be at most 9"),
        ("-1", "it has to be at least 1"),
        ("two", "a whole number"),
        ("2.5", "a whole number"),
        ("[3]", "a whole number"),
    ] {
        let council = COUNCIL.replace("builtin:evidence}", &format!("builtin:evidence, samples: {wrong}}}"));
        place.write("council.yaml", council);
        let refused = place.run(&["review", "draft.md"]).assert_code(5);
        refused.assert_stderr_contains(expected).assert_stderr_contains("council.yaml:");
    }
    place.write("council.yaml", COUNCIL.replace("builtin:adjudicator}", "builtin:adjudicator, samples: 9}"));
    let dry = ["review", "draft.md", "--dry-run", "--format", "json"];
    let estimate = place.run(&dry).assert_code(0).json();
    assert_eq!(estimate["total"]["calls"], 17);

    // The table of quorate.toml takes precedence.
    let host = std::fs::read_to_string(place.path("quorate.toml")).unwrap();
    place.write("quorate.toml", format!("{host}[council.members.adjudicator]\nsamples = 2\n"));
    let estimate = place.run(&dry).assert_code(0).json();
    assert_eq!(estimate["total"]["calls"], 10);
    for (table, expected) in [
        ("[council.members.skeptic]\nsamples = 0\n", "it has to be at least 1"),
        ("[runtimes.swarm]\nsamples = 3\n", "samples"),
        ("[runtimes.swarm.participants.ann]\nsamples = 3\n", "samples"),
    ] {
        place.write("quorate.toml", format!("{host}{table}"));
        let refused = place.run(&["review", "draft.md"]).assert_code(5);
        refused.assert_stderr_contains(expected).assert_stderr_contains("quorate.toml:");
    }
    place.write("quorate.toml", host.replace("path =", "samples = 3\npath ="));
    let refused = place.run(&["review", "draft.md"]).assert_code(5);
    refused.assert_stderr_contains("samples");
}

// X8
#[test]
fn the_cost_of_samples_is_stated_before_the_run_and_kept_within_the_budget() {
    let place = sampled(&split(), "");
    let estimate = place.run(&["review", "draft.md", "--dry-run", "--format", "json"]).assert_code(0).json();
    let total = &estimate["total"];
    assert_eq!(
        (&total["calls"], &total["samples"]),
        (&json!(13), &json!([{"member": "skeptic", "samples": 3}]))
    );
    let told = place.run(&["review", "draft.md", "--dry-run"]).assert_code(0);
    told.assert_stdout_contains("13 calls").assert_stdout_contains("3 samples of skeptic");

    // Four calls for the deliberators, and one more: two samples of three answered.
    let review = ["review", "draft.md", "--max-calls", "5", "--format", "json"];
    let report = place.run(&review).assert_code(3).json();
    let samples = &report["deliberators"][0]["round1"]["samples"];
    assert_eq!((&samples["asked"], &samples["answered"]), (&json!(3), &json!(2)), "{report}");
    assert_eq!(report["spent"]["calls"], 5);
    // With one answer the skeptic has none.
    let review = ["review", "draft.md", "--max-calls", "4", "--format", "json"];
    let report = place.run(&review).assert_code(3).json();
    let first = &report["deliberators"][0]["round1"];
    assert_eq!((&first["status"], &first["answer"]), (&json!("over_budget"), &Value::Null), "{report}");
}

// X7
#[test]
fn a_killed_run_does_not_ask_again_for_recorded_samples() {
    let slow = json!({"$delay_ms": 60_000, "answer": position(false, "")});
    let place = sampled(&all_ship_except(json!({"r1/skeptic#2": slow})), "");
    let mut child = place.start(&["review", "draft.md"]);
    let ledger = place.path(".quorate/ledger.db");
    let attempts = || {
        let all =
            records::runs(&ledger).first().map_or_else(Vec::new, |(run, _)| records::records(&ledger, run));
        records::of_kind(&all, "attempt").iter().filter(|one| one["invocation"] == "r1/skeptic").count()
    };
    wait_until(Duration::from_secs(20), "two samples", || attempts() == 2);
    child.kill().unwrap();
    child.wait().unwrap();

    place.answers(&all_ship());
    let report = place.run(&["resume", "latest", "--format", "json"]).assert_code(0).json();
    let samples = &report["deliberators"][0]["round1"]["samples"];
    assert_eq!((&samples["answered"], &samples["agree"]), (&json!(3), &json!(3)), "{report}");
    let recorded = consultations(&place, &report["run"], "skeptic");
    assert_eq!(recorded[0]["attempts"], 1, "the second sample alone is asked again");
}

#[test]
fn members_of_an_assembly_have_samples_and_a_tie_is_not_a_yes() {
    for (second, third, yes, note) in [
        ("yes", "no", 1.0, "cfo: vote yes in 2 of 3 samples, no in 1."),
        ("no", "no", 0.0, "cfo: vote no in 2 of 3 samples, yes in 1."),
        ("abstain", "no", 0.0, "in 1 of 3 samples"),
    ] {
        let place = TestDir::new();
        let metadata = "metadata: {quorate: {members: {cfo: {samples: 3}}}}\n";
        assembly::write(&place, "voting", &[("cfo", "")], metadata);
        let vote = assembly::vote_answer;
        let answers = json!({"_": vote("yes"), "ask/cfo#2": vote(second), "ask/cfo#3": vote(third)});
        assembly::answers(&place, &answers);
        let report = assembly::convene(&place, "--proposal", &[]).json();
        assert_eq!(report["decision"]["yes"], yes, "{report}");
        assert_eq!(report["members"][0]["samples"]["asked"], 3, "{report}");
        assert!(report["notes"].to_string().contains(note), "{note}: {report}");
        let plan = assembly::convene(&place, "--proposal", &["--dry-run"]).assert_code(0).json();
        assert_eq!(plan["samples"], json!([{"member": "cfo", "samples": 3}]));

        assembly::write(&place, "voting", &[("cfo", "")], &metadata.replace('3', "12"));
        let refused = assembly::convene(&place, "--proposal", &[]).assert_code(5);
        assert!((refused.stdout + &refused.stderr).contains("samples"));
    }
}
