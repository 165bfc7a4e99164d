//! The stacks of rules that are tried: those of the seed, and the combinations that their texts make possible.

use super::oracle::{Kind, Rule, Scope, Tie, VoterBehavior};

/// The thresholds: three tenths, a half, two thirds as written in manifests, all.
const THRESHOLDS: [(u64, u64); 4] = [(3, 10), (5, 10), (66, 100), (1, 1)];

/// A rule for everybody.
pub(crate) fn all(kind: Kind) -> Rule {
    Rule { kind, of: None }
}

/// A rule for some.
pub(crate) fn some(kind: Kind, of: &[usize]) -> Rule {
    Rule { kind, of: Some(of.to_vec()) }
}

pub(crate) fn majority(tie: Tie) -> Kind {
    Kind::Majority { tie, cast: false }
}

pub(crate) fn quorum(threshold: (u64, u64)) -> Kind {
    Kind::Quorum { threshold, cast: false }
}

pub(crate) fn veto(scope: Scope) -> Kind {
    Kind::Terminal { on: VoterBehavior::No, scope }
}

/// Rules of each kind, of which lists are made.
pub(crate) fn palette() -> Vec<Rule> {
    let go = Kind::Terminal { on: VoterBehavior::Yes, scope: Scope::All };
    vec![
        all(quorum((3, 10))),
        all(quorum((5, 10))),
        all(quorum((75, 100))),
        all(Kind::Quorum { threshold: (66, 100), cast: true }),
        some(quorum((5, 10)), &[1, 2]),
        all(majority(Tie::Reject)),
        all(majority(Tie::Random)),
        all(majority(Tie::Chair(0))),
        some(Kind::Majority { tie: Tie::Chair(1), cast: true }, &[0, 2, 3]),
        all(Kind::Unanimity),
        some(veto(Scope::All), &[0]),
        all(veto(Scope::This)),
        some(go, &[1]),
    ]
}

/// All stacks, each named by its place and its text.
pub(crate) fn stacks() -> Vec<Vec<Rule>> {
    let ties = [Tie::Unwritten, Tie::Reject, Tie::Random, Tie::Chair(0), Tie::Chair(1)];
    let go = |scope| Kind::Terminal { on: VoterBehavior::Yes, scope };
    let mut stacks = vec![Vec::new(), vec![all(Kind::Unanimity)]];
    stacks.extend(ties.map(|tie| vec![all(majority(tie))]));
    stacks.extend(THRESHOLDS.map(|threshold| vec![all(quorum(threshold))]));
    // A quorum decides by its own threshold, whatever comes after it.
    for threshold in THRESHOLDS {
        stacks.push(vec![all(quorum(threshold)), all(majority(Tie::Chair(0)))]);
    }
    stacks.extend([
        vec![all(quorum((5, 10))), all(majority(Tie::Random))],
        vec![all(quorum((66, 100))), all(majority(Tie::Unwritten))],
        vec![all(quorum((5, 10))), all(quorum((3, 10))), all(majority(Tie::Chair(1)))],
        vec![all(majority(Tie::Chair(0))), all(quorum((3, 10)))],
        vec![all(quorum((5, 10))), all(Kind::Unanimity)],
    ]);
    // Terminal: a veto and its opposite, for all classes, for this one, for another.
    for scope in [Scope::All, Scope::This, Scope::Another] {
        stacks.push(vec![all(veto(scope)), all(majority(Tie::Unwritten))]);
        stacks.push(vec![some(veto(scope), &[0]), all(majority(Tie::Chair(1)))]);
        stacks.push(vec![some(go(scope), &[1]), all(majority(Tie::Reject))]);
    }
    stacks.extend([
        vec![some(veto(Scope::All), &[1]), some(go(Scope::All), &[0]), all(quorum((66, 100)))],
        vec![all(go(Scope::All)), all(veto(Scope::All))],
        vec![all(veto(Scope::This))],
    ]);
    // What was cast alone.
    stacks.extend([
        vec![all(Kind::Quorum { threshold: (66, 100), cast: true })],
        vec![all(Kind::Majority { tie: Tie::Chair(0), cast: true })],
        vec![all(Kind::Quorum { threshold: (5, 10), cast: true }), all(majority(Tie::Chair(0)))],
    ]);
    // Some of the voters; a chair who is none of them; no member at all (index 5).
    stacks.extend([
        vec![some(quorum((5, 10)), &[0, 1])],
        vec![some(majority(Tie::Chair(2)), &[0, 1])],
        vec![some(Kind::Unanimity, &[1, 2])],
        vec![some(quorum((3, 10)), &[5])],
        vec![some(Kind::Unanimity, &[5])],
        vec![some(majority(Tie::Random), &[5])],
        vec![some(quorum((66, 100)), &[0, 1]), some(majority(Tie::Chair(0)), &[1, 2])],
        vec![some(Kind::Quorum { threshold: (1, 1), cast: true }, &[1, 2]), all(majority(Tie::Reject))],
    ]);
    stacks
}
