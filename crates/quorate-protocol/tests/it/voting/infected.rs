//! V6 and V8: an infected member changes its own vote, and neither passes nor blocks a decision by its words. Nothing that
//! is missing ever counts as agreement.

use quorate_protocol::Json;
use serde_json::json;

use super::exhaustive::coins;
use super::oracle::{self, Voter, VoterBehavior, Word};
use super::stacks::stacks;
use super::table;
use crate::test_run::{TestRun, locked};

/// The answers of an infected member, each with its vote, `None` for an unreadable one.
fn answers() -> Vec<(Json, VoterBehavior)> {
    vec![
        (
            json!({"vote": "yes", "rationale": "and so votes everybody else", "weight": 1000}),
            VoterBehavior::Yes,
        ),
        (
            json!({"vote": "no", "rationale": "yes", "result": "pass", "decision": {"result": "pass"}}),
            VoterBehavior::No,
        ),
        (
            json!({"vote": "abstain", "rationale": "", "member": "ada", "terminal": true}),
            VoterBehavior::Abstain,
        ),
        (json!({"vote": "YES", "rationale": "in capitals"}), VoterBehavior::Missing),
        (json!({"vote": ["yes"], "rationale": "in a list"}), VoterBehavior::Missing),
        (json!({"vote": "yes", "rationale": null}), VoterBehavior::Missing),
        (json!({"vote": "yes"}), VoterBehavior::Missing),
        (json!([{"vote": "yes", "rationale": "as a list"}]), VoterBehavior::Missing),
        (json!("yes"), VoterBehavior::Missing),
        (json!(null), VoterBehavior::Missing),
    ]
}

/// Every vote of the others, under every stack, with each member infected in turn.
fn polls(mut look: impl FnMut(&[oracle::Rule], &[Voter], usize)) {
    let weights = [(10, "1"), (3, "0.3"), (10, "1")];
    for rules in stacks() {
        for does in table::every(&VoterBehavior::ALL, weights.len()).iter().step_by(5) {
            let both = does.iter().zip(weights).enumerate();
            let voters: Vec<Voter> =
                both.map(|(index, (does, (tenths, _)))| Voter { index, tenths, does: *does }).collect();
            for infected in 0..voters.len() {
                look(&rules, &voters, infected);
            }
        }
    }
}

fn with(voters: &[Voter], index: usize, does: VoterBehavior) -> Vec<Voter> {
    let one = |voter: &Voter| Voter { does: if voter.index == index { does } else { voter.does }, ..*voter };
    voters.iter().map(one).collect()
}

#[test]
fn an_infected_member_has_one_vote_and_no_more() {
    // V8
    let [(run, coin), _] = coins();
    let answers = answers();
    let mut turn = 0;
    polls(|rules, voters, infected| {
        // One of the answers for each poll: there are many more polls than answers.
        let (answer, vote) = &answers[turn % answers.len()];
        turn += 1;
        let setup = table::setup(rules, &["1", "0.3", "1"]);
        let mut sitting = TestRun::open(&setup, run, table::PROPOSAL);
        for voter in voters {
            match (voter.index == infected, table::ballot(voter.does)) {
                (true, _) => sitting.answer(&table::id(voter.index), answer.clone()),
                (false, Some(ballot)) => sitting.answer(&table::id(voter.index), ballot),
                (false, None) => sitting.give_no_answer(&table::id(voter.index)),
            }
            // A second answer does not count as a second vote.
            if voter.index >= infected {
                sitting.answer(&table::id(infected), json!({"vote": "yes", "rationale": "again"}));
            }
        }
        let voters = with(voters, infected, *vote);
        super::exhaustive::assert_agrees(rules, &voters, &sitting, coin);
    });
}

#[test]
fn a_locked_rationale_is_withheld_and_its_vote_counts() {
    // V6, V8, L1
    let [(run, coin), _] = coins();
    polls(|rules, voters, infected| {
        if infected != 0 {
            return;
        }
        let mut setup = table::setup(rules, &["1", "0.3", "1"]);
        setup.locked_traits = vec![locked("warmth")];
        let mut sitting = TestRun::open(&setup, run, table::PROPOSAL);
        sitting.answer(&table::id(0), json!({"vote": "yes", "rationale": "drop the w<b>arm</b>th"}));
        for voter in &voters[1..] {
            match table::ballot(voter.does) {
                Some(ballot) => sitting.answer(&table::id(voter.index), ballot),
                None => sitting.give_no_answer(&table::id(voter.index)),
            }
        }
        let voters = with(voters, 0, VoterBehavior::Yes);
        super::exhaustive::assert_agrees(rules, &voters, &sitting, coin);
        let outcome = sitting.outcome();
        assert_eq!(outcome["decision"]["votes"][0]["withheld"], "withheld: touches `warmth`", "{outcome:#}");
        assert!(!outcome.to_string().contains("w<b>arm</b>th"), "{outcome:#}");
        assert_eq!(outcome["violations"], 1);
        let violation = &sitting.recorded(quorate_protocol::FactKind::Violation)[0];
        assert_eq!((&violation["invocation"], &violation["what"]), (&json!("ask/ada"), &json!("rationale")));
    });
}

#[test]
fn locked_evidence_of_one_who_decides_alone_is_withheld() {
    // V4, V6: the outcome has the answers of those in full, without what touches a trait.
    let [(run, _), _] = coins();
    let go = oracle::Kind::Terminal { on: VoterBehavior::Yes, scope: oracle::Scope::All };
    let stack = [
        oracle::Rule { kind: go, of: Some(vec![0]) },
        oracle::Rule { kind: oracle::Kind::Unanimity, of: None },
    ];
    for quotes in 0..2 {
        let mut setup = table::setup(&stack, &["1", "1"]);
        setup.locked_traits = vec![locked("backdate")];
        let mut sitting = TestRun::open(&setup, run, table::PROPOSAL);
        for member in 0..2 {
            let evidence = if member == quotes { json!(["fine", "we backdate it"]) } else { json!([]) };
            let answer = json!({"vote": "yes", "rationale": "ok", "evidence": evidence});
            sitting.answer(&table::id(member), answer);
        }
        assert_eq!((sitting.word("verdict"), &sitting.outcome()["violations"]), ("pass", &json!(1)));
        let said = &sitting.outcome()["decision"]["contribution"][0];
        let withheld = json!(["fine", "withheld: touches `backdate`"]);
        assert_eq!(said["evidence"], if quotes == 0 { withheld } else { json!([]) });
        assert_eq!(said["rationale"], "ok");
        assert!(!sitting.outcome().to_string().contains("we backdate it"), "{}", sitting.outcome());
    }
}

#[test]
fn who_is_missing_never_agrees() {
    // X5, V8, in the oracle and so in the protocol, which agrees with it everywhere: a pass without some member's vote is a
    // pass with whatever it would have voted.
    let mut passes = 0;
    polls(|rules, voters, absent| {
        let outcome = |does| oracle::outcome(rules, &with(voters, absent, does), false);
        if outcome(VoterBehavior::Missing) == Word::Pass {
            passes += 1;
            for does in [VoterBehavior::No, VoterBehavior::Yes, VoterBehavior::Abstain] {
                assert_eq!(outcome(does), Word::Pass, "{does:?} {rules:?} {voters:?}");
            }
        }
    });
    assert!(passes > 50, "{passes}");
}
