//! `assembly_member_persona_unresolvable`: a member without its persona cannot be asked, and the rules do not fit a smaller
//! roster. The ref resolves in the scope of the document that contains it (M10).

use quorate_diagnostics::{Body, codes};

use crate::assembly::check_context::CheckContext;
use crate::loader::Refs;
use crate::tree::Node;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    if view.loader.options.refs == Refs::ShapeOnly {
        return;
    }
    for (at, member) in view.members().iter().enumerate() {
        let Some(node) = member.key("persona") else { continue };
        let Some(reference) = node.as_str() else { continue };
        let from = &view.chain.document_of(node).path;
        let found = view.loader.find_persona(from, reference);
        if let Err(why) = &*found {
            let id = member.key("id").and_then(Node::as_str).unwrap_or_default();
            let mut body =
                Body::new(format!("the persona of `{id}`, `{reference}`, cannot be used: {}", why.reason));
            if let Some((place, label)) = &why.related {
                body = body.related(place.clone(), label);
            }
            let place = view.place(node, format!("members[{at}].persona"));
            let help = match &why.help {
                Some(help) => help.clone(),
                None => "create the persona (`quorate init persona`), or correct the ref".to_owned(),
            };
            view.refuse(codes::ASSEMBLY_MEMBER_PERSONA_UNRESOLVABLE, body.at(place).help(help));
        }
    }
}
