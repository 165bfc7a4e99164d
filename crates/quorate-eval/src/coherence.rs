//! What the judgements on variants say about a council and its members, without a label.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::stats::{Count, Difference, Differences, Share, difference, share, upper_bound};
use crate::variants::{Relation, defects};

/// A member is unstable if, at 95 percent, it changes more than this share of its positions where nothing changed.
pub const UNSTABLE: f64 = 0.05;

/// The judgement of a text in one answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Position {
    /// Whether the text was stopped.
    pub stops: bool,
    /// The lines of the findings, from 1.
    pub lines: Vec<usize>,
}

impl Position {
    fn finds(&self, lines: &[usize]) -> bool {
        self.lines.iter().any(|line| lines.contains(line))
    }
}

/// The positions of a member in both rounds; `None` without a readable answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Positions {
    pub first: Option<Position>,
    pub last: Option<Position>,
}

/// One run on a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The draft that the variant was made from, by its number.
    pub draft: usize,
    pub relation: Relation,
    /// The lines of the inserted paragraphs.
    pub lines: Vec<usize>,
    /// The members' positions, in roster order.
    pub members: Vec<Positions>,
    /// The council's verdict with all findings; `None` for INCOMPLETE.
    pub council: Option<Position>,
    /// The members' positions where round 2 showed them nothing of each other, if that was run as well.
    pub alone: Option<Vec<Positions>>,
}

/// How steady a council and its members are on texts whose relation is known
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Coherence {
    /// The number of drafts
    pub drafts: usize,
    /// The number of judged texts: the drafts and their variants
    pub texts: usize,
    /// The council as a whole
    pub council: Steadiness,
    /// Each deliberator, in roster order
    pub members: Vec<Steadiness>,
    /// What the council found of each kind of defect, in the order of the kinds
    pub kinds: Vec<KindRecall>,
    /// What round 2 changed, over all deliberators; null in a council of one round
    pub round2: Option<RoundTwo>,
}

/// How steady a judge is, and what it finds
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Steadiness {
    /// The member's id, or council
    pub name: String,
    /// How often it stopped the same text that it had let pass, or the other way round; null if nothing could be compared
    pub flips: Option<Share>,
    /// How often it judged a variant differently that says the same as its draft
    pub changes: Option<Share>,
    /// How many of the inserted defects it found at their line
    pub recall: Option<Share>,
    /// How many of the harmless twins it found fault with at that line
    pub false_alarms: Option<Share>,
    /// How many judgements are missing, because it gave no readable answer
    pub missing: u64,
    /// Whether it changes more than 5 percent of its positions where nothing changed, at 95 percent
    pub unstable: bool,
}

/// What became of one kind of defect
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct KindRecall {
    /// The kind's name
    pub kind: String,
    /// What it is
    pub says: String,
    /// How many of these defects the council found at their line
    pub recall: Option<Share>,
    /// How many of their twins it found fault with at that line
    pub false_alarms: Option<Share>,
}

/// What round 2 did to first answers about the inserted sentences
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RoundTwo {
    /// After the members read each other
    pub together: Conversions,
    /// In the control, where round 2 showed them nothing of each other; null if it was not run
    pub alone: Option<Conversions>,
    /// The share of right answers after reading each other, less that of the control; null without a control
    pub gain: Option<Difference>,
}

/// How first answers changed. An answer is right if it finds the defect at its line, or leaves its twin alone
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Conversions {
    /// How many right first answers became wrong
    pub to_wrong: Option<Share>,
    /// How many wrong first answers became right
    pub to_right: Option<Share>,
}

/// What a judge is asked for: its positions in a run.
type Of<'a> = &'a dyn Fn(&Judged) -> Option<Position>;

/// Evaluates the runs on drafts and their variants; `members` has the deliberators' ids in roster order.
pub fn coherence(members: &[String], has_two_rounds: bool, runs: &[Judged]) -> Coherence {
    let council = |run: &Judged| run.council.clone();
    let member = |at: usize| move |run: &Judged| run.members[at].last.clone();
    let seeded = |run: &&Judged| is_seeded(&run.relation);
    let alone: Vec<&Judged> = runs.iter().filter(seeded).filter(|run| run.alone.is_some()).collect();
    Coherence {
        drafts: runs.iter().filter(|run| run.relation == Relation::Original).count(),
        texts: runs.len(),
        council: steadiness("council", runs, &council),
        members: members.iter().enumerate().map(|(at, name)| steadiness(name, runs, &member(at))).collect(),
        kinds: defects()
            .iter()
            .map(|defect| {
                let of_kind: Vec<&Judged> =
                    runs.iter().filter(|run| kind(&run.relation) == Some(&defect.kind)).collect();
                KindRecall {
                    kind: defect.kind.clone(),
                    says: defect.says.clone(),
                    recall: found(&of_kind, is_defect, &council),
                    false_alarms: found(&of_kind, |relation| !is_defect(relation), &council),
                }
            })
            .filter(|kind| kind.recall.is_some() || kind.false_alarms.is_some())
            .collect(),
        round2: has_two_rounds.then(|| RoundTwo {
            together: conversions(runs.iter().filter(seeded).map(|run| (run, &run.members))),
            alone: (!alone.is_empty())
                .then(|| conversions(alone.iter().filter_map(|run| Some((*run, run.alone.as_ref()?))))),
            gain: gain(&alone),
        }),
    }
}

fn kind(relation: &Relation) -> Option<&String> {
    match relation {
        Relation::Defect(kind) | Relation::Twin(kind) => Some(kind),
        _ => None,
    }
}

fn is_seeded(relation: &Relation) -> bool {
    kind(relation).is_some()
}

fn is_defect(relation: &Relation) -> bool {
    matches!(relation, Relation::Defect(_))
}

fn steadiness(name: &str, runs: &[Judged], of: Of<'_>) -> Steadiness {
    let originals: BTreeMap<usize, Option<Position>> = runs
        .iter()
        .filter(|run| run.relation == Relation::Original)
        .map(|run| (run.draft, of(run)))
        .collect();
    let changed = |counts: &dyn Fn(&Relation) -> bool| {
        by_draft(runs.iter().filter(|run| counts(&run.relation)), |run| {
            Some(originals.get(&run.draft)?.as_ref()?.stops != of(run)?.stops)
        })
    };
    let all: Vec<&Judged> = runs.iter().collect();
    let neutral = changed(&Relation::is_neutral);
    Steadiness {
        name: name.to_owned(),
        flips: changed(&|relation| *relation == Relation::Again),
        changes: changed(&|relation| relation.is_neutral() && *relation != Relation::Again),
        recall: found(&all, is_defect, of),
        false_alarms: found(&all, |relation| matches!(relation, Relation::Twin(_)), of),
        missing: runs.iter().filter(|run| of(run).is_none()).count() as u64,
        unstable: neutral.is_some_and(is_unstable),
    }
}

/// Whether both the interval, which knows the clusters, and the exact bound exclude the tolerated share.
fn is_unstable(changes: Share) -> bool {
    let exact = 1.0 - upper_bound(changes.of - changes.hits, changes.of);
    changes.interval.low > UNSTABLE && exact > UNSTABLE + 1e-9
}

/// How often a judge had a finding at the inserted line, in runs with such a relation.
fn found(runs: &[&Judged], counts: impl Fn(&Relation) -> bool, of: Of<'_>) -> Option<Share> {
    let seeded = runs.iter().copied().filter(|run| is_seeded(&run.relation) && counts(&run.relation));
    by_draft(seeded, |run| Some(of(run)?.finds(&run.lines)))
}

/// The share of hits, where the runs of one draft are a cluster. A run without a judgement is not counted.
fn by_draft<'r>(
    runs: impl Iterator<Item = &'r Judged>,
    is_hit: impl Fn(&Judged) -> Option<bool>,
) -> Option<Share> {
    let mut clusters: BTreeMap<usize, Count> = BTreeMap::new();
    for run in runs {
        if let Some(is_hit) = is_hit(run) {
            clusters.entry(run.draft).or_default().add(is_hit);
        }
    }
    share(&clusters.into_values().collect::<Vec<_>>())
}

/// Whether a position is right about the inserted sentence.
fn is_right(run: &Judged, position: &Position) -> bool {
    position.finds(&run.lines) == is_defect(&run.relation)
}

/// What reading each other adds to the share of right answers, where the runs of one draft are a cluster.
fn gain(runs: &[&Judged]) -> Option<Difference> {
    let mut clusters: BTreeMap<usize, Differences> = BTreeMap::new();
    for run in runs {
        for (together, alone) in run.members.iter().zip(run.alone.iter().flatten()) {
            // A difference of first answers is not one of reading each other.
            if together.first != alone.first {
                continue;
            }
            let (Some(together), Some(alone)) = (&together.last, &alone.last) else { continue };
            let score = |position| f64::from(u8::from(is_right(run, position)));
            let cluster = clusters.entry(run.draft).or_default();
            cluster.sum += score(together) - score(alone);
            cluster.rows += 1;
        }
    }
    difference(&clusters.into_values().collect::<Vec<_>>())
}

fn conversions<'r>(runs: impl Iterator<Item = (&'r Judged, &'r Vec<Positions>)>) -> Conversions {
    let (mut to_wrong, mut to_right): (BTreeMap<usize, Count>, BTreeMap<usize, Count>) = Default::default();
    for (run, members) in runs {
        for positions in members {
            let (Some(first), Some(last)) = (&positions.first, &positions.last) else { continue };
            match (is_right(run, first), is_right(run, last)) {
                (true, after) => to_wrong.entry(run.draft).or_default().add(!after),
                (false, after) => to_right.entry(run.draft).or_default().add(after),
            }
        }
    }
    let share_of = |clusters: BTreeMap<usize, Count>| share(&clusters.into_values().collect::<Vec<_>>());
    Conversions { to_wrong: share_of(to_wrong), to_right: share_of(to_right) }
}
