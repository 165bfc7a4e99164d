//! Who has made what is judged. It is recorded with a run, for `quorate playbook` to learn from; nobody who judges is told,
//! and the producer is not told who judges (C7).

use std::path::Path;

use quorate_diagnostics::{Body, codes};
use quorate_manifest::loader::Refs;
use quorate_manifest::playbook::catalog;
use quorate_manifest::tree::reader::nearest;
use quorate_manifest::workspace::{Scope, WorkspacePath};
use quorate_playbook::bind::{Binding, Subject};
use quorate_playbook::gate::similarity::Sketch;
use quorate_protocol::Json;
use serde_json::json;

use super::environment::Environment;
use super::error::{ExitClass, ServiceError};
use super::manifests::Manifests;
use super::weave;

/// An operator that has made something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Producer {
    pub operator: String,
    /// The playbooks in shadow that were in its prompt then.
    pub trying: Vec<String>,
}

impl Producer {
    /// Who made it, as somebody says it: a slug or a ref. Nobody where nothing is said.
    pub fn from_flags(made_by: Option<&str>, trying: &[String]) -> Option<Self> {
        let operator = made_by?;
        let slug = operator.rsplit('/').next().unwrap_or(operator);
        Some(Producer { operator: slug.to_owned(), trying: trying.to_vec() })
    }

    /// Refuses an operator that is not there, and a playbook that is not there or not for it: what nobody has made would
    /// never count, and nobody would know why. They are looked up in each scope in turn.
    ///
    /// # Errors
    /// A usage error, with what was most probably meant.
    pub fn check(
        &self,
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
        let is_here = |scope: &&Scope| operators(scope).contains(&self.operator);
        let Some(scope) = scopes.iter().find(is_here) else {
            let known: Vec<String> = scopes.iter().flat_map(operators).collect();
            let there = "an operator's manifest is operators/<slug>/OPERATOR.md";
            return Err(unknown(
                format!("there is no operator `{}`", self.operator),
                &self.operator,
                &known,
                there,
            ));
        };
        if self.trying.is_empty() {
            return Ok(());
        }
        let operating = weave::load_operator(&loader, scope, &format!("ws://operators/{}", self.operator))?;
        let subject = Subject::from_operator(&operating.operator);
        let shelf = catalog::load_all(&loader, scope);
        let known: Vec<String> = shelf.playbooks.iter().map(|book| book.playbook.slug.clone()).collect();
        for slug in &self.trying {
            let Some(book) = shelf.playbooks.iter().find(|book| book.playbook.slug == *slug) else {
                let there = "`quorate playbook list` shows those that there are";
                return Err(unknown(format!("there is no playbook `{slug}`"), slug, &known, there));
            };
            if Binding::new(&book.playbook).matches(&subject).is_none() {
                let body = Body::new(format!("the playbook `{slug}` is not for `{}`", self.operator));
                let help = format!("`quorate playbook show {slug}` says whom it is for");
                return Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body.help(help)));
            }
        }
        Ok(())
    }

    /// As it stands in `run.opened`, with the sketch of what was made: a gate counts that once.
    pub fn json(&self, made: &str) -> Json {
        json!({"operator": self.operator, "trying": self.trying, "sketch": Sketch::new(made)})
    }
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
