//! Runs whose budget is spent on the way: what was answered counts, nothing more is begun, and every member without output is
//! named (X8, X12).

use crate::test_run;
use quorate_manifest::assembly::Mode;
use quorate_protocol::assembly::{AssemblyRequest, Member, Setup};
use quorate_protocol::{AbsenceReason, ConsultationResult, Event, event};
use serde_json::{Value, json};
use test_run::{TestRun, advice, member, rule, setup};

const SPENT: ConsultationResult = ConsultationResult::Absent(AbsenceReason::RunOverBudget);

fn advisory(phases: &[(&str, &str)], sentinel_first: bool) -> Setup {
    let request = AssemblyRequest::Advisory {
        phase: "session".to_owned(),
        trigger: "manual".to_owned(),
        sentinel_first,
    };
    let of_phase = |(id, phase): &(&str, &str)| Member { phase: Some((*phase).to_owned()), ..member(id) };
    let members = phases.iter().map(of_phase).collect();
    let rules = vec![rule("all", "aggregate", None, json!({}))];
    Setup { members, rules, ..setup(Mode::Advisory, request) }
}

/// A lead to whom two report, one of them with a member of its own.
fn tree() -> Setup {
    let below = |id: &str, parent: &str| Member { parent: Some(parent.into()), ..member(id) };
    let members = vec![member("lead"), below("ann", "lead"), below("ben", "lead"), below("cyd", "ben")];
    Setup { members, ..setup(Mode::Hierarchy, AssemblyRequest::Hierarchy) }
}

fn open(setup: &Setup) -> TestRun {
    TestRun::open(setup, "r", "It is about this.")
}

fn exhausted(sitting: &TestRun) -> &Value {
    let outcome = sitting.outcome();
    assert_eq!((&outcome["code"], &outcome["verdict"]), (&json!("budget_exhausted"), &json!("incomplete")));
    outcome
}

#[test]
fn advice_that_comes_after_the_budget_is_spent_escalates() {
    let mut sitting = open(&advisory(&[("a", "session"), ("b", "session"), ("c", "session")], false));
    sitting.answer("ask/a", advice(1, "", &[], "fine"));
    sitting.consulted("ask/b", SPENT);
    assert!(!sitting.finished, "what is out is waited for");
    sitting.answer("ask/c", advice(10, "harm", &[], "stop"));
    let outcome = exhausted(&sitting);
    assert_eq!(outcome["risk"], json!({"severity": 10, "level": "escalate"}));
    assert_eq!((&outcome["shouldEscalate"], &outcome["missing"]), (&json!(true), &json!(["b"])));
    assert_eq!((&outcome["rules"], outcome.get("fragments")), (&json!([]), None), "nothing is emitted");
}

#[test]
fn a_severity_anywhere_in_the_tree_escalates_when_the_budget_is_spent() {
    let mut sitting = open(&tree());
    sitting.consulted("node/ann", SPENT);
    sitting.answer("node/cyd", advice(10, "harm", &[], "stop"));
    let outcome = exhausted(&sitting);
    assert_eq!(outcome["risk"], json!({"severity": 10, "level": "escalate"}));
    assert_eq!(outcome["shouldEscalate"], json!(true));
    assert_eq!(outcome["missing"], json!(["lead", "ann", "ben"]), "members that would have been asked, too");
    let status: Vec<&Value> =
        outcome["nodes"].as_array().into_iter().flatten().map(|node| &node["status"]).collect();
    assert_eq!(status, ["not_asked", "not_asked", "not_asked", "answered"]);
    // What was passed up before counts as well.
    let mut sitting = open(&tree());
    sitting.answer("node/cyd", advice(9, "harm", &[], "stop"));
    sitting.answer("node/ben", advice(2, "", &[], ""));
    sitting.consulted("node/ann", SPENT);
    let outcome = exhausted(&sitting);
    assert_eq!(outcome["risk"], json!({"severity": 9, "level": "escalate"}));
    assert_eq!(outcome["missing"], json!(["lead", "ann"]));
    // The outcome must not claim `ok`.
    let mut sitting = open(&tree());
    sitting.answer("node/cyd", advice(1, "", &[], ""));
    sitting.consulted("node/ann", SPENT);
    assert!(!sitting.finished, "ben is out");
    sitting.consulted("node/ben", SPENT);
    let outcome = exhausted(&sitting);
    assert_eq!(outcome["risk"], json!({"severity": 1, "level": "watch"}));
    assert_eq!(outcome["shouldEscalate"], json!(false));
}

#[test]
fn members_with_a_pending_gather_are_named() {
    for (mut setup, step) in [
        (advisory(&[("a", "session"), ("b", "session")], false), "ask"),
        (
            Setup {
                members: ["a", "b"].map(member).to_vec(),
                ..setup(Mode::Voting, AssemblyRequest::Voting { class: None })
            },
            "ask",
        ),
        (
            Setup {
                members: ["a", "b"].map(member).to_vec(),
                ..setup(Mode::Peer, AssemblyRequest::Peer { rounds: None })
            },
            "round1",
        ),
    ] {
        setup.members.iter_mut().for_each(|member| member.strategy = "custom:own".into());
        let mut sitting = open(&setup);
        assert_eq!(sitting.gathers.len(), 2);
        let result = Err(event::TIME_EXHAUSTED.into());
        sitting.feed(Event::Gathered { id: format!("{step}/a").into(), result });
        let outcome = exhausted(&sitting);
        assert_eq!((&outcome["missing"], &outcome["partial"]), (&json!(["a", "b"]), &json!(true)));
        assert!(sitting.asked.is_empty());
    }
}

#[test]
fn the_phase_that_would_have_come_after_the_sentinels_is_named() {
    let mut sitting = open(&advisory(&[("guard", "sentinel"), ("a", "session"), ("deep", "standing")], true));
    sitting.consulted("ask/guard", SPENT);
    let outcome = exhausted(&sitting);
    assert_eq!((&outcome["missing"], &outcome["shouldEscalate"]), (&json!(["guard", "a"]), &json!(true)));
}

#[test]
fn cast_votes_are_reported() {
    let mut board = setup(Mode::Voting, AssemblyRequest::Voting { class: None });
    board.members = ["a", "b", "c"].map(member).to_vec();
    let vote = |vote: &str| json!({"vote": vote, "rationale": "r", "evidence": []});
    let mut sitting = open(&board);
    sitting.answer("ask/a", vote("yes"));
    sitting.consulted("ask/b", SPENT);
    sitting.answer("ask/c", vote("no"));
    let decision = &exhausted(&sitting)["decision"];
    assert_eq!(decision["result"], json!("incomplete"));
    let votes: Vec<&Value> =
        decision["votes"].as_array().into_iter().flatten().map(|vote| &vote["vote"]).collect();
    assert_eq!(votes, ["yes", "missing", "no"]);
    assert_eq!(decision.get("text"), None, "no decision is written");
}

#[test]
fn what_peers_have_said_before_stays_said() {
    let mut talk = setup(Mode::Peer, AssemblyRequest::Peer { rounds: Some(2) });
    talk.members = ["a", "b"].map(member).to_vec();
    let says = |text: &str| json!({"message": text, "addressedTo": "*"});
    let mut sitting = open(&talk);
    sitting.answer("round1/a", says("one"));
    sitting.answer("round1/b", says("two"));
    sitting.consulted("round2/a", SPENT);
    sitting.answer("round2/b", says("three"));
    let outcome = exhausted(&sitting);
    let texts: Vec<&Value> =
        outcome["messages"].as_array().into_iter().flatten().map(|message| &message["text"]).collect();
    assert_eq!(texts, ["one", "two"], "no lock was held against what came later");
    assert_eq!((&outcome["endedBy"], &outcome["missing"]), (&json!("budget"), &json!(["a"])));
}
