//! Named cases: who may vote, ties, no voters, all voters, many voters.

use quorate_manifest::assembly::Mode;
use quorate_protocol::assembly::{AssemblyRequest, Setup};
use quorate_protocol::{Event, FactKind, SemanticHit};
use serde_json::json;

use super::oracle::{Kind, Scope, Tie, Voter, VoterBehavior};
use super::stacks::{all, majority, quorum, some, veto};
use super::table::{self, CLASS};
use crate::test_run::{self, TestRun, locked};

/// A vote of members with the weight one.
fn vote(setup: &Setup, does: &[VoterBehavior]) -> TestRun {
    let voter = |(index, does): (usize, &VoterBehavior)| Voter { index, tenths: 10, does: *does };
    let voters: Vec<Voter> = does.iter().enumerate().map(voter).collect();
    let order: Vec<usize> = (0..does.len()).collect();
    table::vote_in(setup, "r", &voters, &order)
}

const YES: VoterBehavior = VoterBehavior::Yes;
const NO: VoterBehavior = VoterBehavior::No;
const ABSTAIN: VoterBehavior = VoterBehavior::Abstain;
const MISSING: VoterBehavior = VoterBehavior::Missing;

#[test]
fn without_voters_it_is_refused() {
    // V1: a list holds the class or it does not; an empty one holds none.
    let classes =
        |classes: Option<&[&str]>| classes.map(|all| all.iter().map(|one| (*one).to_owned()).collect());
    let mut setup = table::setup(&[], &["1", "1", "1"]);
    for (member, of) in setup.members.iter_mut().zip([Some(&["x"][..]), Some(&[][..]), Some(&["y", "z"][..])])
    {
        member.vote_class = classes(of);
    }
    for class in [Some(CLASS.to_owned()), None] {
        setup.request = AssemblyRequest::Voting { class };
        let sitting = TestRun::open(&setup, "r", table::PROPOSAL);
        assert_eq!((sitting.word("verdict"), sitting.word("code")), ("refused", "no_voters"));
        assert!(sitting.asked.is_empty());
    }
    setup.members.clear();
    assert_eq!(TestRun::open(&setup, "r", table::PROPOSAL).word("code"), "no_voters");
}

#[test]
fn an_unknown_class_is_reported() {
    let notes = |setup: &Setup| vote(setup, &[YES, YES]).outcome()["notes"].to_string();
    let mut setup = table::setup(&[], &["1", "1"]);
    assert!(notes(&setup).contains(&format!("names the class `{CLASS}`")), "{}", notes(&setup));
    // A member's class names it, among others of its own and beside members of others.
    let mut by_member = table::setup(&[], &["1", "1", "1"]);
    by_member.members[0].vote_class = Some(vec!["another".to_owned(), CLASS.to_owned()]);
    by_member.members[2].vote_class = Some(vec!["third".to_owned()]);
    assert!(!notes(&by_member).contains("names the class"), "{}", notes(&by_member));
    // So does the scope of a rule.
    setup.rules = vec![test_run::rule("veto", "unanimity", None, json!({"scope": CLASS}))];
    assert!(!notes(&setup).contains("names the class"), "{}", notes(&setup));
}

#[test]
fn the_class_chooses_the_voters_and_the_total() {
    // V1, V3: a member without a vote is neither asked nor counted, also where a rule names it.
    let mut setup = table::setup(&[some(quorum((1, 1)), &[0, 2])], &["1", "1", "1"]);
    setup.members[1].vote_class = Some(vec![CLASS.to_owned()]);
    setup.members[2].vote_class = Some(vec!["another".to_owned()]);
    let mut sitting = TestRun::open(&setup, "r", table::PROPOSAL);
    assert_eq!(sitting.asked_ids(), ["ask/ada", "ask/ben"]);
    assert_eq!(sitting.asked[0].extra_fields["weight"], "1");
    assert_eq!(sitting.asked[0].extra_fields["class"], CLASS);
    sitting.answer("ask/ada", table::ballot(YES).expect("a vote"));
    sitting.answer("ask/ben", table::ballot(NO).expect("a vote"));
    assert_eq!(sitting.word("verdict"), "pass");
    assert_eq!(sitting.outcome()["decision"]["exact"], json!({"yes": "1", "total": "1"}));
}

#[test]
fn a_chair_who_abstains_or_is_missing_rejects() {
    // V4
    let setup = table::setup(&[all(majority(Tie::Chair(2)))], &["1", "1", "1", "1"]);
    for (does, verdict, tie) in [
        ([YES, NO, YES, NO], "pass", "votes yes"),
        ([YES, YES, NO, NO], "fail", "votes no"),
        ([YES, YES, ABSTAIN, NO], "fail", "abstains"),
        ([YES, YES, MISSING, NO], "fail", "gave no vote"),
    ] {
        let sitting = vote(&setup, &does);
        assert_eq!(sitting.word("verdict"), verdict, "{does:?}");
        let tie_text = sitting.outcome()["decision"]["tie"].as_str().unwrap_or_default();
        assert!(tie_text.contains(tie), "{tie_text}");
    }
    // A chair who may not vote on this class breaks no tie.
    let mut setup = table::setup(&[all(majority(Tie::Chair(2)))], &["1", "1", "1"]);
    setup.members[2].vote_class = Some(Vec::new());
    assert_eq!(vote(&setup, &[YES, NO]).word("verdict"), "fail");
}

#[test]
fn a_random_tie_is_drawn_from_the_run_and_recorded() {
    // V4
    let setup = table::setup(&[all(majority(Tie::Random))], &["1", "1"]);
    let voters = [Voter { index: 0, tenths: 10, does: YES }, Voter { index: 1, tenths: 10, does: NO }];
    // By the lowest bit of the first byte of the run's SHA-256.
    let drawn =
        [("r0", "pass"), ("r1", "fail"), ("r2", "pass"), ("r3", "fail"), ("r4", "fail"), ("r6", "pass")];
    for (run, verdict) in drawn {
        let [one, other] = [[0, 1], [1, 0]].map(|order| table::vote_in(&setup, run, &voters, &order));
        assert_eq!(one.outcome(), other.outcome(), "the order draws nothing");
        assert_eq!(one.word("verdict"), verdict, "{run}");
        let tie_text = one.outcome()["decision"]["tie"].as_str().unwrap_or_default();
        assert!(tie_text.ends_with(verdict), "{tie_text}");
    }
}

#[test]
fn unanimity_names_who_dissents_and_counts_whom_it_is_for() {
    // V4
    let setup = table::setup(&[some(Kind::Unanimity, &[0, 1, 2])], &["1", "1", "2", "1"]);
    let sitting = vote(&setup, &[YES, NO, YES, NO]);
    let rule = &sitting.outcome()["rules"][0];
    assert_eq!(
        (&rule["members"], &rule["decides"], &rule["ratio"]),
        (&json!(["ben"]), &json!("fail"), &json!(0.75))
    );
}

#[test]
fn abstaining_is_a_vote() {
    // V3, V8: all abstain is a fail, not an incomplete; under `cast` it is nothing of nothing.
    for rules in [
        Vec::new(),
        vec![all(quorum((3, 10)))],
        vec![all(Kind::Quorum { threshold: (3, 10), cast: true })],
        vec![all(Kind::Majority { tie: Tie::Chair(0), cast: true })],
        vec![all(Kind::Unanimity)],
        vec![all(veto(Scope::All))],
    ] {
        let sitting = vote(&table::setup(&rules, &["1", "1", "1"]), &[ABSTAIN; 3]);
        assert_eq!(
            (sitting.word("verdict"), &sitting.outcome()["partial"]),
            ("fail", &json!(false)),
            "{rules:?}"
        );
    }
    let cast = table::setup(&[all(Kind::Quorum { threshold: (1, 1), cast: true })], &["1", "1", "1"]);
    assert_eq!(vote(&cast, &[YES, ABSTAIN, ABSTAIN]).word("verdict"), "pass");
    // Missing votes stay in.
    assert_eq!(vote(&cast, &[YES, ABSTAIN, MISSING]).word("verdict"), "fail");
}

#[test]
fn a_vetoer_who_is_missing_keeps_a_pass_from_standing() {
    // V8
    let rules = [some(veto(Scope::All), &[2]), all(majority(Tie::Reject))];
    let setup = table::setup(&rules, &["1", "1", "1"]);
    let sitting = vote(&setup, &[YES, YES, MISSING]);
    assert_eq!((sitting.word("verdict"), sitting.word("code")), ("incomplete", "missing_votes"));
    assert_eq!(sitting.word("stand"), "incomplete");
    assert_eq!(vote(&setup, &[YES, YES, ABSTAIN]).word("verdict"), "pass");
    // A single yes decides by this rule: a missing voter changes nothing then.
    let alone = table::setup(&[some(Kind::Terminal { on: YES, scope: Scope::This }, &[0])], &["1", "1", "1"]);
    assert_eq!(vote(&alone, &[YES, MISSING, MISSING]).word("verdict"), "pass");
}

#[test]
fn who_decides_alone_is_who_speaks() {
    // V4: the outcome is terminal, and has what the deciding members said, and no other member's words.
    let rules = [some(veto(Scope::All), &[1, 2]), all(majority(Tie::Reject))];
    let setup = table::setup(&rules, &["1", "1", "1", "1"]);
    let sitting = vote(&setup, &[YES, NO, YES, NO]);
    let outcome = sitting.outcome();
    assert_eq!((sitting.word("verdict"), &outcome["terminal"]), ("fail", &json!(true)));
    let said = outcome["decision"]["contribution"].as_array().expect("what was said");
    let who: Vec<_> = said.iter().map(|one| &one["member"]).collect();
    assert_eq!(who, [&outcome["decision"]["votes"][1]["member"]]);
    assert_eq!(said[0]["vote"], "no");
    assert!(said[0]["rationale"].is_string() && said[0]["evidence"].is_array(), "{said:?}");
    // Without a member that decides alone no member speaks alone.
    let sitting = vote(&setup, &[NO, YES, YES, NO]);
    assert_eq!(sitting.outcome()["terminal"], false);
    assert_eq!(sitting.outcome()["decision"].get("contribution"), None);
}

#[test]
fn a_vote_without_any_answer_is_incomplete() {
    // V8
    for rules in [Vec::new(), vec![all(veto(Scope::All))], vec![all(Kind::Unanimity)]] {
        let sitting = vote(&table::setup(&rules, &["1", "1"]), &[MISSING; 2]);
        assert_eq!((sitting.word("verdict"), sitting.word("code")), ("incomplete", "no_votes"), "{rules:?}");
        assert_eq!(sitting.outcome()["missing"], json!(["ada", "ben"]));
    }
}

#[test]
fn one_member_decides() {
    // V5
    let setup = table::setup(&[], &["0.1"]);
    let verdicts = VoterBehavior::ALL.map(|does| vote(&setup, &[does]).word("verdict").to_owned());
    assert_eq!(verdicts, ["pass", "fail", "fail", "incomplete"]);
}

#[test]
fn five_hundred_members_tie_exactly() {
    // V3: 250 times 0.1 is half of 500 times 0.1, for every kind of early end too.
    let weights = vec!["0.1"; 500];
    for early in [false, true] {
        let mut setup = table::setup(&[all(quorum((5, 10)))], &weights);
        setup.early_decision = early;
        let does = |yes: usize| -> Vec<VoterBehavior> {
            (0..500).map(|index| if index < yes { YES } else { NO }).collect()
        };
        assert_eq!(vote(&setup, &does(250)).word("verdict"), "pass");
        assert_eq!(vote(&setup, &does(249)).word("verdict"), "fail");
        setup.rules = vec![table::rule_setup(0, &all(majority(Tie::Unwritten)))];
        assert_eq!(vote(&setup, &does(250)).word("verdict"), "fail");
        assert_eq!(vote(&setup, &does(251)).word("verdict"), "pass");
    }
}

#[test]
fn a_rule_that_left_it_to_another_is_recorded_before_it() {
    // V4: the veto of a member that says yes does not fire.
    let setup = table::setup(&[some(veto(Scope::All), &[0]), all(majority(Tie::Reject))], &["1", "1"]);
    let sitting = vote(&setup, &[YES, NO]);
    let rules = sitting.recorded(FactKind::Rule);
    let fired: Vec<_> = rules.iter().map(|rule| (rule["kind"].clone(), rule["fired"].clone())).collect();
    assert_eq!(fired, [(json!("terminal"), json!(false)), (json!("majority"), json!(true))]);
}

#[test]
fn the_decision_says_what_was_proposed_and_what_came_of_it() {
    // V6
    let setup = table::setup(&[], &["1", "1"]);
    let sitting = vote(&setup, &[YES, YES]);
    assert!(!sitting.outcome()["notes"].to_string().contains("refused"));
    let text = sitting.outcome()["decision"]["text"].as_str().unwrap_or_default();
    for part in ["Spend it", "we spend it", "pass", "2 yes"] {
        assert!(text.contains(part), "{text}");
    }
    // The proposal's own words are the decision's words: a lock in them refuses it, also where it fails.
    let mut setup = setup;
    setup.locked_traits = vec![locked("spend it")];
    for does in [[YES, YES], [NO, NO]] {
        let sitting = vote(&setup, &does);
        assert_eq!((sitting.word("verdict"), sitting.word("code")), ("refused", "locked"));
        assert!(!sitting.recorded(FactKind::Violation).is_empty());
        assert!(sitting.outcome()["notes"].to_string().contains("the decision was refused"));
    }
    // A vote that did not decide is not part of a decision: a member's locked words do not change an incomplete run.
    assert_eq!(vote(&setup, &[MISSING, MISSING]).word("verdict"), "incomplete");
}

#[test]
fn the_whole_resolution_is_held_against_the_locks() {
    // V6
    let mut setup = table::setup(&[], &["1", "1"]);
    setup.locked_traits = vec![locked("skip the review")];
    let came = |proposal: &str| {
        let mut sitting = TestRun::open(&setup, "r", proposal);
        for at in 0..sitting.asked.len().min(2) {
            let id = sitting.asked[at].id.clone();
            sitting.answer(&id, json!({"vote": "yes", "rationale": "Fine."}));
        }
        let code = sitting.outcome()["code"].as_str().unwrap_or_default();
        (sitting.asked.len(), sitting.word("verdict").to_owned(), code.to_owned())
    };
    for proposal in [
        "# T\n\nResolution: we release it\nand skip the review.\n",
        "# T\n\nResolution: we do this:\n\n- release it\n- skip the review\n",
        "# T\n\nResolution: we release it.\n\nAnd we skip the review.\n",
        "# T\n\nResolution: we release it.\n\nRationale: fast.\n\nResolution: we skip the review.\n",
        "# T\n\n**Resolution:** skip the review.\n",
        "# T\n\n## Resolution\n\n1. release it\n2. skip the review\n\n## Why\n\nFast.\n",
        "# T\n\nIt is resolved that we skip the review.\n",
        // What no reader sees ends nothing.
        "# T\n\nResolution: go.\n\n<!--\n# x\n-->\n\nWe skip the review.\n",
        "# T\n\nResolution: go.\n\n#\n\nWe skip the review.\n",
        "# T\n\nResolution: go.\n\n```\n~~~\n# x\n```\n\nWe skip the review.\n",
        "# T\n\nResolution: go.\n\n<h2 hidden>x</h2>\n\nWe skip the review.\n",
        "# T\n\nResolution: go.\n\n[Rationale]: x\n\nWe skip the review.\n",
        "# T\n\nResolution: go.\n\n> Rationale: x\n\nWe skip the review.\n",
        "# T\r\rResolution: go.\r\rWe skip the review.\r\r# x\r",
    ] {
        assert_eq!(came(proposal), (2, "refused".into(), "locked".into()), "{proposal}");
    }
    let clean = "# T\n\nResolution: we release it.\n\nRationale: who would skip the review?\n";
    assert_eq!(came(clean).1, "pass");
    // Without a resolution, or with an empty one, the whole proposal is the decision's text.
    for (whole, verdict) in [
        ("# T\n\nWe skip it.\n", "pass"),
        ("# T\n\nWe skip the review.\n", "refused"),
        ("# T\n\n## Resolution\n\n## Plan\n\nWe skip the review.\n", "refused"),
        ("We skip\nthe review.\n\n# T\n", "refused"),
        ("# T\n\nRationale: who would skip the review?\n", "refused"),
    ] {
        let (asked, came_to, _) = came(whole);
        assert_eq!((asked, &*came_to), (2, verdict), "{whole}");
    }
    setup.locked_traits.clear();
    let mut sitting = TestRun::open(&setup, "r", "# T\n\nWe skip it.\n\n## Costs\n\nNone.\n");
    for id in ["ask/ada", "ask/ben"] {
        sitting.answer(id, table::ballot(YES).expect("a vote"));
    }
    let text = sitting.outcome()["decision"]["text"].as_str().unwrap_or_default();
    assert!(text.starts_with("# T\n\nWe skip it.\n\n## Costs\n\nNone.\nResult: pass."), "{text}");
}

#[test]
fn what_is_compared_by_meaning_withholds_as_text_does() {
    // V6, L4: a text with a hit does not exempt the member's other texts from the comparison.
    let mut setup = table::setup(&[some(veto(Scope::All), &[0]), all(majority(Tie::Reject))], &["1", "1"]);
    setup.locked_traits = vec![locked("backdate")];
    setup.match_mode = quorate_manifest::assembly::MatchMode::Semantic;
    setup.embeds = true;
    let open = || {
        let mut sitting = TestRun::open(&setup, "r", table::PROPOSAL);
        let evidence = ["We backdate it.", "An earlier date is written."];
        sitting.answer("ask/ada", json!({"vote": "no", "rationale": "Late.", "evidence": evidence}));
        sitting.answer("ask/ben", table::ballot(YES).expect("a vote"));
        sitting
    };
    let matched = |sitting: &mut TestRun, candidate: &str, result: Result<Vec<SemanticHit>, &str>| {
        let result = result.map_err(Into::into);
        sitting.feed(Event::Matched { candidate: candidate.into(), result, asked: None });
    };
    let hit = |text| SemanticHit { text, which: 0, start: 0, end: 4, probability: None };
    let withheld = "withheld: touches `backdate`";

    let mut sitting = open();
    matched(&mut sitting, "rationale/ada", Ok(vec![hit(2)]));
    matched(&mut sitting, "rationale/ben", Ok(Vec::new()));
    matched(&mut sitting, "decision", Ok(Vec::new()));
    assert_eq!((sitting.word("verdict"), &sitting.outcome()["violations"]), ("fail", &json!(2)));
    let contribution = &sitting.outcome()["decision"]["contribution"][0];
    assert_eq!(contribution["rationale"], "Late.");
    assert_eq!(contribution["evidence"], json!([withheld, withheld]));

    // A text that the host cannot compare is not persisted. Only the decision's own text refuses the decision.
    let mut sitting = open();
    matched(&mut sitting, "rationale/ada", Err("offline"));
    matched(&mut sitting, "rationale/ben", Ok(Vec::new()));
    matched(&mut sitting, "decision", Ok(Vec::new()));
    assert_eq!(sitting.word("verdict"), "fail");
    let vote = &sitting.outcome()["decision"]["votes"][0];
    assert_eq!(
        (&vote["vote"], &vote["withheld"]),
        (&json!("no"), &json!("withheld: the locked traits could not be checked"))
    );
    let mut sitting = open();
    matched(&mut sitting, "rationale/ada", Ok(Vec::new()));
    matched(&mut sitting, "rationale/ben", Ok(Vec::new()));
    matched(&mut sitting, "decision", Err("offline"));
    assert_eq!((sitting.word("verdict"), sitting.word("code")), ("refused", "locked"));
}

#[test]
fn a_rule_of_the_host_that_fails_decides_nothing() {
    // V8: neither pass nor fail; and its rule is asked again with missing votes as no.
    let mut setup = test_run::setup(Mode::Voting, AssemblyRequest::Voting { class: None });
    setup.members = ["ada", "ben"].map(test_run::member).to_vec();
    setup.rules = vec![test_run::rule("coin", "custom:coin", None, json!({}))];
    for (result, verdict) in [
        (Ok(json!({"decision": "pass"})), "pass"),
        (Ok(json!({"decision": "fail"})), "fail"),
        // Nothing said leaves it to the majority; anything else that is said and not understood could be a veto.
        (Ok(json!({"decision": null})), "pass"),
        (Ok(json!({})), "pass"),
        (Ok(json!(null)), "pass"),
        (Ok(json!({"decision": "perhaps"})), "incomplete"),
        (Ok(json!({"decision": false})), "incomplete"),
        (Ok(json!({"decision": ["fail"]})), "incomplete"),
        (Ok(json!("fail")), "incomplete"),
        (Ok(json!(["fail"])), "incomplete"),
        (Ok(json!(false)), "incomplete"),
        (Err("it broke"), "incomplete"),
    ] {
        let mut sitting = TestRun::open(&setup, "r", table::PROPOSAL);
        sitting.answer("ask/ada", table::ballot(YES).expect("a vote"));
        sitting.answer("ask/ben", table::ballot(YES).expect("a vote"));
        sitting.rule_applied("coin", result.clone());
        assert_eq!(sitting.word("verdict"), verdict, "{result:?}");
    }
    let mut sitting = TestRun::open(&setup, "r", table::PROPOSAL);
    sitting.answer("ask/ada", table::ballot(YES).expect("a vote"));
    sitting.give_no_answer("ask/ben");
    assert_eq!(json!(sitting.applies[0].input)["votes"][1]["vote"], json!(null));
    sitting.rule_applied("coin", Ok(json!({"decision": "pass"})));
    assert_eq!(json!(sitting.applies[0].input)["votes"][1]["vote"], "no");
    sitting.rule_applied("missing-as-no/coin", Ok(json!({"decision": "fail"})));
    assert_eq!((sitting.word("verdict"), sitting.word("code")), ("incomplete", "missing_votes"));
}

#[test]
fn a_rule_that_only_missing_votes_ask_is_recorded_as_such() {
    // V8: the host's rule passes, and leaves it to the majority once missing votes count as no.
    let mut setup = test_run::setup(Mode::Voting, AssemblyRequest::Voting { class: None });
    setup.members = ["ada", "ben"].map(test_run::member).to_vec();
    setup.rules = vec![
        test_run::rule("coin", "custom:coin", None, json!({})),
        test_run::rule("most", "majority", None, json!({})),
        test_run::rule("veto", "unanimity", None, json!({})),
    ];
    let mut sitting = TestRun::open(&setup, "r", table::PROPOSAL);
    sitting.answer("ask/ada", table::ballot(YES).expect("a vote"));
    sitting.give_no_answer("ask/ben");
    sitting.rule_applied("coin", Ok(json!({"decision": "pass"})));
    sitting.rule_applied("missing-as-no/coin", Ok(json!(null)));
    assert_eq!((sitting.word("verdict"), sitting.word("code")), ("incomplete", "missing_votes"));
    let rules = sitting.recorded(FactKind::Rule);
    let recorded: Vec<_> = rules
        .iter()
        .map(|rule| (rule["id"].as_str(), rule["fired"].as_bool(), rule["missingAsNo"].as_bool()))
        .collect();
    assert_eq!(recorded, [(Some("coin"), Some(true), None), (Some("most"), Some(false), Some(true))]);
}

#[test]
fn a_majority_of_those_who_voted_says_how_many_these_were() {
    // V4
    let mut setup = table::setup(&[], &["1", "1", "1"]);
    setup.rules = vec![test_run::rule("most", "majority", None, json!({"denominator": "cast"}))];
    let sitting = vote(&setup, &[YES, ABSTAIN, ABSTAIN]);
    assert_eq!(sitting.word("verdict"), "pass");
    assert_eq!(sitting.outcome()["decision"]["exact"], json!({"yes": "1", "total": "1"}));
}
