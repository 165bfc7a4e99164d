//! Prepares the members of an assembly: persona, prompt and executor (Q1).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_kernel::registry::Registry;
use quorate_manifest::assembly::Resolved;
use quorate_manifest::config::Configuration;
use quorate_manifest::doctype::Doctype;
use quorate_manifest::document::Document;
use quorate_manifest::loader::{Loader, ReadResult, Reference, Refs};
use quorate_manifest::workspace::Scope;
use quorate_manifest::{operator, persona};
use quorate_playbook::base::BasePrompt;
use quorate_playbook::compose::Composition;
use quorate_playbook::persona as prompts;
use quorate_protocol::Json;
use serde_json::Map;

use super::super::compose::Sources;
use super::super::environment::Environment;
use super::super::error::ServiceError;
use super::super::executor::model::{NamedModel, ensure_one_executor, with_model};
use super::super::executor::{self, SelectedBy, SelectedExecutor};
use super::super::manifests::Manifests;
use super::super::playbook::catalogue::Catalogue;
use super::super::resolve::{self, Resolution};
use super::super::run_options::RunOptions;
use super::super::run_spec::PreparedMember;
use super::super::weave;
use super::super::workspace::Workspace;
use super::inputs::ConveneInput;

/// A loaded persona: its prompt in the form that executors read, and the sources woven into it.
type LoadedPersona = (Arc<str>, Arc<Json>, Option<Arc<(Sources, Composition)>>);

/// Prepares all members.
///
/// # Errors
/// If a persona was removed since the assembly was resolved, or an executor is refused.
pub fn prepare(
    environment: &Environment,
    workspace: &Workspace,
    input: &ConveneInput,
    options: &RunOptions,
    report: &mut Report,
) -> Result<Vec<PreparedMember>, ServiceError> {
    let (configuration, ledger) = (&workspace.host, &workspace.ledger);
    let manifests = Manifests::open(environment, &input.resolution.root, Refs::Followed)?;
    let loader = manifests.loader(&*environment.host);
    let resolved = &input.resolution.resolved;
    let runtime = operator_runtime(&loader, &input.resolution.root, resolved);
    let mut executors = ExecutorCache {
        registry: workspace.registry.clone(),
        configuration,
        model: options.model.as_deref(),
        built: BTreeMap::new(),
    };
    let mut personas: BTreeMap<String, LoadedPersona> = BTreeMap::new();
    let mut catalogues: BTreeMap<Scope, Catalogue> = BTreeMap::new();
    let mut prepared = Vec::with_capacity(resolved.members.len());
    for member in &resolved.members {
        let reference = &member.persona.reference;
        let location = member.persona.path.as_ref();
        let key = location.map_or_else(|| reference.clone(), |location| location.workspace_relative());
        if !personas.contains_key(&key) {
            let document = location.and_then(|location| match loader.read(location, Doctype::Persona) {
                ReadResult::Document(document) => Some(document),
                ReadResult::Missing | ReadResult::Outside | ReadResult::Unreadable(_) => None,
            });
            let Some(persona) = document.and_then(|document| persona::load(&loader, &document).value) else {
                let body = Body::new(format!("the persona `{reference}` of `{}` cannot be read", member.id));
                return Err(ServiceError::configuration(codes::ASSEMBLY_MEMBER_PERSONA_UNRESOLVABLE, body));
            };
            let scope = location.map_or(Scope::Workspace, |location| location.scope().clone());
            let known = weave::operators_with_persona(&loader, &scope, reference, workspace);
            let mut composed = None;
            if !known.is_empty() {
                let catalogue = catalogues
                    .entry(scope.clone())
                    .or_insert_with(|| Catalogue::open(&loader, &scope, ledger));
                let (known, base) = (known.iter().collect::<Vec<_>>(), BasePrompt::from_persona(&persona));
                let root = &input.resolution.root;
                let sources = Sources::new(environment, root, &scope, catalogue, base, &known, report);
                let now = sources.compose(&[], environment.clock.now_ms());
                composed = Some(Arc::new((sources, now)));
            }
            let text = match composed.as_deref() {
                Some((_, now)) => now.woven.prompt.clone().into(),
                None => prompts::prompt(&persona).into(),
            };
            personas.insert(key.clone(), (text, Arc::new(prompts::json(&persona)), composed));
        }
        let (text, persona, composed) = personas[&key].clone();
        let named = executor_choice(options, configuration, &input.resolution, &member.id, runtime.as_ref());
        let executor = executors.get(named)?;
        prepared.push(PreparedMember {
            id: member.id.clone(),
            role: member.role.clone(),
            prompt: format!("Your role here: {}.\n\n{text}", member.role).into(),
            persona: Some(persona),
            context: Vec::new(),
            weight: None,
            executor,
            timeout: options.timeout.unwrap_or_else(|| Duration::from_millis(u64::from(member.timeout_ms))),
            composed,
            extra_fields: Map::new(),
        });
    }
    ensure_one_executor(options.model.as_deref(), prepared.iter().map(|member| &member.executor))?;
    catalogues.into_values().for_each(|catalogue| report.absorb(catalogue.report));
    Ok(prepared)
}

/// An executor's name, and the file that chose it.
struct ExecutorChoice {
    name: String,
    place: Option<Place>,
    /// The file that names it; `None` if a person named it.
    file: Option<PathBuf>,
}

/// Q1: the executor of a member; `None` if none is named.
fn executor_choice(
    options: &RunOptions,
    configuration: &Configuration,
    view: &Resolution,
    member: &str,
    runtime: Option<&(String, PathBuf)>,
) -> Option<ExecutorChoice> {
    if let Some(name) = &options.executor {
        return Some(ExecutorChoice { name: name.clone(), place: None, file: None });
    }
    let by_host = |(name, place): &(String, Place)| ExecutorChoice {
        name: name.clone(),
        place: Some(place.clone()),
        file: Some(configuration.path()),
    };
    let resolved = &view.resolved;
    let table = configuration.assemblies.get(&resolved.name);
    if let Some(chosen) = table.and_then(|table| table.members.get(member).or(table.executor.as_ref())) {
        return Some(by_host(chosen));
    }
    let (of_members, of_all) = executors_in_metadata(&resolved.metadata);
    if let Some(name) = of_members.get(member).or(of_all.as_ref()) {
        let leaf = resolve::disk_path(&view.root, resolved.chain.leaf());
        return Some(ExecutorChoice { name: name.clone(), place: None, file: Some(leaf) });
    }
    if let Some((name, operator)) = runtime {
        return Some(ExecutorChoice { name: name.clone(), place: None, file: Some(operator.clone()) });
    }
    configuration.default_executor.as_ref().map(by_host)
}

/// The executors in an assembly's `metadata.quorate`: by member, and for all.
fn executors_in_metadata(metadata: &Map<String, Json>) -> (BTreeMap<String, String>, Option<String>) {
    let executor = |of: &Json| of.get("executor").and_then(Json::as_str).map(str::to_owned);
    let Some(ours) = metadata.get("quorate") else { return Default::default() };
    let members = ours.get("members").and_then(Json::as_object).into_iter().flatten();
    (members.filter_map(|(id, of)| Some((id.clone(), executor(of)?))).collect(), executor(ours))
}

/// The executors that an assembly or an operator names in its file.
pub fn executor_names(loader: &Loader<'_>, document: &Arc<Document>) -> Vec<String> {
    if document.doctype == Doctype::Operator {
        return operator::load(loader, document)
            .value
            .and_then(|operator| operator.runtime)
            .into_iter()
            .collect();
    }
    let metadata = document.root.key("metadata").map(|node| node.to_json());
    let (members, all) =
        executors_in_metadata(metadata.as_ref().and_then(Json::as_object).unwrap_or(&Map::new()));
    members.into_values().chain(all).collect()
}

/// The runtime of the operator that executes the assembly.
fn operator_runtime(loader: &Loader<'_>, root: &Path, resolved: &Resolved) -> Option<(String, PathBuf)> {
    let reference = Reference::parse(resolved.refs.get("executor")?)?;
    let node = resolved.chain.merged.key("executor")?;
    let location = reference.path(resolved.chain.document_of(node).path.scope()).ok()?;
    match loader.read(&location, Doctype::Operator) {
        ReadResult::Document(document) => Some((
            operator::load(loader, &document).value?.runtime?,
            root.join(location.workspace_relative()),
        )),
        ReadResult::Missing | ReadResult::Outside | ReadResult::Unreadable(_) => None,
    }
}

/// Executors, each built once.
struct ExecutorCache<'a> {
    registry: Arc<Registry>,
    configuration: &'a Configuration,
    /// The model that a person named for all.
    model: Option<&'a str>,
    built: BTreeMap<(String, Option<PathBuf>), SelectedExecutor>,
}

impl ExecutorCache<'_> {
    fn get(&mut self, named: Option<ExecutorChoice>) -> Result<SelectedExecutor, ServiceError> {
        let model = self.model.map(NamedModel::by_person);
        let Some(ExecutorChoice { name, place, file }) = named else {
            let fallback = |extra| executor::fallback_with(&self.registry, self.configuration, extra);
            return with_model(model, fallback);
        };
        let selected_by = file.as_deref().map_or(SelectedBy::Person, SelectedBy::File);
        let key = (name.clone(), file.clone());
        if let Some(chosen) = self.built.get(&key) {
            return Ok(chosen.clone());
        }
        let build = |extra| {
            executor::by_name_with(
                &self.registry,
                self.configuration,
                &name,
                place.as_ref(),
                selected_by,
                extra,
            )
        };
        let chosen = with_model(model, build)?;
        self.built.insert(key, chosen.clone());
        Ok(chosen)
    }
}
