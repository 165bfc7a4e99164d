//! The page of an assembly's run, in any mode: the outcome and why, the votes, guidance, messages or tree, the rules.

use std::sync::Arc;

use askama::Template;
use quorate::service::convene::report::{AppliedRule, Decision, Node, Report, Violation};

use super::Frame;
use super::chart::{self, Segment};
use super::review_run::{MemberRow, member_row};
use super::wording::{Mark, instant, minute, plain, took, usage};
use crate::Server;

#[derive(Template)]
#[template(path = "assembly_run.html")]
pub(super) struct AssemblyPage {
    frame: Frame,
    run: String,
    mark: Mark,
    is_open: bool,
    title: String,
    subject: String,
    opened: String,
    instant: String,
    because: Option<String>,
    facts: Vec<(&'static str, String)>,
    notes: Vec<String>,
    can_resume: bool,
    board: Option<Board>,
    fragments: Vec<Guidance>,
    messages: Vec<ShownMessage>,
    tree: Vec<Branch>,
    asked: Vec<AskedMember>,
    rules: Vec<RuleRow>,
    violations: Vec<ViolationRow>,
    members: Vec<MemberRow>,
}

/// A vote.
struct Board {
    bar: Vec<Segment>,
    /// What the bar shows, in words.
    weights: Vec<(&'static str, String)>,
    ratio: String,
    text: Option<String>,
    tie: Option<String>,
    votes: Vec<(String, String, String)>,
}

struct Guidance {
    member: String,
    text: String,
    severity: u64,
    rule: String,
}

struct ShownMessage {
    round: u64,
    from: String,
    to: String,
    text: String,
}

/// A node of a hierarchy, with how deep it is.
struct Branch {
    depth: usize,
    member: String,
    status: String,
    severity: Option<u64>,
    concern: Option<String>,
    suggestion: Option<String>,
}

struct AskedMember {
    id: String,
    role: String,
    status: String,
    /// Each question, with the answer as JSON or the reason why there is none.
    questions: Vec<(String, String)>,
}

struct RuleRow {
    id: String,
    kind: String,
    is_deciding: bool,
    has_fired: bool,
    effect: String,
}

struct ViolationRow {
    code: String,
    member: String,
    what: String,
    excerpt: String,
}

/// The page.
pub(super) fn page(server: &Arc<Server>, report: Report) -> AssemblyPage {
    let word = report.verdict.clone();
    let is_open = word.is_none();
    let is_incomplete = word.as_deref() == Some("incomplete");
    let shown = word.as_deref().unwrap_or("open").to_uppercase();
    let frame = Frame::new(
        server,
        format!("{shown} {}", report.title),
        "runs",
        format!("quorate show {}", report.run),
    );
    AssemblyPage {
        frame: frame.with_json(format!("/api/v1/runs/{}", report.run)),
        mark: Mark::of(word.as_deref()),
        is_open,
        opened: minute(report.opened_ms),
        instant: instant(report.opened_ms),
        because: report.because.clone(),
        facts: facts(&report),
        notes: report.all_notes(),
        can_resume: !server.read_only && !report.imported && (is_open || is_incomplete),
        board: report.decision.as_ref().map(board),
        fragments: report
            .fragments
            .iter()
            .map(|fragment| Guidance {
                member: fragment.member.clone(),
                text: fragment.text.clone(),
                severity: fragment.severity,
                rule: fragment.rule.clone(),
            })
            .collect(),
        messages: report
            .messages
            .iter()
            .map(|message| ShownMessage {
                round: message.round,
                from: message.from.clone(),
                to: message.to.as_ref().map_or_else(|| "all".to_owned(), |to| to.join(", ")),
                text: message.text.clone(),
            })
            .collect(),
        tree: tree(&report.nodes),
        asked: asked(&report),
        rules: report.rules.iter().map(|rule| rule_row(rule, report.decision.as_ref())).collect(),
        violations: report.violations.iter().map(violation).collect(),
        members: report.member_usage.iter().map(member_row).collect(),
        title: report.title,
        subject: report.subject,
        run: report.run,
    }
}

fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("Mode", report.mode.as_str().to_owned()),
        ("Executor", report.executor.clone()),
        ("Calls", report.calls.to_string()),
        ("Time", took(report.took)),
    ];
    let used = usage(&report.usage);
    let given = [
        ("Cost", Some(used).filter(|used| !used.is_empty())),
        ("Reason", report.code.as_deref().map(plain)),
        ("Missing", Some(report.missing.join(", ")).filter(|missing| !missing.is_empty())),
        (
            "Severity",
            report.risk.as_ref().map(|risk| match &risk.level {
                Some(level) => format!("{} ({level})", risk.severity),
                None => risk.severity.to_string(),
            }),
        ),
        ("Call a human", report.should_escalate.map(|yes| if yes { "yes" } else { "no" }.to_owned())),
        ("Rounds", report.rounds.as_ref().map(|(rounds, end)| format!("{rounds}, {}", plain(end)))),
        ("Objecting", Some(report.objecting.join(", ")).filter(|objecting| !objecting.is_empty())),
    ];
    facts.extend(given.into_iter().filter_map(|(name, value)| Some((name, value?))));
    facts
}

fn board(decision: &Decision) -> Board {
    let parts = [
        ("yes", decision.yes),
        ("no", decision.no),
        ("abstain", decision.abstain),
        ("missing", decision.missing),
    ];
    Board {
        bar: chart::stacked(&parts),
        weights: parts.iter().map(|(name, weight)| (*name, format!("{weight}"))).collect(),
        ratio: format!("{} of {}", decision.exact.yes, decision.exact.total),
        text: decision.text.clone(),
        tie: decision.tie.clone(),
        votes: decision
            .votes
            .iter()
            .map(|vote| (vote.member.clone(), vote.vote.clone(), vote.weight.clone()))
            .collect(),
    }
}

/// The nodes from the root down.
fn tree(nodes: &[Node]) -> Vec<Branch> {
    fn add(nodes: &[Node], parent: Option<&str>, depth: usize, branches: &mut Vec<Branch>) {
        // Each node once, whatever the records say.
        if depth > nodes.len() {
            return;
        }
        for node in nodes.iter().filter(|node| node.parent.as_deref() == parent) {
            branches.push(Branch {
                depth,
                member: node.member.clone(),
                status: plain(&node.status),
                severity: node.output.as_ref().map(|output| output.severity),
                concern: node.output.as_ref().map(|output| output.concern.clone()),
                suggestion: node.output.as_ref().map(|output| output.suggestion.clone()),
            });
            add(nodes, Some(&node.member), depth + 1, branches);
        }
    }
    let mut branches = Vec::new();
    add(nodes, None, 0, &mut branches);
    branches
}

fn asked(report: &Report) -> Vec<AskedMember> {
    let member = |member: &quorate::service::convene::report::Member| AskedMember {
        id: member.id.clone(),
        role: member.role.clone(),
        status: plain(&member.status),
        questions: member
            .consultations
            .iter()
            .map(|one| {
                let answer = one
                    .answer
                    .as_ref()
                    .map(|answer| serde_json::to_string_pretty(answer).unwrap_or_default());
                let said = answer.or_else(|| one.message.clone()).unwrap_or_else(|| plain(&one.status));
                (one.invocation.clone(), said)
            })
            .collect(),
    };
    report.members.iter().map(member).collect()
}

fn rule_row(rule: &AppliedRule, decision: Option<&Decision>) -> RuleRow {
    let emitted = rule.emitted.map(|count| format!("{count} emitted"));
    let effect = rule.decides.clone().or(emitted).or_else(|| rule.node.clone()).unwrap_or_default();
    RuleRow {
        id: rule.id.clone(),
        kind: rule.kind.clone(),
        is_deciding: decision.is_some_and(|decision| decision.rule.as_ref() == Some(&rule.id)),
        has_fired: rule.fired,
        effect,
    }
}

fn violation(violation: &Violation) -> ViolationRow {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    ViolationRow {
        code: violation.code.clone(),
        member: text(&violation.member),
        what: match &violation.locked {
            Some(locked) => format!("{} ({})", text(&violation.what), locked),
            None => text(&violation.what),
        },
        excerpt: violation.excerpt.clone().or_else(|| violation.why.clone()).unwrap_or_default(),
    }
}
