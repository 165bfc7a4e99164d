//! Checks a producer: an operator of the workspace, and shadow playbooks that target it.

use std::path::Path;

use quorate_diagnostics::{Body, codes};
use quorate_manifest::loader::Refs;
use quorate_manifest::playbook;
use quorate_manifest::tree::reader::nearest;
use quorate_manifest::workspace::{Scope, WorkspacePath};
use quorate_playbook::bind::{Binding, Subject};

use super::Producer;
use crate::service::environment::Environment;
use crate::service::error::{ExitClass, ServiceError};
use crate::service::manifests::Manifests;
use crate::service::operators::load_operator;

/// Refuses an unknown operator, and a playbook that does not exist or does not target it: such runs would never count, without
/// a warning. Looks them up in each scope in turn.
///
/// # Errors
/// A usage error with a suggestion.
pub fn check(
    producer: &Producer,
    environment: &Environment,
    root: &Path,
    scopes: &[Scope],
) -> Result<(), ServiceError> {
    let manifests = Manifests::open(environment, root, Refs::Followed)?;
    let loader = manifests.loader(&*environment.host);
    let operators = |scope: &Scope| {
        let folder = in_scope(scope, OPERATORS);
        WorkspacePath::new(&folder).map_or_else(|_| Vec::new(), |folder| loader.folder_names(&folder))
    };
    let is_here = |scope: &&Scope| operators(scope).contains(&producer.operator);
    let Some(scope) = scopes.iter().find(is_here) else {
        let known: Vec<String> = scopes.iter().flat_map(operators).collect();
        let help = "create operators/<slug>/OPERATOR.md, or correct the name";
        return Err(unknown(
            format!("unknown operator `{}`", producer.operator),
            &producer.operator,
            &known,
            help,
        ));
    };
    if producer.trying.is_empty() {
        return Ok(());
    }
    let operating = load_operator(&loader, scope, &format!("ws://operators/{}", producer.operator))?;
    let subject = Subject::from_operator(&operating.operator);
    let shelf = playbook::load_all(&loader, scope);
    let known: Vec<String> = shelf.playbooks.iter().map(|book| book.playbook.slug.clone()).collect();
    for slug in &producer.trying {
        let Some(book) = shelf.playbooks.iter().find(|book| book.playbook.slug == *slug) else {
            let help = "run `quorate playbook list` to see the available playbooks";
            return Err(unknown(format!("unknown playbook `{slug}`"), slug, &known, help));
        };
        if Binding::new(&book.playbook).matches(&subject).is_none() {
            let body = Body::new(format!("the playbook `{slug}` does not target `{}`", producer.operator));
            let help = format!("run `quorate playbook show {slug}` to see its targets");
            return Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body.help(help)));
        }
    }
    Ok(())
}

const OPERATORS: &str = "operators";

fn in_scope(scope: &Scope, folder: &str) -> String {
    match scope.folder() {
        top if top.is_empty() => folder.to_owned(),
        tenant => format!("{tenant}/{folder}"),
    }
}

fn unknown(message: String, written: &str, known: &[String], otherwise: &str) -> ServiceError {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let help = match nearest(written, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise.to_owned(),
    };
    ServiceError::new(ExitClass::Usage, codes::USAGE, Body::new(message).help(help))
}
