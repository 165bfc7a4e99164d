//! Loads operators and personas by their refs, with the prompts that their manifests give.

use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};
use quorate_manifest::doctype::Doctype;
use quorate_manifest::document::Document;
use quorate_manifest::loader::{Loader, ReadResult, Reference};
use quorate_manifest::operator::{self, Operator};
use quorate_manifest::persona;
use quorate_manifest::workspace::Scope;
use quorate_playbook::base::BasePrompt;
use serde_json::Value;

use super::error::{ExitClass, ServiceError};
use super::manifests::file_not_found;

/// An operator with its prompt.
pub(super) struct LoadedOperator {
    pub(super) operator: Operator,
    /// Its persona's prompt, or its own body if it has no persona.
    pub(super) base: BasePrompt,
    /// The value of `metadata.quorate.locks` in each document of its persona.
    pub(super) persona_locks: Vec<Value>,
    pub(super) report: Report,
}

/// Loads an operator by its ref.
pub(super) fn load_operator(
    loader: &Loader<'_>,
    scope: &Scope,
    reference: &str,
) -> Result<LoadedOperator, ServiceError> {
    let document = load_document(loader, scope, reference, Doctype::Operator)?;
    let loaded = operator::load(loader, &document);
    let Some(operator) = loaded.value else {
        return Err(ServiceError::from_report(ExitClass::Configuration, loaded.report));
    };
    let folder = reference.rsplit('/').next().unwrap_or(reference);
    if operator.id != folder {
        let body =
            Body::new(format!("the operator's `id` is `{}`, but its folder is `{folder}`", operator.id));
        let body = body
            .at(document.value_place("id"))
            .help("give both the same name: locks and playbooks refer to it");
        let mut report = loaded.report;
        report.add_source(document.shown.clone(), document.text.clone());
        report.refuse(codes::OPERATOR_UNRESOLVABLE, body);
        return Err(ServiceError::from_report(ExitClass::Configuration, report));
    }
    let mut report = loaded.report;
    let (base, persona_locks) = match &operator.persona {
        None => (BasePrompt::from_body(document.body().trim()), Vec::new()),
        Some(persona) => {
            let (base, more, locks) = persona_prompt(loader, scope, &full_ref(persona, "personas"))?;
            report.absorb(more);
            (base, locks)
        }
    };
    Ok(LoadedOperator { operator, base, persona_locks, report })
}

/// Loads the manifest that a ref names.
fn load_document(
    loader: &Loader<'_>,
    scope: &Scope,
    reference: &str,
    doctype: Doctype,
) -> Result<Arc<Document>, ServiceError> {
    let Some(location) = Reference::parse(reference).and_then(|read| read.path(scope).ok()) else {
        let kind = doctype.as_str();
        let body = Body::new(format!("`{reference}` is not a ref to a manifest of the kind `{kind}`"));
        let help = format!("write its slug, or ws://{kind}s/<slug>");
        return Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body.help(help)));
    };
    match loader.read(&location, doctype) {
        ReadResult::Document(document) => Ok(document),
        ReadResult::Missing | ReadResult::Outside => Err(file_not_found(&loader.display_name(&location))),
        ReadResult::Unreadable(why) => {
            let body = Body::new(format!("cannot read `{}`: {why}", loader.display_name(&location)));
            Err(ServiceError::configuration(codes::FILE_UNREADABLE, body))
        }
    }
}

/// Expands a short ref to `ws://<collection>/<slug>`.
pub(super) fn full_ref(written: &str, collection: &str) -> String {
    if written.contains("://") {
        return written.to_owned();
    }
    // A shell's completion gives the folder with a slash.
    let bare = written.trim_end_matches('/');
    let bare = bare.strip_prefix(collection).and_then(|rest| rest.strip_prefix('/')).unwrap_or(bare);
    format!("ws://{collection}/{bare}")
}

/// A persona's prompt, warnings, and the locks of each of its documents.
pub(super) type PersonaPrompt = (BasePrompt, Report, Vec<Value>);

/// Loads a persona's prompt.
pub(super) fn persona_prompt(
    loader: &Loader<'_>,
    scope: &Scope,
    reference: &str,
) -> Result<PersonaPrompt, ServiceError> {
    let document = load_document(loader, scope, reference, Doctype::Persona)?;
    let loaded = persona::load(loader, &document);
    match loaded.value {
        Some(persona) => {
            // Locks are not merged: a view could drop its parent's lock, but views may only add locks.
            let locks_of = |document: &Arc<Document>| {
                let locks = document.root.key("metadata")?.key("quorate")?.key("locks")?;
                Some(locks.to_json())
            };
            let locks = persona.chain.documents.iter().filter_map(locks_of).collect();
            Ok((BasePrompt::from_persona(&persona), loaded.report, locks))
        }
        None => Err(ServiceError::from_report(ExitClass::Configuration, loaded.report)),
    }
}
