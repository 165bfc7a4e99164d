//! `quorate:field_without_effect`: a member's field that belongs to another mode (M16), a parameter that counts elsewhere
//! alone, a heuristic that nothing here knows, and approvals, which nothing here can check.

use quorate_diagnostics::{Body, codes};

use crate::assembly::Mode;
use crate::assembly::check_context::CheckContext;
use crate::assembly::defaults::HEURISTICS;
use crate::tree::Node;
use crate::tree::reader::nearest;

/// Fields of members, and the one mode in which each means something.
const FIELDS: [(&str, Mode); 5] = [
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
            let message = format!("`{field}` means nothing in {} mode", view.mode.as_str());
            let place = view.key_place(member, field, format!("members[{at}].{field}"));
            let help = format!("take it out; it is a field of {} mode", mode.as_str());
            view.warn(codes::FIELD_WITHOUT_EFFECT, Body::new(message).at(place).help(help));
        }
    }
    params(view);
    heuristic(view);
    approvals(view);
}

/// Parameters that count only in the first rule of their kind, or only beside another one.
fn params(view: &CheckContext<'_, '_>) {
    let mut seen: Vec<(&str, &Node)> = Vec::new();
    for (at, rule) in view.rules().iter().enumerate() {
        let Some(word) = rule.key("kind").and_then(Node::as_str) else { continue };
        let Some((kind, params)) = view.loader.capabilities.rule_kind(word).zip(rule.key("params")) else {
            continue;
        };
        let warn = |name: &str, message: String, help: String| {
            let place = view.key_place(params, name, format!("synthesis.rules[{at}].params.{name}"));
            view.warn(codes::FIELD_WITHOUT_EFFECT, Body::new(message).at(place).help(help));
        };
        let first = seen.iter().find(|(one, _)| *one == word).map(|(_, rule)| *rule);
        for name in kind.first_rule_only_params.iter().filter(|name| params.key(name).is_some()) {
            if let Some(first) = first.filter(|_| view.mode == Mode::Peer) {
                let id = first.key("id").and_then(Node::as_str).unwrap_or_default();
                let message =
                    format!("`{name}` counts in the first rule of kind `{word}` alone, which is `{id}`");
                warn(name, message, format!("write it in `{id}`, or take it out"));
            }
        }
        for (name, other, value) in
            kind.dependent_params.iter().filter(|(name, ..)| params.key(name).is_some())
        {
            if params.key(other).and_then(Node::as_str) != Some(value) && view.mode == Mode::Peer {
                let message = format!("`{name}` means nothing without `{other}: {value}`");
                warn(name, message, format!("add `{other}: {value}`, or take `{name}` out"));
            }
        }
        // Which rule is the first of its kind is independent of whether it says anything.
        if first.is_none() {
            seen.push((word, rule));
        }
    }
}

/// What `convene --if-due` would not know.
fn heuristic(view: &CheckContext<'_, '_>) {
    let Some(node) = view.root().at_path(&["defaults", "triggerHeuristic"]) else { return };
    let Some(written) = node.as_str().filter(|written| !HEURISTICS.contains(written)) else { return };
    let body =
        Body::new(format!("there is no trigger heuristic `{written}` here: `convene --if-due` refuses it"));
    let help = match nearest(written.strip_prefix("custom:").unwrap_or(written), &HEURISTICS) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the heuristics are: {}", HEURISTICS.join(", ")),
    };
    let place = view.place(node, "defaults.triggerHeuristic");
    view.warn(codes::FIELD_WITHOUT_EFFECT, body.at(place).help(help));
}

/// Approvals that governance asks for are checked by nobody here, so nothing is convened under them.
fn approvals(view: &CheckContext<'_, '_>) {
    for bound in &view.policies.files {
        let Some(place) = &bound.governance.approvals else { continue };
        let message = format!(
            "{} asks for `approvals`, which cannot be checked here: `convene` refuses it",
            bound.file
        );
        let help =
            "have them checked elsewhere, for example by your forge, and leave `approvals` to that policy";
        view.warn(codes::FIELD_WITHOUT_EFFECT, Body::new(message).at(place.clone()).help(help));
    }
}
