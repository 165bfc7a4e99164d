//! The setup of a council. The run's first record stores it, so that a replay needs only the ledger.

use serde::{Deserialize, Serialize};

use quorate_manifest::council as manifest;

use crate::Name;
use crate::policy::Policy;

/// Everything about a council that its commands depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The deliberators' ids, in roster order.
    pub deliberators: Vec<Name>,
    pub rounds: Rounds,
    /// What round 2 sees of round 1.
    pub cross_read: CrossRead,
    /// Whether one failure ends the review.
    pub fail_fast: FailFast,
    /// Fewer valid answers than this give INCOMPLETE.
    pub min_deliberators: usize,
    pub policy: Policy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rounds {
    /// Judge on independent first answers.
    One,
    /// Let everybody read the others first.
    Two,
}

/// What round 2 sees of round 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CrossRead {
    Verdicts,
    Findings,
    None,
}

/// Whether one failure ends the review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailFast {
    Yes,
    /// The others go on.
    No,
}

impl Setup {
    /// The setup that a council's manifest asks for.
    pub fn from_manifest(council: &manifest::Council, policy: Policy) -> Setup {
        let protocol = &council.protocol;
        Setup {
            deliberators: council.deliberators.iter().map(|deliberator| deliberator.id.clone()).collect(),
            rounds: match protocol.rounds {
                manifest::Rounds::One => Rounds::One,
                manifest::Rounds::Two => Rounds::Two,
            },
            cross_read: match protocol.cross_read {
                manifest::CrossRead::Verdicts => CrossRead::Verdicts,
                manifest::CrossRead::Findings => CrossRead::Findings,
                manifest::CrossRead::None => CrossRead::None,
            },
            fail_fast: match protocol.fail_fast {
                manifest::FailFast::Yes => FailFast::Yes,
                manifest::FailFast::No => FailFast::No,
            },
            min_deliberators: protocol.min_deliberators,
            policy,
        }
    }
}
