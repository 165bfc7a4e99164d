//! Loads a runtime manifest with the role files, operators and personas that it refers to, and composes the prompt of a
//! participant for each turn (K10, B3). Reports writes outside of the workspace, which need a trusted manifest.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use quorate_adapters::{state, substrate};
use quorate_diagnostics::{Body, Place, RefusalCode, Report, codes};
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
use crate::service::guard::with_suffix;
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
    let dir = path.parent().unwrap_or(Path::new(".")).to_owned();
    let workspace = workspace::load(environment, places, &dir).map_err(|error| {
        let read = find_outermost(&dir, FILE_NAME);
        explain(error, environment, read.as_deref(), &dir)
    })?;
    let mut loading = RuntimeLoader {
        runtime: &runtime,
        environment,
        root: &root,
        dir: &dir,
        loader: &loader,
        document: &document,
        location: &location,
        workspace: &workspace,
        catalogue: None,
        report: loaded.report,
        cautions: Report::new(),
    };
    let participants = || runtime.participants.iter().enumerate();
    let participant_prompts = participants().map(|(at, one)| loading.participant_prompt(at, one)).collect();
    loading.cautions.add_source(Arc::clone(&document.shown), Arc::clone(&document.text));
    participants().for_each(|(at, one)| loading.warn_role_path(at, one));
    let elsewhere = loading.warn_external_writes();
    let RuntimeLoader { report, mut cautions, .. } = loading;
    if cautions.warnings.is_empty() && !cautions.has_refusals() {
        cautions.retain_sources(|_| false);
    }
    if report.has_refusals() {
        return Err(Error::from_report(ErrorKind::Configuration, report));
    }
    Ok((
        LoadedRuntime { path, dir, runtime, document, participant_prompts, elsewhere, report, cautions },
        workspace,
    ))
}

/// Loads what a manifest refers to, and reports what is wrong with it.
struct RuntimeLoader<'a> {
    runtime: &'a Runtime,
    environment: &'a Environment,
    root: &'a Path,
    dir: &'a Path,
    loader: &'a Loader<'a>,
    document: &'a Document,
    location: &'a WorkspacePath,
    workspace: &'a Workspace,
    /// The playbooks, once a participant has an operator.
    catalogue: Option<Catalogue>,
    report: Report,
    /// Warnings for a process that runs the manifest. A refused playbook is not woven, and is not an error of the runtime.
    cautions: Report,
}

impl RuntimeLoader<'_> {
    fn refuse(&mut self, code: RefusalCode, message: String, at: usize, key: &str) {
        self.report.refuse(code, Body::new(message).at(participant_place(self.document, at, key)));
    }

    /// The prompt of a participant.
    fn participant_prompt(&mut self, at: usize, participant: &Participant) -> ParticipantPrompt {
        let RuntimeLoader { loader, workspace, .. } = *self;
        let scope = self.location.scope();
        let meta = |key: &str| participant.meta.as_ref()?.get(key)?.as_str().map(str::trim);
        let (mut prompt, mut base) = (ParticipantPrompt::default(), BasePrompt::default());
        let mut known: Vec<KnownOperator> = Vec::new();
        if let Some(written) = meta("operator") {
            match library::load_operator(loader, scope, &library::full_ref(written, "operators")) {
                Ok(operating) => {
                    base = operating.base.clone();
                    prompt.executor = operating.operator.runtime.clone();
                    let exceptions = Exceptions::of(workspace, scope);
                    known.push(KnownOperator::new(operating, &workspace.config, &exceptions));
                }
                Err(error) => {
                    let message = format!("cannot use the operator `{written}`: {}", error.first_message());
                    self.refuse(codes::OPERATOR_UNRESOLVABLE, message, at, "meta.operator");
                }
            }
        }
        if let Some(written) = meta("persona") {
            let reference = library::full_ref(written, "personas");
            match library::persona_prompt(loader, scope, &reference) {
                Ok((prompt, ..)) => {
                    // A named persona replaces the persona of the operator.
                    base = prompt;
                    let mut others = weave::operators_with_persona(loader, scope, &reference, workspace);
                    others.retain(|other| !known.iter().any(|operator| operator.slug == other.slug));
                    known.extend(others);
                }
                Err(error) => {
                    let message = format!("cannot use the persona `{written}`: {}", error.first_message());
                    self.refuse(codes::OPERATOR_PERSONA_UNRESOLVABLE, message, at, "meta.persona");
                }
            }
        }
        if let Some(role) = participant.role.as_deref().map(str::trim).filter(|role| !role.is_empty()) {
            match role_text(loader, self.location, role) {
                Ok(text) => base = base.join(BasePrompt::from_plain_text(&text)),
                Err(why) => {
                    let message = format!("cannot read the role file `{role}`: {why}");
                    self.refuse(codes::ROLE_UNRESOLVABLE, message, at, "role");
                }
            }
        }
        prompt.base = base.clone();
        for operator in &mut known {
            operator.subject = operator.subject.clone().with(RUNTIME, &self.runtime.id);
        }
        if !known.is_empty() {
            let cautions = &mut self.cautions;
            let catalogue = self.catalogue.get_or_insert_with(|| {
                let mut catalogue = Catalogue::open(loader, scope, &workspace.ledger);
                cautions.absorb(std::mem::take(&mut catalogue.report));
                catalogue
            });
            let known: Vec<&KnownOperator> = known.iter().collect();
            let (redactor, place) = (&workspace.redaction.redactor, (self.root, scope));
            let sources = Sources::new(self.environment, redactor, place, catalogue, base, &known, cautions);
            prompt.sources = Some(Arc::new(sources));
        }
        prompt
    }

    /// A text that looks like a path is more likely a path without its extension than a role prompt.
    fn warn_role_path(&mut self, at: usize, participant: &Participant) {
        let Some(role) = participant.role.as_deref().map(str::trim) else { return };
        let is_path = role.contains('/') && !role.contains(char::is_whitespace);
        if !is_path || manifest::is_role_file(role) {
            return;
        }
        let is_file = |path: &String| {
            self.location.resolve_relative(path).is_ok_and(|at| self.loader.bytes(&at).is_ok())
        };
        let help = match manifest::ROLE_FILES.iter().map(|end| format!("{role}{end}")).find(is_file) {
            Some(file) => format!("did you mean `{file}`?"),
            None => format!("a role that names a file ends in {}", manifest::ROLE_FILES.join(", ")),
        };
        let id = &participant.id;
        let message =
            format!("the role `{role}` looks like a path, and is used verbatim as the role prompt of `{id}`");
        let body = Body::new(message).at(participant_place(self.document, at, "role")).help(help);
        self.cautions.warn(codes::ROLE_NOT_A_FILE, body);
    }

    /// Warns about writes outside of the workspace and returns them, since running the manifest then requires trust. Refuses
    /// a link out of the workspace, because its target can change while the manifest does not.
    fn warn_external_writes(&mut self) -> Vec<SideEffect> {
        let (runtime, root) = (self.runtime, self.root);
        let own_state = state::fs::default_dir(&runtime.id);
        let substrate = ("substrate", Some(&runtime.substrate), SUBSTRATES, "the conversation", None);
        let state =
            ("state", runtime.state.as_ref(), STATES, "what participants remember", Some(&*own_state));
        let mut acts = Vec::new();
        for (port, adapter, writes, what, fallback) in [substrate, state] {
            let written = match adapter {
                Some(adapter) => {
                    writes.iter().find(|(kind, _)| *kind == adapter.kind).and_then(|(_, key)| {
                        let path = adapter.settings.get(*key).and_then(|path| path.as_str());
                        Some((*key, path.or(fallback)?))
                    })
                }
                None => fallback.map(|path| ("dir", path)),
            };
            let Some((key, path)) = written else { continue };
            let target = self.dir.join(path);
            let entry = self.document.root.key(port).and_then(|block| block.entry(key));
            let span = entry.map_or(0..0, |entry| entry.key_span.clone());
            let at = self.document.place(span, format!("{port}.{key}"));
            // A journal and a database have files beside them.
            let mut written = BESIDE.iter().map(|end| with_suffix(&target, end));
            if let Some(why) = written.find_map(|file| self.workspace.guard.occupant(&file, None)) {
                let body = Body::new(format!("cannot keep {what} at `{path}`: {why}")).at(at);
                let help = "name another path, which nothing else uses";
                self.report.refuse(codes::FILE_UNWRITABLE, body.help(help));
                continue;
            }
            let by_name = !is_in_scope(root, self.location, path);
            if !by_name && disk::is_inside(root, &target) {
                continue;
            }
            let target = disk::canonical_or_new(&target);
            if !by_name {
                let message =
                    format!("`{path}` leads out of the workspace by a link, to {}", target.display());
                let help = "remove the link, or name its target in the manifest and trust the manifest";
                self.report.refuse(codes::PATH_OUTSIDE, Body::new(message).at(at).help(help));
                continue;
            }
            let body =
                Body::new(format!("`{path}` is outside of the workspace, and {what} is written there"));
            let help = "keep it in the workspace, whose root is the directory of the outermost quorate.toml";
            self.cautions.warn(codes::OUTSIDE_WORKSPACE, body.at(at).help(help));
            acts.push(SideEffect::new(format!("keep {what} at {}", target.display())));
        }
        acts
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

/// A prompt that is composed again for each turn.
pub(super) struct ComposedPrompts {
    pub(super) sources: Arc<Sources>,
    /// The ledger of the overlays and of the recorded compositions.
    pub(super) store: Arc<Store>,
    pub(super) clock: Arc<dyn Clock>,
    /// The overlays of all assemblies, which the participants share.
    pub(super) overlays: Arc<OverlayCache>,
    /// The last recorded prompt.
    pub(super) last_recorded: Mutex<Option<String>>,
}

impl ComposedPrompts {
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
