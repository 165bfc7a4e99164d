//! What every mode's outcome has: its kind, its reason, and what the record keeps where overlays are off (X12, D8).

use quorate_manifest::assembly::Mode;
use quorate_protocol::assembly::{AssemblyRequest, Setup};
use quorate_protocol::modes::assembly::version;
use quorate_protocol::{AbsenceReason, ConsultationResult, Json};
use serde_json::json;

use crate::test_run::{self, TestRun};

const DAY_MS: i64 = 86_400_000;

fn advisory(members: &[&str]) -> Setup {
    let request = AssemblyRequest::Advisory {
        phase: "session".to_owned(),
        trigger: "manual".to_owned(),
        sentinel_first: false,
    };
    let mut setup = test_run::setup(Mode::Advisory, request);
    let in_phase = |id: &&str| {
        let mut member = test_run::member(id);
        member.phase = Some("session".to_owned());
        member
    };
    setup.members = members.iter().map(in_phase).collect();
    setup
}

/// Advice of each member, by a rule that emits all of it.
fn guidance(setup: &Setup) -> TestRun {
    let mut run = TestRun::open(setup, "r", "user: Am I right?\n");
    for member in &setup.members {
        let advice = test_run::advice(5, "c", &["e"], &format!("Advice of {}.", member.id));
        run.answer(&format!("ask/{}", member.id), advice);
    }
    run
}

fn notes(run: &TestRun) -> String {
    run.outcome()["notes"].to_string()
}

#[test]
fn an_outcome_says_what_it_is_and_why_there_is_none() {
    let requests = [
        (Mode::Advisory, advisory(&[]).request, "guidance"),
        (Mode::Voting, AssemblyRequest::Voting { class: None }, "decision"),
        (Mode::Peer, AssemblyRequest::Peer { rounds: None }, "log"),
        (Mode::Hierarchy, AssemblyRequest::Hierarchy, "rollup"),
    ];
    for (mode, request, kind) in requests {
        let mut setup = test_run::setup(mode, request);
        setup.members = ["a", "b"].map(test_run::member).to_vec();
        setup.members[1].parent = Some("a".into());
        setup.members.iter_mut().for_each(|member| member.phase = Some("session".to_owned()));
        let mut run = TestRun::open(&setup, "r", "Resolution: a\n");
        while let Some(id) = run.out.keys().next().cloned() {
            run.give_no_answer(&id);
        }
        assert_eq!(run.word("kind"), kind);
        assert!(!run.word("because").is_empty(), "{:#}", run.outcome());
        assert!(version(mode).contains('/'), "{}", version(mode));
        assert_eq!(run.version(), version(mode));
    }
}

#[test]
fn an_outcome_has_the_references_of_its_assembly_where_there_are_some() {
    let mut setup = advisory(&["a"]);
    assert_eq!(guidance(&setup).outcome().get("refs"), None);
    setup.refs.insert("ticket".to_owned(), json!("OPS-1"));
    assert_eq!(guidance(&setup).outcome()["refs"], json!({"ticket": "OPS-1"}));
}

#[test]
fn without_overlays_the_record_keeps_the_hash_of_the_artifact_alone() {
    let mut setup = advisory(&["a"]);
    setup.rules = vec![test_run::rule("all", "aggregate", None, json!({}))];
    let kept = guidance(&setup);
    assert!(kept.outcome().get("artifact_sha256").is_none());
    let fragments = &kept.outcome()["fragments"];
    assert_eq!(fragments.as_array().map(Vec::len), Some(1), "{:#}", kept.outcome());
    setup.overlays.enabled = false;
    let hashed = guidance(&setup);
    assert!(hashed.outcome().get("fragments").is_none(), "{:#}", hashed.outcome());
    assert_eq!(hashed.word("artifact_sha256").len(), 64);
    assert_eq!(hashed.artifact().map(|artifact| &artifact["fragments"]), Some(fragments));
}

#[test]
fn fragments_beyond_those_that_hold_at_once_are_noted() {
    for (most, noted) in [(1, true), (2, false), (3, false)] {
        let mut setup = advisory(&["a", "b"]);
        setup.rules = vec![test_run::rule("all", "aggregate", None, json!({}))];
        setup.overlays.max_active = most;
        let run = guidance(&setup);
        assert_eq!(
            notes(&run).contains(&format!("2 fragments, of which at most {most} hold")),
            noted,
            "{most}: {}",
            notes(&run)
        );
    }
}

#[test]
fn how_long_an_overlay_holds_is_kept_between_a_day_and_thirty() {
    let holds = |ttl_ms: i64| {
        let mut setup = advisory(&["a"]);
        setup.rules = vec![test_run::rule("all", "aggregate", None, json!({"ttlMs": ttl_ms}))];
        let run = guidance(&setup);
        (run.outcome()["fragments"][0]["expires"].clone(), notes(&run))
    };
    let (short, note) = holds(DAY_MS - 1);
    assert_eq!((&short, note.contains("holds for one day:")), (&holds(DAY_MS).0, true), "{note}");
    let (long, note) = holds(31 * DAY_MS);
    assert_eq!((&long, note.contains("holds for 30 days:")), (&holds(30 * DAY_MS).0, true), "{note}");
    assert!(!holds(DAY_MS).1.contains("holds for") && !holds(30 * DAY_MS).1.contains("holds for"));
    assert_ne!(short, long);
}

#[test]
fn an_answer_that_is_not_waited_for_spends_no_budget() {
    let setup = advisory(&["a", "b"]);
    let mut run = TestRun::open(&setup, "r", "user: Am I right?\n");
    let spent = ConsultationResult::Absent(AbsenceReason::RunOverBudget);
    run.consulted("ask/nobody", spent);
    assert!(!run.finished);
    for id in ["ask/a", "ask/b"] {
        run.answer(id, test_run::advice(1, "", &[], ""));
    }
    assert_eq!(run.word("verdict"), "done", "{:#}", run.outcome());
    assert_eq!(run.outcome()["code"], Json::Null);
}
