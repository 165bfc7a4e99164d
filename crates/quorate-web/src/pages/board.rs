//! A vote: one bar in exact weights with what the rules ask for, the votes, and the rules in their order.

use quorate::service::convene::report::{AppliedRule, Decision, Member, Needed, Report};
use quorate_protocol::Json;
use serde_json::Map;

use super::at::At;
use super::chart::{self, Segment};

/// A vote.
pub(super) struct Board {
    pub(super) bar: Vec<Segment>,
    pub(super) marks: Vec<Mark>,
    /// What the bar shows, in a sentence.
    pub(super) about: String,
    /// Each side with its weight and its voters.
    pub(super) sides: Vec<Side>,
    pub(super) ratio: String,
    /// What was voted on, in the words of the proposal, and the line that says the result.
    pub(super) text: Option<(String, String)>,
    pub(super) tie: Option<String>,
    pub(super) votes: Vec<(String, String, String)>,
}

/// A member's vote with its reason, as it gave them; a reason that touches a locked trait is withheld (V6).
pub(crate) struct Reason {
    pub(crate) at: At,
    pub(crate) member: String,
    pub(crate) word: String,
    pub(crate) reason: String,
    pub(crate) reason_at: String,
}

impl Reason {
    /// The vote in an answer, if there is one. `at` is the record of the answer, `decided` the decision of the outcome.
    pub(crate) fn of(
        member: &str,
        answer: &Map<String, Json>,
        at: At,
        (decision, decided): (&Decision, &At),
    ) -> Option<Reason> {
        let text = |key: &str| answer.get(key).and_then(Json::as_str).map(str::to_owned);
        let withheld = decision.votes.iter().enumerate().find(|(_, vote)| vote.member == member);
        let withheld = withheld.and_then(|(place, vote)| Some((place, vote.withheld.clone()?)));
        let (reason, reason_at) = match withheld {
            Some((place, text)) => (text, decided.to(&format!("/votes/{place}/withheld"))),
            None => (text("rationale").unwrap_or_default(), at.to("/answer/rationale")),
        };
        Some(Reason { at, member: member.to_owned(), word: text("vote")?, reason, reason_at })
    }
}

/// The votes of a run that has some, in the order of its members.
pub(super) fn reasons(report: &Report) -> Vec<Reason> {
    let Some(decision) = &report.decision else { return Vec::new() };
    let nowhere = At::default();
    let given =
        |member: &Member| Reason::of(&member.id, member.answer()?, At::default(), (decision, &nowhere));
    report.members.iter().filter_map(given).collect()
}

pub(super) struct Side {
    pub(super) word: &'static str,
    pub(super) weight: String,
    pub(super) votes: usize,
}

/// What a rule asks of the yes side.
pub(super) struct Mark {
    /// Where it is, of 1,000.
    pub(super) x: u64,
    /// Whether the rule decided; else it is a quorum that did not.
    pub(super) is_deciding: bool,
    pub(super) rule: String,
    pub(super) needs: String,
}

pub(super) struct RuleRow {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) is_deciding: bool,
    /// `yes`, `no`, or `not evaluated`.
    pub(super) applied: &'static str,
    pub(super) effect: String,
}

/// The vote of a run that has one.
pub(super) fn board(report: &Report) -> Option<Board> {
    let decision = report.decision.as_ref()?;
    let parts = [
        ("yes", decision.yes),
        ("no", decision.no),
        ("abstain", decision.abstain),
        ("missing", decision.missing),
    ];
    let all: f64 = parts.iter().map(|(_, weight)| weight).sum();
    let reached = if all > 0.0 { decision.yes / all } else { 0.0 };
    let mark = |needed: Needed, is_deciding: bool| Mark {
        x: chart::mark(needed.place, reached),
        is_deciding,
        rule: needed.rule,
        needs: needed.text,
    };
    let deciding = report.threshold().map(|needed| mark(needed, true));
    let quorums = report.quorums().into_iter().map(|needed| mark(needed, false));
    let marks: Vec<Mark> = deciding.into_iter().chain(quorums).collect();
    let words = |word: &str| decision.votes.iter().filter(|vote| side_of(&vote.vote) == word).count();
    let ratio = format!("{} of {}", decision.exact.yes, decision.exact.total);
    Some(Board {
        bar: chart::stacked(&parts),
        about: about(&parts, &marks, &ratio),
        marks,
        sides: parts
            .iter()
            .map(|(word, weight)| Side { word, weight: format!("{weight}"), votes: words(word) })
            .collect(),
        ratio,
        text: decision.text.as_deref().map(split_result),
        tie: decision.tie.clone(),
        votes: decision
            .votes
            .iter()
            .map(|vote| (vote.member.clone(), vote.vote.clone(), vote.weight.clone()))
            .collect(),
    })
}

/// Parts the text of a decision: its last line says the result, and the lines before are the proposal's.
pub(crate) fn split_result(text: &str) -> (String, String) {
    let (gist, result) = text.rsplit_once('\n').unwrap_or(("", text));
    (gist.to_owned(), result.to_owned())
}

/// The side that a vote is on: one that was cancelled is missing.
fn side_of(vote: &str) -> &str {
    match vote {
        "cancelled" => "missing",
        vote => vote,
    }
}

fn about(parts: &[(&str, f64)], marks: &[Mark], ratio: &str) -> String {
    let sides: Vec<String> = parts.iter().map(|(word, weight)| format!("{word} {weight}")).collect();
    let marks: String =
        marks.iter().map(|mark| format!(" The rule {} asks for {}.", mark.rule, mark.needs)).collect();
    format!("Weights: {}. Yes is {ratio}.{marks}", sides.join(", "))
}

/// The rules in order: those that were evaluated, then the others.
pub(super) fn rules(report: &Report) -> Vec<RuleRow> {
    let deciding = report.deciding_rule().map(|rule| rule.id.clone());
    let applied = report.rules.iter().map(|rule| RuleRow {
        id: rule.id.clone(),
        kind: rule.kind.clone(),
        is_deciding: rule.fired && deciding.as_ref() == Some(&rule.id),
        applied: if rule.fired { "yes" } else { "no" },
        effect: effect(rule, report.decision.as_ref()),
    });
    let is_applied = |id: &str| report.rules.iter().any(|rule| rule.id == *id);
    let others = report.declared_rules.iter().filter(|rule| !is_applied(&rule.id)).map(|rule| RuleRow {
        id: rule.id.to_string(),
        kind: rule.kind.to_string(),
        is_deciding: false,
        applied: "not evaluated",
        effect: String::new(),
    });
    applied.chain(others).collect()
}

fn effect(rule: &AppliedRule, decision: Option<&Decision>) -> String {
    let emitted = rule.emitted.map(|count| format!("{count} emitted"));
    let alone = decision
        .filter(|decision| decision.rule.as_ref() == Some(&rule.id) && !decision.contribution.is_empty())
        .map(|_| rule.members.join(", "));
    let decides = rule.decides.clone().map(|word| match &alone {
        Some(members) => format!("{word}, by {members}"),
        None => word,
    });
    decides.or(emitted).or_else(|| rule.node.clone()).unwrap_or_default()
}
