//! The page of an assembly's run, in any mode: the outcome and why, the votes, guidance, messages or tree, the rules.

use std::sync::Arc;

use askama::Template;
use quorate::convene::{
    AppliedRule, AssemblyVerdict, CountedVote, Decision, Fragment, Member, Message, Node, Violation,
    VoteCount,
};

use super::Frame;
use super::Surroundings;
use super::assembly_parts;
use super::at::{At, Form};
use super::chart::{self, Segment};
use super::live_run::LiveView;
use super::wording::{Mark, duration, instant, minute, plain, usage};
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
    reasons: Vec<assembly_parts::Reason>,
    facts: Vec<(&'static str, String)>,
    notes: Vec<String>,
    can_resume: bool,
    board: Option<assembly_parts::Board>,
    fragments: Vec<Guidance>,
    messages: Vec<ShownMessage>,
    reach: Option<assembly_parts::Reach>,
    objections: Vec<(String, u64, String)>,
    tree: Vec<assembly_parts::Branch>,
    asked: Vec<AskedMember>,
    rules: Vec<assembly_parts::RuleRow>,
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
        because: report.because.clone(),
        reasons: assembly_parts::reasons(&report),
        facts: facts(&report),
        notes: report.all_notes(),
        can_resume: !server.read_only
            && !report.imported
            && !report.queued
            && (is_open || is_incomplete)
            && !around.is_driven,
        reach: assembly_parts::reach(&report),
        objections: assembly_parts::objections(&report),
        board: assembly_parts::board(&report),
        fragments: guidance(&report.fragments, &At::default()),
        messages: messages(&report.messages, &At::default()),
        tree: assembly_parts::branches(&report),
        asked: asked(&report),
        rules: assembly_parts::rules(&report),
        violations: report.violations.iter().map(|refused| violation(refused, At::default())).collect(),
        members: quorate::view::members(&report.member_usage).html(),
        title: report.title,
        subject: report.subject,
        run: report.run,
    }
}

fn facts(report: &Decision) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("Mode", report.mode.as_str().to_owned()),
        ("Executor", report.executor.clone()),
        ("Calls", report.calls.to_string()),
        ("Time", duration(report.took)),
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
        ("Topology", report.topology.clone()),
        ("Objecting", Some(report.objecting.join(", ")).filter(|objecting| !objecting.is_empty())),
    ];
    facts.extend(given.into_iter().filter_map(|(name, value)| Some((name, value?))));
    facts
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
        text: decision.text.as_deref().map(assembly_parts::split_result),
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
