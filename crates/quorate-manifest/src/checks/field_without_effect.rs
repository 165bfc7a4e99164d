//! `quorate:field_without_effect`: a member's field of another mode (M16), a parameter that this rule ignores, a trigger
//! heuristic that Quorate does not know, and approvals, which Quorate cannot check.

use quorate_diagnostics::{Body, codes};

use crate::assembly::Mode;
use crate::assembly::check_context::CheckContext;
use crate::assembly::defaults::HEURISTICS;
use crate::tree::Node;
use crate::tree::reader::nearest;

/// Fields of members, each with the only mode that reads it.
pub(super) const FIELDS: [(&str, Mode); 5] = [
    ("phase", Mode::Advisory),
    ("triggers", Mode::Advisory),
    ("weight", Mode::Voting),
    ("voteClass", Mode::Voting),
    ("parent", Mode::Hierarchy),
];

pub(super) fn check(view: &CheckContext<'_, '_>) {
    for (at, member) in view.members().iter().enumerate() {
        for (field, mode) in FIELDS {
            if mode == view.mode || member.key(field).is_none() {
                continue;
            }
            let message = format!("`{field}` has no effect in {} mode", view.mode.as_str());
            let place = view.key_place(member, field, format!("members[{at}].{field}"));
            let help = format!("remove it; it is a field of {} mode", mode.as_str());
            view.warn(codes::FIELD_WITHOUT_EFFECT, Body::new(message).at(place).help(help));
        }
    }
    params(view);
    heuristic(view);
    approvals(view);
}

/// Parameters that a rule does not read: in this mode, after the first rule of their kind, or beside or without another
/// parameter.
fn params(view: &CheckContext<'_, '_>) {
    let mut seen: Vec<(&str, &Node)> = Vec::new();
    for (at, rule) in view.rules().iter().enumerate() {
        let Some(word) = rule.key("kind").and_then(Node::as_str) else { continue };
        let Some((kind, params)) = view.loader.capabilities.rule_kind(word).zip(rule.key("params")) else {
            continue;
        };
        // Refused: it has no meaning in this mode at all.
        if !kind.modes.contains(&view.mode) {
            continue;
        }
        let warn = |name: &str, message: String, help: String| {
            let place = view.key_place(params, name, format!("synthesis.rules[{at}].params.{name}"));
            view.warn(codes::FIELD_WITHOUT_EFFECT, Body::new(message).at(place).help(help));
        };
        let first = seen.iter().find(|(kind, _)| *kind == word).map(|(_, rule)| *rule);
        for (name, modes) in kind.mode_params.iter().filter(|(name, _)| params.key(name).is_some()) {
            if !modes.contains(&view.mode) {
                let modes: Vec<&str> = modes.iter().map(|mode| mode.as_str()).collect();
                let message =
                    format!("a rule of kind `{word}` does not read `{name}` in {} mode", view.mode.as_str());
                warn(name, message, format!("remove it; it is a parameter of {} mode", modes.join(" and ")));
            }
        }
        let is_read = |name: &str| {
            let modes = kind.mode_params.iter().find(|(param, _)| *param == name);
            params.key(name).is_some() && modes.is_none_or(|(_, modes)| modes.contains(&view.mode))
        };
        for name in kind.first_rule_only_params.iter().filter(|name| is_read(name)) {
            if let Some(first) = first {
                let id = first.key("id").and_then(Node::as_str).unwrap_or_default();
                let message = format!(
                    "`{name}` has an effect only in the first rule of kind `{word}`, which is `{id}`"
                );
                warn(name, message, format!("move it to `{id}`, or remove it"));
            }
        }
        for (name, other, value) in kind.dependent_params.iter().filter(|(name, ..)| is_read(name)) {
            if params.key(other).and_then(Node::as_str) != Some(value) {
                let message = format!("`{name}` has no effect without `{other}: {value}`");
                warn(name, message, format!("add `{other}: {value}`, or remove `{name}`"));
            }
        }
        for (name, other) in kind.shadowed_params.iter().filter(|(name, _)| is_read(name)) {
            if is_read(other) {
                warn(
                    name,
                    format!("`{name}` has no effect beside `{other}`"),
                    "remove one of the two".to_owned(),
                );
            }
        }
        // A rule without the parameter counts as the first of its kind, too.
        if first.is_none() {
            seen.push((word, rule));
        }
    }
}

/// A heuristic that `convene --if-due` refuses.
fn heuristic(view: &CheckContext<'_, '_>) {
    let Some(node) = view.root().at_path(&["defaults", "triggerHeuristic"]) else { return };
    let Some(written) = node.as_str().filter(|written| !HEURISTICS.contains(written)) else { return };
    let body = Body::new(format!("unknown trigger heuristic `{written}`: `convene --if-due` refuses it"));
    let help = match nearest(written.strip_prefix("custom:").unwrap_or(written), &HEURISTICS) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the heuristics are: {}", HEURISTICS.join(", ")),
    };
    let place = view.place(node, "defaults.triggerHeuristic");
    view.warn(codes::FIELD_WITHOUT_EFFECT, body.at(place).help(help));
}

/// Quorate cannot check the approvals that governance requires, so `convene` refuses.
fn approvals(view: &CheckContext<'_, '_>) {
    for bound in &view.policies.files {
        let Some(place) = &bound.governance.approvals else { continue };
        let message =
            format!("{} requires `approvals`, which Quorate cannot check: `convene` refuses it", bound.file);
        let help =
            "check approvals elsewhere, for example in your forge, and remove `approvals` from this file";
        view.warn(codes::FIELD_WITHOUT_EFFECT, Body::new(message).at(place.clone()).help(help));
    }
}
