//! Verdict policies: compute SHIP, REVISE, HOLD or INCOMPLETE from typed answers, never from prose (C3, C4).

mod seed;
mod strict;

use serde::{Deserialize, Serialize};

/// A council's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// It may go out.
    Ship,
    /// It may go out once it is changed.
    Revise,
    /// It must not go out.
    Hold,
    /// Not enough was answered to say.
    Incomplete,
}

impl Verdict {
    /// The word, in upper case.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Ship => "SHIP",
            Verdict::Revise => "REVISE",
            Verdict::Hold => "HOLD",
            Verdict::Incomplete => "INCOMPLETE",
        }
    }

    /// SHIP, REVISE or HOLD; an adjudicator cannot ask for INCOMPLETE.
    pub fn read(word: &str) -> Option<Verdict> {
        match word.trim().to_ascii_uppercase().as_str() {
            "SHIP" => Some(Verdict::Ship),
            "REVISE" => Some(Verdict::Revise),
            "HOLD" => Some(Verdict::Hold),
            _ => None,
        }
    }

    /// How strict: HOLD over REVISE over SHIP. INCOMPLETE is above all, since it lets nothing through.
    pub fn strictness(self) -> u8 {
        match self {
            Verdict::Ship => 0,
            Verdict::Revise => 1,
            Verdict::Hold => 2,
            Verdict::Incomplete => 3,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    Seed,
    Strict,
}

impl Policy {
    pub const ALL: [Policy; 2] = [Policy::Seed, Policy::Strict];

    /// The id and version that every record carries.
    pub fn id(self) -> &'static str {
        match self {
            Policy::Seed => "seed/2",
            Policy::Strict => "strict/1",
        }
    }

    /// What the policy makes of the counted positions and of what the adjudicator asks for.
    fn apply(self, tally: Tally, asked: Verdict) -> Verdict {
        let base = match self {
            Policy::Seed => seed::verdict(tally, asked),
            Policy::Strict => strict::verdict(tally, asked),
        };
        // The order of the variants is that of their strictness.
        base.max(asked)
    }
}

/// A position that a deliberator took in a valid answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    pub block: bool,
    /// It says that no revision could repair it.
    pub irreducible: bool,
}

/// What one deliberator gave in both rounds; `None` where there was no valid answer.
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
    Missing,
}

/// Why there is no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Incomplete {
    /// Fewer valid answers than the minimum in round 1.
    FirstRound,
    /// Fewer valid answers than the minimum in round 2.
    SecondRound,
    NoAdjudication,
    /// It would be SHIP, and the blocks of those missing could change that.
    MissingCouldBlock,
    /// The run's budget was spent.
    BudgetExhausted,
    /// A deliberator failed and the council says that this ends the review.
    FailFast,
}

impl Incomplete {
    /// The word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Incomplete::FirstRound => "first_round",
            Incomplete::SecondRound => "second_round",
            Incomplete::NoAdjudication => "no_adjudication",
            Incomplete::MissingCouldBlock => "missing_could_block",
            Incomplete::BudgetExhausted => "budget_exhausted",
            Incomplete::FailFast => "fail_fast",
        }
    }
}

/// How many counted deliberators block, and how many say irreducible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
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
pub fn judge(policy: Policy, given: &[Positions], minimum: usize, asked: Option<Verdict>) -> Judgement {
    let counted: Vec<CountedPosition> = given.iter().map(|positions| count(policy, positions)).collect();
    let tally = tally(&counted, Tally::default());
    let verdict = verdict(policy, given, &counted, tally, minimum, asked);
    Judgement { verdict, counted, tally }
}

fn verdict(
    policy: Policy,
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
    let verdict = policy.apply(tally, asked_verdict);
    let missing = counted.iter().filter(|position| matches!(position, CountedPosition::Missing)).count();
    let worst = Tally { blocks: tally.blocks + missing, ..tally };
    if verdict == Verdict::Ship && policy.apply(worst, asked_verdict) != Verdict::Ship {
        return Err(Incomplete::MissingCouldBlock);
    }
    Ok(verdict)
}

/// C4: without a valid last answer the first one's block still counts and its pass does not.
fn count(policy: Policy, given: &Positions) -> CountedPosition {
    match (given.last, given.first) {
        (Some(last), _) => CountedPosition::Last(last),
        (None, Some(first)) if is_objection(policy, first) => CountedPosition::FirstBlock(first),
        (None, _) => CountedPosition::Missing,
    }
}

/// Under `strict` an irreducible dissent counts without a block too.
fn is_objection(policy: Policy, position: Position) -> bool {
    position.block || (policy == Policy::Strict && position.irreducible)
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
