//! The verdict policy, exhaustively, against an oracle that follows the text of C3 and C4 word by word.

use quorate_manifest::council::{CrossRead, OnFailure, Rounds, VerdictPolicy};
use quorate_protocol::modes::council;
use quorate_protocol::modes::council::{Council, Setup};
use quorate_protocol::policy::{self, CountedPosition, Judgement, Position, Positions, Verdict};
use quorate_protocol::{
    AbsenceReason, Command, ConsultationResult, Event, FactKind, Json, Name, Part, PartKind, Protocol,
    TimedEvent,
};
use serde_json::json;

/// Judges under a built-in policy.
fn judge(policy: VerdictPolicy, given: &[Positions], minimum: usize, asked: Option<Verdict>) -> Judgement {
    policy::judge(&policy.into(), &names(given.len()), given, minimum, asked)
}

fn names(count: usize) -> Vec<Name> {
    (0..count).map(|at| format!("m{at}").into()).collect()
}

const MEMBERS: usize = 4;
const MINIMUM: usize = 3;

/// A member's behavior in one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemberBehavior {
    Pass,
    Block,
    Irreducible,
    SchemaFailed,
    TimedOut,
    Failed,
}

const ALL: [MemberBehavior; 6] = [
    MemberBehavior::Pass,
    MemberBehavior::Block,
    MemberBehavior::Irreducible,
    MemberBehavior::SchemaFailed,
    MemberBehavior::TimedOut,
    MemberBehavior::Failed,
];
const DISTINCT: [MemberBehavior; 4] =
    [MemberBehavior::Pass, MemberBehavior::Block, MemberBehavior::Irreducible, MemberBehavior::TimedOut];

impl MemberBehavior {
    fn position(self) -> Option<Position> {
        match self {
            MemberBehavior::Pass => Some(Position { block: false, irreducible: false }),
            MemberBehavior::Block => Some(Position { block: true, irreducible: false }),
            MemberBehavior::Irreducible => Some(Position { block: true, irreducible: true }),
            MemberBehavior::SchemaFailed | MemberBehavior::TimedOut | MemberBehavior::Failed => None,
        }
    }

    fn result(self) -> ConsultationResult {
        match self {
            MemberBehavior::SchemaFailed => ConsultationResult::Absent(AbsenceReason::SchemaFailed),
            MemberBehavior::TimedOut => ConsultationResult::Absent(AbsenceReason::TimedOut),
            MemberBehavior::Failed => ConsultationResult::Absent(AbsenceReason::Failed),
            valid => {
                let position = valid.position().expect("a valid answer");
                ConsultationResult::Answered(
                    json!({"would_block": position.block, "irreducible": position.irreducible}),
                )
            }
        }
    }
}

/// C3 and C4, said slowly. `None` is INCOMPLETE.
fn oracle(
    policy: VerdictPolicy,
    members: &[(MemberBehavior, MemberBehavior)],
    adjudicator: Option<Verdict>,
) -> Option<Verdict> {
    let valid = |does: &MemberBehavior| does.position().is_some();
    if members.iter().filter(|(first, _)| valid(first)).count() < MINIMUM {
        return None;
    }
    if members.iter().filter(|(_, second)| valid(second)).count() < MINIMUM {
        return None;
    }
    let asked = adjudicator?;
    let mut blocks = 0;
    let mut irreducible = 0;
    let mut missing = 0;
    for (first, second) in members {
        let counted = match (second.position(), first.position()) {
            (Some(second), _) => Some(second),
            (None, Some(first)) if first.block => Some(first),
            _ => None,
        };
        match counted {
            Some(position) => {
                blocks += i32::from(position.block);
                irreducible += i32::from(position.irreducible);
            }
            None => missing += 1,
        }
    }
    let verdict = says(policy, blocks, irreducible, asked);
    let could_change =
        (1..=missing).any(|more| says(policy, blocks + more, irreducible, asked) != Verdict::Ship);
    if verdict == Verdict::Ship && could_change { None } else { Some(verdict) }
}

fn says(policy: VerdictPolicy, blocks: i32, irreducible: i32, asked: Verdict) -> Verdict {
    let by_policy = match policy {
        VerdictPolicy::Seed if irreducible >= 3 => Verdict::Hold,
        VerdictPolicy::Seed if blocks >= 3 => {
            if asked == Verdict::Revise && irreducible == 0 {
                Verdict::Revise
            } else {
                Verdict::Hold
            }
        }
        VerdictPolicy::Seed => Verdict::Ship,
        VerdictPolicy::Strict if irreducible > 0 => Verdict::Hold,
        VerdictPolicy::Strict if blocks >= 3 => {
            if asked == Verdict::Revise {
                Verdict::Revise
            } else {
                Verdict::Hold
            }
        }
        VerdictPolicy::Strict if blocks > 0 => Verdict::Revise,
        VerdictPolicy::Strict => Verdict::Ship,
    };
    match (by_policy, asked) {
        (Verdict::Hold, _) | (_, Verdict::Hold) => Verdict::Hold,
        (Verdict::Revise, _) | (_, Verdict::Revise) => Verdict::Revise,
        _ => Verdict::Ship,
    }
}

/// Every multiset of four members over the given behaviours in two rounds.
fn councils(does: &[MemberBehavior], mut each: impl FnMut(&[(MemberBehavior, MemberBehavior); MEMBERS])) {
    let pairs: Vec<(MemberBehavior, MemberBehavior)> =
        does.iter().flat_map(|first| does.iter().map(move |second| (*first, *second))).collect();
    let n = pairs.len();
    for a in 0..n {
        for b in a..n {
            for c in b..n {
                for d in c..n {
                    each(&[pairs[a], pairs[b], pairs[c], pairs[d]]);
                }
            }
        }
    }
}

/// C3, C4: all 36 behaviours, both policies, every adjudication.
#[test]
fn every_council_is_judged_as_the_text_says() {
    let mut cases = 0_u64;
    let mut shipped = 0_u64;
    councils(&ALL, |members| {
        let given: Vec<Positions> =
            members.iter().map(|(a, b)| Positions { first: a.position(), last: b.position() }).collect();
        for policy in VerdictPolicy::ALL {
            for asked in [Some(Verdict::Ship), Some(Verdict::Revise), Some(Verdict::Hold), None] {
                let judged = judge(policy, &given, MINIMUM, asked).verdict.ok();
                assert_eq!(judged, oracle(policy, members, asked), "{policy:?} {members:?} {asked:?}");
                cases += 1;
                shipped += u64::from(judged == Some(Verdict::Ship));
                if judged == Some(Verdict::Ship) {
                    let valid = members.iter().filter(|(_, second)| second.position().is_some()).count();
                    assert!(valid >= MINIMUM && asked == Some(Verdict::Ship), "{members:?}");
                }
            }
        }
    });
    assert_eq!(cases, 82_251 * 8);
    assert!(shipped > 0);
}

/// The same through the machine that runs, so that asking and counting agree.
#[test]
fn the_machine_comes_to_what_the_text_says() {
    let adjudications: [Result<Verdict, AbsenceReason>; 6] = [
        Ok(Verdict::Ship),
        Ok(Verdict::Revise),
        Ok(Verdict::Hold),
        Err(AbsenceReason::SchemaFailed),
        Err(AbsenceReason::TimedOut),
        Err(AbsenceReason::Failed),
    ];
    councils(&DISTINCT, |members| {
        for policy in VerdictPolicy::ALL {
            for adjudication in &adjudications {
                let came_to = convene(policy, members, adjudication);
                let expected = oracle(policy, members, adjudication.ok()).unwrap_or(Verdict::Incomplete);
                assert_eq!(came_to, expected, "{policy:?} {members:?} {adjudication:?}");
            }
        }
    });
}

fn convene(
    policy: VerdictPolicy,
    members: &[(MemberBehavior, MemberBehavior); MEMBERS],
    adjudication: &Result<Verdict, AbsenceReason>,
) -> Verdict {
    let mut council = Council::new(Setup {
        deliberators: names(MEMBERS),
        rounds: Rounds::Two,
        cross_read: CrossRead::None,
        fail_fast: OnFailure::Continue,
        min_deliberators: MINIMUM,
        policy: policy.into(),
    });
    let opened = Event::Opened {
        run: "r".into(),
        inputs: vec![Part::new(PartKind::Artifact, "a", "text")],
        priors: vec![],
        overlays: vec![],
    };
    let mut commands = council.advance(&TimedEvent { at_ms: 0, event: opened });
    loop {
        let mut next = Vec::new();
        for command in commands {
            match command {
                Command::Record(fact) if fact.kind == FactKind::Outcome => {
                    let verdict = fact.data["verdict"].as_str().and_then(council::read_verdict);
                    return verdict.expect("an outcome has a verdict");
                }
                Command::Invoke(invoke) => {
                    let result = answer(&invoke.id, members, adjudication);
                    next.extend(council.advance(&TimedEvent {
                        at_ms: 0,
                        event: Event::Consulted { id: invoke.id, result },
                    }));
                }
                _ => {}
            }
        }
        assert!(!next.is_empty(), "a council without pending invocations has finished");
        commands = next;
    }
}

fn answer(
    id: &str,
    members: &[(MemberBehavior, MemberBehavior); MEMBERS],
    adjudication: &Result<Verdict, AbsenceReason>,
) -> ConsultationResult {
    match id.split_once('/') {
        None => match adjudication {
            Ok(verdict) => {
                ConsultationResult::Answered(json!({"verdict": verdict.as_str(), "reasoning": "because"}))
            }
            Err(absent) => ConsultationResult::Absent(*absent),
        },
        Some((round, member)) => {
            let (first, second) = members[member[1..].parse::<usize>().expect("m0 to m3")];
            if round == "r1" { first.result() } else { second.result() }
        }
    }
}

/// C3: the adjudicator lowers three blocks to REVISE only if all of them are reducible.
#[test]
fn a_downgrade_needs_reducible_blocks_alone() {
    let verdict = |blocks: usize, irreducible: usize, asked| {
        let position = |at: usize| Position { block: at < blocks, irreducible: at < irreducible };
        let given: Vec<Positions> = (0..MEMBERS)
            .map(|at| Positions { first: Some(position(at)), last: Some(position(at)) })
            .collect();
        judge(VerdictPolicy::Seed, &given, MINIMUM, Some(asked)).verdict
    };
    for blocks in 3..=MEMBERS {
        for irreducible in 0..=blocks {
            let lowered = if irreducible == 0 { Verdict::Revise } else { Verdict::Hold };
            assert_eq!(verdict(blocks, irreducible, Verdict::Revise), Ok(lowered), "{blocks} {irreducible}");
            assert_eq!(
                verdict(blocks, irreducible, Verdict::Ship),
                Ok(Verdict::Hold),
                "{blocks} {irreducible}"
            );
        }
    }
    // Two irreducible blocks alone are below the count of the policy.
    assert_eq!(verdict(2, 2, Verdict::Ship), Ok(Verdict::Ship));
    assert_eq!(verdict(2, 2, Verdict::Revise), Ok(Verdict::Revise));
}

/// C3: under `strict` irreducible counts without a block; under `seed` only with one.
#[test]
fn irreducible_without_a_block_counts_under_strict_alone() {
    let quiet = Position { block: false, irreducible: true };
    let given = [Positions { first: Some(quiet), last: Some(quiet) }; 4];
    assert_eq!(judge(VerdictPolicy::Seed, &given, 3, Some(Verdict::Ship)).verdict, Ok(Verdict::Ship));
    assert_eq!(judge(VerdictPolicy::Strict, &given, 3, Some(Verdict::Ship)).verdict, Ok(Verdict::Hold));
}

/// C4: a first-round block is counted where the second answer is missing, and a pass is not.
#[test]
fn a_missing_second_answer_leaves_the_first_block_standing() {
    let pass = Some(Position { block: false, irreducible: false });
    let block = Some(Position { block: true, irreducible: true });
    let given = [
        Positions { first: block, last: None },
        Positions { first: pass, last: pass },
        Positions { first: pass, last: pass },
        Positions { first: pass, last: pass },
    ];
    let judged = judge(VerdictPolicy::Seed, &given, 3, Some(Verdict::Ship));
    assert!(matches!(judged.counted[0], CountedPosition::FirstBlock(_)));
    assert_eq!(judge(VerdictPolicy::Strict, &given, 3, Some(Verdict::Ship)).verdict, Ok(Verdict::Hold));
    let missing = [Positions { first: pass, last: None }, given[1], given[2], given[3]];
    assert_eq!(
        judge(VerdictPolicy::Seed, &missing, 3, Some(Verdict::Ship)).counted[0],
        CountedPosition::Missing
    );
    assert!(judge(VerdictPolicy::Strict, &missing, 3, Some(Verdict::Ship)).verdict.is_err());
}

/// C2: four strings that say true are four answers that do not fit, never agreement.
#[test]
fn strings_for_booleans_never_ship() {
    let mut council = Council::new(Setup {
        deliberators: names(4),
        rounds: Rounds::Two,
        cross_read: CrossRead::Verdicts,
        fail_fast: OnFailure::Continue,
        min_deliberators: 3,
        policy: VerdictPolicy::Seed.into(),
    });
    let opened = Event::Opened { run: "r".into(), inputs: vec![], priors: vec![], overlays: vec![] };
    council.advance(&TimedEvent { at_ms: 0, event: opened });
    let mut last = Vec::new();
    for at in 0..4 {
        // Even if such an answer came this far, the machine itself does not take it for one.
        let result = ConsultationResult::Answered(json!({"would_block": "false"}));
        last = council.advance(&TimedEvent {
            at_ms: 0,
            event: Event::Consulted { id: format!("r1/m{at}").into(), result },
        });
    }
    let outcome = last.iter().find_map(|command| match command {
        Command::Record(fact) if fact.kind == FactKind::Outcome => Some(&fact.data),
        _ => None,
    });
    assert_eq!(outcome.map(|data| &data["verdict"]), Some(&Json::from("INCOMPLETE")));
}
