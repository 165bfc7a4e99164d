//! `assembly_appliesto_unresolvable`: a view applies to a consumer that does not exist. One that is planned in the
//! same round is a warning (M15).

use quorate_diagnostics::{Body, codes};

use crate::assembly::view::View;
use crate::round::Refs;
use crate::tree::Node;

pub(super) fn check(view: &View<'_, '_>) {
    if view.round.options.refs == Refs::ShapeOnly {
        return;
    }
    let leaf = view.chain.leaf();
    for (at, item) in leaf.root.key("appliesTo").map_or(&[][..], Node::items).iter().enumerate() {
        let Some(text) = item.as_str() else { continue };
        let Err(unresolved) = view.round.resolves(&leaf.spot, text) else { continue };
        let place = leaf.place(item.span.clone(), format!("appliesTo[{at}]"));
        let body = Body::new(format!("`{text}` cannot be resolved: {}", unresolved.why)).at(place);
        if view.round.is_planned(leaf.spot.scope(), text) {
            view.warn(
                codes::XREF_PLANNED,
                body.help("it is among the files of this command, and not yet at its place"),
            );
        } else {
            let help = "a view whose consumer does not exist is not loaded; make the consumer first, or take it out of `appliesTo`";
            view.refuse(codes::ASSEMBLY_APPLIESTO_UNRESOLVABLE, body.help(unresolved.help(help)));
        }
    }
}
