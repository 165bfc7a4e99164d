//! `quorate:pattern_invalid`: a locked trait that is not a valid regular expression (L3). A trait is an expression if the
//! document that declares it has match mode `regex`; a descendant's `regex` does not apply to it (M9).

use quorate_diagnostics::{Body, codes};

use crate::assembly::MatchMode;
use crate::assembly::check_context::CheckContext;
use crate::tree::Node;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    let declared = crate::assembly::match_modes::declared_match_modes(&view.chain.documents);
    for node in view.root().key("lockedTraits").map_or(&[][..], Node::items) {
        let Some(text) = node.as_str().filter(|_| declared[usize::from(node.document)] == MatchMode::Regex)
        else {
            continue;
        };
        if let Err(why) = view.loader.capabilities.check_pattern(text) {
            let body = Body::new(format!("`{text}` is not a valid regular expression: {why}"));
            let place = view.place(node, "lockedTraits");
            view.refuse(
                codes::PATTERN_INVALID,
                body.at(place).help("correct it, or match as text: `matchMode: substring`"),
            );
        }
    }
}
