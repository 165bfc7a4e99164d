//! Selects the executor of each member of a council (C11): `--executor`; else the member's table in `quorate.toml`, its
//! `runtime` in `council.yaml`, the council's `runtime`, `[defaults]`, the rubric.

use std::collections::BTreeMap;

use quorate_diagnostics::{Body, Place, codes};
use quorate_manifest::config::CouncilMember;
use quorate_manifest::tree::reader::nearest;
use quorate_protocol::Json;
use serde_json::Map;

use crate::service::error::ServiceError;
use crate::service::executor::model::{NamedModel, ensure_one_executor, with_model};
use crate::service::executor::{self, SelectedBy, SelectedExecutor};
use crate::service::run_options::RunOptions;
use crate::service::workspace::Workspace;

/// The executor of each member by its id: the deliberators in roster order, then the adjudicator. Members with the same
/// choice share one.
///
/// # Errors
/// If `quorate.toml` has a table for a member that the council does not have, an executor is unknown or refuses its
/// settings, or `--model` is for members with different executors.
pub fn select<'w>(
    workspace: &'w Workspace,
    options: &'w RunOptions,
) -> Result<Vec<(&'w str, SelectedExecutor)>, ServiceError> {
    ensure_known_members(workspace)?;
    let mut built: BTreeMap<Choice<'w>, SelectedExecutor> = BTreeMap::new();
    let mut selected = Vec::new();
    for member in workspace.council.member_ids() {
        let choice = Choice::of(workspace, options, member);
        let executor = match built.get(&choice) {
            Some(executor) => executor.clone(),
            None => {
                let place = workspace.host.council_members.get(member);
                let mut executor = choice.build(workspace, place)?;
                executor.timeout = options.timeout.unwrap_or(executor.timeout);
                built.insert(choice, executor.clone());
                executor
            }
        };
        selected.push((member, executor));
    }
    ensure_one_executor(options.model.as_deref(), selected.iter().map(|(_, executor)| executor))?;
    Ok(selected)
}

/// Refuses a table `[council.members.<id>]` for a member that the council does not have.
///
/// # Errors
/// [`codes::HOST_INVALID`] at the table.
pub fn ensure_known_members(workspace: &Workspace) -> Result<(), ServiceError> {
    let known: Vec<&str> = workspace.council.member_ids().collect();
    let tables = &workspace.host.council_members;
    let Some((id, table)) = tables.iter().find(|(id, _)| !known.contains(&id.as_str())) else {
        return Ok(());
    };
    let help = match nearest(id, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the members are {}", known.join(", ")),
    };
    let body = Body::new(format!("the council has no member `{id}`")).at(table.place.clone());
    Err(executor::refuse_in(codes::HOST_INVALID, body.help(help), &table.source))
}

/// The source of a member's executor, and the model that replaces the executor's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Choice<'w> {
    source: Source<'w>,
    model: Option<&'w str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source<'w> {
    /// `--executor`.
    Person(&'w str),
    /// `[council.members.<id>] executor`.
    Table(&'w str),
    /// `runtime` of the member with this id.
    OwnRuntime(&'w str),
    /// `runtime` of the council.
    CouncilRuntime,
    /// `[defaults] executor`.
    Default(&'w str),
    /// No executor is named.
    Unnamed,
}

impl<'w> Choice<'w> {
    fn of(workspace: &'w Workspace, options: &'w RunOptions, member: &'w str) -> Choice<'w> {
        let (council, host) = (&workspace.council, &workspace.host);
        let model = options.model.as_deref();
        if let Some(name) = &options.executor {
            return Choice { source: Source::Person(name), model };
        }
        let table = host.council_members.get(member);
        let named = table.and_then(|table| table.executor.as_ref());
        let source = match (named, council.runtime_of(member), &council.runtime, &host.default_executor) {
            (Some((name, _)), ..) => Source::Table(name),
            (None, Some(_), ..) => Source::OwnRuntime(member),
            (None, None, Some(_), _) => Source::CouncilRuntime,
            (None, None, None, Some((name, _))) => Source::Default(name),
            (None, None, None, None) => Source::Unnamed,
        };
        let of_table = table.and_then(|table| table.model.as_ref()).map(|(name, _)| name.as_str());
        Choice { source, model: model.or(of_table) }
    }

    /// Builds it; `table` is the member's in `quorate.toml`.
    fn build(
        self,
        workspace: &Workspace,
        table: Option<&CouncilMember>,
    ) -> Result<SelectedExecutor, ServiceError> {
        let (registry, host, council) = (&workspace.registry, &workspace.host, &workspace.council);
        let (host_file, council_file) =
            (host.path(), workspace.council_path.as_deref().unwrap_or(&council.dir));
        let by_file = |name: &str, place: Option<&Place>, extra| {
            executor::by_name_with(registry, host, name, place, SelectedBy::File(&host_file), extra)
        };
        let place_of = |named: Option<&'_ (String, Place)>| named.map(|(_, place)| place.clone());
        let by_runtime = |member: Option<&str>, extra: Map<String, Json>| {
            let own = member.and_then(|member| council.runtime_of(member));
            let mut table = own.or(council.runtime.as_ref()).expect("the choice found a runtime").clone();
            table.block.json.extend(extra);
            executor::by_runtime(registry, &table, &council.dir, council_file)
        };
        let build = |extra: Map<String, Json>| match self.source {
            Source::Person(name) => {
                executor::by_name_with(registry, host, name, None, SelectedBy::Person, extra)
            }
            Source::Table(name) => {
                let place = place_of(table.and_then(|table| table.executor.as_ref()));
                by_file(name, place.as_ref(), extra)
            }
            Source::OwnRuntime(member) => by_runtime(Some(member), extra),
            Source::CouncilRuntime => by_runtime(None, extra),
            Source::Default(name) => by_file(name, place_of(host.default_executor.as_ref()).as_ref(), extra),
            Source::Unnamed => executor::fallback_with(registry, host, extra),
        };
        // `--model` has no place in a file.
        let of_table = |table: &&CouncilMember| table.model.as_ref().map(|(name, _)| &**name) == self.model;
        let table = table.filter(of_table);
        with_model(self.model.map(|name| NamedModel { name, table }), build)
    }
}
