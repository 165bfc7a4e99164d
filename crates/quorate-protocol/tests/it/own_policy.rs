//! Councils' own policies (C14): a table is proved monotone, or refused with a counter-example that `judge` confirms.

use quorate_manifest::council::{OwnPolicy, Policy, Row, VerdictPolicy};
use quorate_protocol::Name;
use quorate_protocol::policy::{Incomplete, Position, Positions, Verdict, check, judge};
use serde_json::{Value, json};

const MEMBERS: [&str; 4] = ["legal", "brand", "facts", "style"];

const PASS: Position = Position { block: false, irreducible: false };
const BLOCK: Position = Position { block: true, irreducible: false };
const HOPELESS: Position = Position { block: true, irreducible: true };

fn names() -> Vec<Name> {
    MEMBERS.map(Name::from).into()
}

fn table(rows: Value) -> Policy {
    weighted(rows, &[])
}

fn weighted(rows: Value, weights: &[(&str, Value)]) -> Policy {
    let rows: Vec<Row> = serde_json::from_value(rows).expect("rows");
    let weight =
        |(id, weight): &(&str, Value)| (Name::from(*id), weight.as_number().expect("a number").clone());
    Policy::Own(OwnPolicy { rows, weights: weights.iter().map(weight).collect() })
}

/// The verdict on these last positions, `None` without an answer, with the row from 1.
fn verdict(
    policy: &Policy,
    last: [Option<Position>; 4],
    asked: Verdict,
) -> Result<(Verdict, usize), Incomplete> {
    let given = last.map(|last| Positions { first: Some(PASS), last });
    let judged = judge(policy, &names(), &given, 3, Some(asked));
    judged.verdict.map(|verdict| (verdict, judged.row.expect("a verdict has a row") + 1))
}

/// The built-in tables are proved as every table is, and no row of theirs is dead.
#[test]
fn the_built_in_tables_are_monotone() {
    for policy in VerdictPolicy::ALL {
        for count in [4, 5, 12] {
            let members: Vec<Name> = (0..count).map(|at| format!("m{at}").into()).collect();
            assert_eq!(check(&policy.into(), &members), Ok(vec![]), "{policy:?} {count}");
        }
    }
}

#[test]
fn a_veto_decides_before_the_count() {
    let policy = table(json!([
        {"if": {"block_by": ["legal"]}, "then": "HOLD"},
        {"if": {"block": 1}, "then": "REVISE", "or": {"adjudicator": "HOLD", "then": "HOLD"}},
        {"then": "SHIP"},
    ]));
    assert_eq!(check(&policy, &names()), Ok(vec![]));
    let (pass, block) = (Some(PASS), Some(BLOCK));
    for (last, asked, expected) in [
        ([block, pass, pass, pass], Verdict::Ship, Ok((Verdict::Hold, 1))),
        ([pass, block, pass, pass], Verdict::Ship, Ok((Verdict::Revise, 2))),
        ([pass, block, pass, pass], Verdict::Hold, Ok((Verdict::Hold, 2))),
        ([pass; 4], Verdict::Hold, Ok((Verdict::Ship, 3))),
        // It does not ship while the answer of a member that could stop it is missing.
        ([None, pass, pass, pass], Verdict::Ship, Err(Incomplete::MissingCouldBlock)),
        ([None, block, pass, pass], Verdict::Ship, Ok((Verdict::Revise, 2))),
    ] {
        assert_eq!(verdict(&policy, last, asked), expected, "{last:?} {asked:?}");
    }
}

/// 0.1 + 0.2 reaches 0.3, which it does not in binary floats.
#[test]
fn weights_add_up_exactly() {
    let policy = weighted(
        json!([{"if": {"block_weight": 0.3}, "then": "HOLD"}, {"then": "SHIP"}]),
        &[("legal", json!(0.1)), ("brand", json!(0.2)), ("facts", json!(0.05)), ("style", json!(0.2))],
    );
    assert_eq!(check(&policy, &names()), Ok(vec![]));
    let (pass, block) = (Some(PASS), Some(BLOCK));
    assert_eq!(verdict(&policy, [block, block, pass, pass], Verdict::Ship), Ok((Verdict::Hold, 1)));
    assert_eq!(verdict(&policy, [pass, block, block, pass], Verdict::Ship), Ok((Verdict::Ship, 2)));
    assert_eq!(
        verdict(&policy, [pass, block, None, pass], Verdict::Ship),
        Ok((Verdict::Ship, 2)),
        "its block would not reach the limit"
    );
    assert_eq!(
        verdict(&policy, [None, block, pass, pass], Verdict::Ship),
        Err(Incomplete::MissingCouldBlock)
    );
}

/// Each counter-example names two cases, of which the second one objects more and has the looser verdict.
#[test]
fn a_table_that_loosens_is_refused_with_the_case() {
    for (rows, row, message) in [
        (
            json!([
                {"if": {"reducible": 2}, "then": "HOLD"},
                {"if": {"block": 2}, "then": "REVISE"},
                {"then": "SHIP"},
            ]),
            1,
            "the policy is not monotone: if facts blocks and style blocks and the adjudicator asks for SHIP, the verdict is \
             HOLD (row 1); if facts blocks irreducibly instead, it is REVISE (row 2)",
        ),
        (
            json!([
                {"if": {"block": 3}, "then": "REVISE"},
                {"if": {"block": 2}, "then": "HOLD"},
                {"then": "SHIP"},
            ]),
            0,
            "the policy is not monotone: if facts blocks and style blocks and the adjudicator asks for SHIP, the verdict is \
             HOLD (row 2); if legal blocks too, it is REVISE (row 1)",
        ),
        (
            json!([
                {"if": {"says_irreducible": 1, "adjudicator": "HOLD"}, "then": "SHIP"},
                {"then": "HOLD"},
            ]),
            0,
            "the policy is not monotone: if no deliberator blocks and the adjudicator asks for HOLD, the verdict is HOLD (row 2); \
             if legal says irreducible without a block, it is SHIP (row 1)",
        ),
    ] {
        let flaw = check(&table(rows), &names()).expect_err(message);
        assert_eq!((flaw.row, &*flaw.message), (row, message));
    }
}

/// What `check` accepts is monotone in a naive enumeration of all positions, and what it refuses is not.
#[test]
fn the_proof_agrees_with_all_cases() {
    let conditions = [
        json!({"block": 1}),
        json!({"block": 3}),
        json!({"irreducible": 2}),
        json!({"reducible": 2}),
        json!({"block_by": ["brand"]}),
        json!({"irreducible_by": ["legal", "facts"]}),
        json!({"block": 1, "adjudicator": "REVISE"}),
        json!({"block_weight": 2.5}),
    ];
    let weights = [("legal", json!(2)), ("brand", json!(0.5))];
    let verdicts = ["SHIP", "REVISE", "HOLD"];
    let mut seen = [0; 2];
    for first in &conditions {
        for second in &conditions {
            for (then, after) in verdicts.iter().flat_map(|then| verdicts.map(|after| (*then, after))) {
                let rows = json!([
                    {"if": first, "then": then},
                    {"if": second, "then": after},
                    {"then": "SHIP"},
                ]);
                let policy = weighted(rows.clone(), &weights);
                let accepted = check(&policy, &names()).is_ok();
                assert_eq!(accepted, is_monotone(&policy), "{rows}");
                seen[usize::from(accepted)] += 1;
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
}

/// Compares all pairs of cases of which one objects at least as much.
fn is_monotone(policy: &Policy) -> bool {
    let states = [PASS, BLOCK, HOPELESS];
    let all: Vec<[usize; 4]> = (0..81).map(|n| [n / 27, n / 9 % 3, n / 3 % 3, n % 3]).collect();
    [Verdict::Ship, Verdict::Revise, Verdict::Hold].into_iter().all(|asked| {
        let decided = |case: &[usize; 4]| {
            verdict(policy, case.map(|state| Some(states[state])), asked).expect("everybody answered").0
        };
        let verdicts: Vec<Verdict> = all.iter().map(decided).collect();
        let mut pairs = (0..81).flat_map(|a| (0..81).map(move |b| (a, b)));
        pairs.all(|(a, b)| {
            let objects_more = all[a].iter().zip(&all[b]).all(|(less, more)| less <= more);
            !objects_more || verdicts[a] <= verdicts[b]
        })
    })
}

/// A missing answer is never better for the text than a pass.
#[test]
fn silence_never_loosens() {
    let policy = table(json!([
        {"if": {"block_by": ["legal"]}, "then": "HOLD"},
        {"if": {"block": 2}, "then": "REVISE"},
        {"then": "SHIP"},
    ]));
    let strictness = |judged: Result<(Verdict, usize), Incomplete>| {
        judged.map_or(Verdict::Incomplete, |(verdict, _)| verdict)
    };
    for n in 0..81 {
        let states = [n / 27, n / 9 % 3, n / 3 % 3, n % 3].map(|state| Some([PASS, BLOCK, HOPELESS][state]));
        for silent in 0..4 {
            let (mut without, mut passing) = (states, states);
            (without[silent], passing[silent]) = (None, Some(PASS));
            let [without, passing] =
                [without, passing].map(|last| strictness(verdict(&policy, last, Verdict::Ship)));
            assert!(without >= passing, "{states:?} {silent}");
        }
    }
}

#[test]
fn dead_rows_and_too_many_cases_are_reported() {
    let policy = table(json!([
        {"if": {"block": 1}, "then": "HOLD"},
        {"if": {"block": 2}, "then": "HOLD"},
        {"if": {"block": 5}, "then": "HOLD"},
        {"then": "SHIP"},
    ]));
    assert_eq!(check(&policy, &names()), Ok(vec![1, 2]));
    let members: Vec<Name> = (0..12).map(|at| format!("m{at}").into()).collect();
    let weights: Vec<(&str, Value)> =
        members.iter().enumerate().map(|(at, id)| (&**id, json!(at + 1))).collect();
    let policy = weighted(json!([{"if": {"block_weight": 9}, "then": "HOLD"}, {"then": "SHIP"}]), &weights);
    let flaw = check(&policy, &members).expect_err("twelve kinds of members");
    assert!(flaw.message.contains("more than 10000 cases"), "{}", flaw.message);
}
