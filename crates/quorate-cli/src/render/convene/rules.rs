//! Rules in words: the effect of each, the members that triggered it, and why others were not evaluated.

use quorate_manifest::assembly::Mode;
use quorate_protocol::assembly::AssemblyRequest;

use super::super::layout::{Paint, one_line};
use super::super::wording::{amount, list_limited};
use super::phrases::names;
use super::phrases::{param, ratio_text};
use quorate::service::convene::report::{AppliedRule, Decision, Node};

const NAMED: usize = 6;

pub(super) struct RuleSummary {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) did: String,
    /// Whether it had an effect.
    pub(super) fired: bool,
    pub(super) paint: Option<Paint>,
}

/// All rules in order: evaluated ones, then others.
pub(super) fn summaries(report: &Decision) -> Vec<RuleSummary> {
    if report.mode == Mode::Hierarchy {
        return hierarchy_summaries(report);
    }
    let mut all: Vec<RuleSummary> = report.rules.iter().map(|rule| rule_summary(report, rule)).collect();
    let applied = |id: &str| report.rules.iter().any(|rule| rule.id == *id);
    for rule in report.declared_rules.iter().filter(|rule| !applied(&rule.id)) {
        all.push(RuleSummary::not_fired(&rule.id, &rule.kind, not_evaluated(report)));
    }
    all
}

/// Why a rule was not evaluated.
fn not_evaluated(report: &Decision) -> String {
    let last = report.rules.iter().rev().find(|rule| rule.fired).map(|rule| one_line(&rule.id));
    let before = match (report.mode, last) {
        _ if report.verdict.is_none() => return "is not evaluated yet".to_owned(),
        (Mode::Voting, Some(id)) => format!("{id} decided before it"),
        (Mode::Advisory, Some(id)) if report.terminal => format!("{id} ended the synthesis before it"),
        _ => "the run ended before it".to_owned(),
    };
    format!("was not evaluated: {before}")
}

impl RuleSummary {
    fn not_fired(id: &str, kind: &str, did: String) -> RuleSummary {
        RuleSummary { id: one_line(id), kind: one_line(kind), did, fired: false, paint: None }
    }
}

fn rule_summary(report: &Decision, rule: &AppliedRule) -> RuleSummary {
    let (did, paint) = match report.mode {
        Mode::Voting => voting_effect(report, rule),
        Mode::Advisory => advisory_effect(report, rule),
        Mode::Peer | Mode::Hierarchy => (collection_effect(rule), None),
    };
    RuleSummary { id: one_line(&rule.id), kind: one_line(&rule.kind), did, fired: rule.fired, paint }
}

fn voting_effect(report: &Decision, rule: &AppliedRule) -> (String, Option<Paint>) {
    if !rule.fired {
        return (undecided_reason(report, rule), None);
    }
    let word = rule.decides.as_deref().map_or_else(|| "something".to_owned(), one_line);
    let mut did = format!("decides {word}");
    if let Some(why) = decision_reason(report, rule) {
        did.push_str(&format!(": {why}"));
    }
    if report.declared_rule(&rule.id).is_none() {
        did.push_str(" (not written in the manifest; it decides where no rule does)");
    }
    (did, Some(Paint::of_word(&word)))
}

/// The reason for the deciding rule's decision.
fn decision_reason(report: &Decision, rule: &AppliedRule) -> Option<String> {
    let decision = report.decision.as_ref()?;
    let members_of =
        |all: &str| match report.declared_rule(&rule.id).and_then(|rule| rule.applies_to.as_ref()) {
            Some(_) => format!(" ({all} {})", member_names(rule)),
            None => String::new(),
        };
    Some(match &*rule.kind {
        "terminal" => {
            let vote = param(report, rule, "triggerVote").map_or_else(|| "so".to_owned(), one_line);
            format!(
                "{} {} {vote}",
                member_names(rule),
                if rule.members.len() == 1 { "votes" } else { "vote" }
            )
        }
        "majority" => {
            let tie = decision.tie.as_deref().map_or_else(String::new, |tie| format!("; {}", one_line(tie)));
            format!("{}{}{tie}", ratio_text(report, decision), members_of("of"))
        }
        "quorum" => format!("{}{}", ratio_text(report, decision), members_of("of")),
        "unanimity" => match rule.decides.as_deref() {
            Some("pass") => "everybody says yes".to_owned() + &members_of("of"),
            _ => "not everybody says yes".to_owned() + &members_of("of"),
        },
        _ => return None,
    })
}

/// The reason why an earlier rule did not decide.
fn undecided_reason(report: &Decision, rule: &AppliedRule) -> String {
    if rule.missing_as_no {
        return "was evaluated only to see whether the pass holds when missing votes count as no".to_owned();
    }
    match (&*rule.kind, param(report, rule, "triggerVote")) {
        ("terminal", Some(vote)) => match param(report, rule, "scope") {
            Some(scope) if !of_class(report, scope) => {
                format!("does not decide: it is for the class {}", one_line(scope))
            }
            _ => match unasked(report, rule) {
                Some(ids) => format!("does not decide: {} not asked{}", names(&ids, NAMED), on_class(report)),
                None => format!("does not decide: {} {}", no_votes(report, rule), one_line(vote)),
            },
        },
        _ => "does not decide".to_owned(),
    }
}

/// Whether a vote is on a class.
fn of_class(report: &Decision, class: &str) -> bool {
    matches!(&report.request, AssemblyRequest::Voting { class: Some(requested) } if requested == class)
}

/// The members that a rule applies to, if none of them may vote on the class.
fn unasked<'r>(report: &'r Decision, rule: &AppliedRule) -> Option<Vec<&'r str>> {
    let AssemblyRequest::Voting { class } = &report.request else { return None };
    let ids = report.declared_rule(&rule.id)?.applies_to.as_ref()?;
    let votes = |id: &&str| {
        let member = report.members.iter().find(|member| member.id == **id);
        member.is_some_and(|member| match &member.classes {
            None => true,
            Some(classes) => class.as_ref().is_some_and(|class| classes.contains(class)),
        })
    };
    let ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
    (!ids.is_empty() && !ids.iter().any(votes)).then_some(ids)
}

/// Why a member is not asked: `, since no class is said`.
fn on_class(report: &Decision) -> String {
    match &report.request {
        AssemblyRequest::Voting { class: Some(class) } => format!(" on the class {}", one_line(class)),
        _ => ", since no class is said".to_owned(),
    }
}

/// The words for a rule without matching votes: `no member votes`, `ada does not vote`.
fn no_votes(report: &Decision, rule: &AppliedRule) -> String {
    let applies_to = report.declared_rule(&rule.id).and_then(|rule| rule.applies_to.as_ref());
    let ids: Vec<&str> = applies_to.into_iter().flatten().map(|id| &**id).collect();
    match ids[..] {
        [] => "no member votes".to_owned(),
        [id] => format!("{} does not vote", one_line(id)),
        _ => format!("none of {} votes", names(&ids, NAMED)),
    }
}

fn advisory_effect(report: &Decision, rule: &AppliedRule) -> (String, Option<Paint>) {
    if !rule.fired {
        return ("does not fire".to_owned(), None);
    }
    let emitted = rule.emitted.unwrap_or_default();
    let mut did = match emitted {
        0 => format!("fires on the words of {}; there is nothing to emit", member_names(rule)),
        some => format!("emits {} on the words of {}", amount(some, "fragment"), member_names(rule)),
    };
    let last =
        report.rules.iter().rev().find(|earlier| earlier.fired).is_some_and(|earlier| earlier.id == rule.id);
    if report.terminal && last {
        did.push_str(match &*rule.kind {
            "terminal" => "; it is the only result and ends the synthesis",
            _ => "; it ends the synthesis",
        });
    }
    (did, Some(Paint::Strong))
}

fn collection_effect(rule: &AppliedRule) -> String {
    match (rule.fired, rule.members.is_empty()) {
        (true, false) => format!("collects what {} said", member_names(rule)),
        (true, true) => "is applied".to_owned(),
        (false, _) => "could not be applied".to_owned(),
    }
}

/// The rules of a hierarchy: for which nodes each one determined the output.
fn hierarchy_summaries(report: &Decision) -> Vec<RuleSummary> {
    let summary_of = |id: &str, kind: &str| {
        let nodes: Vec<&str> = report
            .rules
            .iter()
            .filter(|rule| rule.id == *id)
            .filter_map(|rule| rule.node.as_deref())
            .collect();
        match nodes.is_empty() {
            true => RuleSummary::not_fired(id, kind, unmatched_reason(report, id)),
            false => RuleSummary {
                fired: true,
                paint: Some(Paint::Strong),
                ..RuleSummary::not_fired(id, kind, format!("makes what {} up", passes(&nodes)))
            },
        }
    };
    report.declared_rules.iter().map(|rule| summary_of(&rule.id, &rule.kind)).collect()
}

/// Why a rule of a hierarchy determined no output: it matched at none of the nodes with reports that it applies to, or was
/// evaluated at none of them.
fn unmatched_reason(report: &Decision, id: &str) -> String {
    let at = |id: &str| report.declared_rules.iter().position(|rule| *rule.id == *id);
    let is_for =
        |node: &&Node| report.declared_rule(id).is_some_and(|rule| rule.applies_to_member(&node.member));
    let passes = |node: &Node| node.output.is_some() || node.status == "refused";
    let has_reports = |node: &&Node| {
        report
            .nodes
            .iter()
            .any(|child| child.parent.as_deref() == Some(&node.member) && child.status.starts_with("passed"))
    };
    let earlier = |node: &Node| node.rule.as_deref().and_then(at) < at(id) && node.rule.is_some();
    let nodes: Vec<&Node> = report.nodes.iter().filter(is_for).filter(has_reports).collect();
    if nodes.iter().any(|node| passes(node) && !earlier(node)) {
        return "matches nowhere".to_owned();
    }
    let before = match &nodes[..] {
        [] => "no node that it is for had a report",
        nodes if nodes.iter().any(|node| passes(node)) => {
            "an earlier rule matched at each node that it is for"
        }
        _ => "the run ended before it",
    };
    match report.verdict {
        None => "is not evaluated yet".to_owned(),
        Some(_) => format!("was not evaluated: {before}"),
    }
}

fn passes(nodes: &[&str]) -> String {
    format!("{} {}", names(nodes, NAMED), if nodes.len() == 1 { "passes" } else { "pass" })
}

/// The members that triggered a rule.
fn member_names(rule: &AppliedRule) -> String {
    let names: Vec<String> = rule.members.iter().map(|id| one_line(id)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if names.is_empty() { "no single member".to_owned() } else { list_limited(&names, NAMED) }
}
