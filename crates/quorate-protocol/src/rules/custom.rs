//! Custom rules: what a mode asks a rule of the embedding program, and what the rule answers.

use serde::{Serialize, Serializer};

use super::advice::Child;
use crate::answers::advice::{Advice, Vote};
use crate::assembly::Rule;
use crate::{Json, Name};

/// What a custom rule looks at. Its JSON has the field `mode` and the fields of the variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "mode", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum RuleRequest {
    /// The advice of the members that the rule applies to.
    Advisory {
        /// The rule as the manifest has it.
        rule: Rule,
        /// The advice, in the order of the members.
        outputs: Vec<MemberOutput>,
    },
    /// The votes of the members that the rule applies to.
    Voting {
        /// The rule as the manifest has it.
        rule: Rule,
        /// The class of the proposal, if it has one.
        class: Option<String>,
        /// The votes, in the order of the members.
        votes: Vec<MemberVote>,
        /// Whether missing votes are counted as no: a pass must hold either way.
        missing_as_no: bool,
    },
    /// A discussion: whether it ends after this round, or what it comes to.
    Peer {
        /// The synthesis rule as the manifest has it; `None` asks a termination rule.
        #[serde(skip_serializing_if = "Option::is_none")]
        rule: Option<Rule>,
        /// The number of the last round, from 1.
        round: u32,
        /// The messages that were delivered, in order.
        messages: Vec<SentMessage>,
        /// The members' answers in the last round.
        answers: Vec<RoundAnswer>,
    },
    /// A node of a hierarchy and the reports of its children.
    Hierarchy {
        /// The rule as the manifest has it.
        rule: Rule,
        /// The member at the node.
        node: Name,
        /// Its own assessment, if it gave one.
        own: Option<Advice>,
        /// The reports of its children, without those that passed up nothing.
        children: Vec<Child>,
    },
}

/// The advice of a member.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberOutput {
    /// The member's id.
    pub member: Name,
    /// The member's phase, if it has one.
    pub phase: Option<String>,
    /// Its advice.
    #[serde(flatten)]
    pub advice: Advice,
    /// Whether it has a suggestion that no earlier rule has emitted.
    pub may_emit: bool,
}

/// The vote of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemberVote {
    /// The member's id.
    pub member: Name,
    /// The member's weight: an exact decimal number.
    pub weight: String,
    /// Its vote; `None` if it cast none.
    pub vote: Option<Vote>,
}

/// A message of a discussion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SentMessage {
    /// The number of its round, from 1.
    pub round: u32,
    /// The id of its author.
    pub from: Name,
    /// The ids of its recipients; `None` means all members, and is `*` in JSON.
    #[serde(serialize_with = "members_or_all")]
    pub to: Option<Vec<Name>>,
    /// Its text.
    pub text: Name,
}

/// A member's answer in a round of a discussion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoundAnswer {
    /// The member's id.
    pub member: Name,
    /// Whether it gave a valid answer.
    pub answered: bool,
    /// Whether it objects.
    pub objection: bool,
    /// Whether it has nothing to add.
    pub pass: bool,
}

/// The answer of a custom rule. One of another mode counts as a failure or says nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RuleAnswer {
    /// Nothing: the next rule has its turn, and a discussion continues.
    Nothing,
    /// Advisory: whose suggestions become guidance.
    Guidance {
        /// At most one for each member.
        fragments: Vec<RuleFragment>,
        /// Whether no later rule is applied.
        terminal: bool,
    },
    /// Voting: whether the proposal passes.
    Vote {
        /// The decision.
        decision: RuleDecision,
    },
    /// Peer: whether the discussion ends after this round.
    Termination {
        /// `true` ends it.
        end: bool,
    },
    /// Peer: a synthesis of the discussion. Its texts are checked against the locks.
    Synthesis(Json),
    /// Hierarchy: what the node passes up.
    Assessment(Advice),
}

/// A member whose suggestion a custom rule emits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleFragment {
    /// The member's id.
    pub member: Name,
    /// From 0 to 100, 50 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
}

/// A custom rule's decision on a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleDecision {
    /// The proposal passes.
    Pass,
    /// The proposal fails.
    Fail,
}

fn members_or_all<S: Serializer>(members: &Option<Vec<Name>>, serializer: S) -> Result<S::Ok, S::Error> {
    match members {
        Some(members) => members.serialize(serializer),
        None => "*".serialize(serializer),
    }
}
