//! Rules in words: the effect of each, the members that triggered it, and why others were not evaluated.

use quorate_manifest::assembly::Mode;
use quorate_protocol::Json;
use quorate_protocol::assembly::AssemblyRequest;

use super::names;
use crate::service::convene::report::{AppliedRule, AssemblyVerdict, Decision};
use crate::view::Tone;
use crate::view::wording::amount;

/// The most members named.
const NAMED: usize = 6;

pub(super) struct RuleSummary {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) did: String,
    /// Whether it had an effect.
    pub(super) has_fired: bool,
    pub(super) tone: Option<Tone>,
}

impl RuleSummary {
    fn not_fired(id: &str, kind: &str, did: String) -> RuleSummary {
        RuleSummary { id: id.to_owned(), kind: kind.to_owned(), did, has_fired: false, tone: None }
    }
}

/// All rules in order: evaluated ones, then others.
pub(super) fn summaries(decision: &Decision) -> Vec<RuleSummary> {
    if decision.mode == Mode::Hierarchy {
        return hierarchy_summaries(decision);
    }
    let mut all: Vec<RuleSummary> = decision.rules.iter().map(|rule| summary(decision, rule)).collect();
    let is_applied = |id: &str| decision.rules.iter().any(|rule| rule.id == *id);
    for rule in decision.declared_rules.iter().filter(|rule| !is_applied(&rule.id)) {
        all.push(RuleSummary::not_fired(&rule.id, &rule.kind, not_evaluated(decision)));
    }
    all
}

/// Why a rule was not evaluated.
fn not_evaluated(decision: &Decision) -> String {
    let last = decision.rules.iter().rev().find(|rule| rule.fired).map(|rule| &rule.id);
    let before = match (decision.mode, last) {
        _ if decision.verdict().is_none() => return "is not evaluated yet".to_owned(),
        (Mode::Voting, Some(id)) => format!("{id} decided before it"),
        (Mode::Advisory, Some(id)) if decision.terminal == Some(true) => {
            format!("{id} ended the synthesis before it")
        }
        _ => "the run ended before it".to_owned(),
    };
    format!("was not evaluated: {before}")
}

fn summary(decision: &Decision, rule: &AppliedRule) -> RuleSummary {
    let (did, tone) = match decision.mode {
        Mode::Voting => voting_effect(decision, rule),
        Mode::Advisory => advisory_effect(decision, rule),
        Mode::Peer | Mode::Hierarchy => (collection_effect(rule), None),
    };
    RuleSummary { id: rule.id.clone(), kind: rule.kind.clone(), did, has_fired: rule.fired, tone }
}

fn voting_effect(decision: &Decision, rule: &AppliedRule) -> (String, Option<Tone>) {
    if !rule.fired {
        return (undecided_reason(decision, rule), None);
    }
    let word = rule.decides.as_deref().unwrap_or("something");
    let mut did = format!("decides {word}");
    if let Some(why) = decision_reason(decision, rule) {
        did.push_str(&format!(": {why}"));
    }
    if decision.declared_rule(&rule.id).is_none() {
        did.push_str(" (not written in the manifest; it decides where no rule does)");
    }
    (did, Some(Tone::of_word(word)))
}

/// A string among a rule's parameters.
fn param<'r>(decision: &'r Decision, rule: &AppliedRule, key: &str) -> Option<&'r str> {
    decision.declared_rule(&rule.id)?.params.get(key).and_then(Json::as_str)
}

/// The reason for the deciding rule's decision.
pub(super) fn decision_reason(decision: &Decision, rule: &AppliedRule) -> Option<String> {
    let count = decision.decision.as_ref()?;
    let of_members = match decision.declared_rule(&rule.id).and_then(|rule| rule.applies_to.as_ref()) {
        Some(_) => format!(" (of {})", member_names(rule)),
        None => String::new(),
    };
    Some(match &*rule.kind {
        "terminal" => {
            let vote = param(decision, rule, "triggerVote").unwrap_or("so");
            let votes = if rule.members.len() == 1 { "votes" } else { "vote" };
            format!("{} {votes} {vote}", member_names(rule))
        }
        "majority" => {
            let tie = count.tie.as_deref().map_or_else(String::new, |tie| format!("; {tie}"));
            format!("{}{of_members}{tie}", decision.ratio(count))
        }
        "quorum" => format!("{}{of_members}", decision.ratio(count)),
        "unanimity" => match rule.decides.as_deref() {
            Some(word) if word == AssemblyVerdict::Pass.as_str() => format!("everybody says yes{of_members}"),
            _ => format!("not everybody says yes{of_members}"),
        },
        _ => return None,
    })
}

/// The reason why an earlier rule did not decide.
fn undecided_reason(decision: &Decision, rule: &AppliedRule) -> String {
    if rule.missing_as_no {
        return "was evaluated only to see whether the pass holds when missing votes count as no".to_owned();
    }
    match (&*rule.kind, param(decision, rule, "triggerVote")) {
        ("terminal", Some(vote)) => match param(decision, rule, "scope") {
            Some(scope) if class(decision) != Some(scope) => {
                format!("does not decide: it is for the class {scope}")
            }
            _ => match unasked(decision, rule) {
                Some(ids) => {
                    let on_class = match class(decision) {
                        Some(class) => format!(" on the class {class}"),
                        None => ", since no class is said".to_owned(),
                    };
                    format!("does not decide: {} not asked{on_class}", names(&ids, NAMED))
                }
                None => format!("does not decide: {} {vote}", no_votes(decision, rule)),
            },
        },
        _ => "does not decide".to_owned(),
    }
}

/// The class of the proposal.
fn class(decision: &Decision) -> Option<&str> {
    match &decision.request {
        AssemblyRequest::Voting { class } => class.as_deref(),
        _ => None,
    }
}

/// The members that a rule applies to, if none of them may vote on the class.
fn unasked<'r>(decision: &'r Decision, rule: &AppliedRule) -> Option<Vec<&'r str>> {
    let AssemblyRequest::Voting { class } = &decision.request else { return None };
    let ids = decision.declared_rule(&rule.id)?.applies_to.as_ref()?;
    let votes = |id: &&str| {
        decision.member(id).is_some_and(|member| match &member.classes {
            None => true,
            Some(classes) => class.as_ref().is_some_and(|class| classes.contains(class)),
        })
    };
    let ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
    (!ids.is_empty() && !ids.iter().any(votes)).then_some(ids)
}

/// The words for a rule without matching votes: `no member votes`, `ada does not vote`.
fn no_votes(decision: &Decision, rule: &AppliedRule) -> String {
    let applies_to = decision.declared_rule(&rule.id).and_then(|rule| rule.applies_to.as_ref());
    let ids: Vec<&str> = applies_to.into_iter().flatten().map(|id| &**id).collect();
    match ids[..] {
        [] => "no member votes".to_owned(),
        [id] => format!("{id} does not vote"),
        _ => format!("none of {} votes", names(&ids, NAMED)),
    }
}

fn advisory_effect(decision: &Decision, rule: &AppliedRule) -> (String, Option<Tone>) {
    if !rule.fired {
        return ("does not fire".to_owned(), None);
    }
    let mut did = match rule.emitted.unwrap_or_default() {
        0 => format!("fires on the words of {}; there is nothing to emit", member_names(rule)),
        some => format!("emits {} on the words of {}", amount(some, "fragment"), member_names(rule)),
    };
    let last = decision.rules.iter().rev().find(|earlier| earlier.fired);
    if decision.terminal == Some(true) && last.is_some_and(|last| last.id == rule.id) {
        did.push_str(match &*rule.kind {
            "terminal" => "; it is the only result and ends the synthesis",
            _ => "; it ends the synthesis",
        });
    }
    (did, Some(Tone::Strong))
}

fn collection_effect(rule: &AppliedRule) -> String {
    match (rule.fired, rule.members.is_empty()) {
        (true, false) => format!("collects what {} said", member_names(rule)),
        (true, true) => "is applied".to_owned(),
        (false, _) => "could not be applied".to_owned(),
    }
}

/// The rules of a hierarchy: for which nodes each one determined the output.
fn hierarchy_summaries(decision: &Decision) -> Vec<RuleSummary> {
    let summary = |id: &str, kind: &str| {
        let applied = decision.rules.iter().filter(|rule| rule.id == *id);
        let nodes: Vec<&str> = applied.filter_map(|rule| rule.node.as_deref()).collect();
        let pass = if nodes.len() == 1 { "passes" } else { "pass" };
        match nodes.is_empty() {
            true => RuleSummary::not_fired(id, kind, unmatched_reason(decision)),
            false => RuleSummary {
                has_fired: true,
                tone: Some(Tone::Strong),
                ..RuleSummary::not_fired(id, kind, format!("makes what {} {pass} up", names(&nodes, NAMED)))
            },
        }
    };
    decision.declared_rules.iter().map(|rule| summary(&rule.id, &rule.kind)).collect()
}

/// That a rule of a hierarchy determined no output, as far as the run has come.
fn unmatched_reason(decision: &Decision) -> String {
    match decision.verdict() {
        None => "is not evaluated yet".to_owned(),
        Some(_) => "makes what no node passes up".to_owned(),
    }
}

/// The members that triggered a rule.
fn member_names(rule: &AppliedRule) -> String {
    if rule.members.is_empty() { "no single member".to_owned() } else { names(&rule.members, NAMED) }
}
