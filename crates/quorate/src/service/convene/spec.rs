//! Builds an assembly's run: its members with personas, prompts and executors, and its first record.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_kernel::canonical;
use quorate_kernel::history::History;
use quorate_kernel::observer::Observer;
use quorate_kernel::record::{RunOpened, Spent};
use quorate_manifest::assembly::{MatchMode, ResolvedAssembly};
use quorate_manifest::config::{MemberSettings, MemberTable};
use quorate_manifest::doctype::Doctype;
use quorate_manifest::document::Document;
use quorate_manifest::loader::{Loader, ReadResult, Reference, Refs};
use quorate_manifest::workspace::Scope;
use quorate_manifest::{Capabilities as _, operator, persona};
use quorate_playbook::persona as prompts;
use quorate_playbook::persona::BasePrompt;
use quorate_playbook::weave::Composition;
use quorate_protocol::assembly::{Setup, subject_kind};
use quorate_protocol::modes::assembly::{Assembly, answer_schema};
use quorate_protocol::{Json, Part, Protocol};
use serde_json::{Map, json};

use super::super::compose::Sources;
use super::super::environment::Environment;
use super::super::error::Error;
use super::super::executor::{NamedExecutor, SelectedBy, ensure_one_executor};
use super::super::manifests::Manifests;
use super::super::redaction::Redaction;
use super::super::resolve;
use super::super::run_spec::{
    ExecutorSource, Fingerprint, MemberExecutors, NewRun, PreparedMember, ProtocolSetup, RunOptions, RunSpec,
    check_producer,
};
use super::super::session::LedgerSession;
use super::super::signer::Signer;
use super::super::workspace::Workspace;
use super::super::{overlays, weave};
use super::ConveneInput;
use crate::playbook::library::Catalogue;

impl ProtocolSetup for Setup {
    fn protocol(&self) -> Result<Box<dyn Protocol>, Error> {
        Ok(Box::new(assembly(self)?))
    }
}

/// The protocol for a setup.
///
/// # Errors
/// If a locked trait cannot be matched.
pub(crate) fn assembly(setup: &Setup) -> Result<Assembly, Error> {
    Assembly::new(setup.clone())
        .map_err(|error| Error::configuration(codes::PATTERN_INVALID, Body::new(error.to_string())))
}

/// Builds the run spec of an assembly.
///
/// # Errors
/// If an executor or a pattern is refused.
pub(crate) fn build(
    environment: &Environment,
    workspace: &Workspace,
    input: &ConveneInput,
    setup: Setup,
    options: &RunOptions,
) -> Result<RunSpec<Setup>, Error> {
    let registries = &environment.registries;
    let resolved = &input.resolution.resolved;
    let compares = resolved.match_mode == MatchMode::Semantic && !resolved.locked_traits.is_empty();
    let configured =
        (compares && !registries.has_embedder()).then(|| workspace.executors().configured_meaning());
    let meaning = configured.transpose()?.flatten();
    let redaction = &workspace.redaction;
    let setup = Setup {
        embeds: registries.has_embedder() || meaning.is_some(),
        early_decision: workspace.config.early_decision,
        ..setup
    };
    let (setup, setup_redactions) = redact_setup(&setup, redaction)?;
    if let Some(producer) = &options.producer {
        let leaf = resolved.chain.leaf().path.scope().clone();
        check_producer(producer, environment, &input.resolution.root, &[leaf, Scope::Workspace])?;
    }
    let mut report = Report::new();
    let members = prepare(environment, workspace, input, options, &mut report)?;
    redaction.check_ids(members.iter().map(|member| &*member.id))?;
    let documents = &resolved.chain.documents;
    let manifest = documents.iter().map(|document| json!(&*document.text)).collect();
    let fingerprint = Fingerprint::of_assembly(workspace, &manifest, &setup, &members, meaning.as_ref());
    Ok(RunSpec {
        setup_redactions,
        report,
        extensions: registries.extensions(),
        meaning,
        ..RunSpec::new(workspace, options, setup, members, fingerprint)
    })
}

/// Convenes, and returns the run's id.
///
/// # Errors
/// If the ledger fails. Everything recorded until then stays, and the run can be resumed.
#[crate::boxed]
pub(crate) async fn start(
    spec: &RunSpec<Setup>,
    session: &LedgerSession,
    input: &ConveneInput,
    observer: Arc<dyn Observer>,
) -> Result<History, Error> {
    let permit = spec.admit(&session.environment)?;
    let resolved = &input.resolution.resolved;
    let signer = Signer::of_assembly(session.keys(), resolved).await?;
    let now_ms = session.environment.clock.now_ms();
    let overlays = overlays::active_texts(&session.store, &spec.setup, now_ms).await?;
    let (overlays, in_overlays) = spec.redaction.redactor.redact_json(Json::Array(overlays));
    let overlays = overlays.as_array().cloned().unwrap_or_default();
    let (part, in_input) = redacted_input(spec, input).await?;
    let opened = RunOpened {
        overlays: Some(overlays),
        audit: Some(signer.assembly_audit(resolved)),
        ..described(spec, input)
    };
    let new = NewRun {
        spent_before: Spent::default(),
        artifact: Cow::Borrowed(&input.subject),
        part,
        redactions: in_overlays + in_input,
        signer,
        opened,
        seed: None,
    };
    spec.start(session, new, permit, observer).await
}

/// The fields of `run.opened` specific to assemblies.
pub(crate) fn described(spec: &RunSpec<Setup>, input: &ConveneInput) -> RunOpened {
    let resolution = &input.resolution;
    let (resolved, chain) = (&resolution.resolved, &resolution.resolved.chain);
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    let file = |document| shown(&resolve::disk_path(&resolution.root, document));
    RunOpened {
        title: Some(resolved.title.clone()),
        grouping: Some(json!(resolved.display.as_ref().and_then(|display| display.default_grouping))),
        artifact_type: Some(spec.setup.assembly.to_string()),
        messages: Some(super::message_count(input)),
        manifest: Some(file(chain.leaf())),
        root: Some(shown(&resolution.root)),
        files: chain.documents.iter().map(|document| file(document)).collect(),
        ..RunOpened::default()
    }
}

/// The run's subject, as recorded and shown to members.
///
/// # Errors
/// If sentences would be lost to what looks like a secret.
#[crate::boxed]
pub(crate) async fn redacted_input(
    spec: &RunSpec<Setup>,
    input: &ConveneInput,
) -> Result<(Part, usize), Error> {
    // A JSON escape can hide a secret from a pattern, but members read the decoded text.
    let lines = input.subject.display_name.to_ascii_lowercase().ends_with(".jsonl");
    let (text, in_text) =
        spec.redaction.redact_subject(&input.subject.display_name, &input.subject.text, lines).await?;
    let (shown, in_name) = spec.redaction.redactor.redact(&input.subject.display_name);
    Ok((Part::new(subject_kind(spec.setup.mode), &*shown, text), in_text + in_name))
}

/// The setup without secrets in the form of its record, and the number of secrets: a replay needs the setup
/// that the run used.
///
/// # Errors
/// If it is invalid without them.
fn redact_setup(setup: &Setup, redaction: &Redaction) -> Result<(Setup, usize), Error> {
    let (clean, found) = redaction.redactor.redact_json(json!(setup));
    let unreadable = |error: serde_json::Error| {
        let body = Body::new(format!("cannot redact a secret in the manifest: {error}"));
        Error::configuration(
            codes::ASSEMBLY_WORKSPACE_INVALID,
            body.help("remove the secret from the manifest"),
        )
    };
    Ok((serde_json::from_value(canonical::normalize(clean)).map_err(unreadable)?, found))
}

/// A loaded persona: its prompt in the form that executors read, and the sources woven into it.
type LoadedPersona = (Arc<str>, Arc<Json>, Option<Arc<(Sources, Composition)>>);

/// Prepares all members.
///
/// # Errors
/// If a persona was removed since the assembly was resolved, or an executor is refused.
pub(crate) fn prepare(
    environment: &Environment,
    workspace: &Workspace,
    input: &ConveneInput,
    options: &RunOptions,
    report: &mut Report,
) -> Result<Vec<PreparedMember>, Error> {
    let (configuration, ledger) = (&workspace.config, &workspace.ledger);
    let manifests = Manifests::open(environment, &input.resolution.root, Refs::Followed)?;
    let loader = manifests.loader(&*environment.registries);
    let resolved = &input.resolution.resolved;
    let runtime = operator_runtime(&loader, &input.resolution.root, resolved);
    let leaf = resolve::disk_path(&input.resolution.root, resolved.chain.leaf());
    let in_manifest = settings_in_metadata(&resolved.metadata, &leaf);
    let host = configuration.path();
    let by_host = configuration.assemblies.get(&resolved.name).map(|table| (table, &*host));
    let tables: Vec<(&MemberTable, &Path)> = by_host.into_iter().chain([(&in_manifest, &*leaf)]).collect();
    let operator = runtime.as_ref().map(|(name, file)| {
        ExecutorSource::Named(NamedExecutor { name, place: None, by: SelectedBy::File(file) })
    });
    let mut executors = MemberExecutors::new(workspace, options, &leaf)?;
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
            let Some(persona) = document.and_then(|document| persona::load_persona(&loader, &document).value)
            else {
                let body = Body::new(format!("the persona `{reference}` of `{}` cannot be read", member.id));
                return Err(Error::configuration(codes::ASSEMBLY_MEMBER_PERSONA_UNRESOLVABLE, body));
            };
            let scope = location.map_or(Scope::Workspace, |location| location.scope().clone());
            let known = weave::operators_with_persona(&loader, &scope, reference, workspace);
            let mut composed = None;
            if !known.is_empty() {
                let catalogue = catalogues
                    .entry(scope.clone())
                    .or_insert_with(|| Catalogue::open(&loader, &scope, ledger));
                let (known, base) = (known.iter().collect::<Vec<_>>(), BasePrompt::from_persona(&persona));
                let redactor = &workspace.redaction.redactor;
                let place = (&*input.resolution.root, &scope);
                let sources = Sources::new(environment, redactor, place, catalogue, base, &known, report);
                let now = sources.compose(&[], environment.clock.now_ms());
                composed = Some(Arc::new((sources, now)));
            }
            let text = match composed.as_deref() {
                Some((_, now)) => now.woven.prompt.clone().into(),
                None => BasePrompt::from_persona(&persona).render().into(),
            };
            personas.insert(key.clone(), (text, Arc::new(prompts::json(&persona)), composed));
        }
        let (text, persona, composed) = personas[&key].clone();
        let settings = tables.iter().copied().flat_map(|(table, file)| {
            let own = table.own.get(&*member.id).into_iter();
            own.chain([&table.common]).map(move |settings| (settings, file))
        });
        let settings: Vec<_> = settings.collect();
        let executor = executors.select(&settings, operator)?;
        executor.ensure_answers(answer_schema(resolved.mode))?;
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

/// The settings in an assembly's `metadata.quorate`.
fn settings_in_metadata(metadata: &Map<String, Json>, file: &Path) -> MemberTable {
    let named = |key: &str, name: &Json| {
        let (file, path) = (file.display().to_string().into(), format!("metadata.quorate.{key}"));
        Some((name.as_str()?.to_owned(), Place { file, span: 0..0, path }))
    };
    let list =
        |list: &Json| Some(list.as_array()?.iter().filter_map(|name| named("fallback", name)).collect());
    let settings = |of: &Json| MemberSettings {
        executor: of.get("executor").and_then(|name| named("executor", name)),
        fallback: of.get("fallback").and_then(list),
        samples: of.get("samples").and_then(|samples| u32::try_from(samples.as_u64()?).ok()),
        ..MemberSettings::default()
    };
    let Some(ours) = metadata.get("quorate") else { return MemberTable::default() };
    let members = ours.get("members").and_then(Json::as_object).into_iter().flatten();
    MemberTable { common: settings(ours), own: members.map(|(id, of)| (id.clone(), settings(of))).collect() }
}

/// The executors that an assembly or an operator names in its file, stand-ins included.
pub(crate) fn executor_names(loader: &Loader<'_>, document: &Arc<Document>) -> Vec<String> {
    if document.doctype == Doctype::Operator {
        return operator::load_operator(loader, document)
            .value
            .and_then(|operator| operator.runtime)
            .into_iter()
            .collect();
    }
    let metadata = document.root.key("metadata").map(|node| node.to_json());
    let none = Map::new();
    let metadata = metadata.as_ref().and_then(Json::as_object).unwrap_or(&none);
    let MemberTable { common, own } = settings_in_metadata(metadata, Path::new(""));
    let all: Vec<MemberSettings> = own.into_values().chain([common]).collect();
    let stand_ins = all.iter().filter_map(|settings| settings.fallback.as_ref()).flatten();
    let executors = all.iter().filter_map(|settings| settings.executor.as_ref());
    executors.chain(stand_ins).map(|(name, _)| name.clone()).collect()
}

/// The runtime of the operator that executes the assembly.
fn operator_runtime(
    loader: &Loader<'_>,
    root: &Path,
    resolved: &ResolvedAssembly,
) -> Option<(String, PathBuf)> {
    let reference = Reference::parse(resolved.refs.get("executor")?)?;
    let node = resolved.chain.merged.key("executor")?;
    let location = reference.path(resolved.chain.document_of(node).path.scope()).ok()?;
    match loader.read(&location, Doctype::Operator) {
        ReadResult::Document(document) => Some((
            operator::load_operator(loader, &document).value?.runtime?,
            root.join(location.workspace_relative()),
        )),
        ReadResult::Missing | ReadResult::Outside | ReadResult::Unreadable(_) => None,
    }
}
