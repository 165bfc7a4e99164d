//! Published values in records: words, rounded numbers and evictions. Each is written out here, so that a change fails a test.

use quorate_manifest::council::VerdictPolicy;
use quorate_manifest::decimal::Decimal;
use quorate_protocol::Name;
use quorate_protocol::modes::council;
use quorate_protocol::overlay::{EvictionReason, Overlay, OverlaySet};
use quorate_protocol::policy::{CountedPosition, Incomplete, Position, Positions, Verdict, judge, policy_id};
use quorate_protocol::tally::{Tally, Weight};
use serde_json::json;

fn weight(text: &str) -> Weight {
    Weight::from(text.parse::<Decimal>().expect("a decimal"))
}

#[test]
fn the_words_of_policies_and_verdicts() {
    // C3: the id and the version are in every record.
    assert_eq!(VerdictPolicy::ALL.map(|policy| policy_id(&policy.into())), ["seed/2", "strict/1"]);
    let verdicts = [Verdict::Ship, Verdict::Revise, Verdict::Hold, Verdict::Incomplete];
    assert_eq!(verdicts.map(Verdict::as_str), ["SHIP", "REVISE", "HOLD", "INCOMPLETE"]);
    assert_eq!(verdicts.map(|verdict| council::read_verdict(verdict.as_str())), verdicts.map(Some));
    assert_eq!(council::read_verdict("MAYBE"), None);
    assert!(verdicts.is_sorted(), "the order is that of strictness");
    let reasons = [
        (Incomplete::FirstRound, "first_round"),
        (Incomplete::SecondRound, "second_round"),
        (Incomplete::NoAdjudication, "no_adjudication"),
        (Incomplete::MissingCouldBlock, "missing_could_block"),
        (Incomplete::BudgetExhausted, "budget_exhausted"),
        (Incomplete::FailFast, "fail_fast"),
    ];
    for (reason, word) in reasons {
        assert_eq!(reason.as_str(), word);
    }
}

#[test]
fn a_first_objection_counts_as_its_policy_says() {
    // C3, C4: irreducible without a block is an objection under `strict` alone.
    let dissent = Position { block: false, irreducible: true };
    let block = Position { block: true, irreducible: false };
    let given = [dissent, block].map(|first| Positions { first: Some(first), last: None });
    let members: [Name; 2] = ["a", "b"].map(Name::from);
    let counted = |policy: VerdictPolicy| judge(&policy.into(), &members, &given, 3, None).counted;
    assert_eq!(counted(VerdictPolicy::Seed), [CountedPosition::Missing, CountedPosition::FirstBlock(block)]);
    assert_eq!(
        counted(VerdictPolicy::Strict),
        [CountedPosition::FirstBlock(dissent), CountedPosition::FirstBlock(block)]
    );
}

#[test]
fn weights_are_shown_whole_where_they_are() {
    for (text, shown) in [
        ("0", json!(0)),
        ("1", json!(1)),
        ("12", json!(12)),
        ("0.5", json!(0.5)),
        ("4294967295", json!(4_294_967_295_u32)),
        ("4294967296", json!(4_294_967_296.0)),
    ] {
        assert_eq!(weight(text).json(), shown, "{text}");
    }
}

#[test]
fn ratios_are_shown_whole_where_they_are() {
    let of = |yes: &str, total: &str| Tally { yes: weight(yes), total: weight(total), ..Tally::default() };
    for (tally, shown) in [
        (Tally::default(), json!(0)),
        (of("0", "3"), json!(0)),
        (of("3", "3"), json!(1)),
        (of("1", "3"), json!(0.333_333)),
        (of("1.5", "3"), json!(0.5)),
    ] {
        assert_eq!(tally.ratio_json(), shown, "{tally:?}");
    }
}

fn overlay(id: &str, operator: &str, added_ms: i64) -> Overlay {
    let text = |text: &str| text.to_owned();
    Overlay {
        overlay: text(id),
        assembly: text("a"),
        operator: text(operator),
        run: text("r"),
        member: text("m"),
        rule: text("x"),
        text: format!("Text of {id}."),
        severity: 5,
        priority: 50,
        added_ms,
        expires_ms: added_ms + 100,
    }
}

#[test]
fn the_cap_is_each_operators_own() {
    // A5, A8: three operators, so that taking the others' for one's own shows.
    let mut standing = OverlaySet::default();
    for (id, operator, added_ms) in
        [("x1", "x", 1), ("x2", "x", 2), ("x3", "x", 3), ("y1", "y", 1), ("z1", "z", 1), ("z2", "z", 2)]
    {
        standing.add(overlay(id, operator, added_ms));
    }
    let ids: Vec<&str> = standing.all().iter().map(|one| one.overlay.as_str()).collect();
    assert_eq!(ids, ["x1", "x2", "x3", "y1", "z1", "z2"]);
    let leaving = standing.evictions(&[], 2, 10);
    let gone: Vec<(&str, EvictionReason)> =
        leaving.iter().map(|eviction| (eviction.overlay.as_str(), eviction.why)).collect();
    assert_eq!(gone, [("x1", EvictionReason::Cap)]);
    // An expired overlay stays in the set until it is evicted.
    assert!(standing.active(1_000).is_empty() && standing.all().len() == 6);
}
