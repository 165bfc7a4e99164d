//! Verdict policies: compute SHIP, REVISE, HOLD or INCOMPLETE from typed answers, never from prose (C3, C4).
//!
//! `seed`: [`BLOCKS_TO_HOLD`] blocks hold; if all of them are reducible, the adjudicator can lower the verdict to REVISE; fewer
//! blocks ship, with the brief. It deviates from a literal "otherwise SHIP": that many blocks without a downgrade, or with an
//! irreducible one among them, are a HOLD.
//!
//! `strict`: any irreducible objection holds, blocking or not; [`BLOCKS_TO_HOLD`] blocks hold unless the adjudicator lowers the
//! verdict to REVISE; one block or more revises; no block ships.

use quorate_manifest::council::VerdictPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// From this number of blocks the verdict is HOLD, under each policy, unless the adjudicator lowers it.
pub const BLOCKS_TO_HOLD: usize = 3;

/// A council's verdict: SHIP, the text may be published; REVISE, it may be published after changes; HOLD, it must not be
/// published; INCOMPLETE, too few answers to decide. The variants are in the order of their strictness: INCOMPLETE is the
/// strictest, since it lets no text pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    Ship,
    Revise,
    Hold,
    Incomplete,
}

quorate_manifest::words!(Verdict { Ship = "SHIP", Revise = "REVISE", Hold = "HOLD", Incomplete = "INCOMPLETE" });

impl Verdict {
    /// The verdict that an adjudicator asks for, in any case; it cannot ask for INCOMPLETE.
    pub fn read(word: &str) -> Option<Verdict> {
        Verdict::parse(&word.trim().to_ascii_uppercase()).filter(|verdict| *verdict != Verdict::Incomplete)
    }
}

/// The id and version of a policy, which every record carries.
pub fn policy_id(policy: VerdictPolicy) -> &'static str {
    match policy {
        VerdictPolicy::Seed => "seed/2",
        VerdictPolicy::Strict => "strict/1",
    }
}

/// The policy of an id, of any version, or of a name; `None` if this version of the program does not have it.
pub fn policy_of_id(id: &str) -> Option<VerdictPolicy> {
    let name = id.split('/').next();
    VerdictPolicy::ALL.into_iter().find(|policy| name == Some(policy.as_str()))
}

/// The fewest blocks that prevent SHIP under a policy, whatever the adjudicator asks for.
pub fn blocks_against_ship(policy: VerdictPolicy) -> usize {
    match policy {
        VerdictPolicy::Seed => BLOCKS_TO_HOLD,
        VerdictPolicy::Strict => 1,
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
    /// How each deliberator was counted, in the order given.
    pub counted: Vec<CountedPosition>,
    pub tally: Tally,
}

/// Judges. `asked` is what a valid adjudication asks for.
pub fn judge(
    policy: VerdictPolicy,
    given: &[Positions],
    minimum: usize,
    asked: Option<Verdict>,
) -> Judgement {
    let counted: Vec<CountedPosition> = given.iter().map(|positions| count(policy, positions)).collect();
    let tally = tally(&counted, Tally::default());
    let verdict = verdict(policy, given, &counted, tally, minimum, asked);
    Judgement { verdict, counted, tally }
}

fn verdict(
    policy: VerdictPolicy,
    given: &[Positions],
    counted: &[CountedPosition],
    tally: Tally,
    minimum: usize,
    asked: Option<Verdict>,
) -> Result<Verdict, Incomplete> {
    if given.iter().filter(|positions| positions.first.is_some()).count() < minimum {
        return Err(Incomplete::FirstRound);
    }
    if given.iter().filter(|positions| positions.last.is_some()).count() < minimum {
        return Err(Incomplete::SecondRound);
    }
    let asked_verdict =
        asked.filter(|verdict| *verdict != Verdict::Incomplete).ok_or(Incomplete::NoAdjudication)?;
    let verdict = apply(policy, tally, asked_verdict);
    let missing = counted.iter().filter(|position| matches!(position, CountedPosition::Missing)).count();
    let worst = Tally { blocks: tally.blocks + missing, ..tally };
    if verdict == Verdict::Ship && apply(policy, worst, asked_verdict) != Verdict::Ship {
        return Err(Incomplete::MissingCouldBlock);
    }
    Ok(verdict)
}

/// C4: without a valid last answer the first one's block still counts and its pass does not.
fn count(policy: VerdictPolicy, given: &Positions) -> CountedPosition {
    match (given.last, given.first) {
        (Some(last), _) => CountedPosition::Last(last),
        (None, Some(first)) if is_objection(policy, first) => CountedPosition::FirstBlock(first),
        (None, _) => CountedPosition::Missing,
    }
}

/// Under `strict` an irreducible dissent counts without a block too.
fn is_objection(policy: VerdictPolicy, position: Position) -> bool {
    position.block || (policy == VerdictPolicy::Strict && position.irreducible)
}

fn tally(counted: &[CountedPosition], mut tally: Tally) -> Tally {
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

/// What a policy makes of the counted positions and of the adjudicator's request: never a milder verdict than requested.
fn apply(policy: VerdictPolicy, tally: Tally, asked: Verdict) -> Verdict {
    let verdict = match policy {
        VerdictPolicy::Seed => seed(tally, asked),
        VerdictPolicy::Strict => strict(tally, asked),
    };
    verdict.max(asked)
}

fn seed(tally: Tally, asked: Verdict) -> Verdict {
    match tally {
        Tally { blocks: BLOCKS_TO_HOLD.., irreducible_blocks: 0, .. } if asked == Verdict::Revise => {
            Verdict::Revise
        }
        Tally { blocks: BLOCKS_TO_HOLD.., .. } => Verdict::Hold,
        _ => Verdict::Ship,
    }
}

fn strict(tally: Tally, asked: Verdict) -> Verdict {
    match tally {
        Tally { irreducible: 1.., .. } => Verdict::Hold,
        Tally { blocks: BLOCKS_TO_HOLD.., .. } if asked == Verdict::Revise => Verdict::Revise,
        Tally { blocks: BLOCKS_TO_HOLD.., .. } => Verdict::Hold,
        Tally { blocks: 1.., .. } => Verdict::Revise,
        _ => Verdict::Ship,
    }
}
