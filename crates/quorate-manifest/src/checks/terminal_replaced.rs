//! `quorate:terminal_replaced`: a view replaces a rule of an ancestor that ends the synthesis. Such a rule mostly is a veto
//! or an alarm, and rules are replaced as a whole (M6), so that the view takes it away without a word in the ancestor.

use quorate_diagnostics::{Body, codes};

use crate::assembly::check_context::CheckContext;
use crate::capabilities::EndsSynthesis;
use crate::tree::Node;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    let documents = &view.chain.documents;
    for (index, document) in documents.iter().enumerate().skip(1) {
        for (at, rule) in rules(&document.root).iter().enumerate() {
            let above = documents[..index].iter().rev().find_map(|document| {
                let same = |one: &&Node| id(one).is_some() && id(one) == id(rule);
                Some((document, rules(&document.root).iter().find(same)?))
            });
            let Some((parent, replaced)) = above else { continue };
            if !is_terminal(view, replaced) || replaced.to_json() == rule.to_json() {
                continue;
            }
            let id = id(rule).unwrap_or_default();
            let place = |rule: &Node| rule.key("id").unwrap_or(rule).span.clone();
            let message = match is_terminal(view, rule) {
                true => format!("`{id}` replaces a terminal rule of {}", parent.shown),
                false => format!("`{id}` replaces a terminal rule of {} with one that is not", parent.shown),
            };
            let body = Body::new(message)
                .at(document.place(place(rule), format!("synthesis.rules[{at}].id")))
                .related(parent.place(place(replaced), ""), "the rule that no longer counts")
                .help("give the view's rule an id of its own if both are to count: a rule is replaced as a whole");
            view.warn(codes::TERMINAL_REPLACED, body);
        }
    }
}

fn rules(root: &Node) -> &[Node] {
    root.at_path(&["synthesis", "rules"]).map_or(&[], Node::items)
}

fn id(rule: &Node) -> Option<&str> {
    rule.key("id").and_then(Node::as_str)
}

/// Whether a rule ends the synthesis once it fires: by its kind, or since its author says so.
fn is_terminal(view: &CheckContext<'_, '_>, rule: &Node) -> bool {
    let kind = rule.key("kind").and_then(Node::as_str);
    let kind = kind.and_then(|kind| view.loader.capabilities.rule_kind(kind));
    kind.is_some_and(|kind| kind.ends_synthesis == EndsSynthesis::Yes)
        || rule.at_path(&["params", "terminal"]).is_some_and(|node| node.to_json() == true)
}
