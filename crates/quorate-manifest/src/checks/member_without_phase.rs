//! `quorate:member_without_phase`: a member of an advisory assembly without a phase is never asked (A1).

use quorate_diagnostics::{Body, codes};

use crate::assembly::Mode;
use crate::assembly::check_context::CheckContext;
use crate::tree::Node;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    if view.mode != Mode::Advisory {
        return;
    }
    for (at, member) in view.members().iter().enumerate().filter(|(_, member)| member.key("phase").is_none())
    {
        let id = member.key("id").and_then(Node::as_str).unwrap_or_default();
        let place = view.value_place(member, "id", format!("members[{at}]"));
        let body = Body::new(format!("`{id}` has no phase and is never asked")).at(place);
        view.warn(
            codes::MEMBER_WITHOUT_PHASE,
            body.help("add `phase: session`, standing, sentinel or one of your own"),
        );
    }
}
