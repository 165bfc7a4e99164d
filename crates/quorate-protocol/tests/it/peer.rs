//! Talks of equals against an oracle that goes round by round: any topology, any ending, any messages, in any order of
//! arrival (P1 to P3). Each member's transcript is compared with the messages to it.

mod oracle;
mod rules;

use crate::test_run;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;
use quorate_manifest::assembly::{MatchMode, Mode};
use quorate_protocol::assembly::{AssemblyRequest, Setup};
use quorate_protocol::{Event, FactKind, Json, PartKind, SemanticHit};
use serde_json::json;

use oracle::{Delivered, Log, Says, Scenario, Termination, To, Topology};
use test_run::TestRun;

/// The most members of a talk.
const MOST: usize = 6;

const TEXTS: [&str; 6] = ["I object", "so do I", "why not", "", "more warmth", "be chilly"];

fn name(index: usize) -> String {
    format!("p{index}")
}

fn setup(talk: &Scenario) -> Setup {
    let asked = talk.asked.and_then(|rounds| u32::try_from(rounds).ok());
    let mut setup = test_run::setup(Mode::Peer, AssemblyRequest::Peer { rounds: asked });
    setup.members = (0..talk.members).map(|index| test_run::member(&name(index))).collect();
    let mut params = json!({});
    match &talk.topology {
        Topology::Unwritten => {}
        Topology::Full => params["topology"] = json!("fully-connected"),
        Topology::Ring => params["topology"] = json!("ring"),
        Topology::Star(hub) => {
            params["topology"] = json!("star");
            params["hub"] = json!(name(*hub));
        }
        Topology::Peers(peers) => {
            let named = |all: &Vec<usize>| all.iter().map(|one| name(*one)).collect::<Vec<_>>();
            let peers: std::collections::BTreeMap<String, Vec<String>> =
                peers.iter().map(|(from, all)| (name(*from), named(all))).collect();
            params["peers"] = json!(peers);
        }
    }
    match &talk.until {
        Termination::Unwritten => {}
        Termination::NoNewObjections => params["terminationRule"] = json!("no-new-objections"),
        Termination::AllPass => params["terminationRule"] = json!("all-pass"),
        Termination::Host(_) => params["terminationRule"] = json!("custom:enough"),
    }
    if let Some(rounds) = talk.written {
        params["maxRounds"] = json!(rounds);
    }
    let of: Option<Vec<String>> =
        talk.collected.as_ref().map(|indices| indices.iter().map(|index| name(*index)).collect());
    let of: Option<Vec<&str>> = of.as_ref().map(|of| of.iter().map(String::as_str).collect());
    setup.rules = vec![test_run::rule("log", "aggregate", of.as_deref(), params)];
    // A second one conducts nothing (P1).
    if of.is_none() {
        setup.rules.push(test_run::rule(
            "again",
            "aggregate",
            None,
            json!({"maxRounds": 99, "topology": "ring"}),
        ));
    }
    setup.locked_traits = vec![test_run::locked(oracle::LOCKED)];
    setup.embeds = talk.embeds;
    setup.match_mode = if talk.embeds { MatchMode::Semantic } else { MatchMode::Substring };
    setup
}

fn to_json(to: &To) -> Json {
    match to {
        To::All => json!("*"),
        To::Some(indices) => json!(indices.iter().map(|index| name(*index)).collect::<Vec<_>>()),
    }
}

fn said_json(said: &[Delivered]) -> Json {
    let one = |delivered: &Delivered| json!({"round": delivered.round, "from": name(delivered.from), "to": to_json(&delivered.to), "text": delivered.text});
    json!(said.iter().map(one).collect::<Vec<_>>())
}

/// Holds a talk in which answers and comparisons arrive in an order; what every member is shown is compared with the oracle.
fn run(talk: &Scenario, mut next: impl FnMut(usize) -> usize) -> (TestRun, Log) {
    let mut sitting = TestRun::open(&setup(talk), "r", "Which style?");
    let mut shown: Vec<Vec<Json>> = Vec::new();
    let log = talk.run(|_, said| {
        let heard = |index: usize| {
            let heard: Vec<Delivered> = said.iter().filter(|one| talk.hears(index, one)).cloned().collect();
            said_json(&heard)
        };
        shown.push((0..talk.members).map(heard).collect());
    });
    for round in 1..=log.rounds {
        assert_eq!(sitting.out.len(), talk.members, "everybody is asked once per round");
        while !sitting.out.is_empty() {
            let ids: Vec<String> = sitting.out.keys().map(ToString::to_string).collect();
            let id = &ids[next(ids.len())];
            let index = id.strip_prefix(&format!("round{round}/p")).and_then(|index| index.parse().ok());
            let index: usize = index.expect("every question belongs to the round");
            // P2: exactly what was said before to it or to all in reach; nothing is said as nothing.
            let part = test_run::part(&sitting.out[id.as_str()], PartKind::Transcript);
            assert_eq!(part.unwrap_or_else(|| json!([])), shown[round - 1][index], "{id} of {talk:#?}");
            match talk.says(round, index) {
                None => sitting.give_no_answer(id),
                Some(says) => sitting.answer(id, answer(&says)),
            }
            if sitting.finished || sitting.out.keys().any(|id| !id.starts_with(&format!("round{round}/"))) {
                break;
            }
        }
        while !sitting.matches.is_empty() {
            let one = sitting.matches.remove(next(sitting.matches.len()));
            let near = one.texts[0].contains(oracle::NEAR);
            let hit = SemanticHit { which: 0, text: 0, start: 0, end: one.texts[0].len(), probability: None };
            let near = if near { vec![hit] } else { Vec::new() };
            sitting.feed(Event::Matched { candidate: one.candidate, result: Ok(near), asked: None });
        }
        if let Some(apply) = sitting.applies.first().cloned() {
            let Termination::Host(ends) = &talk.until else {
                panic!("{apply:?} is of no rule of the host's")
            };
            match ends.get(round - 1).copied().flatten() {
                None => sitting.rule_applied(&apply.ticket, Err("it broke")),
                Some(ends) => sitting.rule_applied(&apply.ticket, Ok(json!({"end": ends}))),
            }
        }
    }
    (sitting, log)
}

fn answer(says: &Says) -> Json {
    json!({"message": says.text, "addressedTo": to_json(&says.to), "objection": says.objection, "pass": says.pass})
}

fn assert_agrees(talk: &Scenario, sitting: &TestRun, log: &Log) {
    let outcome = sitting.outcome();
    let shown = || format!("{talk:#?}\n{log:#?}\n{outcome:#}");
    let collected = |delivered: &&Delivered| {
        talk.collected.as_ref().is_none_or(|collected| collected.contains(&delivered.from))
    };
    let messages: Vec<Delivered> = log.said.iter().filter(collected).cloned().collect();
    assert_eq!(outcome["messages"], said_json(&messages), "{}", shown());
    assert_eq!(
        (&outcome["rounds"], sitting.word("endedBy")),
        (&json!(log.rounds), log.ended_by),
        "{}",
        shown()
    );
    let refused = log.out_of_reach + log.locked;
    let verdict = match log.ended_by {
        "no_answer" => "incomplete",
        _ if log.said.is_empty() && refused > 0 => "refused",
        _ => "done",
    };
    assert_eq!(sitting.word("verdict"), verdict, "{}", shown());
    assert_eq!(outcome["violations"], json!(refused), "{}", shown());
    let violations = sitting.recorded(FactKind::Violation);
    let beyond = violations.iter().filter(|violation| violation["code"] == "out_of_reach").count();
    assert_eq!((beyond, violations.len()), (log.out_of_reach, refused), "{}", shown());
    let missing: Vec<String> = log.missing.iter().map(|index| name(*index)).collect();
    assert_eq!((&outcome["missing"], &outcome["partial"]), (&json!(missing), &json!(!missing.is_empty())));
}

fn says() -> impl Strategy<Value = Option<Says>> {
    let text = prop_oneof![12 => 0..4_usize, 1 => 4..6_usize].prop_map(|at| TEXTS[at].to_owned());
    let to = prop_oneof![3 => Just(To::All), 2 => vec(0..=MOST, 0..3).prop_map(To::Some)];
    let said = (text, to, any::<bool>(), proptest::bool::weighted(0.7));
    let said = said.prop_map(|(text, to, objection, pass)| Some(Says { text, to, objection, pass }));
    prop_oneof![6 => said, 1 => Just(None)]
}

fn talk() -> impl Strategy<Value = Scenario> {
    let topology = prop_oneof![
        Just(Topology::Unwritten),
        Just(Topology::Full),
        Just(Topology::Ring),
        any::<Index>().prop_map(|hub| Topology::Star(hub.index(usize::MAX))),
        btree_map(0..MOST, vec(0..MOST, 0..4), 0..MOST).prop_map(Topology::Peers),
    ];
    let until = prop_oneof![
        2 => Just(Termination::Unwritten),
        1 => Just(Termination::NoNewObjections),
        1 => Just(Termination::AllPass),
        1 => vec(option::of(any::<bool>()), 0..4).prop_map(Termination::Host),
    ];
    let rounds = (option::weighted(0.7, 1..5_usize), option::weighted(0.2, 1..4_usize));
    let said = vec(vec(says(), MOST), 1..5);
    let collected = option::weighted(0.3, vec(0..MOST, 0..4));
    (1..=MOST, topology, until, rounds, said, collected, proptest::bool::weighted(0.3)).prop_map(
        |(members, topology, until, (written, asked), says, collected, embeds)| {
            let topology = match topology {
                Topology::Star(hub) => Topology::Star(hub % members),
                // Only members can be named: any other name is refused when the manifest is read.
                Topology::Peers(peers) => Topology::Peers(
                    peers
                        .into_iter()
                        .filter(|(from, _)| *from < members)
                        .map(|(from, to)| (from, to.into_iter().filter(|to| *to < members).collect()))
                        .collect(),
                ),
                other => other,
            };
            Scenario { members, topology, until, written, asked, says, collected, embeds }
        },
    )
}

/// Chooses by a list of indices, over and over.
fn by(order: &[Index]) -> impl FnMut(usize) -> usize + '_ {
    let mut order = order.iter().cycle();
    move |many| order.next().map_or(0, |index| index.index(many))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 600, ..ProptestConfig::default() })]

    // P1, P2, P3, L1, X5
    #[test]
    fn any_talk_goes_as_the_oracle_says_in_any_order(
        talk in talk(),
        one in vec(any::<Index>(), 1..20),
        other in vec(any::<Index>(), 1..20),
    ) {
        let (first, log) = run(&talk, by(&one));
        assert_agrees(&talk, &first, &log);
        let (second, _) = run(&talk, by(&other));
        let unordered = |sitting: &TestRun| {
            let mut outcome = sitting.outcome().clone();
            let mut notes: Vec<String> =
                outcome["notes"].as_array().into_iter().flatten().map(ToString::to_string).collect();
            notes.sort();
            outcome["notes"] = json!(notes);
            outcome
        };
        prop_assert_eq!(unordered(&first), unordered(&second), "the order of arrival changes nothing");
    }
}

fn to_all(text: &str) -> Option<Says> {
    Some(Says { text: text.to_owned(), to: To::All, objection: false, pass: false })
}

fn plain(members: usize, says: Vec<Vec<Option<Says>>>) -> Scenario {
    Scenario {
        members,
        topology: Topology::Unwritten,
        until: Termination::Unwritten,
        written: Some(says.len()),
        asked: None,
        says,
        collected: None,
        embeds: false,
    }
}

#[test]
fn a_message_without_a_list_of_addressees_is_for_all() {
    // P3: absent, null, "*", and a list with "*" are the same.
    for to in [json!(null), json!("*"), json!(["*", "p1"])] {
        let mut setup = setup(&plain(2, vec![vec![to_all("x"), to_all("y")]; 2]));
        setup.rules.truncate(1);
        let mut sitting = TestRun::open(&setup, "r", "Which style?");
        sitting.answer("round1/p0", json!({"message": "hear me", "addressedTo": to}));
        sitting.answer("round1/p1", json!({"message": "", "pass": true}));
        let heard = test_run::part(&sitting.out["round2/p1"], PartKind::Transcript);
        assert_eq!(heard, Some(json!([{"round": 1, "from": "p0", "to": "*", "text": "hear me"}])), "{to}");
    }
}

#[test]
fn without_any_rule_there_is_one_round_of_everybody() {
    // P1, P2
    let mut setup = setup(&plain(3, vec![vec![to_all("x"); 3]]));
    setup.rules.clear();
    let mut sitting = TestRun::open(&setup, "r", "Which style?");
    for index in [2, 0, 1] {
        sitting.answer(&format!("round1/p{index}"), json!({"message": "m"}));
    }
    assert_eq!(sitting.outcome()["messages"].as_array().map(Vec::len), Some(3));
    assert_eq!((sitting.word("endedBy"), sitting.word("topology")), ("max-rounds", "fully-connected"));
}

#[test]
fn a_termination_rule_that_cannot_be_read_is_noted() {
    // P1: a null output continues; malformed output also continues, and the outcome notes it.
    for (output, noted) in [
        (json!(null), false),
        (json!({}), false),
        (json!({"end": null}), false),
        (json!({"end": false}), false),
        (json!({"end": "true"}), true),
        (json!({"end": 1}), true),
        (json!(true), true),
        (json!(["end"]), true),
    ] {
        let mut talk = plain(1, vec![vec![to_all("x")]; 2]);
        talk.until = Termination::Host(Vec::new());
        let mut sitting = TestRun::open(&setup(&talk), "r", "Which style?");
        sitting.answer("round1/p0", json!({"message": "m"}));
        sitting.rule_applied("round1", Ok(output.clone()));
        assert!(sitting.out.contains_key("round2/p0"), "{output}");
        sitting.answer("round2/p0", json!({"message": "m"}));
        sitting.rule_applied("round2", Ok(json!({"end": true})));
        let notes = sitting.outcome()["notes"].to_string();
        assert_eq!(notes.contains("the termination rule could not be applied"), noted, "{output}: {notes}");
    }
}

#[test]
fn what_the_hosts_rule_makes_of_the_log_is_held_against_the_locks() {
    // L1: every text in it, also one that JSON would write with an escape, and the names of its fields.
    for output in [
        json!("no warmth"),
        json!({"summary": ["fine", {"deep": "no wa\u{ad}rmth"}]}),
        json!({"warmth": 1}),
        json!({"line": "change the voice\nregister"}),
    ] {
        let mut setup = setup(&plain(1, vec![vec![to_all("x")]]));
        setup.rules = vec![test_run::rule("sum", "custom:sum", None, json!({}))];
        setup.locked_traits = vec![test_run::locked("warmth"), test_run::locked("voice register")];
        let mut sitting = TestRun::open(&setup, "r", "Which style?");
        sitting.answer("round1/p0", json!({"message": "m"}));
        sitting.rule_applied("log/sum", Ok(output.clone()));
        assert!(sitting.outcome().get("synthesis").is_none(), "{output}");
        assert_eq!(sitting.outcome()["violations"], 1, "{output}");
    }
}

#[test]
fn who_never_answers_never_agrees() {
    // X5: with one of two members missing, "no objection" and "all pass" do not hold.
    for until in [Termination::NoNewObjections, Termination::AllPass] {
        let mut talk = plain(2, Vec::new());
        let pass = Some(Says { text: String::new(), to: To::All, objection: false, pass: true });
        talk.says = vec![vec![pass, None]; 10];
        talk.until = until;
        talk.written = None;
        let (sitting, log) = run(&talk, |_| 0);
        assert_eq!((log.rounds, log.ended_by), (10, "max-rounds"));
        assert_agrees(&talk, &sitting, &log);
    }
}

#[test]
fn equals_know_each_other_and_what_became_of_what_they_said() {
    // P2
    let mut setup = test_run::setup(Mode::Peer, AssemblyRequest::Peer { rounds: Some(3) });
    setup.members = (0..3).map(|index| test_run::member(&name(index))).collect();
    setup.members[1].role = "Copy editor".to_owned();
    setup.rules = vec![test_run::rule(
        "log",
        "aggregate",
        None,
        json!({"topology": "star", "hub": "p0", "maxRounds": 3}),
    )];
    setup.locked_traits = vec![test_run::locked(oracle::LOCKED)];
    let mut sitting = TestRun::open(&setup, "r", "Which style?");
    let task = |sitting: &TestRun, id: &str| sitting.out[id].task.to_string();
    let first = task(&sitting, "round1/p1");
    for said in ["`p0` (", "`p1` (Copy editor)", "star", "`p0` reaches everybody", "You reach `p0`."] {
        assert!(first.contains(said), "`{said}` is not said: {first}");
    }
    assert!(!first.contains("not delivered"), "{first}");
    let says = |text: &str, to: Json, objection: bool| json!({"message": text, "addressedTo": to, "objection": objection, "pass": false});
    sitting.answer("round1/p0", says("Plain.", json!("*"), true));
    sitting.answer("round1/p1", says("Ornate.", json!(["p2", "nobody"]), true));
    sitting.answer("round1/p2", says(&format!("More {}!", oracle::LOCKED), json!("*"), true));
    let refusal = |sitting: &TestRun, id: &str| {
        let text = task(sitting, id);
        text.split_once("Your message of round 1 was not delivered: ").map(|(_, why)| why.to_owned())
    };
    assert_eq!(refusal(&sitting, "round2/p0"), None);
    assert_eq!(refusal(&sitting, "round2/p1").as_deref(), Some("it names members out of your reach."));
    let locked = format!("it touches `{}`, which nothing said here may touch.", oracle::LOCKED);
    assert_eq!(refusal(&sitting, "round2/p2"), Some(locked));
    // One takes its objection back, one repeats it, and one gives no answer any more.
    sitting.answer("round2/p0", says("Fine.", json!("*"), false));
    sitting.answer("round2/p1", says("Still ornate.", json!("*"), true));
    sitting.give_no_answer("round2/p2");
    assert_eq!(refusal(&sitting, "round3/p1"), None, "what was delivered needs no word");
    for index in 0..3 {
        sitting.give_no_answer(&format!("round3/p{index}"));
    }
    assert_eq!(sitting.outcome()["objecting"], json!(["p1", "p2"]));
}

#[test]
fn an_objection_stands_until_it_is_taken_back() {
    // P1
    let talk = Scenario { until: Termination::NoNewObjections, written: None, ..plain(3, Vec::new()) };
    let mut sitting = TestRun::open(&setup(&talk), "r", "Which style?");
    for (index, objection) in [(0, json!(true)), (1, json!(true)), (2, Json::Null)] {
        let says = json!({"message": format!("m{index}"), "objection": objection});
        sitting.answer(&format!("round1/p{index}"), says);
    }
    // One withdraws it, and no message follows; one only passes.
    sitting.answer("round2/p0", json!({"message": "", "objection": false, "pass": true}));
    sitting.answer("round2/p1", json!({"message": "", "pass": true}));
    sitting.answer("round2/p2", json!({"message": "", "pass": true}));
    let outcome = sitting.outcome();
    assert_eq!((&outcome["endedBy"], &outcome["objecting"]), (&json!("no-new-objections"), &json!(["p1"])));
    let of = |member: &str, taken_back: bool| json!({"member": member, "round": 1, "takenBack": taken_back, "answered": false});
    assert_eq!(outcome["objections"], json!([of("p0", true), of("p1", false)]));
}

#[test]
fn an_objection_is_answered_by_what_reaches_its_author() {
    let mut setup = test_run::setup(Mode::Peer, AssemblyRequest::Peer { rounds: Some(2) });
    setup.members = (0..3).map(|index| test_run::member(&name(index))).collect();
    setup.rules = vec![test_run::rule("log", "aggregate", None, json!({"topology": "star", "hub": "p0"}))];
    let mut sitting = TestRun::open(&setup, "r", "Which style?");
    for index in 0..3 {
        sitting.answer(&format!("round1/p{index}"), json!({"message": "No.", "objection": true}));
    }
    sitting.answer("round2/p0", json!({"message": "Why?", "addressedTo": ["p1"], "objection": true}));
    sitting.answer("round2/p1", json!({"message": "So.", "objection": false}));
    sitting.answer("round2/p2", json!({"message": "", "objection": false}));
    let objections = sitting.outcome()["objections"].clone();
    let answered =
        objections.as_array().expect("a list").iter().map(|objection| objection["answered"] == json!(true));
    assert_eq!(answered.collect::<Vec<_>>(), [false, true, false], "{objections}");
}

#[test]
fn a_sender_is_shown_a_limited_number_of_ids() {
    let talk = Scenario { written: Some(2), ..plain(2, Vec::new()) };
    let mut sitting = TestRun::open(&setup(&talk), "r", "Which style?");
    let ids: Vec<String> = (0..2_000).map(|n| format!("{n}{}", "x".repeat(500))).collect();
    sitting.answer("round1/p0", json!({"message": "Hello.", "addressedTo": ids}));
    sitting.answer("round1/p1", json!({"message": "Hello."}));
    let task = &sitting.out["round2/p0"].task;
    assert!(task.contains("it names members out of your reach") && task.len() < 3_000, "{task}");
}
