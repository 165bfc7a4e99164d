//! Checks of the synthesis rules: their kinds and parameters (M16), the members that they apply to, rules that can never fire,
//! rules that end the synthesis, and levels of risk.
//!
//! The running program provides the kinds and the schemas of their parameters. Rules are replaced as a whole (M6): a view that
//! replaces a terminal rule, which is usually a veto or an alarm, removes it, and the ancestor's file does not show that.

use std::collections::{BTreeMap, BTreeSet};

use quorate_diagnostics::{Body, codes};

use super::CheckContext;
use crate::assembly::Mode;
use crate::capabilities::RuleKind;
use crate::document::schema_error;
use crate::duration::IsoDuration;
use crate::json_schema::{CompiledSchema, ErrorKind};
use crate::tree::reader::meant_or;
use crate::tree::{Kind, Node};

pub(super) fn check_rule_params(view: &CheckContext<'_, '_>) {
    for (at, rule) in view.rules().iter().enumerate() {
        let Some(node) = rule.key("kind") else { continue };
        let Some(written) = node.as_str() else { continue };
        let path = format!("synthesis.rules[{at}]");
        match view.loader.capabilities.rule_kind(written) {
            None => unknown(view, node, written, &path),
            Some(kind) => {
                if !kind.modes.contains(&view.mode) {
                    wrong_mode(view, node, written, &kind, &path);
                }
                check_params(view, rule, &kind, &path);
            }
        }
    }
}

fn unknown(view: &CheckContext<'_, '_>, node: &Node, written: &str, path: &str) {
    let known = view.loader.capabilities.rule_kinds();
    let help = meant_or(written, &known, || {
        format!("the kinds are: {}; a program that uses the library can register its own", known.join(", "))
    });
    let body = Body::new(format!("unknown kind of rule `{written}`"));
    let place = view.place(node, format!("{path}.kind"));
    view.refuse(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, body.at(place).help(help));
}

fn wrong_mode(view: &CheckContext<'_, '_>, node: &Node, written: &str, kind: &RuleKind, path: &str) {
    let modes: Vec<&str> = kind.modes.iter().map(|mode| mode.as_str()).collect();
    let body = Body::new(format!("a rule of kind `{written}` has no meaning in {} mode", view.mode.as_str()));
    let mut body =
        body.at(view.place(node, format!("{path}.kind"))).help(format!("it is for: {}", modes.join(", ")));
    if let Some(mode) = view.root().key("mode") {
        body = body.related(view.place(mode, "mode"), "the mode");
    }
    view.refuse(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, body);
}

fn check_params(view: &CheckContext<'_, '_>, rule: &Node, kind: &RuleKind, path: &str) {
    let empty = Node { kind: Kind::Map(Vec::new()), ..rule.clone() };
    let params = rule.key("params").unwrap_or(&empty);
    let document = view.chain.document_of(params);
    let Some(schema) = CompiledSchema::parse(&kind.params) else { return };
    for error in schema.errors(params) {
        let (body, span, below) = schema_error::describe(&document.text, params, &error, "params");
        let at = if params.span.is_empty() || std::ptr::eq(params, &raw const empty) {
            view.key_place(rule, "kind", format!("{path}.{below}"))
        } else {
            document.place(span, format!("{path}.{below}"))
        };
        match error.kind {
            // Other programs may read unknown parameters, so they get a warning.
            ErrorKind::UnknownKey { .. } => view.warn(codes::FIELD_WITHOUT_EFFECT, body.at(at)),
            _ => view.refuse(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, body.at(at)),
        }
    }
    for name in kind.member_params {
        let Some(node) = params.key(name) else { continue };
        check_member(view, node, name, format!("{path}.params.{name}"));
    }
    for name in kind.member_map_params {
        for entry in params.key(name).map_or(&[][..], Node::entries) {
            let path = format!("{path}.params.{name}.{}", entry.key);
            if !view.is_member(&entry.key) {
                let body = Body::new(format!("`{}` in `{name}` is not a member", entry.key));
                let place = document.place(entry.key_span.clone(), path.clone());
                view.refuse(
                    codes::ASSEMBLY_SYNTHESIS_RULE_INVALID,
                    body.at(place).help(view.member_help(&entry.key)),
                );
            }
            for (at, node) in entry.value.items().iter().enumerate() {
                check_member(view, node, name, format!("{path}[{at}]"));
            }
        }
    }
    for (name, other_words) in kind.rule_kind_params {
        let Some(node) = params.key(name) else { continue };
        let Some(written) = node.as_str().filter(|written| !other_words.contains(written)) else { continue };
        if view.loader.capabilities.rule_kind(written).is_some() {
            continue;
        }
        let body = Body::new(format!("`{name}` names `{written}`, an unknown kind of rule"));
        let help = meant_or(written, other_words, || {
            format!("write {}, or a registered kind of rule", other_words.join(", "))
        });
        let place = view.place(node, format!("{path}.params.{name}"));
        view.refuse(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, body.at(place).help(help));
    }
    for name in kind.duration_params {
        let Some(node) = params.key(name) else { continue };
        let Some(Err(error)) = node.as_str().map(str::parse::<IsoDuration>) else { continue };
        let body = Body::new(format!("`{name}` is not a usable duration: {error}"));
        let place = view.place(node, format!("{path}.params.{name}"));
        view.refuse(codes::DURATION, body.at(place).help("write it like P14D"));
    }
}

/// Refuses a parameter that names no member.
fn check_member(view: &CheckContext<'_, '_>, node: &Node, name: &str, path: String) {
    let Some(id) = node.as_str().filter(|id| !view.is_member(id)) else { return };
    let body = Body::new(format!("`{name}` is `{id}`, but there is no such member"));
    let place = view.place(node, path);
    view.refuse(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, body.at(place).help(view.member_help(id)));
}

pub(super) fn check_rule_members(view: &CheckContext<'_, '_>) {
    for (at, rule) in view.rules().iter().enumerate() {
        for (index, node) in rule.items_at(&["appliesTo"]).iter().enumerate() {
            let Some(id) = node.as_str().filter(|id| !view.is_member(id)) else { continue };
            let help = match view.members() {
                [] => "this assembly has no members".to_owned(),
                _ => view.member_help(id),
            };
            let body = Body::new(format!("the rule applies to `{id}`, but there is no such member"));
            let place = view.place(node, format!("synthesis.rules[{at}].appliesTo[{index}]"));
            view.refuse(codes::ASSEMBLY_SYNTHESIS_UNKNOWN_MEMBER, body.at(place).help(help));
        }
    }
}

pub(super) fn check_terminal_rules(view: &CheckContext<'_, '_>) {
    let ending: Vec<(usize, &Node)> = view
        .rules()
        .iter()
        .enumerate()
        .filter(|(_, rule)| view.kind_of(rule).is_some_and(|kind| kind.ends_synthesis))
        .collect();
    for (later, (at, rule)) in ending.iter().enumerate() {
        let Some((_, earlier)) = ending[..later].iter().find(|(_, earlier)| overlap(view, earlier, rule))
        else {
            continue;
        };
        let message = format!(
            "`{}` can end the synthesis, and so can the earlier `{}` for the same members",
            rule_id(rule),
            rule_id(earlier)
        );
        let place = view.key_place(rule, "kind", format!("synthesis.rules[{at}].kind"));
        let body =
            Body::new(message).at(place).related(view.key_place(earlier, "kind", ""), "the rule before");
        view.warn(
            codes::ASSEMBLY_SYNTHESIS_TERMINAL_CHAIN,
            body.help("narrow `appliesTo`, unless the later rule is a fallback: only the first that fires has an effect"),
        );
    }
}

/// Whether two rules apply to a common member, and so to a common phase.
fn overlap(view: &CheckContext<'_, '_>, first: &Node, second: &Node) -> bool {
    let applies = |rule: &Node, id: &str| {
        let items = rule.items_at(&["appliesTo"]);
        items.is_empty() || items.iter().any(|item| item.as_str() == Some(id))
    };
    view.member_ids().iter().any(|id| applies(first, id) && applies(second, id))
}

pub(super) fn check_rules_without_effect(view: &CheckContext<'_, '_>) {
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
        let help = match &declared[..] {
            [] => "list the classes that each member votes on in `voteClass`".to_owned(),
            _ => {
                meant_or(class, &declared, || format!("the classes are: {}", distinct(&declared).join(", ")))
            }
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
        let Some(kind) = view.kind_of(rule).filter(|kind| kind.modes.contains(&view.mode)) else { continue };
        let decisions = decisions(view, rule);
        let before: Option<Vec<&Node>> =
            decisions.iter().map(|decision| decided_by.get(decision).copied()).collect();
        if let Some(before) = before.as_ref().and_then(|rules| rules.first()) {
            let message =
                format!("`{}` cannot fire: `{}` before it always decides", rule_id(rule), rule_id(before));
            let place = view.key_place(rule, "kind", format!("synthesis.rules[{at}].kind"));
            let help = format!(
                "move it before `{}`, or remove it: the first rule that decides sets the result",
                rule_id(before)
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
        view.members().iter().filter_map(|member| member.text_of("parent")).collect();
    let ids = matching_members(view, rule).into_iter().filter_map(|member| member.text_of("id"));
    ids.filter(|id| parents.contains(id)).collect()
}

/// A veto that cannot fire is worse than no veto: readers of the manifest rely on it.
fn unreachable_vetoes(view: &CheckContext<'_, '_>, dead: &BTreeSet<usize>) {
    for (at, rule) in view.rules().iter().enumerate().filter(|(at, _)| !dead.contains(at)) {
        let Some(kind) = view.kind_of(rule) else { continue };
        let warn = |message: String, help: String| {
            let place = view.key_place(rule, "kind", format!("synthesis.rules[{at}].kind"));
            view.warn(codes::RULE_WITHOUT_EFFECT, Body::new(message).at(place).help(help));
        };
        if kind.ends_synthesis {
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
                    format!("`{}` cannot fire: no member that it applies to votes{on_class}", rule_id(rule)),
                    "add the class to their `voteClass`, or name members in `appliesTo` who vote on it"
                        .to_owned(),
                );
            } else if class.is_none() {
                for member in named_members(view, rule) {
                    let Some(classes) = classes(member).filter(|classes| !classes.is_empty()) else {
                        continue;
                    };
                    let member = member.text_of("id").unwrap_or_default();
                    warn(
                        format!(
                            "`{}` cannot fire for `{member}` on every proposal: `{member}` votes only on {}",
                            rule_id(rule),
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
    let parents: Vec<&str> = view.members().iter().filter_map(|member| member.text_of("parent")).collect();
    for (at, rule) in view.rules().iter().enumerate() {
        let named = rule.items_at(&["appliesTo"]);
        let ids: Vec<&str> = named.iter().filter_map(Node::as_str).filter(|id| view.is_member(id)).collect();
        if ids.is_empty() || ids.iter().any(|id| parents.contains(id)) {
            continue;
        }
        let message = format!("`{}` has no effect: no member reports to {}", rule_id(rule), quoted(&ids));
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
    let named = rule.items_at(&["appliesTo"]);
    let is_named = |id: &str| named.iter().any(|name| name.as_str() == Some(id));
    let matches = |member: &&Node| named.is_empty() || member.text_of("id").is_some_and(is_named);
    view.members().iter().filter(matches).collect()
}

/// The members that a rule names; empty for a rule that applies to all.
fn named_members<'r>(view: &CheckContext<'r, '_>, rule: &Node) -> Vec<&'r Node> {
    match rule.items_at(&["appliesTo"]) {
        [] => Vec::new(),
        _ => matching_members(view, rule),
    }
}

/// The parameter of a rule that names a class of proposals.
fn scope<'n>(view: &CheckContext<'_, '_>, rule: &'n Node) -> Option<(&'static str, &'n Node)> {
    let kind = view.kind_of(rule)?;
    kind.class_params.iter().find_map(|name| Some((*name, rule.at_path(&["params", name])?)))
}

fn rule_id(rule: &Node) -> &str {
    rule.text_of("id").unwrap_or_default()
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

pub(super) fn check_replaced_terminals(view: &CheckContext<'_, '_>) {
    let documents = &view.chain.documents;
    for (index, document) in documents.iter().enumerate().skip(1) {
        for (at, rule) in document.root.items_at(RULES).iter().enumerate() {
            let Some((parent, replaced)) = view.replaced(index, RULES, rule) else { continue };
            if !is_terminal(view, replaced) || replaced.to_json() == rule.to_json() {
                continue;
            }
            let id = rule_id(rule);
            let place = |rule: &Node| rule.key("id").unwrap_or(rule).span.clone();
            let message = match is_terminal(view, rule) {
                true => format!("`{id}` replaces a terminal rule of {}", parent.shown),
                false => format!(
                    "`{id}` replaces a terminal rule of {} with a rule that is not terminal",
                    parent.shown
                ),
            };
            let body = Body::new(message)
                .at(document.place(place(rule), format!("synthesis.rules[{at}].id")))
                .related(parent.place(place(replaced), ""), "the replaced rule")
                .help("give the view's rule another id to keep both: a rule is replaced as a whole");
            view.warn(codes::TERMINAL_REPLACED, body);
        }
    }
}

const RULES: &[&str] = &["synthesis", "rules"];

/// Whether a rule ends the synthesis when it fires: by its kind, or by the parameter `terminal: true`.
fn is_terminal(view: &CheckContext<'_, '_>, rule: &Node) -> bool {
    view.kind_of(rule).is_some_and(|kind| kind.ends_synthesis)
        || rule.at_path(&["params", "terminal"]).is_some_and(|node| node.to_json() == true)
}

pub(super) fn check_risk_levels(view: &CheckContext<'_, '_>) {
    let levels = view.root().items_at(&["synthesis", "riskLevels"]);
    let mut before: Option<(i64, &Node)> = None;
    for (at, level) in levels.iter().enumerate() {
        let Some(range) = level.key("range") else { continue };
        let [low, high] = range.items() else { continue };
        let (Some(low), Some(high)) = (low.integer(), high.integer()) else { continue };
        let place = view.value_place(level, "range", format!("synthesis.riskLevels[{at}].range"));
        if low > high {
            let body = Body::new(format!("the level begins at {low} and ends at {high}")).at(place);
            view.refuse(codes::RISK_LEVELS_INVALID, body.help("write the lowest severity first"));
            continue;
        }
        if let Some((end, other)) = before.filter(|(end, _)| low <= *end) {
            let body =
                Body::new(format!("the level begins at {low}, but the one before ends at {end}")).at(place);
            let body = body.related(view.value_place(other, "range", ""), "the level before");
            view.refuse(
                codes::RISK_LEVELS_INVALID,
                body.help("list the levels in rising order, without overlap"),
            );
        }
        before = Some((high, level));
    }
}
