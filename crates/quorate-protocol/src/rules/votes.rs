//! Votes as rules see them, and the rules that count them: `quorum`, `majority` and `unanimity` (V3, V4); and warnings about rules
//! that cannot fire.

use std::cmp::Ordering;

use quorate_manifest::assembly::Mode;
use quorate_manifest::capabilities::RuleKind;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::terminal;
use crate::Name;
use crate::answers::advice::Vote;
use crate::assembly::{AssemblyRequest, Rule};
use crate::tally::{Tally, Weight};

/// A counted vote.
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

/// The kind as a manifest writes it.
pub const QUORUM: &str = "quorum";

/// The constraints on such a rule in manifests.
pub fn quorum_kind() -> RuleKind {
    RuleKind {
        always_decides: true,
        modes: vec![Mode::Voting],
        params: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "threshold": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                "denominator": {"enum": ["total", "cast"], "default": "total"},
                "terminal": {"type": "boolean"}
            },
            "required": ["threshold"]
        }),
        ..RuleKind::default()
    }
}

/// Passes where the ratio is at or over the threshold, and fails below it. It never leaves the decision to a later rule:
/// with a tie that falls through, one more yes could turn a pass into a fail.
pub(crate) fn decide_by_quorum(rule: &Rule, poll: &Poll<'_>) -> Option<Ruling> {
    let tally = poll.tally(rule);
    let reached = rule.decimal_param("threshold").is_some_and(|threshold| tally.reaches(threshold));
    Some(Ruling { tally: Some(tally), ..Ruling::new(reached) })
}

/// The kind as a manifest writes it.
pub const UNANIMITY: &str = "unanimity";

/// The constraints on such a rule in manifests.
pub fn unanimity_kind() -> RuleKind {
    RuleKind {
        always_decides: true,
        modes: vec![Mode::Voting],
        params: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "terminal": {"type": "boolean"}
            }
        }),
        ..RuleKind::default()
    }
}

/// Passes iff every voter says yes; without voters it fails.
pub(crate) fn decide_unanimously(rule: &Rule, poll: &Poll<'_>) -> Option<Ruling> {
    let dissenting: Vec<_> = poll
        .votes_of(rule)
        .filter(|ballot| ballot.vote != Some(Vote::Yes))
        .map(|ballot| ballot.member.clone())
        .collect();
    let pass = dissenting.is_empty() && poll.votes_of(rule).next().is_some();
    let tally = poll.tally(rule);
    Some(Ruling { members: dissenting, tally: Some(tally), ..Ruling::new(pass) })
}

/// The rules of a vote that cannot do what their author may rely on, a veto most of all: those for another class than
/// none, and those for members who are not asked. `members` are given with the classes that each votes on.
pub fn class_warnings<'m>(
    request: &AssemblyRequest,
    rules: &[Rule],
    members: impl Iterator<Item = (&'m str, Option<&'m [String]>)>,
) -> Vec<String> {
    let AssemblyRequest::Voting { class } = request else { return Vec::new() };
    let mut warnings = Vec::new();
    let scoped = rules.iter().filter_map(|rule| Some(format!("`{}` ({})", rule.id, rule.scope()?)));
    let scoped: Vec<String> = scoped.collect();
    if class.is_none() && !scoped.is_empty() {
        warnings.push(format!("No class is said, so these rules do not count: {}.", scoped.join(", ")));
    }
    let is_unasked = |classes: Option<&[String]>| {
        classes.is_some_and(|classes| !class.as_ref().is_some_and(|class| classes.contains(class)))
    };
    let unasked: Vec<&str> =
        members.filter(|(_, classes)| is_unasked(*classes)).map(|(member, _)| member).collect();
    let on = match class {
        Some(class) => format!("proposals of the class `{class}`"),
        None => "proposals without a class".to_owned(),
    };
    let counts = |rule: &&Rule| {
        *rule.kind == *terminal::KIND && rule.scope().is_none_or(|scope| class.as_deref() == Some(scope))
    };
    for rule in rules.iter().filter(counts) {
        let named = rule.applies_to.iter().flatten().filter(|id| unasked.contains(&&***id));
        let named: Vec<String> = named.map(|id| format!("`{id}`")).collect();
        if !named.is_empty() {
            warnings.push(format!(
                "`{}` ({}) cannot fire for {}, not asked on {on}.",
                rule.id,
                rule.kind,
                named.join(", ")
            ));
        }
    }
    warnings
}

/// The kind as a manifest writes it.
pub const MAJORITY: &str = "majority";

/// The constraints on such a rule in manifests.
pub fn majority_kind() -> RuleKind {
    RuleKind {
        always_decides: true,
        modes: vec![Mode::Voting],
        member_params: &["chair"],
        dependent_params: &[("chair", "tieBreaker", "chair-vote")],
        params: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "tieBreaker": {"enum": ["chair-vote", "reject", "random"], "default": "reject"},
                "chair": {"type": "string", "minLength": 1},
                "denominator": {"enum": ["total", "cast"], "default": "total"},
                "terminal": {"type": "boolean"}
            },
            "if": {"properties": {"tieBreaker": {"const": "chair-vote"}}, "required": ["tieBreaker"]},
            "then": {"required": ["chair"]}
        }),
        ..RuleKind::default()
    }
}

/// More than half passes, less fails, and an exact half goes to the tie-breaker.
pub(crate) fn decide_by_majority(rule: &Rule, poll: &Poll<'_>) -> Option<Ruling> {
    let tally = poll.tally(rule);
    let half = tally.compare_to_half();
    let mut ruling = Ruling { tally: Some(tally), ..Ruling::new(half == Some(Ordering::Greater)) };
    if half == Some(Ordering::Equal) {
        let (pass, tie) = break_tie(rule, poll);
        ruling.pass = pass;
        ruling.tie = Some(tie);
    }
    Some(ruling)
}

/// Who breaks a tie, and how. A chair who abstains or is missing rejects.
fn break_tie(rule: &Rule, poll: &Poll<'_>) -> (bool, String) {
    match rule.text_param("tieBreaker").unwrap_or("reject") {
        "chair-vote" => {
            let chair = rule.text_param("chair").unwrap_or_default();
            let vote = poll.votes.iter().find(|vote| *vote.member == *chair).and_then(|vote| vote.vote);
            match vote {
                Some(Vote::Yes) => (true, format!("tied; the chair `{chair}` votes yes")),
                Some(Vote::No) => (false, format!("tied; the chair `{chair}` votes no")),
                Some(Vote::Abstain) => (false, format!("tied; the chair `{chair}` abstains, which rejects")),
                None => (false, format!("tied; the chair `{chair}` gave no vote, which rejects")),
            }
        }
        "random" => {
            let pass = Sha256::digest(poll.run.as_bytes())[0] & 1 == 1;
            let side = if pass { "pass" } else { "fail" };
            (pass, format!("tied; drawn from the run's id: {side}"))
        }
        _ => (false, "tied; a tie rejects".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(id: &str, scope: Option<&str>, applies_to: Option<&[&str]>) -> Rule {
        Rule {
            id: id.into(),
            kind: terminal::KIND.into(),
            applies_to: applies_to.map(|ids| ids.iter().map(|id| (*id).into()).collect()),
            params: scope.map(|scope| ("scope".to_owned(), json!(scope))).into_iter().collect(),
        }
    }

    /// The warnings on a vote of `a`, who votes on all, and `b`, who votes on money alone.
    fn warnings(class: Option<&str>, rules: &[Rule]) -> Vec<String> {
        let money = ["money".to_owned()];
        let members = [("a", None), ("b", Some(&money[..]))];
        class_warnings(
            &AssemblyRequest::Voting { class: class.map(str::to_owned) },
            rules,
            members.into_iter(),
        )
    }

    #[test]
    fn a_rule_that_cannot_fire_is_named() {
        let unclassed = "No class is said, so these rules do not count: `m` (money), `s` (safety).";
        let scoped =
            [rule("m", Some("money"), None), rule("s", Some("safety"), None), rule("all", None, None)];
        assert_eq!(warnings(None, &scoped), [unclassed]);
        assert_eq!(warnings(Some("money"), &scoped), [""; 0]);
        assert_eq!(warnings(None, &scoped[2..]), [""; 0]);

        let on_safety = "`v` (terminal) cannot fire for `b`, not asked on proposals of the class `safety`.";
        let no_class = "`v` (terminal) cannot fire for `b`, not asked on proposals without a class.";
        let both = Some(&["a", "b"][..]);
        assert_eq!(warnings(Some("safety"), &[rule("v", None, both)]), [on_safety]);
        assert_eq!(warnings(Some("safety"), &[rule("v", Some("safety"), both)]), [on_safety]);
        assert_eq!(warnings(Some("safety"), &[rule("v", Some("money"), both)]), [""; 0]);
        assert_eq!(warnings(Some("safety"), &[rule("v", None, None)]), [""; 0]);
        assert_eq!(warnings(Some("safety"), &[rule("v", None, Some(&["a"]))]), [""; 0]);
        assert_eq!(warnings(Some("money"), &[rule("v", None, both)]), [""; 0]);
        assert_eq!(warnings(None, &[rule("v", None, both)]), [no_class]);
        let counted = Rule { kind: "majority".into(), ..rule("v", None, both) };
        assert_eq!(warnings(Some("safety"), &[counted]), [""; 0]);
        assert_eq!(class_warnings(&AssemblyRequest::Hierarchy, &scoped, std::iter::empty()), [""; 0]);
    }
}
