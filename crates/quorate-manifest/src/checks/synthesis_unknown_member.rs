//! `assembly_synthesis_unknown_member`: a rule applies to a member that does not exist in the merged roster.

use quorate_diagnostics::{Body, codes};

use crate::assembly::check_context::CheckContext;
use crate::tree::Node;
use crate::tree::reader::nearest;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    for (at, rule) in view.rules().iter().enumerate() {
        for (index, node) in rule.key("appliesTo").map_or(&[][..], Node::items).iter().enumerate() {
            let Some(id) = node.as_str().filter(|id| !view.is_member(id)) else { continue };
            let ids = view.member_ids();
            let help = match nearest(id, &ids) {
                Some(near) => format!("did you mean `{near}`?"),
                None if ids.is_empty() => "this assembly has no members".to_owned(),
                None => format!("the members are: {}", ids.join(", ")),
            };
            let body = Body::new(format!("the rule applies to `{id}`, but there is no such member"));
            let place = view.place(node, format!("synthesis.rules[{at}].appliesTo[{index}]"));
            view.refuse(codes::ASSEMBLY_SYNTHESIS_UNKNOWN_MEMBER, body.at(place).help(help));
        }
    }
}
