//! `quorate:terminal_replaced`: a view replaces an ancestor's rule that ends the synthesis. Such a rule is usually a veto or
//! an alarm. Rules are replaced as a whole (M6), so the view removes it and the ancestor's file does not show it.

use quorate_diagnostics::{Body, codes};

use crate::assembly::check_context::CheckContext;
use crate::capabilities::EndsSynthesis;
use crate::tree::Node;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    let documents = &view.chain.documents;
    for (index, document) in documents.iter().enumerate().skip(1) {
        for (at, rule) in rules(&document.root).iter().enumerate() {
            let Some((parent, replaced)) = view.replaced(index, RULES, rule) else { continue };
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
                .related(parent.place(place(replaced), ""), "the replaced rule")
                .help("give the view's rule another id to keep both: a rule is replaced as a whole");
            view.warn(codes::TERMINAL_REPLACED, body);
        }
    }
}

const RULES: &[&str] = &["synthesis", "rules"];

fn rules(root: &Node) -> &[Node] {
    root.at_path(RULES).map_or(&[], Node::items)
}

fn id(rule: &Node) -> Option<&str> {
    rule.key("id").and_then(Node::as_str)
}

/// Whether a rule ends the synthesis when it fires: by its kind, or by the parameter `terminal: true`.
fn is_terminal(view: &CheckContext<'_, '_>, rule: &Node) -> bool {
    let kind = rule.key("kind").and_then(Node::as_str);
    let kind = kind.and_then(|kind| view.loader.capabilities.rule_kind(kind));
    kind.is_some_and(|kind| kind.ends_synthesis == EndsSynthesis::Yes)
        || rule.at_path(&["params", "terminal"]).is_some_and(|node| node.to_json() == true)
}
