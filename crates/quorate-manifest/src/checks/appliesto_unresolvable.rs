//! `assembly_appliesto_unresolvable`: a view applies to a consumer that does not exist. A consumer that the same command
//! declares gets a warning (M15).

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
                body.help("move the operator's file to `operators/<id>/OPERATOR.md`: this command checks it at another path"),
            );
        } else {
            let help = "create the consumer first, or remove it from `appliesTo`";
            view.refuse(codes::ASSEMBLY_APPLIESTO_UNRESOLVABLE, body.help(unresolved.help(help)));
        }
    }
}
