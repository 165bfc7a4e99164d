//! The votes as rules see them, and what rules decide.

use crate::Name;
use crate::answers::vote::Vote;
use crate::assembly::Rule;
use crate::tally::{Tally, Weight};

/// A vote as it is counted.
#[derive(Debug, Clone)]
pub(crate) struct CountedVote {
    pub(crate) member: Name,
    pub(crate) weight: Weight,
    /// `None` where the member gave no vote.
    pub(crate) vote: Option<Vote>,
}

/// The votes, as rules see them.
pub(crate) struct Poll<'a> {
    pub(crate) votes: Vec<CountedVote>,
    pub(crate) class: Option<&'a str>,
    pub(crate) run: &'a str,
}

/// What a rule decides.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ruling {
    pub(crate) pass: bool,
    /// Whose votes made it decide so, where it is not all of them.
    pub(crate) members: Vec<Name>,
    pub(crate) tally: Option<Tally>,
    /// How a tie was broken.
    pub(crate) tie: Option<String>,
}

impl Ruling {
    /// A decision without more.
    pub(crate) fn new(pass: bool) -> Self {
        Ruling { pass, members: Vec::new(), tally: None, tie: None }
    }
}

impl Poll<'_> {
    /// The voters that a rule looks at.
    pub(crate) fn votes_of(&self, rule: &Rule) -> impl Iterator<Item = &CountedVote> {
        self.votes.iter().filter(|one| rule.applies_to_member(&one.member))
    }

    /// Their weights by vote; what abstains is in the total unless the rule counts what was cast (V3).
    pub(crate) fn tally(&self, rule: &Rule) -> Tally {
        let mut tally = Tally::default();
        let cast = rule.text_param("denominator") == Some("cast");
        for voter in self.votes_of(rule) {
            let side = match voter.vote {
                Some(Vote::Yes) => &mut tally.yes,
                Some(Vote::No) => &mut tally.no,
                Some(Vote::Abstain) => &mut tally.abstain,
                None => &mut tally.missing,
            };
            *side += &voter.weight;
            if !(cast && voter.vote == Some(Vote::Abstain)) {
                tally.total += &voter.weight;
            }
        }
        tally
    }
}
