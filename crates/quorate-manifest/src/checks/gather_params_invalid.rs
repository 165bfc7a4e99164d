//! `quorate:gather_params_invalid`: a parameter of a gather strategy that the strategy could not read, so that it would go
//! by its default (X13). The schemas of parameters are the host's.

use quorate_diagnostics::codes;

use crate::assembly::view::View;
use crate::form::Form;
use crate::layer::misfit;
use crate::tree::Node;

pub(super) fn check(view: &View<'_, '_>) {
    for (at, member) in view.members().iter().enumerate() {
        let Some(params) = member.at(&["gatherInput", "params"]) else { continue };
        let strategy = member.at(&["gatherInput", "strategy"]).and_then(Node::as_str);
        let schema = strategy.and_then(|strategy| view.round.host.gather_params(strategy));
        let Some(form) = schema.as_ref().and_then(Form::read) else { continue };
        let layer = view.chain.layer_of(params);
        for found in form.misfits(params) {
            let (body, span, below) = misfit::told(&layer.text, params, &found, "params");
            let place = layer.place(span, format!("members[{at}].gatherInput.{below}"));
            view.refuse(codes::GATHER_PARAMS_INVALID, body.at(place));
        }
    }
}
