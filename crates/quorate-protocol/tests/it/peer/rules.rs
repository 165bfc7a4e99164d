//! Rules over the log of a conversation among equals, and what each is told about whom it reaches.

use quorate_manifest::assembly::Mode;
use quorate_protocol::Json;
use quorate_protocol::assembly::AssemblyRequest;
use serde_json::json;

use super::{name, plain, setup, to_all};
use crate::test_run::{self, TestRun};

#[test]
fn each_rule_is_applied_to_the_log_once() {
    let mut setup = setup(&plain(2, vec![vec![to_all("x"), None]]));
    let rule = |id: &str, kind: &str, of: Option<&[&str]>| test_run::rule(id, kind, of, json!({}));
    setup.rules = vec![
        rule("first", "custom:sum", None),
        rule("own", "aggregate", Some(&["p1"])),
        rule("second", "custom:sum", None),
        rule("all", "aggregate", None),
    ];
    let mut sitting = TestRun::open(&setup, "r", "Which style?");
    sitting.answer("round1/p0", json!({"message": "Plain.", "objection": true}));
    sitting.give_no_answer("round1/p1");
    let answer = |member: &str, answered: bool| json!({"member": member, "answered": answered, "objection": answered, "pass": false});
    let said = json!([{"round": 1, "from": "p0", "to": "*", "text": "Plain."}]);
    for ticket in ["log/first", "log/second"] {
        let [apply] = &sitting.applies[..] else { panic!("one rule at a time: {:?}", sitting.applies) };
        assert_eq!((&*apply.ticket, &*apply.kind), (ticket, "custom:sum"));
        let input = json!(apply.input);
        assert_eq!((&input["mode"], &input["round"], &input["messages"]), (&json!("peer"), &json!(1), &said));
        assert_eq!(input["answers"], json!([answer("p0", true), answer("p1", false)]));
        assert_eq!(format!("log/{}", input["rule"]["id"].as_str().unwrap_or_default()), ticket);
        sitting.rule_applied(ticket, Err("it broke"));
    }
    let rules = sitting.outcome()["rules"].clone();
    let applied = rules
        .as_array()
        .expect("a list")
        .iter()
        .map(|rule| json!([rule["id"], rule["fired"], rule["members"]]));
    assert_eq!(
        json!(applied.collect::<Vec<_>>()),
        json!([["first", false, []], ["own", true, []], ["second", false, []], ["all", true, ["p0"]]])
    );
}

#[test]
fn everybody_is_told_whom_it_reaches() {
    // P2
    let told = |params: Json| {
        let mut setup = test_run::setup(Mode::Peer, AssemblyRequest::Peer { rounds: Some(1) });
        setup.members = (0..4).map(|index| test_run::member(&name(index))).collect();
        setup.rules = vec![test_run::rule("log", "aggregate", None, params)];
        TestRun::open(&setup, "r", "Which style?").out["round1/p3"].task.to_string()
    };
    for (params, words) in [
        (json!({}), "(fully-connected) everybody reaches everybody."),
        (
            json!({"topology": "ring"}),
            "(ring) each reaches both neighbours in this order. You reach `p0`, `p2`.",
        ),
        (
            json!({"topology": "star", "hub": "p3"}),
            "(star) `p3` reaches everybody, and the others reach `p3` alone. You reach `p0`, `p1`, `p2`.",
        ),
        (
            json!({"peers": {"p3": ["p1"]}}),
            "(peers) each reaches those whom the manifest names. You reach `p1`.",
        ),
        (
            json!({"peers": {"p0": ["p1"]}}),
            "(peers) each reaches those whom the manifest names. You reach nobody;",
        ),
    ] {
        let task = told(params);
        assert!(task.contains(words), "{task}");
    }
}
