//! Loads an operator and checks its persona.

use std::sync::Arc;

use quorate_diagnostics::{Body, codes};

use super::Operator;
use crate::Loaded;
use crate::document::Document;
use crate::loader::{Loader, Refs};

/// Loads an operator from its document.
pub fn load_operator(loader: &Loader<'_>, document: &Arc<Document>) -> Loaded<Operator> {
    let mut report = document.report.clone();
    if document.refused() {
        return Loaded { value: None, report };
    }
    if loader.options.refs == Refs::Followed
        && let Some(node) = document.root.key("persona")
        && let Some(written) = node.as_str()
    {
        let reference =
            if written.contains("://") { written.to_owned() } else { format!("ws://personas/{written}") };
        if let Err(error) = &*loader.find_persona(&document.path, &reference) {
            let body = Body::new(format!("cannot use the persona `{written}`: {}", error.reason));
            let body = error.explain(body, "create the persona, or correct the ref");
            let place = document.place(node.span.clone(), "persona");
            report.refuse(codes::OPERATOR_PERSONA_UNRESOLVABLE, body.at(place));
        }
    }
    let operator: Option<Operator> = document.deserialize(&document.root, &mut report);
    Loaded { value: operator.filter(|_| !report.has_refusals()), report }
}

/// The ref of an operator, by its id.
pub(crate) fn operator_ref(document: &Document) -> Option<String> {
    Some(format!("ws://operators/{}", document.root.text_of("id")?))
}
