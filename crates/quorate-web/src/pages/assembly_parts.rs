//! Parts of the page of an assembly: the vote, the rules, the tree of a hierarchy, and the reach and objections of peers.

use std::collections::BTreeMap;

use quorate::convene::{AppliedRule, Decision, Member, Message, Needed, Node, VoteCount};
use serde_json::{Map, Value};

use super::at::At;
use super::chart::{self, Segment};
use super::wording::plain;

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
        answer: &Map<String, Value>,
        at: At,
        (decision, decided): (&VoteCount, &At),
    ) -> Option<Reason> {
        let text = |key: &str| answer.get(key).and_then(Value::as_str).map(str::to_owned);
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
pub(super) fn reasons(report: &Decision) -> Vec<Reason> {
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
pub(super) fn board(report: &Decision) -> Option<Board> {
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
pub(super) fn rules(report: &Decision) -> Vec<RuleRow> {
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

fn effect(rule: &AppliedRule, decision: Option<&VoteCount>) -> String {
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

/// The deepest level that is drawn inside of its parent; deeper ones are listed with their level. Browsers flatten what is
/// nested deeper than some hundred elements.
const DEEPEST: usize = 40;

/// A node, and how the list around it goes on.
pub(super) struct Branch {
    /// 1 for the root.
    pub(super) level: usize,
    pub(super) member: String,
    pub(super) status: String,
    pub(super) severity: Option<u64>,
    /// How what it passes up came about.
    pub(super) made: String,
    /// What its parent makes of it, if it has a parent.
    pub(super) fate: Option<Fate>,
    pub(super) concern: Option<String>,
    pub(super) suggestion: Option<String>,
    pub(super) evidence: Vec<String>,
    pub(super) hits: Vec<Hit>,
    /// Whether a list of its reports follows inside of it.
    pub(super) opens: bool,
    /// How many lists end after it.
    pub(super) closes: usize,
}

/// What became of what a node passed up.
pub(super) struct Fate {
    pub(super) word: String,
    pub(super) is_dropped: bool,
}

/// A text that was refused.
pub(super) struct Hit {
    pub(super) code: String,
    pub(super) locked: String,
    pub(super) excerpt: String,
}

/// The nodes from the root down.
pub(super) fn branches(report: &Decision) -> Vec<Branch> {
    let mut children: BTreeMap<Option<&str>, Vec<&Node>> = BTreeMap::new();
    for node in &report.nodes {
        children.entry(node.parent.as_deref()).or_default().push(node);
    }
    let mut branches: Vec<Branch> = Vec::new();
    // Each node once, whatever the records say.
    let roots = children.remove(&None).unwrap_or_default();
    let mut open: Vec<(&Node, Option<&Node>, usize)> =
        roots.into_iter().rev().map(|root| (root, None, 1)).collect();
    while let Some((node, parent, level)) = open.pop() {
        let reports = children.remove(&Some(&*node.member)).unwrap_or_default();
        branches.push(branch(report, node, parent, level));
        open.extend(reports.into_iter().rev().map(|child| (child, Some(node), level + 1)));
    }
    let levels: Vec<usize> = branches.iter().map(|branch| branch.level.min(DEEPEST)).collect();
    for (at, branch) in branches.iter_mut().enumerate() {
        let next = levels.get(at + 1).copied().unwrap_or(1);
        branch.opens = next > levels[at];
        branch.closes = levels[at].saturating_sub(next);
    }
    branches
}

fn branch(report: &Decision, node: &Node, parent: Option<&Node>, level: usize) -> Branch {
    let candidate = format!("node/{}", node.member);
    let hits = report.violations.iter().filter(|violation| violation.candidate == candidate);
    let output = node.output.as_ref();
    Branch {
        level,
        member: node.member.clone(),
        status: plain(&node.status),
        severity: output.map(|output| output.severity),
        made: made(report, node),
        fate: parent.map(|parent| fate(node, parent)),
        concern: output.map(|output| output.concern.clone()),
        suggestion: output.map(|output| output.suggestion.clone()).filter(|text| !text.is_empty()),
        evidence: output.map(|output| output.evidence.clone()).unwrap_or_default(),
        hits: hits
            .map(|violation| Hit {
                code: violation.code.clone(),
                locked: violation.locked.clone().unwrap_or_default(),
                excerpt: violation.excerpt.clone().or_else(|| violation.why.clone()).unwrap_or_default(),
            })
            .collect(),
        opens: false,
        closes: 0,
    }
}

fn made(report: &Decision, node: &Node) -> String {
    if node.output.is_none() {
        return "passes nothing up".to_owned();
    }
    let of = match node.from.is_empty() {
        true => String::new(),
        false => format!(" of {}", node.from.join(", ")),
    };
    match &node.rule {
        Some(rule) => {
            let kind = report.rules.iter().find(|applied| applied.id == *rule).map(|applied| &*applied.kind);
            let kind = kind.map_or_else(String::new, |kind| format!(" ({kind})"));
            format!("passes up what the rule {rule}{kind} makes{of}")
        }
        None if node.status == "passed_up" => format!("gave no answer: the gravest report{of} goes up"),
        None => "passes up its own answer".to_owned(),
    }
}

fn fate(node: &Node, parent: &Node) -> Fate {
    let (word, is_dropped) = match (&node.output, parent.from.contains(&node.member)) {
        (None, _) => return Fate { word: "nothing to pass up".to_owned(), is_dropped: true },
        (Some(_), true) if parent.output.is_none() => ("used and refused", true),
        (Some(_), true) => ("passed up", false),
        (Some(_), false) => ("dropped", true),
    };
    Fate { word: format!("{word} by {}", parent.member), is_dropped }
}

/// How many messages each peer sent to each other one, and to all in reach.
pub(super) struct Reach {
    pub(super) members: Vec<String>,
    pub(super) rows: Vec<(String, Vec<usize>, usize)>,
}

/// `None` without a message.
pub(super) fn reach(report: &Decision) -> Option<Reach> {
    if report.messages.is_empty() {
        return None;
    }
    let members: Vec<String> = report.members.iter().map(|member| member.id.clone()).collect();
    let names =
        |message: &Message, id: &str| message.to.as_ref().is_some_and(|to| to.iter().any(|one| one == id));
    let row = |from: &String| {
        let sent: Vec<&Message> = report.messages.iter().filter(|message| message.from == *from).collect();
        let counts =
            members.iter().map(|id| sent.iter().filter(|message| names(message, id)).count()).collect();
        (from.clone(), counts, sent.iter().filter(|message| message.to.is_none()).count())
    };
    Some(Reach { rows: members.iter().map(row).collect(), members })
}

/// Each member's last objection: the round, and what became of it. Open ones come first.
pub(super) fn objections(report: &Decision) -> Vec<(String, u64, String)> {
    let mut all: Vec<_> = report.objections.iter().collect();
    all.sort_by_key(|objection| (objection.taken_back, objection.answered, objection.round));
    let shown = all.into_iter().map(|objection| {
        let state = match (objection.taken_back, objection.answered) {
            (true, _) => "taken back",
            (false, true) => "open, answered",
            (false, false) => "open, not answered",
        };
        (objection.member.clone(), objection.round, state.to_owned())
    });
    shown.collect()
}
