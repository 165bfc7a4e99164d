//! Lists the models that can be asked through an executor.

use std::time::Duration;

use quorate_diagnostics::{Body, codes};
use serde_json::{Map, json};

use super::environment::Environment;
use super::error::{Error, ErrorKind};
use super::executor::{self, SelectedBy};
use super::trust;
use super::workspace::{self, PathOverrides};

/// The models of an executor: a table of `quorate.toml`, a preset or an address. `timeout` limits the whole call.
///
/// # Errors
/// If the executor is unknown, its key is missing, it cannot list models, or the service does not answer.
#[crate::boxed]
pub async fn models(
    environment: &Environment,
    places: &PathOverrides,
    name: &str,
    timeout: Duration,
) -> Result<Vec<String>, Error> {
    let workspace = workspace::load(environment, places, &environment.directory)?;
    let select = |extra| {
        executor::by_name_with(&workspace.registry, &workspace.config, name, None, SelectedBy::Person, extra)
    };
    // A person who asks for the list may not know a model yet.
    let chosen = select(Map::new()).or_else(|refused| {
        let any = Map::from_iter([("model".to_owned(), json!("any"))]);
        select(any).map_err(|_| refused)
    })?;
    chosen.ensure_installed()?;
    let admitted = trust::admit(environment, chosen.needs())?;
    let deadline = tokio::time::Instant::now() + timeout;
    let failed = |why: String| {
        let body = Body::new(format!("cannot list the models of `{name}`: {why}"));
        Error::new(ErrorKind::Configuration, codes::EXECUTOR_INVALID, body)
    };
    match chosen.executor(admitted).models(deadline).await {
        None => Err(failed("this kind of executor has no list of models".to_owned())),
        Some(Err(failure)) => Err(failed(failure.to_string())),
        Some(Ok(models)) => Ok(models),
    }
}
