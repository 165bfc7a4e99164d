//! The model that a person or a table names instead of an executor's own.

use quorate_diagnostics::{Body, codes};
use quorate_manifest::config::CouncilMember;
use quorate_protocol::Json;
use serde_json::{Map, json};

use super::{SelectedExecutor, refuse_in};
use crate::service::error::{ExitClass, ServiceError};

/// A named model.
#[derive(Debug, Clone, Copy)]
pub struct NamedModel<'a> {
    pub name: &'a str,
    /// The table that names it; `None` for `--model`.
    pub table: Option<&'a CouncilMember>,
}

impl<'a> NamedModel<'a> {
    /// The model of `--model`.
    pub fn by_person(name: &'a str) -> Self {
        NamedModel { name, table: None }
    }
}

/// Builds an executor, with the named model if there is one.
///
/// # Errors
/// As `build`, and if the executor has no model.
pub fn with_model(
    model: Option<NamedModel<'_>>,
    build: impl Fn(Map<String, Json>) -> Result<SelectedExecutor, ServiceError>,
) -> Result<SelectedExecutor, ServiceError> {
    let Some(model) = model else { return build(Map::new()) };
    let built = build(Map::from_iter([("model".to_owned(), json!(model.name))]));
    match built.is_err().then(|| build(Map::new())) {
        Some(Ok(without)) if !without.about().asks_a_model => Err(asks_no_model(model, &without.name)),
        _ => built,
    }
}

fn asks_no_model(model: NamedModel<'_>, executor: &str) -> ServiceError {
    let body = Body::new(format!("cannot use the model `{}`: `{executor}` asks no model", model.name));
    let help = "name an executor that asks one: `--executor claude`, anthropic, openai, ollama, or a table of quorate.toml";
    match model.table {
        None => ServiceError::new(ExitClass::Usage, codes::USAGE, body.help(help)),
        Some(table) => {
            let place = table.model.as_ref().map_or(&table.place, |(_, place)| place);
            let body = body.at(place.clone()).help("remove `model`, or name an executor that asks a model");
            refuse_in(codes::HOST_INVALID, body, &table.source)
        }
    }
}

/// Refuses `--model` if members are asked through different executors: a model's name has no meaning for another service.
///
/// # Errors
/// [`codes::USAGE`], with the executors' names.
pub fn ensure_one_executor<'a>(
    model: Option<&str>,
    executors: impl IntoIterator<Item = &'a SelectedExecutor>,
) -> Result<(), ServiceError> {
    let Some(model) = model else { return Ok(()) };
    let mut distinct: Vec<&SelectedExecutor> = Vec::new();
    for executor in executors {
        if !distinct.iter().any(|known| known.settings == executor.settings) {
            distinct.push(executor);
        }
    }
    if distinct.len() < 2 {
        return Ok(());
    }
    let mut names: Vec<String> = distinct.iter().map(|executor| format!("`{}`", executor.name)).collect();
    names.dedup();
    let body = Body::new(format!(
        "cannot use the model `{model}`: the members have different executors, {}",
        names.join(", ")
    ));
    let help =
        "add `--executor NAME` to ask all through one, or set `model` where each member's executor is named";
    Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body.help(help)))
}
