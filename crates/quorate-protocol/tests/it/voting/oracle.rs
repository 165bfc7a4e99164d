//! The oracle: V1 to V8 said slowly, in whole tenths and fractions of whole numbers. It knows nothing of the
//! protocol.

/// A voter's behavior.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VoterBehavior {
    Yes,
    No,
    Abstain,
    /// No valid vote, for whatever reason.
    Missing,
}

impl VoterBehavior {
    pub(crate) const ALL: [VoterBehavior; 4] =
        [VoterBehavior::Yes, VoterBehavior::No, VoterBehavior::Abstain, VoterBehavior::Missing];
}

/// A voter: who may vote on this class (V1).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Voter {
    /// Its place in the roster.
    pub(crate) index: usize,
    /// What its vote counts, in tenths.
    pub(crate) tenths: u64,
    pub(crate) does: VoterBehavior,
}

/// How a tie ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tie {
    Unwritten,
    Reject,
    Random,
    /// The chair's index.
    Chair(usize),
}

/// A rule's effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Terminal {
        on: VoterBehavior,
        /// Whether it is for the proposal's class only, for another class only, or for all.
        scope: Scope,
    },
    Quorum {
        /// The threshold as a fraction.
        threshold: (u64, u64),
        cast: bool,
    },
    Majority {
        tie: Tie,
        cast: bool,
    },
    Unanimity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    All,
    This,
    Another,
}

/// A rule and whom it looks at; `None` is everybody.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) kind: Kind,
    pub(crate) of: Option<Vec<usize>>,
}

/// The result of a vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Word {
    Pass,
    Fail,
    Incomplete,
}

impl Word {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Word::Pass => "pass",
            Word::Fail => "fail",
            Word::Incomplete => "incomplete",
        }
    }
}

/// The result of the vote in tenths: the yes share, and its denominator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) yes: u64,
    pub(crate) of: u64,
}

/// V8: the votes' result, compared with every missing voter voting no. `coin` is the result of a random tie in the run.
pub(crate) fn outcome(rules: &[Rule], voters: &[Voter], coin: bool) -> Word {
    if voters.iter().all(|voter| voter.does == VoterBehavior::Missing) {
        return Word::Incomplete;
    }
    if !passes(rules, voters, coin) {
        return Word::Fail;
    }
    let one = |voter: &Voter| Voter {
        does: if voter.does == VoterBehavior::Missing { VoterBehavior::No } else { voter.does },
        ..*voter
    };
    let harshest: Vec<Voter> = voters.iter().map(one).collect();
    if passes(rules, &harshest, coin) { Word::Pass } else { Word::Incomplete }
}

/// V4, V5: the first rule that decides.
pub(crate) fn passes(rules: &[Rule], voters: &[Voter], coin: bool) -> bool {
    for rule in rules {
        let mine: Vec<Voter> = of(rule, voters);
        match rule.kind {
            Kind::Terminal { scope: Scope::Another, .. } => {}
            Kind::Terminal { on, .. } => {
                if mine.iter().any(|one| one.does == on) {
                    return on == VoterBehavior::Yes;
                }
            }
            Kind::Unanimity => {
                return !mine.is_empty() && mine.iter().all(|one| one.does == VoterBehavior::Yes);
            }
            Kind::Quorum { threshold: (over, under), cast } => {
                let count = count(&mine, cast);
                return count.of > 0 && count.yes * under >= over * count.of;
            }
            Kind::Majority { tie, cast } => return majority(&mine, voters, tie, cast, coin),
        }
    }
    majority(voters, voters, Tie::Reject, false, coin)
}

fn majority(mine: &[Voter], all: &[Voter], tie: Tie, cast: bool, coin: bool) -> bool {
    let count = count(mine, cast);
    if count.of == 0 || count.yes * 2 != count.of {
        return count.yes * 2 > count.of;
    }
    match tie {
        Tie::Unwritten | Tie::Reject => false,
        Tie::Random => coin,
        Tie::Chair(index) => all.iter().any(|one| one.index == index && one.does == VoterBehavior::Yes),
    }
}

/// Whom a rule looks at.
pub(crate) fn of(rule: &Rule, voters: &[Voter]) -> Vec<Voter> {
    let mine = |voter: &&Voter| rule.of.as_ref().is_none_or(|indices| indices.contains(&voter.index));
    voters.iter().filter(mine).copied().collect()
}

/// V3: yes of all weights; under `cast` without those who abstain.
pub(crate) fn count(voters: &[Voter], cast: bool) -> Count {
    let sum = |counts: &dyn Fn(&Voter) -> bool| {
        voters.iter().filter(|voter| counts(voter)).map(|voter| voter.tenths).sum()
    };
    Count {
        yes: sum(&|one| one.does == VoterBehavior::Yes),
        of: sum(&|one| !(cast && one.does == VoterBehavior::Abstain)),
    }
}
