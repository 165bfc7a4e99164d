//! Verdict policies: compute SHIP, REVISE, HOLD or INCOMPLETE from typed answers, never from prose (C3, C4, C14). Each policy,
//! also a built-in one, is a table of `quorate_manifest::council`. This file decides which row holds, and [`check`] proves that
//! a table is monotone.

use quorate_manifest::council::{Condition, Policy, Row};
use quorate_manifest::decimal::Decimal;
use quorate_manifest::tree::open::sha256_hex;
use serde_json::Number;

use crate::Name;
use crate::tally::Weight;

pub use quorate_manifest::council::{Verdict, VerdictPolicy};

/// The id and version of a policy, which every record carries. The id of a council's own table is derived from its content.
pub fn policy_id(policy: &Policy) -> String {
    match policy {
        Policy::Named(VerdictPolicy::Seed) => "seed/2".to_owned(),
        Policy::Named(VerdictPolicy::Strict) => "strict/1".to_owned(),
        Policy::Own(own) => {
            let hash = sha256_hex(&serde_json::to_vec(own).unwrap_or_default());
            format!("table/{}", &hash[..8])
        }
    }
}

/// A position that a deliberator took in a valid answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// It would stop the artifact.
    pub block: bool,
    /// It says that no revision could repair it.
    pub irreducible: bool,
}

const PASS: Position = Position { block: false, irreducible: false };
const DISSENT: Position = Position { block: false, irreducible: true };
const BLOCK: Position = Position { block: true, irreducible: false };
const IRREDUCIBLE_BLOCK: Position = Position { block: true, irreducible: true };

/// A deliberator's positions in both rounds; `None` without a valid answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Positions {
    /// Round 1.
    pub first: Option<Position>,
    /// Round 2, or round 1 again in a council of one round.
    pub last: Option<Position>,
}

/// How a deliberator was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CountedPosition {
    /// By its last answer.
    Last(Position),
    /// Without a last answer, by the block of its first.
    FirstBlock(Position),
    /// It is not counted.
    Missing,
}

/// The reason for a missing verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Incomplete {
    /// Fewer valid answers than the minimum in round 1.
    FirstRound,
    /// Fewer valid answers than the minimum in round 2.
    SecondRound,
    /// No valid adjudication.
    NoAdjudication,
    /// It would be SHIP, and the blocks of those missing could change that.
    MissingCouldBlock,
    /// The run's budget was spent.
    BudgetExhausted,
    /// A deliberator failed and the council says that this ends the review.
    FailFast,
}

quorate_manifest::words!(Incomplete {
    FirstRound = "first_round",
    SecondRound = "second_round",
    NoAdjudication = "no_adjudication",
    MissingCouldBlock = "missing_could_block",
    BudgetExhausted = "budget_exhausted",
    FailFast = "fail_fast",
});

/// How many counted deliberators block, and how many say irreducible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Those who block.
    pub blocks: usize,
    /// Those who block and say irreducible.
    pub irreducible_blocks: usize,
    /// Those who say irreducible, blocking or not.
    pub irreducible: usize,
}

/// A judgement and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict, or why it is undecided.
    pub verdict: Result<Verdict, Incomplete>,
    /// The row that decided, from 0.
    pub row: Option<usize>,
    /// How each deliberator was counted, in the order given.
    pub counted: Vec<CountedPosition>,
    pub tally: Tally,
}

/// Judges. `given` has the positions of `members`, and `asked` is what a valid adjudication asks for.
pub fn judge(
    policy: &Policy,
    members: &[Name],
    given: &[Positions],
    minimum: usize,
    asked: Option<Verdict>,
) -> Judgement {
    let table = PolicyTable::new(policy, members);
    let counted: Vec<CountedPosition> = given.iter().map(|positions| table.count(positions)).collect();
    let decided = table.judge(given, &counted, minimum, asked);
    Judgement {
        verdict: decided.map(|(_, verdict)| verdict),
        row: decided.ok().map(|(row, _)| row),
        tally: tally(&counted),
        counted,
    }
}

fn tally(counted: &[CountedPosition]) -> Tally {
    let mut tally = Tally::default();
    for counted_position in counted {
        let (CountedPosition::Last(position) | CountedPosition::FirstBlock(position)) = counted_position
        else {
            continue;
        };
        tally.blocks += usize::from(position.block);
        tally.irreducible += usize::from(position.irreducible);
        tally.irreducible_blocks += usize::from(position.block && position.irreducible);
    }
    tally
}

/// A policy's table and the council that it judges for.
#[derive(Debug)]
pub struct PolicyTable<'p> {
    rows: &'p [Row],
    members: &'p [Name],
    /// The members' weights, each 1 if no row counts them.
    weights: Vec<Weight>,
    /// For each row its `block_weight`.
    limits: Vec<Option<Weight>>,
}

impl<'p> PolicyTable<'p> {
    pub fn new(policy: &'p Policy, members: &'p [Name]) -> Self {
        let written = |member: &Name| match policy {
            Policy::Named(_) => None,
            Policy::Own(own) => own.weights.get(member),
        };
        let weight = |member| written(member).map_or_else(|| Decimal::ONE.into(), exact);
        let limit = |row: &Row| row.condition.block_weight.as_ref().map(exact);
        PolicyTable {
            rows: policy.rows(),
            members,
            weights: members.iter().map(weight).collect(),
            limits: policy.rows().iter().map(limit).collect(),
        }
    }

    /// The first row that holds, from 0, and its verdict. `positions` has one for each member.
    pub fn decide(&self, positions: &[Position], asked: Verdict) -> (usize, Verdict) {
        let mut rows = self.rows.iter().zip(&self.limits).enumerate();
        let holds = |row: &Row, limit: &Option<Weight>| {
            self.holds(&row.condition, positions, asked)
                && limit.as_ref().is_none_or(|limit| self.block_weight(positions) >= *limit)
        };
        let Some((at, (row, _))) = rows.find(|(_, (row, limit))| holds(row, limit)) else {
            // The last row of a valid table has no condition.
            return (self.rows.len(), Verdict::Hold);
        };
        let exception = row.or.filter(|exception| exception.adjudicator == asked);
        (at, exception.map_or(row.then, |exception| exception.then))
    }

    /// Whether all conditions but `block_weight` hold.
    fn holds(&self, condition: &Condition, positions: &[Position], asked: Verdict) -> bool {
        let at_least = |least: Option<usize>, counts: fn(&Position) -> bool| {
            least.is_none_or(|least| positions.iter().filter(|position| counts(position)).count() >= least)
        };
        let any_of = |ids: &[Name], counts: fn(&Position) -> bool| {
            let mut taken = self.members.iter().zip(positions);
            ids.is_empty() || taken.any(|(id, position)| ids.contains(id) && counts(position))
        };
        let is_irreducible_block = |position: &Position| *position == IRREDUCIBLE_BLOCK;
        at_least(condition.block, |position| position.block)
            && at_least(condition.irreducible, is_irreducible_block)
            && at_least(condition.reducible, |position| *position == BLOCK)
            && at_least(condition.says_irreducible, |position| position.irreducible)
            && any_of(&condition.block_by, |position| position.block)
            && any_of(&condition.irreducible_by, is_irreducible_block)
            && condition.adjudicator.is_none_or(|verdict| verdict == asked)
    }

    fn block_weight(&self, positions: &[Position]) -> Weight {
        let mut sum = Weight::default();
        for (weight, _) in self.weights.iter().zip(positions).filter(|(_, position)| position.block) {
            sum += weight;
        }
        sum
    }

    /// Whether a row counts irreducible dissent without a block.
    fn counts_dissent(&self) -> bool {
        self.rows.iter().any(|row| row.condition.says_irreducible.is_some())
    }

    /// C4: without a valid last answer the first one's objection still counts and its pass does not.
    fn count(&self, given: &Positions) -> CountedPosition {
        let objects = |position: &Position| position.block || (position.irreducible && self.counts_dissent());
        match (given.last, given.first) {
            (Some(last), _) => CountedPosition::Last(last),
            (None, Some(first)) if objects(&first) => CountedPosition::FirstBlock(first),
            (None, _) => CountedPosition::Missing,
        }
    }

    /// C4: the deciding row and its verdict, or why there is none.
    fn judge(
        &self,
        given: &[Positions],
        counted: &[CountedPosition],
        minimum: usize,
        asked: Option<Verdict>,
    ) -> Result<(usize, Verdict), Incomplete> {
        if given.iter().filter(|positions| positions.first.is_some()).count() < minimum {
            return Err(Incomplete::FirstRound);
        }
        if given.iter().filter(|positions| positions.last.is_some()).count() < minimum {
            return Err(Incomplete::SecondRound);
        }
        let asked =
            asked.filter(|verdict| *verdict != Verdict::Incomplete).ok_or(Incomplete::NoAdjudication)?;
        let decide = |missing: Position| {
            let position = |counted: &CountedPosition| match counted {
                CountedPosition::Last(position) | CountedPosition::FirstBlock(position) => *position,
                CountedPosition::Missing => missing,
            };
            self.decide(&counted.iter().map(position).collect::<Vec<_>>(), asked)
        };
        let decided = decide(PASS);
        match decided.1 == Verdict::Ship && decide(BLOCK).1 != Verdict::Ship {
            true => Err(Incomplete::MissingCouldBlock),
            false => Ok(decided),
        }
    }
}

/// A weight of a table. The reader refuses a weight that is not a decimal.
fn exact(number: &Number) -> Weight {
    number.to_string().parse().unwrap_or(Decimal::ONE).into()
}

/// The most cases that [`check`] enumerates; eight deliberators with different weights have 6,561.
const MAX_CASES: usize = 10_000;

/// A reason to refuse a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFlaw {
    /// The row with the looser verdict, from 0.
    pub row: usize,
    /// The counter-example, in a sentence without its full stop.
    pub message: String,
    pub help: &'static str,
}

/// Proves that one more block, or an objection made irreducible, never gives a looser verdict, and returns the rows that decide
/// no case. A missing answer never gives a looser verdict than a pass either: it counts as a pass, and if its block could
/// change a SHIP, the review is INCOMPLETE.
///
/// # Errors
/// The first counter-example, or too many cases. Deliberators whom the table does not tell apart add few cases.
pub fn check(policy: &Policy, members: &[Name]) -> Result<Vec<usize>, PolicyFlaw> {
    let table = PolicyTable::new(policy, members);
    let alike = table.alike();
    let states: &[Position] = match table.counts_dissent() {
        true => &[PASS, DISSENT, BLOCK, IRREDUCIBLE_BLOCK],
        false => &[PASS, BLOCK, IRREDUCIBLE_BLOCK],
    };
    let mut is_reached = vec![false; table.rows.len()];
    let mut case = vec![0; members.len()];
    let mut counted = case.clone();
    if (0..MAX_CASES).all(|_| advance(&mut counted, &alike, states.len() - 1)) {
        return Err(PolicyFlaw {
            row: 0,
            message: format!("the policy has more than {MAX_CASES} cases, too many to prove it monotone"),
            help: "give deliberators with the same role the same weight, or name fewer of them in rows",
        });
    }
    loop {
        table.check_case(&case, &alike, states, &mut is_reached)?;
        if !advance(&mut case, &alike, states.len() - 1) {
            return Ok((0..is_reached.len()).filter(|row| !is_reached[*row]).collect());
        }
    }
}

/// Sets the next case; `false` after the last. Of members who are alike a later one never objects less than an earlier one, so
/// that their combinations occur once.
fn advance(case: &mut [usize], alike: &[Option<usize>], last: usize) -> bool {
    let Some(at) = case.iter().rposition(|state| *state < last) else { return false };
    case[at] += 1;
    for (member, earlier) in alike.iter().enumerate().skip(at + 1) {
        case[member] = earlier.map_or(0, |earlier| case[earlier]);
    }
    true
}

impl PolicyTable<'_> {
    /// For each member the nearest earlier one whom no row tells apart from it.
    fn alike(&self) -> Vec<Option<usize>> {
        let listed = |at: usize| {
            let lists =
                self.rows.iter().flat_map(|row| [&row.condition.block_by, &row.condition.irreducible_by]);
            lists.map(|ids| ids.contains(&self.members[at])).collect::<Vec<bool>>()
        };
        let is_alike = |a: usize, b: usize| self.weights[a] == self.weights[b] && listed(a) == listed(b);
        (0..self.members.len()).map(|at| (0..at).rev().find(|earlier| is_alike(at, *earlier))).collect()
    }

    /// Compares a case with each case in which one member objects more.
    fn check_case(
        &self,
        case: &[usize],
        alike: &[Option<usize>],
        states: &[Position],
        is_reached: &mut [bool],
    ) -> Result<(), PolicyFlaw> {
        let positions: Vec<Position> = case.iter().map(|state| states[*state]).collect();
        for asked in [Verdict::Ship, Verdict::Revise, Verdict::Hold] {
            let before = self.decide(&positions, asked);
            if let Some(is_reached) = is_reached.get_mut(before.0) {
                *is_reached = true;
            }
            for (member, earlier) in alike.iter().enumerate() {
                if earlier.is_some_and(|earlier| case[earlier] == case[member]) {
                    continue;
                }
                let mut objecting = positions.clone();
                for more in states.iter().filter(|more| objects_more(**more, positions[member])) {
                    objecting[member] = *more;
                    let after = self.decide(&objecting, asked);
                    if after.1 < before.1 {
                        return Err(self.counter_example(
                            &positions,
                            (member, *more),
                            asked,
                            [before, after],
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    fn counter_example(
        &self,
        positions: &[Position],
        (member, more): (usize, Position),
        asked: Verdict,
        [before, after]: [(usize, Verdict); 2],
    ) -> PolicyFlaw {
        let objections = self.members.iter().zip(positions).filter(|(_, position)| **position != PASS);
        let objections: Vec<String> =
            objections.map(|(id, position)| format!("{id} {}", verb(*position))).collect();
        let case = match objections.is_empty() {
            true => "no deliberator blocks".to_owned(),
            false => objections.join(" and "),
        };
        let also = match positions[member] {
            PASS if objections.is_empty() => "",
            PASS => " too",
            _ => " instead",
        };
        PolicyFlaw {
            row: after.0,
            message: format!(
                "the policy is not monotone: if {case} and the adjudicator asks for {}, the verdict is {} (row {}); if {} \
                 {}{also}, it is {} (row {})",
                asked.as_str(),
                before.1.as_str(),
                before.0 + 1,
                self.members[member],
                verb(more),
                after.1.as_str(),
                after.0 + 1,
            ),
            help: "move the row with the stricter verdict up, or give the other row a verdict that is at least as strict",
        }
    }
}

/// Whether a position differs from another only by objecting more.
fn objects_more(more: Position, than: Position) -> bool {
    more != than && more.block >= than.block && more.irreducible >= than.irreducible
}

fn verb(position: Position) -> &'static str {
    match (position.block, position.irreducible) {
        (true, true) => "blocks irreducibly",
        (true, false) => "blocks",
        (false, true) => "says irreducible without a block",
        (false, false) => "passes",
    }
}
