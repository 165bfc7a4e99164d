//! Scripted judges: what they do must be what the evaluation says of them.

use quorate_eval::coherence::{Coherence, Judged, Position, Positions, coherence};
use quorate_eval::variants::{Relation, defects};

/// Pseudo-random numbers that are the same in every run.
struct Draw(u64);

impl Draw {
    fn is(&mut self, chance: f64) -> bool {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 11) as f64 / (1u64 << 53) as f64 <= chance
    }
}

/// What a judge does: how often it changes its mind about the same text, finds a defect, and finds fault with a twin.
#[derive(Clone, Copy)]
struct Habit {
    flips: f64,
    recall: f64,
    false_alarms: f64,
    /// How often a right first answer becomes wrong, and a wrong one right, where the members read each other.
    converts: (f64, f64),
}

const STEADY: Habit = Habit { flips: 0.0, recall: 0.8, false_alarms: 0.1, converts: (0.0, 0.0) };

fn judge(habits: &[Habit], drafts: usize, draw: &mut Draw) -> (Vec<String>, Vec<Judged>) {
    let names: Vec<String> = (0..habits.len()).map(|at| format!("m{at}")).collect();
    let mut runs = Vec::new();
    for draft in 0..drafts {
        let stops: Vec<bool> = habits.iter().map(|_| draw.is(0.5)).collect();
        let neutral =
            [Relation::Original, Relation::Again, Relation::Reordered, Relation::Padded, Relation::Renamed];
        for relation in neutral {
            let position = |at: usize, draw: &mut Draw| {
                let flips = relation != Relation::Original && draw.is(habits[at].flips);
                Position { stops: stops[at] != flips, lines: Vec::new() }
            };
            let members: Vec<Positions> = (0..habits.len())
                .map(|at| {
                    let held = Some(position(at, draw));
                    Positions { first: held.clone(), last: held }
                })
                .collect();
            let council = members[0].last.clone();
            runs.push(Judged {
                draft,
                relation: relation.clone(),
                lines: vec![],
                members,
                council,
                alone: None,
            });
        }
        for defect in defects() {
            let kinds = [Relation::Defect(defect.kind.clone()), Relation::Twin(defect.kind.clone())];
            for (at, relation) in kinds.into_iter().enumerate() {
                let said = |found: bool| {
                    Some(Position { stops: found, lines: if found { vec![7] } else { vec![2] } })
                };
                let (mut together, mut alone) = (Vec::new(), Vec::new());
                for habit in habits {
                    let first = draw.is(if at == 0 { habit.recall } else { habit.false_alarms });
                    let is_right = first == (at == 0);
                    let turns = draw.is(if is_right { habit.converts.0 } else { habit.converts.1 });
                    together.push(Positions { first: said(first), last: said(first != turns) });
                    alone.push(Positions { first: said(first), last: said(first) });
                }
                let council = together[0].last.clone();
                let lines = vec![7];
                runs.push(Judged { draft, relation, lines, members: together, council, alone: Some(alone) });
            }
        }
    }
    (names, runs)
}

fn evaluated(habits: &[Habit], drafts: usize) -> Coherence {
    let (names, runs) = judge(habits, drafts, &mut Draw(11));
    coherence(&names, true, &runs)
}

#[test]
fn ten_unstable_members_are_named_and_no_stable_one() {
    let unstable = Habit { flips: 0.3, ..STEADY };
    let habits = [[unstable; 10], [STEADY; 10]].concat();
    let found = evaluated(&habits, 10);
    let named: Vec<&str> = found.members.iter().filter(|one| one.unstable).map(|one| &*one.name).collect();
    let expected: Vec<String> = (0..10).map(|at| format!("m{at}")).collect();
    assert_eq!(named, expected);
}

#[test]
fn planted_recall_false_alarms_and_conversions_are_recovered() {
    let habit = Habit { converts: (0.2, 0.4), ..STEADY };
    let found = evaluated(&[habit; 4], 40);
    for member in &found.members {
        // After round 2: 0.8 * (1 - 0.2) + 0.2 * 0.4, and 0.1 * (1 - 0.4) + 0.9 * 0.2.
        let (recall, alarms) = (member.recall.expect("defects"), member.false_alarms.expect("twins"));
        assert!(recall.interval.contains(0.72), "{recall:?}");
        assert!(alarms.interval.contains(0.24), "{alarms:?}");
        assert_eq!((recall.of, alarms.of), (800, 800));
    }
    let round2 = found.round2.expect("two rounds");
    assert!(round2.together.to_wrong.expect("right answers").interval.contains(0.2), "{round2:?}");
    assert!(round2.together.to_right.expect("wrong answers").interval.contains(0.4), "{round2:?}");
    let alone = round2.alone.expect("a control");
    assert_eq!(
        (alone.to_wrong.map(|share| share.hits), alone.to_right.map(|share| share.hits)),
        (Some(0), Some(0))
    );
    // 4 members; right after round 2: 0.72 and 0.76, in the control 0.8 and 0.9.
    let gain = round2.gain.expect("a control");
    assert!(gain.is_shown() && gain.interval.contains((0.72 + 0.76 - 0.8 - 0.9) / 2.0), "{gain:?}");
    assert_eq!((found.drafts, found.texts, found.kinds.len()), (40, 40 * 45, 20));
}

#[test]
fn a_missing_judgement_is_counted_as_missing_and_compared_with_nothing() {
    let (names, mut runs) = judge(&[STEADY], 3, &mut Draw(5));
    for run in &mut runs {
        if run.draft == 0 && run.relation == Relation::Original {
            run.members[0] = Positions::default();
            run.council = None;
        }
    }
    let found = coherence(&names, true, &runs);
    assert_eq!(found.members[0].flips.map(|share| share.of), Some(2));
    assert_eq!((found.members[0].missing, found.council.missing), (1, 1));
    let nothing = coherence(&names, false, &[]);
    assert!(nothing.council.flips.is_none() && nothing.kinds.is_empty() && nothing.round2.is_none());
    assert!(!nothing.members[0].unstable);
}
