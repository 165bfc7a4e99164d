//! `assembly_synthesis_terminal_chain`: two rules that can each end the synthesis look at the same members in the same
//! phase; only the first that fires ever has an effect.

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
            "`{}` can end the synthesis for members that `{}` can end it for, too",
            id(rule),
            id(earlier)
        );
        let place = view.key_place(rule, "kind", format!("synthesis.rules[{at}].kind"));
        let body =
            Body::new(message).at(place).related(view.key_place(earlier, "kind", ""), "the rule before");
        view.warn(
            codes::ASSEMBLY_SYNTHESIS_TERMINAL_CHAIN,
            body.help("only the first that fires has an effect; fine as a fallback, else narrow `appliesTo`"),
        );
    }
}

/// Whether two rules look at a common member; the same member is in the same phase.
fn overlap(view: &CheckContext<'_, '_>, one: &Node, other: &Node) -> bool {
    let holds = |rule: &Node, id: &str| {
        let items = rule.key("appliesTo").map_or(&[][..], Node::items);
        items.is_empty() || items.iter().any(|item| item.as_str() == Some(id))
    };
    view.member_ids().iter().any(|id| holds(one, id) && holds(other, id))
}
