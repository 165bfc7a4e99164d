//! `assembly_appliesto_unresolvable`: a view applies to a consumer that does not exist. One that is planned in the
//! same round is a warning (M15).

use quorate_diagnostics::{Body, codes};

use crate::assembly::check_context::CheckContext;
use crate::loader::Refs;
use crate::tree::Node;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    if view.loader.options.refs == Refs::ShapeOnly {
        return;
    }
    let leaf = view.chain.leaf();
    for (at, item) in leaf.root.key("appliesTo").map_or(&[][..], Node::items).iter().enumerate() {
        let Some(text) = item.as_str() else { continue };
        let Err(unresolved) = view.loader.resolve(&leaf.path, text) else { continue };
        let place = leaf.place(item.span.clone(), format!("appliesTo[{at}]"));
        let body = Body::new(format!("`{text}` cannot be resolved: {}", unresolved.reason)).at(place);
        if view.loader.is_planned(leaf.path.scope(), text) {
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
