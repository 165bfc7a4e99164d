//! Advisory guidance, case by case: who is asked, what a terminal rule drops, how long overlays hold, which level of
//! risk it is (A1 to A6, X12).

use quorate_manifest::assembly::RiskLabel;
use quorate_manifest::timestamp;
use quorate_protocol::assembly::{AssemblyRequest, Setup};
use quorate_protocol::{AbsenceReason, ConsultationResult, Event, FactKind, Json, PartKind};
use serde_json::json;

use super::council::{self, TALK, all, fragments, member, notes, session_members};
use crate::test_run::{self, OPENED_MS, TestRun, advice, levels, locked, rule};

const DAY_MS: i64 = 86_400_000;

fn open(setup: &Setup) -> TestRun {
    TestRun::open(setup, "r", TALK)
}

/// A run that all members end, over a rule or two.
fn advise(setup: &Setup, says: &[(&str, Json)]) -> TestRun {
    let mut sitting = open(setup);
    all(&mut sitting, says);
    sitting
}

fn with(mut setup: Setup, rules: &[(&str, Json)]) -> Setup {
    let written =
        |(at, (kind, params)): (usize, &(&str, Json))| rule(&format!("r{at}"), kind, None, params.clone());
    setup.rules = rules.iter().enumerate().map(written).collect();
    setup
}

fn fragment(member: &str, priority: u64, rule: &str) -> (String, u64, String) {
    (member.to_owned(), priority, rule.to_owned())
}

#[test]
fn who_is_asked() {
    // A1: phase and trigger; `sentinel-match` is a trigger of the sentinel pass alone.
    let members = [
        member("all", Some("session"), None),
        member("manual", Some("session"), Some(&["manual", "sample"])),
        member("sample", Some("session"), Some(&["sample"])),
        member("never", Some("session"), Some(&[])),
        member("deep", Some("standing"), None),
        member("nowhere", None, None),
        member("guard", Some("sentinel"), Some(&["sentinel-match"])),
        member("watch", Some("sentinel"), None),
    ];
    for (phase, trigger, first, expected) in [
        ("session", "manual", false, vec!["ask/all", "ask/manual"]),
        ("session", "sample", false, vec!["ask/all", "ask/manual", "ask/sample"]),
        ("session", "sentinel-match", false, vec!["ask/all"]),
        ("standing", "manual", false, vec!["ask/deep"]),
        ("sentinel", "manual", false, vec!["ask/watch"]),
        ("sentinel", "sentinel-match", false, vec!["ask/guard", "ask/watch"]),
        ("session", "manual", true, vec!["ask/guard", "ask/watch"]),
        ("sentinel", "manual", true, vec!["ask/watch"]),
        ("custom", "manual", false, vec![]),
        ("custom", "manual", true, vec!["ask/guard", "ask/watch"]),
    ] {
        let mut setup = council::setup(&members, false);
        setup.request = AssemblyRequest::Advisory {
            phase: phase.to_owned(),
            trigger: trigger.to_owned(),
            sentinel_first: first,
        };
        let sitting = open(&setup);
        assert_eq!(sitting.asked_ids(), expected, "{phase}, {trigger}, sentinel first: {first}");
        for invoke in &sitting.asked {
            assert_eq!(invoke.extra_fields["trigger"], trigger);
        }
        // A phase without members gives guidance all the same, with a note.
        if expected.is_empty() {
            assert_eq!(sitting.word("verdict"), "done");
            assert_eq!(sitting.outcome()["fragments"], json!([]));
            assert!(notes(&sitting, "nobody is in the phase `custom`"));
        }
    }
}

#[test]
fn a_sentinel_that_fires_ends_it_before_anybody_else_is_asked() {
    // A1, A3
    let members = [member("a", Some("session"), None), member("guard", Some("sentinel"), None)];
    let rules = [("terminal", json!({})), ("aggregate", json!({}))];
    let setup = with(council::setup(&members, true), &rules);
    let sitting =
        advise(&setup, &[("guard", advice(9, "harm", &[], "stop")), ("a", advice(1, "", &[], "go on"))]);
    assert_eq!(sitting.asked_ids(), ["ask/guard"]);
    assert_eq!(fragments(&sitting), [fragment("guard", 100, "r0")]);
    assert_eq!(
        (&sitting.outcome()["terminal"], &sitting.outcome()["partial"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(sitting.outcome()["shouldEscalate"], true);
}

#[test]
fn a_sentinel_that_does_not_fire_is_heard_with_the_others() {
    // A1, A3, A4: nothing of the first pass is said twice.
    let members = [member("a", Some("session"), None), member("guard", Some("sentinel"), None)];
    let rules = [("terminal", json!({})), ("aggregate", json!({}))];
    let setup = with(council::setup(&members, true), &rules);
    let sitting =
        advise(&setup, &[("guard", advice(4, "odd", &[], "slow down")), ("a", advice(6, "x", &[], "less"))]);
    assert_eq!(sitting.asked_ids(), ["ask/guard", "ask/a"]);
    assert_eq!(fragments(&sitting), [fragment("a", 50, "r1"), fragment("guard", 49, "r1")]);
    let rules: Vec<&Json> =
        sitting.outcome()["rules"].as_array().into_iter().flatten().map(|rule| &rule["id"]).collect();
    assert_eq!(rules, ["r0", "r1"], "each rule is reported once");
    assert_eq!(sitting.recorded(FactKind::Rule).len(), 2);
    assert_eq!(sitting.outcome()["risk"]["severity"], 6);
}

#[test]
fn a_missing_sentinel_escalates() {
    // X12: in its own pass, in the phase, where all are silent, and where the budget ends it.
    let guard = member("guard", Some("sentinel"), None);
    let members = [member("a", Some("session"), None), guard];
    let rules = [("aggregate", json!({}))];
    let first = with(council::setup(&members, true), &rules);
    let sitting = advise(&first, &[("a", advice(0, "", &[], "fine"))]);
    assert_eq!((&sitting.outcome()["missing"], sitting.word("verdict")), (&json!(["guard"]), "done"));
    assert_eq!(sitting.outcome()["shouldEscalate"], true);
    assert_eq!(sitting.outcome()["risk"], json!({"severity": 0, "level": "watch"}));
    let silent = advise(&first, &[]);
    assert_eq!((silent.word("code"), &silent.outcome()["shouldEscalate"]), ("no_answer", &json!(true)));
    let mut spent = open(&first);
    spent.consulted("ask/guard", ConsultationResult::Absent(AbsenceReason::RunOverBudget));
    assert_eq!((spent.word("code"), &spent.outcome()["shouldEscalate"]), ("budget_exhausted", &json!(true)));
    // Any other member that is missing makes it partial, and not ok, and no more.
    let setup = with(council::setup(&session_members(2), false), &rules);
    let sitting = advise(&setup, &[("a0", advice(1, "", &[], "fine"))]);
    assert_eq!(
        (&sitting.outcome()["partial"], &sitting.outcome()["shouldEscalate"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(sitting.outcome()["risk"]["level"], "watch");
}

#[test]
fn an_unreadable_answer_is_missing() {
    // X5, X12; and what a JSON Schema calls an integer is one.
    let setup = with(council::setup(&session_members(3), false), &[("aggregate", json!({}))]);
    let whole = json!({"severity": 8.0, "concern": "", "suggestion": "eight"});
    let half = json!({"severity": 7.5, "concern": "", "suggestion": "seven and a half"});
    let sitting =
        advise(&setup, &[("a0", whole), ("a1", half), ("a2", json!({"severity": 11, "concern": ""}))]);
    assert_eq!(fragments(&sitting), [fragment("a0", 50, "r0")]);
    assert_eq!(sitting.outcome()["missing"], json!(["a1", "a2"]));
    assert_eq!(sitting.outcome()["risk"]["severity"], 8);
}

#[test]
fn a_terminal_rule_drops_what_came_before_also_when_it_has_nothing_to_say() {
    // A3
    let rules = [
        ("priority", json!({"triggerKind": "sycophancy"})),
        ("terminal", json!({})),
        ("aggregate", json!({})),
    ];
    let setup = with(council::setup(&session_members(3), false), &rules);
    let before = ("a0", advice(3, "it agrees with all", &[], "disagree"));
    let other = ("a2", advice(9, "also", &[], "second"));
    for (suggestion, expected) in
        [("stop", vec![fragment("a1", 100, "r1")]), ("", vec![]), ("no warmth", vec![])]
    {
        let mut setup = setup.clone();
        setup.locked_traits = vec![locked("warmth")];
        let sitting =
            advise(&setup, &[before.clone(), ("a1", advice(9, "harm", &[], suggestion)), other.clone()]);
        assert_eq!(fragments(&sitting), expected, "{suggestion}");
        assert_eq!(sitting.outcome()["terminal"], true, "{suggestion}");
        assert_eq!(
            sitting.outcome()["rules"].as_array().map(Vec::len),
            Some(2),
            "what comes after is not applied"
        );
    }
    // The gravest member, then the first; the trigger is the declared one, or nine.
    let severe = |one, other| {
        advise(&setup, &[("a1", advice(one, "", &[], "x")), ("a2", advice(other, "", &[], "y"))])
    };
    assert_eq!(fragments(&severe(9, 10)), [fragment("a2", 100, "r1")]);
    assert_eq!(fragments(&severe(10, 10)), [fragment("a1", 100, "r1")]);
    assert_eq!(fragments(&severe(8, 8)), [fragment("a1", 50, "r2"), fragment("a2", 49, "r2")]);
}

#[test]
fn words_of_a_priority() {
    // A3
    for (params, concern, fires) in [
        (json!({"triggerKind": "sycophancy"}), "It PLEASES everybody", true),
        (json!({"triggerKind": "sycophancy"}), "Sycophantic", true),
        (json!({"triggerKind": "sycophancy"}), "it validated it", true),
        (json!({"triggerKind": "sycophancy"}), "disagreeable", true),
        (json!({"triggerKind": "sycophancy"}), "flattery", false),
        (json!({"triggerKind": "sycophancy", "words": ["flatter"]}), "flattery", false),
        (json!({"triggerKind": "over-promise"}), "an Over Promise of it", true),
        (json!({"triggerKind": "over-promise"}), "over-promise", false),
        (json!({"triggerKind": "over-promise", "words": ["Guarantee"]}), "it guarantees that", true),
        (json!({"triggerKind": "over-promise", "words": ["guarantee"]}), "an over promise", false),
        (json!({"words": ["soon"]}), "as soon as that", true),
        (json!({}), "anything", false),
    ] {
        let setup = with(council::setup(&session_members(1), false), &[("priority", params.clone())]);
        let sitting = advise(&setup, &[("a0", advice(2, concern, &[], "less"))]);
        let expected = if fires { vec![fragment("a0", 80, "r0")] } else { vec![] };
        assert_eq!(fragments(&sitting), expected, "{params} on `{concern}`");
        assert_eq!(sitting.outcome()["rules"][0]["fired"], fires);
    }
}

#[test]
fn the_gravest_come_first() {
    // A3, A4: severity, then evidence, then roster; a place is not lost to who has nothing to suggest.
    let says = [
        ("a0", advice(5, "", &["e"], "zero")),
        ("a1", advice(7, "", &[], "one")),
        ("a2", advice(5, "", &["e", "f"], "two")),
        ("a3", advice(9, "", &[], "")),
        ("a4", advice(5, "", &["g"], "four")),
    ];
    for (params, expected) in [
        (json!({}), vec![("a1", 50), ("a2", 49), ("a0", 48), ("a4", 47)]),
        (json!({"topN": 2}), vec![("a1", 50), ("a2", 49)]),
        (json!({"maxSeverity": 5, "topN": 1}), vec![("a2", 50)]),
        (json!({"minSeverity": 6}), vec![("a1", 50)]),
        (json!({"minSeverity": 6, "maxSeverity": 5}), vec![]),
        (json!({"priorityBase": 2}), vec![("a1", 2), ("a2", 1), ("a0", 0), ("a4", 0)]),
        (json!({"priority": 66}), vec![("a1", 66), ("a2", 66), ("a0", 66), ("a4", 66)]),
    ] {
        let setup = with(council::setup(&session_members(5), false), &[("aggregate", params.clone())]);
        let expected: Vec<_> =
            expected.into_iter().map(|(member, priority)| fragment(member, priority, "r0")).collect();
        assert_eq!(fragments(&advise(&setup, &says)), expected, "{params}");
    }
}

#[test]
fn any_rule_may_end_it() {
    // A3: one that has emitted something.
    let rules =
        [("priority", json!({"triggerKind": "sycophancy", "terminal": true})), ("aggregate", json!({}))];
    let setup = with(council::setup(&session_members(2), false), &rules);
    let other = ("a1", advice(5, "", &[], "other"));
    let ends = advise(&setup, &[("a0", advice(2, "agrees", &[], "less")), other.clone()]);
    assert_eq!(
        (fragments(&ends), &ends.outcome()["terminal"]),
        (vec![fragment("a0", 80, "r0")], &json!(true))
    );
    let silent = advise(&setup, &[("a0", advice(2, "agrees", &[], "")), other]);
    assert_eq!(
        (fragments(&silent), &silent.outcome()["terminal"]),
        (vec![fragment("a1", 50, "r1")], &json!(false))
    );
}

#[test]
fn how_long_overlays_hold() {
    // A5: the rule's, else the assembly's; never less than a day or more than thirty.
    let day = |days: i64| days * DAY_MS;
    for (params, default, expected_ms, noted) in [
        (json!({}), "P14D", day(14), false),
        (json!({"ttl": "P2D"}), "P14D", day(2), false),
        (json!({"ttlMs": day(3)}), "P14D", day(3), false),
        (json!({"ttlMs": day(3), "ttl": "P2D"}), "P14D", day(3), false),
        (json!({"ttl": "P1D"}), "P14D", day(1), false),
        (json!({"ttl": "P30D"}), "P14D", day(30), false),
        (json!({"ttlMs": 1}), "P14D", day(1), true),
        (json!({"ttlMs": day(1) - 1}), "P14D", day(1), true),
        (json!({"ttlMs": day(30) + 1}), "P14D", day(30), true),
        (json!({"ttlMs": u64::MAX}), "P14D", day(30), true),
        (json!({"ttl": "P1Y"}), "P14D", day(30), true),
        (json!({}), "P0D", day(1), true),
        (json!({}), "P1Y", day(30), true),
        (json!({}), "PT36H", day(1) + DAY_MS / 2, false),
    ] {
        let mut setup = with(council::setup(&session_members(1), false), &[("aggregate", params.clone())]);
        setup.overlays.default_ttl = default.to_owned();
        let sitting = advise(&setup, &[("a0", advice(5, "", &[], "less"))]);
        let expires = sitting.outcome()["fragments"][0]["expires"].as_str().unwrap_or_default();
        let lives = timestamp::parse(expires).map(|expires_ms| expires_ms - OPENED_MS);
        assert_eq!(lives, Some(expected_ms), "{params}, {default}");
        assert_eq!(notes(&sitting, "overlays hold for 1 to 30 days"), noted, "{params}, {default}");
    }
}

#[test]
fn levels_of_risk() {
    // A6: a gap takes the nearest level above; what is above all takes the highest.
    use RiskLabel::{Escalate, Intervene, Ok, Watch};
    let whole = vec![(0, 2, Ok), (3, 4, Watch), (5, 8, Intervene), (9, 10, Escalate)];
    let gaps = vec![(6, 7, Intervene), (1, 2, Ok), (4, 4, Watch)];
    for (map, severity, level) in [
        (&whole, 0, "ok"),
        (&whole, 2, "ok"),
        (&whole, 3, "watch"),
        (&whole, 5, "intervene"),
        (&whole, 9, "escalate"),
        (&whole, 10, "escalate"),
        (&gaps, 0, "ok"),
        (&gaps, 3, "watch"),
        (&gaps, 5, "intervene"),
        (&gaps, 7, "intervene"),
        (&gaps, 10, "intervene"),
        (&Vec::new(), 0, "escalate"),
    ] {
        let mut setup = council::setup(&session_members(2), false);
        setup.risk_levels = levels(map);
        let says = [("a0", advice(severity, "", &[], "")), ("a1", advice(0, "", &[], ""))];
        let sitting = advise(&setup, &says);
        let outcome = sitting.outcome();
        assert_eq!(outcome["risk"], json!({"severity": severity, "level": level}), "{map:?}");
        assert_eq!(outcome["shouldEscalate"], level == "escalate", "{map:?}, {severity}");
    }
}

#[test]
fn a_locked_suggestion_is_dropped_and_the_others_stay() {
    // L1, D7
    let mut setup = with(council::setup(&session_members(3), false), &[("aggregate", json!({}))]);
    setup.locked_traits = vec![locked("warmth")];
    let says = [
        ("a0", advice(5, "warmth is a concern", &["warmth"], "less")),
        ("a1", advice(6, "", &[], "drop the w\u{200b}armth")),
        ("a2", advice(4, "", &[], "ask")),
    ];
    let sitting = advise(&setup, &says);
    // Nothing but the suggestion is persisted, so nothing else is checked.
    assert_eq!(fragments(&sitting), [fragment("a0", 49, "r0"), fragment("a2", 48, "r0")]);
    assert_eq!(sitting.recorded(FactKind::LockCheck).len(), 3);
    let violations = sitting.recorded(FactKind::Violation);
    assert_eq!((violations.len(), &violations[0]["member"]), (1, &json!("a1")));
    assert_eq!(violations[0]["invocation"], "ask/a1");
    assert!(notes(&sitting, "fragment/a1"));
}

#[test]
fn a_rule_of_the_hosts_is_applied_to_the_sentinels_and_again_to_all() {
    let members = [member("guard", Some("sentinel"), None), member("a0", Some("session"), None)];
    let mut setup = council::setup(&members, true);
    setup.rules = vec![rule("own", "custom:own", None, json!({}))];
    let mut sitting = open(&setup);
    for (id, ticket) in [("guard", "sentinel/own"), ("a0", "own")] {
        sitting.answer(&format!("ask/{id}"), advice(1, "", &[], ""));
        let asked: Vec<&str> = sitting.applies.iter().map(|apply| &*apply.ticket).collect();
        assert_eq!(asked, [ticket]);
        sitting.rule_applied(ticket, Ok(json!({})));
    }
    assert_eq!(sitting.word("verdict"), "done");
}

#[test]
fn what_the_host_gathers_is_shown_to_the_member_it_is_for() {
    let mut setup = council::setup(&session_members(2), false);
    setup.members[0].strategy = "custom:own".into();
    let mut sitting = open(&setup);
    assert_eq!(sitting.asked_ids(), ["ask/a1"]);
    assert_eq!(sitting.gathers.len(), 1);
    sitting.feed(Event::Gathered { id: "ask/a0".into(), result: Ok("What was found.".into()) });
    assert_eq!(sitting.asked_ids(), ["ask/a1", "ask/a0"]);
    let shown: Vec<(PartKind, &str)> =
        sitting.out["ask/a0"].parts.iter().map(|part| (part.kind, &*part.text)).collect();
    assert_eq!(shown, [(PartKind::Gathered, "What was found.")]);
}

#[test]
fn a_rule_of_the_hosts() {
    // A3, A4: it emits for the members that it names, once; a failure is noted and escalates.
    let mut setup = council::setup(&session_members(2), false);
    setup.rules = vec![
        test_run::rule("own", "custom:own", Some(&["a0"]), json!({})),
        test_run::rule("rest", "aggregate", None, json!({})),
    ];
    let says = [("a0", advice(5, "", &[], "zero")), ("a1", advice(6, "", &[], "one"))];
    let run = |result: Result<Json, &str>| {
        let mut sitting = open(&setup);
        all(&mut sitting, &says);
        let outputs = json!(sitting.applies[0].input)["outputs"].as_array().cloned().unwrap_or_default();
        assert_eq!(outputs.len(), 1, "it is shown whom it applies to");
        sitting.rule_applied("own", result);
        sitting
    };
    let emits = run(Ok(
        json!({"fragments": [{"member": "a0", "priority": 250}, {"member": "a0"}, {"member": "zed"}]}),
    ));
    assert_eq!(fragments(&emits), [fragment("a0", 100, "own"), fragment("a1", 50, "rest")]);
    assert!(notes(&emits, "`zed`"));
    let ends = run(Ok(json!({"fragments": [], "terminal": true})));
    assert_eq!((fragments(&ends), &ends.outcome()["terminal"]), (vec![], &json!(true)));
    // Unreadable output fails like a broken rule: it may have meant to end the run.
    for (result, failed) in [
        (Err("it broke"), true),
        (Ok(Json::Null), false),
        (Ok(json!({})), false),
        (Ok(json!({"fragments": null, "terminal": null})), false),
        (Ok(json!([1, 2])), true),
        (Ok(json!([null, true])), true),
        (Ok(json!("stop")), true),
        (Ok(json!({"terminal": "true"})), true),
        (Ok(json!({"fragments": "a0"})), true),
        (Ok(json!({"fragments": [{"priority": 3}]})), true),
        (Ok(json!({"fragments": [{"member": "a0", "priority": "high"}]})), true),
    ] {
        let sitting = run(result.clone());
        assert_eq!(
            fragments(&sitting),
            [fragment("a1", 50, "rest"), fragment("a0", 49, "rest")],
            "{result:?}"
        );
        assert_eq!(sitting.outcome()["shouldEscalate"], failed, "{result:?}");
        assert_eq!(notes(&sitting, "could not be applied"), failed, "{result:?}");
    }
}
