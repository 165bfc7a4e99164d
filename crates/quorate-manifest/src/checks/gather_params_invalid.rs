//! `quorate:gather_params_invalid`: a parameter that the gather strategy cannot read and would replace by its default
//! (X13). The running program provides the schemas.

use quorate_diagnostics::codes;

use crate::assembly::check_context::CheckContext;
use crate::document::schema_error;
use crate::json_schema::CompiledSchema;
use crate::tree::Node;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    for (at, member) in view.members().iter().enumerate() {
        let Some(params) = member.at_path(&["gatherInput", "params"]) else { continue };
        let strategy = member.at_path(&["gatherInput", "strategy"]).and_then(Node::as_str);
        let schema = strategy.and_then(|strategy| view.loader.capabilities.gather_params_schema(strategy));
        let Some(schema) = schema.as_ref().and_then(CompiledSchema::parse) else { continue };
        let document = view.chain.document_of(params);
        for error in schema.errors(params) {
            let (body, span, below) = schema_error::describe(&document.text, params, &error, "params");
            let place = document.place(span, format!("members[{at}].gatherInput.{below}"));
            view.refuse(codes::GATHER_PARAMS_INVALID, body.at(place));
        }
    }
}
