//! `quorate:rule_without_effect`: a rule that can never fire: no member votes on the class in its scope, the members it
//! applies to do not vote on it, an earlier rule always decides, or its members receive no reports.

use std::collections::{BTreeMap, BTreeSet};

use quorate_diagnostics::{Body, codes};

use crate::assembly::Mode;
use crate::assembly::check_context::CheckContext;
use crate::capabilities::EndsSynthesis;
use crate::tree::Node;
use crate::tree::reader::nearest;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    match view.mode {
        Mode::Voting => {
            unknown_scopes(view);
            let dead = rules_after_a_decision(view);
            unreachable_vetoes(view, &dead);
        }
        Mode::Hierarchy => {
            leaf_rules(view);
            rules_after_a_decision(view);
        }
        Mode::Advisory | Mode::Peer => {}
    }
}

/// The classes of proposals that a member votes on; `None` for all.
fn classes(member: &Node) -> Option<Vec<&str>> {
    Some(member.key("voteClass")?.items().iter().filter_map(Node::as_str).collect())
}

/// A scope that is in no member's `voteClass` is probably misspelt.
fn unknown_scopes(view: &CheckContext<'_, '_>) {
    let declared: Vec<&str> = view.members().iter().filter_map(classes).flatten().collect();
    for (at, rule) in view.rules().iter().enumerate() {
        let Some((param, node)) = scope(view, rule) else { continue };
        let Some(class) = node.as_str().filter(|class| !declared.contains(class)) else { continue };
        let message = format!("`{param}` is `{class}`, but no member's `voteClass` has it");
        let help = match nearest(class, &declared) {
            Some(near) => format!("did you mean `{near}`?"),
            None if declared.is_empty() => {
                "list the classes that each member votes on in `voteClass`".to_owned()
            }
            None => format!("the classes are: {}", distinct(&declared).join(", ")),
        };
        let place = view.place(node, format!("synthesis.rules[{at}].params.{param}"));
        view.warn(codes::RULE_WITHOUT_EFFECT, Body::new(message).at(place).help(help));
    }
}

/// Rules after one that always decides, which never run (V4, H2). Returns their indices.
fn rules_after_a_decision(view: &CheckContext<'_, '_>) -> BTreeSet<usize> {
    let mut decided_by: BTreeMap<&str, &Node> = BTreeMap::new();
    let mut dead = BTreeSet::new();
    for (at, rule) in view.rules().iter().enumerate() {
        let kind = rule.key("kind").and_then(Node::as_str);
        let kind = kind.and_then(|kind| view.loader.capabilities.rule_kind(kind));
        let Some(kind) = kind.filter(|kind| kind.modes.contains(&view.mode)) else { continue };
        let decisions = decisions(view, rule);
        let before: Option<Vec<&Node>> =
            decisions.iter().map(|decision| decided_by.get(decision).copied()).collect();
        if let Some(before) = before.as_ref().and_then(|rules| rules.first()) {
            let message = format!("`{}` cannot fire: `{}` before it always decides", id(rule), id(before));
            let place = view.key_place(rule, "kind", format!("synthesis.rules[{at}].kind"));
            let help = format!(
                "move it before `{}`, or remove it: the first rule that decides sets the result",
                id(before)
            );
            let body = Body::new(message).at(place).help(help);
            view.warn(
                codes::RULE_WITHOUT_EFFECT,
                body.related(view.key_place(before, "kind", ""), "this rule always decides"),
            );
            dead.insert(at);
        }
        let is_conditional = |name: &&str| rule.at_path(&["params", name]).is_some();
        if kind.always_decides && !kind.conditional_params.iter().any(is_conditional) {
            decisions.into_iter().for_each(|decision| {
                decided_by.entry(decision).or_insert(rule);
            });
        }
    }
    dead
}

/// The decisions that a rule takes part in: the result of a vote, or what each of its nodes with children passes up.
fn decisions<'r>(view: &CheckContext<'r, '_>, rule: &Node) -> Vec<&'r str> {
    if view.mode != Mode::Hierarchy {
        return vec!["result"];
    }
    let parents: BTreeSet<&str> =
        view.members().iter().filter_map(|member| member.key("parent")?.as_str()).collect();
    let ids = matching_members(view, rule).into_iter().filter_map(|member| member.key("id")?.as_str());
    ids.filter(|id| parents.contains(id)).collect()
}

/// A veto that cannot fire is worse than no veto: readers of the manifest rely on it.
fn unreachable_vetoes(view: &CheckContext<'_, '_>, dead: &BTreeSet<usize>) {
    for (at, rule) in view.rules().iter().enumerate().filter(|(at, _)| !dead.contains(at)) {
        let Some(kind) =
            rule.key("kind").and_then(Node::as_str).and_then(|kind| view.loader.capabilities.rule_kind(kind))
        else {
            continue;
        };
        let warn = |message: String, help: String| {
            let place = view.key_place(rule, "kind", format!("synthesis.rules[{at}].kind"));
            view.warn(codes::RULE_WITHOUT_EFFECT, Body::new(message).at(place).help(help));
        };
        if kind.ends_synthesis == EndsSynthesis::Yes {
            let class = scope(view, rule).and_then(|(_, node)| node.as_str());
            let votes = |member: &&Node| match (classes(member), class) {
                (None, _) => true,
                (Some(classes), Some(class)) => classes.contains(&class),
                (Some(classes), None) => !classes.is_empty(),
            };
            if !matching_members(view, rule).iter().any(votes) {
                let on_class =
                    class.map_or(String::new(), |class| format!(" on proposals of the class `{class}`"));
                warn(
                    format!("`{}` cannot fire: no member that it applies to votes{on_class}", id(rule)),
                    "add the class to their `voteClass`, or name members in `appliesTo` who vote on it"
                        .to_owned(),
                );
            } else if class.is_none() {
                for member in named_members(view, rule) {
                    let Some(classes) = classes(member).filter(|classes| !classes.is_empty()) else {
                        continue;
                    };
                    let member = member.key("id").and_then(Node::as_str).unwrap_or_default();
                    warn(
                        format!(
                            "`{}` cannot fire for `{member}` on every proposal: `{member}` votes only on {}",
                            id(rule),
                            quoted(&classes)
                        ),
                        "if you mean this, write a rule with a `scope` for each class; else remove the member's \
                         `voteClass`"
                            .to_owned(),
                    );
                }
            }
        }
    }
}

/// In a hierarchy, a rule combines the reports of children, so it has no effect for leaves.
fn leaf_rules(view: &CheckContext<'_, '_>) {
    let parents: Vec<&str> =
        view.members().iter().filter_map(|member| member.key("parent")?.as_str()).collect();
    for (at, rule) in view.rules().iter().enumerate() {
        let named = rule.key("appliesTo").map_or(&[][..], Node::items);
        let ids: Vec<&str> = named.iter().filter_map(Node::as_str).filter(|id| view.is_member(id)).collect();
        if ids.is_empty() || ids.iter().any(|id| parents.contains(id)) {
            continue;
        }
        let message = format!("`{}` has no effect: no member reports to {}", id(rule), quoted(&ids));
        let place = view.key_place(rule, "appliesTo", format!("synthesis.rules[{at}].appliesTo"));
        let help = match distinct(&parents).as_slice() {
            [] => "add `parent` to the members that report to another one".to_owned(),
            parents => format!("name members that others report to: {}", parents.join(", ")),
        };
        view.warn(codes::RULE_WITHOUT_EFFECT, Body::new(message).at(place).help(help));
    }
}

/// The members that a rule applies to.
fn matching_members<'r>(view: &CheckContext<'r, '_>, rule: &Node) -> Vec<&'r Node> {
    let named = rule.key("appliesTo").map_or(&[][..], Node::items);
    let ids: Vec<&str> = named.iter().filter_map(Node::as_str).collect();
    let matches = |member: &&Node| {
        ids.is_empty() || member.key("id").and_then(Node::as_str).is_some_and(|id| ids.contains(&id))
    };
    view.members().iter().filter(matches).collect()
}

/// The members that a rule names; empty for a rule that applies to all.
fn named_members<'r>(view: &CheckContext<'r, '_>, rule: &Node) -> Vec<&'r Node> {
    match rule.key("appliesTo").map_or(&[][..], Node::items) {
        [] => Vec::new(),
        _ => matching_members(view, rule),
    }
}

/// The parameter of a rule that names a class of proposals.
fn scope<'n>(view: &CheckContext<'_, '_>, rule: &'n Node) -> Option<(&'static str, &'n Node)> {
    let kind = view.loader.capabilities.rule_kind(rule.key("kind")?.as_str()?)?;
    kind.class_params.iter().find_map(|name| Some((*name, rule.at_path(&["params", name])?)))
}

fn id(rule: &Node) -> &str {
    rule.key("id").and_then(Node::as_str).unwrap_or_default()
}

fn quoted(ids: &[&str]) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ")
}

fn distinct<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let mut words = words.to_vec();
    words.sort_unstable();
    words.dedup();
    words
}
