//! `quorate:gather_unknown`: a member's gather strategy is not registered (X13).

use quorate_diagnostics::{Body, codes};

use crate::assembly::check_context::CheckContext;
use crate::tree::reader::nearest;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    let capabilities = view.loader.capabilities;
    for (at, member) in view.members().iter().enumerate() {
        let Some(node) = member.at_path(&["gatherInput", "strategy"]) else { continue };
        let Some(strategy) = node.as_str().filter(|strategy| !capabilities.has_gather_strategy(strategy))
        else {
            continue;
        };
        let known = capabilities.gather_strategies();
        let help = match nearest(strategy, &known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the strategies are: {}", known.join(", ")),
        };
        let place = view.place(node, format!("members[{at}].gatherInput.strategy"));
        let body = Body::new(format!("there is no gather strategy `{strategy}`")).at(place);
        view.refuse(codes::GATHER_UNKNOWN, body.help(help));
    }
}
