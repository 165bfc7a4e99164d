//! Loads a runtime manifest with the role files, operators and personas that it refers to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_kernel::ports::executor::SideEffect;
use quorate_manifest::doctype::Doctype;
use quorate_manifest::document::Document;
use quorate_manifest::frontmatter;
use quorate_manifest::loader::{Loader, OpenResult, Refs};
use quorate_manifest::runtime::Participant;
use quorate_manifest::runtime::{self as manifest};
use quorate_manifest::workspace::WorkspacePath;
use quorate_playbook::base::BasePrompt;
use quorate_playbook::bind::RUNTIME;

use super::request::Request;
use super::{config_provenance, external_writes};
use crate::service::compose::Sources;
use crate::service::environment::Environment;
use crate::service::error::{ExitClass, ServiceError};
use crate::service::host::Host;
use crate::service::manifests::{Manifests, file_not_found, find_root, search_start};
use crate::service::operators;
use crate::service::paths::absolute;
use crate::service::paths::find_outermost;
use crate::service::playbook::catalogue::Catalogue;
use crate::service::playbook::exceptions::Exceptions;
use crate::service::playbook::known_operator::KnownOperator;
use crate::service::weave;
use crate::service::workspace::{self, PathOverrides, Workspace};

/// The names of a manifest in a directory that the user names.
const FILE_NAMES: [&str; 3] = ["multi-agent.yaml", ".runtime/multi-agent.yaml", "multi-agent.yml"];

/// A loaded manifest.
pub(super) struct LoadedRuntime {
    pub(super) path: PathBuf,
    pub(super) dir: PathBuf,
    pub(super) runtime: manifest::Runtime,
    /// The text and the tree, for places in messages.
    pub(super) document: Arc<Document>,
    /// The prompt of each participant, in order.
    pub(super) participant_prompts: Vec<ParticipantPrompt>,
    /// Writes outside of its workspace.
    pub(super) elsewhere: Vec<SideEffect>,
    /// Warnings of the manifest.
    pub(super) report: Report,
    /// Warnings for a process that runs the manifest.
    pub(super) cautions: Report,
}

/// The prompt of a participant.
#[derive(Debug, Clone, Default)]
pub(super) struct ParticipantPrompt {
    /// The prompt of its persona or operator, followed by its role.
    pub(super) base: BasePrompt,
    /// The playbooks and overlays woven into it; none without persona and operator (K10).
    pub(super) sources: Option<Arc<Sources>>,
    /// The executor that its operator names.
    pub(super) executor: Option<String>,
}

pub(super) fn load(
    environment: &Environment,
    places: &PathOverrides,
    request: &Request,
    host: &Host,
) -> Result<(LoadedRuntime, Workspace), ServiceError> {
    let named = absolute(&environment.directory, &request.path);
    let path = match std::fs::metadata(&named) {
        Ok(found) if found.is_dir() => {
            let found = FILE_NAMES.iter().map(|name| named.join(name)).find(|path| path.is_file());
            found.ok_or_else(|| file_not_found(&request.path.join(FILE_NAMES[0]).display().to_string()))?
        }
        _ => named,
    };
    let root = find_root(environment, request.root.as_deref(), &search_start(environment, &path));
    let manifests = Manifests::open(environment, &root, Refs::Followed)?;
    let loader = manifests.loader(host);
    let location = manifests.location(&path)?;
    let document = match loader.open(&location) {
        OpenResult::Document(document) => document,
        OpenResult::UnknownDoctype(report) => {
            return Err(ServiceError::from_report(ExitClass::Configuration, report));
        }
        OpenResult::Missing => return Err(file_not_found(&request.path.display().to_string())),
        OpenResult::Unreadable(why) => {
            let body = Body::new(format!("cannot read `{}`: {why}", loader.display_name(&location)));
            return Err(ServiceError::configuration(codes::FILE_UNREADABLE, body));
        }
    };
    if document.doctype != Doctype::Runtime {
        let body = Body::new(format!("`{}` is not a runtime manifest", loader.display_name(&location)));
        let help = "begin a runtime manifest with `schema: agentruntimes/v1`";
        return Err(ServiceError::configuration(codes::DOCTYPE_UNKNOWN, body.help(help)));
    }
    let loaded = manifest::load(&loader, &document);
    let Some(runtime) = loaded.value else {
        return Err(ServiceError::from_report(ExitClass::Configuration, loaded.report));
    };
    let mut report = loaded.report;
    let dir = path.parent().unwrap_or(Path::new(".")).to_owned();
    let workspace = workspace::load(environment, places, &dir).map_err(|error| {
        let read = find_outermost(&dir, config_provenance::FILE_NAME);
        config_provenance::explain(error, environment, read.as_deref(), &dir)
    })?;
    let telling = PromptLoader {
        runtime: &runtime.id,
        environment,
        root: &root,
        loader: &loader,
        document: &document,
        location: &location,
        workspace: &workspace,
    };
    // A refused playbook is not woven, and is not an error of the runtime.
    let (mut catalogue, mut cautions) = (None, Report::new());
    let prompts = runtime.participants.iter().enumerate();
    let prompts = prompts
        .map(|(at, one)| telling.participant_prompt(one, at, &mut catalogue, &mut report, &mut cautions))
        .collect();
    cautions.add_source(Arc::clone(&document.shown), Arc::clone(&document.text));
    for (at, participant) in runtime.participants.iter().enumerate() {
        warn_role_path(&loader, &document, &location, participant, at, &mut cautions);
    }
    let elsewhere = external_writes::warn_external_writes(
        &runtime,
        &document,
        &location,
        (&root, &dir),
        &workspace.guard,
        &mut report,
        &mut cautions,
    );
    if cautions.warnings.is_empty() && !cautions.has_refusals() {
        cautions.retain_sources(|_| false);
    }
    if report.has_refusals() {
        return Err(ServiceError::from_report(ExitClass::Configuration, report));
    }
    Ok((
        LoadedRuntime {
            path,
            dir,
            runtime,
            document,
            participant_prompts: prompts,
            elsewhere,
            report,
            cautions,
        },
        workspace,
    ))
}

/// Loads the prompts of participants.
struct PromptLoader<'a> {
    runtime: &'a str,
    environment: &'a Environment,
    root: &'a Path,
    loader: &'a Loader<'a>,
    document: &'a Document,
    location: &'a WorkspacePath,
    workspace: &'a Workspace,
}

impl PromptLoader<'_> {
    /// The prompt of a participant. Reads the playbooks once, for the first participant with an operator.
    fn participant_prompt(
        &self,
        participant: &Participant,
        at: usize,
        catalogue: &mut Option<Catalogue>,
        report: &mut Report,
        cautions: &mut Report,
    ) -> ParticipantPrompt {
        let PromptLoader { loader, location, workspace, .. } = *self;
        let meta = |key: &str| participant.meta.as_ref()?.get(key)?.as_str().map(str::trim);
        let place = |key: &str| participant_place(self.document, at, key);
        let (mut prompt, mut base) = (ParticipantPrompt::default(), BasePrompt::default());
        let mut known: Vec<KnownOperator> = Vec::new();
        if let Some(written) = meta("operator") {
            match operators::load_operator(
                loader,
                location.scope(),
                &operators::full_ref(written, "operators"),
            ) {
                Ok(operating) => {
                    base = operating.base.clone();
                    prompt.executor = operating.operator.runtime.clone();
                    known.push(KnownOperator::new(
                        operating,
                        &workspace.host,
                        &Exceptions::of(workspace, location.scope()),
                    ));
                }
                Err(error) => report.refuse(
                    codes::OPERATOR_UNRESOLVABLE,
                    Body::new(format!("cannot use the operator `{written}`: {}", error.first_message()))
                        .at(place("meta.operator")),
                ),
            }
        }
        if let Some(written) = meta("persona") {
            let reference = operators::full_ref(written, "personas");
            match operators::persona_prompt(loader, location.scope(), &reference) {
                Ok((prompt, ..)) => {
                    // A named persona replaces the persona of the operator.
                    base = prompt;
                    let others =
                        weave::operators_with_persona(loader, location.scope(), &reference, workspace);
                    let new =
                        |other: &KnownOperator| !known.iter().any(|operator| operator.slug == other.slug);
                    let others: Vec<KnownOperator> = others.into_iter().filter(new).collect();
                    known.extend(others);
                }
                Err(error) => report.refuse(
                    codes::OPERATOR_PERSONA_UNRESOLVABLE,
                    Body::new(format!("cannot use the persona `{written}`: {}", error.first_message()))
                        .at(place("meta.persona")),
                ),
            }
        }
        if let Some(role) = participant.role.as_deref().map(str::trim).filter(|role| !role.is_empty()) {
            match role_text(loader, location, role) {
                Ok(text) => base = base.join(BasePrompt::from_plain_text(&text)),
                Err(why) => report.refuse(
                    codes::ROLE_UNRESOLVABLE,
                    Body::new(format!("cannot read the role file `{role}`: {why}")).at(place("role")),
                ),
            }
        }
        prompt.base = base.clone();
        for operator in &mut known {
            operator.subject = operator.subject.clone().with(RUNTIME, self.runtime);
        }
        if !known.is_empty() {
            let catalogue = catalogue.get_or_insert_with(|| {
                let mut catalogue = Catalogue::open(loader, location.scope(), &workspace.ledger);
                cautions.absorb(std::mem::take(&mut catalogue.report));
                catalogue
            });
            let known: Vec<&KnownOperator> = known.iter().collect();
            let (environment, scope) = (self.environment, location.scope());
            let sources = Sources::new(environment, self.root, scope, catalogue, base, &known, cautions);
            prompt.sources = Some(Arc::new(sources));
        }
        prompt
    }
}

/// The place of a key of a participant.
pub(super) fn participant_place(document: &Document, at: usize, key: &str) -> Place {
    let participant = document.root.key("participants").and_then(|all| all.items().get(at));
    let mut node = participant;
    for part in key.split('.').filter(|part| !part.is_empty()) {
        node = node.and_then(|node| node.key(part)).or(node);
    }
    let span = node.map_or(0..0, |node| node.span.clone());
    document.place(span, format!("participants[{at}].{key}"))
}

/// The text of a role: a file without its frontmatter, or the text in the manifest (K9).
fn role_text(loader: &Loader<'_>, location: &WorkspacePath, role: &str) -> Result<String, String> {
    if !manifest::is_role_file(role) {
        return Ok(role.to_owned());
    }
    let at = location.resolve_relative(role).map_err(|_| {
        "it is outside of its workspace or tenant; name a wider workspace with `--root`".to_owned()
    })?;
    let bytes = loader.bytes(&at).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let text = text.trim_start_matches('\u{feff}');
    let body = match frontmatter::split(text) {
        Ok(parts) => text[parts.body].trim(),
        Err(_) => text.trim(),
    };
    Ok(body.to_owned())
}

/// A text that looks like a path is more likely a path without its extension than a role prompt.
fn warn_role_path(
    loader: &Loader<'_>,
    document: &Document,
    location: &WorkspacePath,
    participant: &Participant,
    at: usize,
    cautions: &mut Report,
) {
    let Some(role) = participant.role.as_deref().map(str::trim) else { return };
    let is_path = role.contains('/') && !role.contains(char::is_whitespace);
    if !is_path || manifest::is_role_file(role) {
        return;
    }
    let mut candidates = manifest::ROLE_FILES.iter().map(|end| format!("{role}{end}"));
    let path_in_scope =
        candidates.find(|path| location.resolve_relative(path).is_ok_and(|at| loader.bytes(&at).is_ok()));
    let help = match path_in_scope {
        Some(file) => format!("did you mean `{file}`?"),
        None => format!("a role that names a file ends in {}", manifest::ROLE_FILES.join(", ")),
    };
    let id = &participant.id;
    let message =
        format!("the role `{role}` looks like a path, and is used verbatim as the role prompt of `{id}`");
    cautions.warn(
        codes::ROLE_NOT_A_FILE,
        Body::new(message).at(participant_place(document, at, "role")).help(help),
    );
}
