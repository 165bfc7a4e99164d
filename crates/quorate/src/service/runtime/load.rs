//! Loads a runtime manifest with the role files, operators and personas that it refers to, and composes the prompt of a
//! participant for each turn (K10, B3). Reports writes outside of the workspace, which need a trusted manifest.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use quorate_adapters::{state, substrate};
use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_kernel::clock::Clock;
use quorate_kernel::ports::executor::SideEffect;
use quorate_kernel::turn::{Prompt, PromptSource};
use quorate_ledger::Store;
use quorate_manifest::doctype::Doctype;
use quorate_manifest::document::Document;
use quorate_manifest::frontmatter;
use quorate_manifest::loader::{Loader, OpenResult, Refs};
use quorate_manifest::runtime::{self as manifest, Participant, Runtime};
use quorate_manifest::workspace::WorkspacePath;
use quorate_playbook::bind::RUNTIME;
use quorate_playbook::persona::BasePrompt;
use serde_json::Map;

use super::RuntimeRequest;
use crate::playbook::library::{self, Catalogue, KnownOperator};
use crate::playbook::traits::Exceptions;
use crate::service::compose::{Sources, shadows};
use crate::service::disk::{self, absolute, display_path, entry_exists, find_outermost};
use crate::service::environment::Environment;
use crate::service::error::{Error, ErrorKind};
use crate::service::guard::{Guard, with_suffix};
use crate::service::manifests::{self, Manifests, file_not_found};
use crate::service::overlays::OverlayCache;
use crate::service::weave;
use crate::service::workspace::{self, PathOverrides, Workspace, find_root, search_start};

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
    request: &RuntimeRequest,
) -> Result<(LoadedRuntime, Workspace), Error> {
    let mut named = absolute(&environment.directory, &request.path);
    if !named.exists() {
        let forms = ["runtimes/*.yaml", "runtimes/*"];
        let known = workspace::by_name(environment, request.root.as_deref(), &request.path, &forms);
        named = known.unwrap_or(named);
    }
    let path = match std::fs::metadata(&named) {
        Ok(found) if found.is_dir() => {
            let found = FILE_NAMES.iter().map(|name| named.join(name)).find(|path| path.is_file());
            found.ok_or_else(|| file_not_found(&request.path.join(FILE_NAMES[0]).display().to_string()))?
        }
        _ => named,
    };
    let root = find_root(environment, request.root.as_deref(), &search_start(environment, &path));
    let manifests = Manifests::open(environment, &root, Refs::Followed)?;
    let loader = manifests.loader(&*environment.registries);
    let location = manifests.location(&path)?;
    let document = match loader.open(&location) {
        OpenResult::Document(document) => document,
        OpenResult::UnknownDoctype(report) => {
            return Err(Error::from_report(ErrorKind::Configuration, report));
        }
        OpenResult::Missing => return Err(file_not_found(&request.path.display().to_string())),
        OpenResult::Unreadable(why) => {
            let body = Body::new(format!("cannot read `{}`: {why}", loader.display_name(&location)));
            return Err(Error::configuration(codes::FILE_UNREADABLE, body));
        }
    };
    if document.doctype != Doctype::Runtime {
        let body = Body::new(format!("`{}` is not a runtime manifest", loader.display_name(&location)));
        let help = "begin a runtime manifest with `schema: agentruntimes/v1`";
        return Err(Error::configuration(codes::DOCTYPE_UNKNOWN, body.help(help)));
    }
    let loaded = manifest::load_runtime(&loader, &document);
    let Some(runtime) = loaded.value else {
        return Err(Error::from_report(ErrorKind::Configuration, loaded.report));
    };
    let mut report = loaded.report;
    let dir = path.parent().unwrap_or(Path::new(".")).to_owned();
    let workspace = workspace::load(environment, places, &dir).map_err(|error| {
        let read = find_outermost(&dir, FILE_NAME);
        explain(error, environment, read.as_deref(), &dir)
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
    let elsewhere = warn_external_writes(
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
        return Err(Error::from_report(ErrorKind::Configuration, report));
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
        let mut refuse = |code, message: String, key: &str| {
            report.refuse(code, Body::new(message).at(participant_place(self.document, at, key)));
        };
        let (mut prompt, mut base) = (ParticipantPrompt::default(), BasePrompt::default());
        let mut known: Vec<KnownOperator> = Vec::new();
        if let Some(written) = meta("operator") {
            match library::load_operator(loader, location.scope(), &library::full_ref(written, "operators")) {
                Ok(operating) => {
                    base = operating.base.clone();
                    prompt.executor = operating.operator.runtime.clone();
                    known.push(KnownOperator::new(
                        operating,
                        &workspace.config,
                        &Exceptions::of(workspace, location.scope()),
                    ));
                }
                Err(error) => {
                    let message = format!("cannot use the operator `{written}`: {}", error.first_message());
                    refuse(codes::OPERATOR_UNRESOLVABLE, message, "meta.operator");
                }
            }
        }
        if let Some(written) = meta("persona") {
            let reference = library::full_ref(written, "personas");
            match library::persona_prompt(loader, location.scope(), &reference) {
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
                Err(error) => {
                    let message = format!("cannot use the persona `{written}`: {}", error.first_message());
                    refuse(codes::OPERATOR_PERSONA_UNRESOLVABLE, message, "meta.persona");
                }
            }
        }
        if let Some(role) = participant.role.as_deref().map(str::trim).filter(|role| !role.is_empty()) {
            match role_text(loader, location, role) {
                Ok(text) => base = base.join(BasePrompt::from_plain_text(&text)),
                Err(why) => {
                    refuse(
                        codes::ROLE_UNRESOLVABLE,
                        format!("cannot read the role file `{role}`: {why}"),
                        "role",
                    );
                }
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
            let redactor = &workspace.redaction.redactor;
            let place = (self.root, location.scope());
            let sources = Sources::new(self.environment, redactor, place, catalogue, base, &known, cautions);
            prompt.sources = Some(Arc::new(sources));
        }
        prompt
    }
}

/// The place of a key of a participant.
pub(super) fn participant_place(document: &Document, at: usize, key: &str) -> Place {
    place_in(document, format!("participants[{at}].{key}"))
}

/// The place of the deepest value of a path such as `participants[2].config.timeout_ms` that exists.
pub(super) fn place_in(document: &Document, path: String) -> Place {
    let mut span = 0..0;
    let mut node = &document.root;
    for step in path.split(['.', '[']).map(|step| step.trim_end_matches(']')) {
        let inner = step.parse().map_or_else(|_| node.key(step), |at: usize| node.items().get(at));
        let Some(inner) = inner else { break };
        (node, span) = (inner, inner.span.clone());
    }
    document.place(span, path)
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

/// A prompt that is composed again for each turn.
pub(super) struct ComposedPrompts {
    sources: Arc<Sources>,
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    /// The overlays of all assemblies, which the participants share.
    overlays: Arc<OverlayCache>,
    /// The last recorded prompt.
    last_recorded: Mutex<Option<String>>,
}

impl ComposedPrompts {
    /// `store` is the ledger of the overlays and of the recorded compositions.
    pub(super) fn new(
        sources: Arc<Sources>,
        store: Arc<Store>,
        clock: Arc<dyn Clock>,
        overlays: Arc<OverlayCache>,
    ) -> Self {
        ComposedPrompts { sources, store, clock, overlays, last_recorded: Mutex::default() }
    }

    fn is_recorded(&self, prompt: &str) -> bool {
        self.last_recorded.lock().unwrap_or_else(PoisonError::into_inner).as_deref() == Some(prompt)
    }
}

#[async_trait]
impl PromptSource for ComposedPrompts {
    async fn prompt(&self) -> Result<Prompt, String> {
        let overlays =
            self.overlays.holding(&self.store, None).await.map_err(|error| error.first_message())?;
        let (advice, now_ms) = (self.sources.overlays_for_operators(overlays), self.clock.now_ms());
        let composed = self.sources.compose(&advice, now_ms);
        let hashes = self.sources.hashes(&composed, &advice);
        let mut extra_fields = Map::new();
        if !composed.shadows.is_empty() {
            extra_fields.insert("shadows".to_owned(), shadows(&composed.shadows));
        }
        if !self.is_recorded(&composed.woven.prompt) {
            self.sources
                .record(&self.store, &composed, now_ms)
                .await
                .map_err(|error| error.first_message())?;
            *self.last_recorded.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(composed.woven.prompt.clone());
        }
        Ok(Prompt { text: composed.woven.prompt.into(), woven_sha256: hashes, extra_fields })
    }
}

/// The name of the file, which help texts about missing settings contain.
pub(super) const FILE_NAME: &str = "quorate.toml";

/// Adds the path of the `quorate.toml` that was `read`, and of a nearer one that was not, to the help of each refusal that
/// mentions the file.
pub(super) fn explain(mut error: Error, environment: &Environment, read: Option<&Path>, dir: &Path) -> Error {
    let Some(read) = read else { return error };
    let nearer = dir.ancestors().map(|dir| dir.join(FILE_NAME)).find(|path| entry_exists(path));
    let which = match nearer.filter(|path| path != read) {
        Some(nearer) => format!(
            "Quorate reads {}, the outermost one, and not {}",
            display_path(environment, read),
            display_path(environment, &nearer)
        ),
        None => format!("Quorate reads {}", display_path(environment, read)),
    };
    for refusal in &mut error.report.refusals {
        if let Some(help) = refusal.body.help.as_mut().filter(|help| help.contains(FILE_NAME)) {
            help.push_str("; ");
            help.push_str(&which);
        }
    }
    error
}

/// The kinds of a port that write to a path, and the key of the path in their block.
type PathKeys = [(&'static str, &'static str); 2];

const SUBSTRATES: PathKeys = [(substrate::file::KIND, "path"), (substrate::sqlite::KIND, "path")];
const STATES: PathKeys = [(state::fs::KIND, "dir"), (state::sqlite::KIND, "path")];

/// The suffixes of the files of a journal and of a database.
const BESIDE: [&str; 5] = ["", ".lock", "-wal", "-shm", "-journal"];

/// Warns about writes outside of the workspace and returns them, since running the manifest then requires trust. Refuses a
/// link out of the workspace, because its target can change while the manifest does not.
pub(super) fn warn_external_writes(
    runtime: &Runtime,
    document: &Document,
    location: &WorkspacePath,
    (root, dir): (&Path, &Path),
    guard: &Guard,
    report: &mut Report,
    cautions: &mut Report,
) -> Vec<SideEffect> {
    let own_state = state::fs::default_dir(&runtime.id);
    let substrate = ("substrate", Some(&runtime.substrate), SUBSTRATES, "the conversation", None);
    let state = ("state", runtime.state.as_ref(), STATES, "what participants remember", Some(&*own_state));
    let mut acts = Vec::new();
    for (port, adapter, writes, what, fallback) in [substrate, state] {
        let written = match adapter {
            Some(adapter) => writes.iter().find(|(kind, _)| *kind == adapter.kind).and_then(|(_, key)| {
                let path = adapter.settings.get(*key).and_then(|path| path.as_str());
                Some((*key, path.or(fallback)?))
            }),
            None => fallback.map(|path| ("dir", path)),
        };
        let Some((key, path)) = written else { continue };
        let target = dir.join(path);
        let entry = document.root.key(port).and_then(|block| block.entry(key));
        let at = || {
            let span = entry.map_or(0..0, |entry| entry.key_span.clone());
            document.place(span, format!("{port}.{key}"))
        };
        // A journal and a database have files beside them.
        let written = BESIDE.iter().map(|end| with_suffix(&target, end));
        if let Some(why) = written.into_iter().find_map(|file| guard.occupant(&file, None)) {
            let body = Body::new(format!("cannot keep {what} at `{path}`: {why}")).at(at());
            report.refuse(codes::FILE_UNWRITABLE, body.help("name another path, which nothing else uses"));
            continue;
        }
        let by_name = !is_in_scope(root, location, path);
        if !by_name && disk::is_inside(root, &target) {
            continue;
        }
        let target = disk::canonical_or_new(&target);
        let at = at();
        if !by_name {
            let message = format!("`{path}` leads out of the workspace by a link, to {}", target.display());
            let help = "remove the link, or name its target in the manifest and trust the manifest";
            report.refuse(codes::PATH_OUTSIDE, Body::new(message).at(at).help(help));
            continue;
        }
        let body = Body::new(format!("`{path}` is outside of the workspace, and {what} is written there"))
            .at(at)
            .help("keep it in the workspace, whose root is the directory of the outermost quorate.toml");
        cautions.warn(codes::OUTSIDE_WORKSPACE, body);
        acts.push(SideEffect::new(format!("keep {what} at {}", target.display())));
    }
    acts
}

/// The databases of conversation and states that do not exist yet.
pub(super) fn missing_databases(runtime: &Runtime, dir: &Path) -> Vec<PathBuf> {
    let ports =
        [(Some(&runtime.substrate), substrate::sqlite::KIND), (runtime.state.as_ref(), state::sqlite::KIND)];
    let named = ports.into_iter().filter_map(|(adapter, kind)| {
        let adapter = adapter.filter(|adapter| adapter.kind == kind)?;
        Some(dir.join(adapter.settings.get("path")?.as_str()?))
    });
    named.filter(|path| !path.exists()).collect()
}

/// Whether a relative path of a manifest is in the manifest's scope, or an absolute one in the workspace.
fn is_in_scope(root: &Path, location: &WorkspacePath, path: &str) -> bool {
    if Path::new(path).is_absolute() {
        manifests::workspace_location(root, Path::new(path)).is_ok()
    } else {
        location.resolve_relative(path).is_ok()
    }
}
