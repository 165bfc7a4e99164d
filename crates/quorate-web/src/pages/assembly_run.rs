//! The page of an assembly's run, in any mode: the outcome and why, the votes, guidance, messages or tree, the rules.

use std::sync::Arc;

use askama::Template;
use quorate::convene::{
    AppliedRule, AssemblyVerdict, CountedVote, Decision, Fragment, Member, Message, Needed, Node, Violation,
    VoteCount,
};
use serde_json::{Map, Value};

use super::Frame;
use super::Surroundings;
use super::at::{At, Form};
use super::chart::{self, Segment};
use super::live_run::LiveView;
use super::wording::{Mark, instant, minute, plain};
use crate::Server;

#[derive(Template)]
#[template(path = "assembly_run.html")]
pub(super) struct AssemblyPage {
    frame: Frame,
    run: String,
    mark: Mark,
    live: Option<LiveView>,
    previous: Option<String>,
    title: String,
    subject: String,
    opened: String,
    instant: String,
    because: Option<String>,
    decided_by: Option<String>,
    reasons: Vec<Reason>,
    facts: Vec<(&'static str, String)>,
    notes: Vec<String>,
    can_resume: bool,
    board: Option<Board>,
    marks: Vec<Threshold>,
    /// The bar of the vote in a sentence.
    about: String,
    fragments: Vec<Guidance>,
    messages: Vec<ShownMessage>,
    reach: Option<Reach>,
    objections: Vec<(String, u64, String)>,
    /// The tree of a hierarchy, as HTML.
    tree: String,
    asked: Vec<AskedMember>,
    /// The rules with their effects, as HTML.
    rules: String,
    violations: Vec<ViolationRow>,
    /// The table of members, as HTML.
    members: String,
}

/// A vote as a report has it: what its record says alone.
pub(crate) struct Board {
    pub(crate) at: At,
    pub(crate) bar: Vec<Segment>,
    /// What the bar shows, in words.
    pub(crate) weights: Vec<(&'static str, String, String)>,
    pub(crate) ratio: String,
    pub(crate) text: Option<(String, String)>,
    pub(crate) tie: Option<String>,
    pub(crate) votes: Vec<(String, String, String, At)>,
}

pub(crate) struct Guidance {
    pub(crate) at: At,
    pub(crate) member: String,
    pub(crate) text: String,
    pub(crate) severity: u64,
    pub(crate) rule: String,
}

pub(crate) struct ShownMessage {
    pub(crate) at: At,
    pub(crate) round: u64,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) text: String,
}

/// A node of a hierarchy as a report has it, with how deep it is.
pub(crate) struct Branch {
    pub(crate) at: At,
    pub(crate) depth: usize,
    pub(crate) member: String,
    pub(crate) status: String,
    pub(crate) severity: Option<u64>,
    pub(crate) concern: Option<String>,
    pub(crate) suggestion: Option<String>,
}

struct AskedMember {
    id: String,
    role: String,
    status: String,
    /// Each question, with the answer as JSON or the reason why there is none.
    questions: Vec<(String, String)>,
}

pub(crate) struct RuleRow {
    pub(crate) at: At,
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) is_deciding: bool,
    pub(crate) has_fired: bool,
    pub(crate) effect: String,
}

pub(crate) struct ViolationRow {
    pub(crate) at: At,
    pub(crate) code: String,
    pub(crate) member: String,
    pub(crate) what: String,
    pub(crate) what_at: String,
    pub(crate) excerpt: String,
    pub(crate) excerpt_at: String,
}

/// The page.
pub(super) fn page(server: &Arc<Server>, report: Decision, around: Surroundings) -> AssemblyPage {
    let word = report.verdict.map(AssemblyVerdict::as_str);
    let is_open = word.is_none();
    let is_incomplete = report.verdict == Some(AssemblyVerdict::Incomplete);
    let board = report.decision.as_ref().map(|count| board(count, At::default()));
    let marks = report.decision.as_ref().map_or_else(Vec::new, |count| marks(&report, count));
    let facts = report.facts().into_iter().map(|(name, fact)| (name, fact.plain()));
    let shown = word.unwrap_or("open").to_uppercase();
    let frame = Frame::new(
        server,
        format!("{shown} {}", report.title),
        "runs",
        format!("quorate show {}", report.run),
    );
    AssemblyPage {
        frame: frame.with_json(format!("/api/v1/runs/{}", report.run)),
        mark: Mark::of(word),
        live: around.live,
        previous: around.previous,
        opened: minute(report.opened_ms),
        instant: instant(report.opened_ms),
        because: report.verdict.map(|_| report.reason()),
        decided_by: report.deciding_rule().map(|rule| rule.id.clone()),
        reasons: reasons(&report),
        facts: facts.collect(),
        notes: report.all_notes(),
        can_resume: !server.read_only
            && !report.imported
            && !report.queued
            && (is_open || is_incomplete)
            && !around.is_driven,
        reach: reach(&report),
        objections: objections(&report),
        about: board.as_ref().map_or_else(String::new, |board| about(board, &marks)),
        board,
        marks,
        fragments: guidance(&report.fragments, &At::default()),
        messages: messages(&report.messages, &At::default()),
        tree: report.tree_doc().html(),
        asked: asked(&report),
        rules: report.rules_doc().html(),
        violations: report.violations.iter().map(|refused| violation(refused, At::default())).collect(),
        members: quorate::view::members(&report.member_usage).html(),
        title: report.title,
        subject: report.subject,
        run: report.run,
    }
}

/// A decision. `at` is its place.
pub(crate) fn board(decision: &VoteCount, at: At) -> Board {
    let parts = [
        ("yes", decision.yes),
        ("no", decision.no),
        ("abstain", decision.abstain),
        ("missing", decision.missing),
    ];
    let weight =
        |(name, weight): &(&'static str, f64)| (*name, weight.to_string(), at.to(&format!("/{name}")));
    let vote = |(place, vote): (usize, &CountedVote)| {
        let place = at.under(&format!("/votes/{place}"));
        (vote.member.clone(), vote.vote.clone(), vote.weight.clone(), place)
    };
    Board {
        bar: chart::stacked(&parts),
        weights: parts.iter().map(weight).collect(),
        ratio: format!("{} of {}", decision.exact.yes, decision.exact.total),
        text: decision.text.as_deref().map(split_result),
        tie: decision.tie.clone(),
        votes: decision.votes.iter().enumerate().map(vote).collect(),
        at,
    }
}

/// Fragments. `outcome` is the record that they are in.
pub(crate) fn guidance(fragments: &[Fragment], outcome: &At) -> Vec<Guidance> {
    let of = |(place, fragment): (usize, &Fragment)| Guidance {
        at: outcome.under(&format!("/fragments/{place}")),
        member: fragment.member.clone(),
        text: fragment.text.clone(),
        severity: fragment.severity,
        rule: fragment.rule.clone(),
    };
    fragments.iter().enumerate().map(of).collect()
}

/// Messages. `outcome` is the record that they are in.
pub(crate) fn messages(messages: &[Message], outcome: &At) -> Vec<ShownMessage> {
    let of = |(place, message): (usize, &Message)| ShownMessage {
        at: outcome.under(&format!("/messages/{place}")),
        round: message.round,
        from: message.from.clone(),
        to: message.to.as_ref().map_or_else(|| "all".to_owned(), |to| to.join(", ")),
        text: message.text.clone(),
    };
    messages.iter().enumerate().map(of).collect()
}

/// The nodes from the root down. `outcome` is the record that they are in.
pub(crate) fn tree(nodes: &[Node], outcome: &At) -> Vec<Branch> {
    fn add(nodes: &[Node], outcome: &At, parent: Option<&str>, depth: usize, branches: &mut Vec<Branch>) {
        // Each node once, whatever the records say.
        if depth > nodes.len() {
            return;
        }
        for (place, node) in nodes.iter().enumerate().filter(|(_, node)| node.parent.as_deref() == parent) {
            branches.push(Branch {
                at: outcome.under(&format!("/nodes/{place}")),
                depth,
                member: node.member.clone(),
                status: plain(&node.status),
                severity: node.output.as_ref().map(|output| output.severity),
                concern: node.output.as_ref().map(|output| output.concern.clone()),
                suggestion: node.output.as_ref().map(|output| output.suggestion.clone()),
            });
            add(nodes, outcome, Some(&node.member), depth + 1, branches);
        }
    }
    let mut branches = Vec::new();
    add(nodes, outcome, None, 0, &mut branches);
    branches
}

fn asked(report: &Decision) -> Vec<AskedMember> {
    let member = |member: &Member| AskedMember {
        id: member.id.clone(),
        role: member.role.clone(),
        status: plain(member.status()),
        questions: member
            .consultations
            .iter()
            .map(|one| {
                let answer = one
                    .answer
                    .as_ref()
                    .map(|answer| serde_json::to_string_pretty(answer).unwrap_or_default());
                let said =
                    answer.or_else(|| one.message.clone()).unwrap_or_else(|| plain(one.status.as_str()));
                (one.invocation.clone(), said)
            })
            .collect(),
    };
    report.members.iter().map(member).collect()
}

/// Rules. `outcome` is the record that they are in.
pub(crate) fn rules(rules: &[AppliedRule], decision: Option<&VoteCount>, outcome: &At) -> Vec<RuleRow> {
    let row = |(place, rule): (usize, &AppliedRule)| {
        let emitted = rule.emitted.map(|count| format!("{count} emitted"));
        let effect = rule.decides.clone().or(emitted).or_else(|| rule.node.clone()).unwrap_or_default();
        RuleRow {
            at: outcome.under(&format!("/rules/{place}")),
            id: rule.id.clone(),
            kind: rule.kind.clone(),
            is_deciding: decision.is_some_and(|decision| decision.rule.as_ref() == Some(&rule.id)),
            has_fired: rule.fired,
            effect,
        }
    };
    rules.iter().enumerate().map(row).collect()
}

/// Something that was refused. `at` is its record.
pub(crate) fn violation(violation: &Violation, at: At) -> ViolationRow {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let (excerpt, excerpt_at) = match (&violation.excerpt, &violation.why) {
        (Some(excerpt), _) => (excerpt.clone(), at.to("/excerpt")),
        (None, Some(why)) => (why.clone(), at.to("/why")),
        (None, None) => (String::new(), String::new()),
    };
    ViolationRow {
        code: violation.code.clone(),
        member: text(&violation.member),
        what: match &violation.locked {
            Some(locked) => format!("{} ({})", text(&violation.what), locked),
            None => text(&violation.what),
        },
        what_at: at.shown("", Form::Locked),
        excerpt,
        excerpt_at,
        at,
    }
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
fn reasons(report: &Decision) -> Vec<Reason> {
    let Some(decision) = &report.decision else { return Vec::new() };
    let nowhere = At::default();
    let given =
        |member: &Member| Reason::of(&member.id, member.answer()?, At::default(), (decision, &nowhere));
    report.members.iter().filter_map(given).collect()
}

/// What a rule asks of the yes side.
struct Threshold {
    /// Where it is, of 1,000.
    x: u64,
    /// Whether the rule decided; else it is a quorum that did not.
    is_deciding: bool,
    rule: String,
    needs: String,
}

/// What the deciding rule and the quorums ask of the yes side.
fn marks(report: &Decision, count: &VoteCount) -> Vec<Threshold> {
    let all = count.yes + count.no + count.abstain + count.missing;
    let reached = if all > 0.0 { count.yes / all } else { 0.0 };
    let mark = |needed: Needed, is_deciding: bool| Threshold {
        x: chart::mark(needed.place, reached),
        is_deciding,
        rule: needed.rule,
        needs: needed.text,
    };
    let deciding = report.threshold().map(|needed| mark(needed, true));
    deciding.into_iter().chain(report.quorums().into_iter().map(|needed| mark(needed, false))).collect()
}

/// The bar of a vote in a sentence.
fn about(board: &Board, marks: &[Threshold]) -> String {
    let sides: Vec<String> =
        board.weights.iter().map(|(word, weight, _)| format!("{word} {weight}")).collect();
    let marks: String =
        marks.iter().map(|mark| format!(" The rule {} asks for {}.", mark.rule, mark.needs)).collect();
    format!("Weights: {}. Yes is {}.{marks}", sides.join(", "), board.ratio)
}

/// Parts the text of a decision: its last line says the result, and the lines before are the proposal's.
fn split_result(text: &str) -> (String, String) {
    let (gist, result) = text.rsplit_once('\n').unwrap_or(("", text));
    (gist.to_owned(), result.to_owned())
}

/// How many messages each peer sent to each other one, and to all in reach.
struct Reach {
    members: Vec<String>,
    rows: Vec<(String, Vec<usize>, usize)>,
}

/// `None` without a message.
fn reach(report: &Decision) -> Option<Reach> {
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
fn objections(report: &Decision) -> Vec<(String, u64, String)> {
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
