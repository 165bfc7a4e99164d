//! `assembly_synthesis_terminal_chain`: two rules that can end the synthesis apply to the same members in the same phase;
//! only the first that fires has an effect.

use quorate_diagnostics::{Body, codes};

use crate::assembly::check_context::CheckContext;
use crate::capabilities::EndsSynthesis;
use crate::tree::Node;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    let ending: Vec<(usize, &Node)> = view
        .rules()
        .iter()
        .enumerate()
        .filter(|(_, rule)| {
            let kind = rule.key("kind").and_then(Node::as_str);
            kind.and_then(|kind| view.loader.capabilities.rule_kind(kind))
                .is_some_and(|kind| kind.ends_synthesis == EndsSynthesis::Yes)
        })
        .collect();
    for (later, (at, rule)) in ending.iter().enumerate() {
        let Some((_, earlier)) = ending[..later].iter().find(|(_, earlier)| overlap(view, earlier, rule))
        else {
            continue;
        };
        let id = |rule: &Node| rule.key("id").and_then(Node::as_str).unwrap_or_default().to_owned();
        let message = format!(
            "`{}` can end the synthesis, and so can the earlier `{}` for the same members",
            id(rule),
            id(earlier)
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
        let items = rule.key("appliesTo").map_or(&[][..], Node::items);
        items.is_empty() || items.iter().any(|item| item.as_str() == Some(id))
    };
    view.member_ids().iter().any(|id| applies(first, id) && applies(second, id))
}
