//! `quorate:locked_trait_doubtful`: a locked trait that can never match, so that it protects nothing, or that matches every
//! text, so that no outcome passes.

use quorate_diagnostics::{Body, codes};

use crate::assembly::check_context::CheckContext;
use crate::capabilities::TraitReach;
use crate::tree::Node;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    let declared = crate::assembly::match_modes::declared_match_modes(&view.chain.documents);
    for node in view.root().key("lockedTraits").map_or(&[][..], Node::items) {
        let Some(text) = node.as_str() else { continue };
        let reach = view.loader.capabilities.trait_reach(text, declared[usize::from(node.document)]);
        let (message, help) = match reach {
            None => continue,
            Some(TraitReach::Never) => (
                format!("the locked trait `{text}` can never match"),
                "write words or a pattern that a text can contain, or remove the trait",
            ),
            Some(TraitReach::Always) => (
                format!("the locked trait `{text}` matches every text, so that no outcome can pass"),
                "write words or a pattern that only a text to refuse contains",
            ),
        };
        let body = Body::new(message).at(view.place(node, "lockedTraits"));
        view.warn(codes::LOCKED_TRAIT_DOUBTFUL, body.help(help));
    }
}
