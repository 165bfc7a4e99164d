//! Manifests: checking, formatting, resolving and validating them, which calls no member and runs no command.
//!
//! The modularity scan (C7) checks that no prompt that produces artifacts names the council that reviews them, so that
//! either can be removed. The agent that routes artifacts to the council is exempt; the caller names it.

mod format;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use globset::GlobBuilder;
use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_manifest::assembly::{Mode, ResolvedAssembly, Signing};
use quorate_manifest::check::{self, Deduplicator, Discovery, FileOutcome};
use quorate_manifest::doctype::Doctype;
use quorate_manifest::playbook::{FOLDER, HISTORY_SUFFIX};
use quorate_manifest::tree::{emit, yaml};
use quorate_manifest::workspace::{Scope, WorkspacePath};
use quorate_manifest::{config, frontmatter};
use quorate_protocol::answers::Schema;
use quorate_protocol::assembly::{describe_operators, operator_ids};

pub use quorate_manifest::loader::Refs;
pub use quorate_manifest::tree::MAX_BYTES;

pub use super::service::resolve::{FieldOrigin, FieldValue, Resolution, ResolveRequest};
pub use super::view::resolution::origins;

use super::builder::Quorate;
use super::error::{Error, ErrorKind};
use super::playbook::inspect;
use super::playbook::library::Library;
use super::service::artifact::{self, repository_path};
use super::service::convene::plan::rehearse;
use super::service::disk::{self, absolute};
use super::service::environment::Environment;
use super::service::executor::{Executors, NamedExecutor, SelectedBy};
use super::service::keys::WorkspaceKeys;
use super::service::manifests::{self, Manifests, council_mentions, file_not_found};
use super::service::resolve::resolve;
use super::service::trust::requests::Trust;
use super::service::workspace::{
    self, FoundFile, PathOverrides, Workspace, find_root, load_council, search_start,
};
use super::service::{review, runtime, signer};
use format::{FormatResult, format_bytes, format_file};

/// What to check.
#[derive(Debug, Clone, Default)]
pub struct CheckRequest {
    /// Files, directories or globs.
    pub paths: Vec<PathBuf>,
    /// A text to check as well, as a file named `-` in the workspace's root.
    pub text: Option<Vec<u8>>,
    /// The workspace's root; `None` searches for it.
    pub root: Option<PathBuf>,
    /// Whether to follow refs.
    pub refs: Refs,
}

impl CheckRequest {
    /// Checks these files, directories and globs.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> CheckRequest {
        CheckRequest { paths: paths.into_iter().map(Into::into).collect(), ..CheckRequest::default() }
    }
}

/// What a check found.
#[derive(Debug, Default)]
pub struct CheckOutcome {
    /// Manifests checked.
    pub files: usize,
    /// Files found that are not manifests.
    pub skipped: usize,
    /// Files that cannot be read.
    pub unreadable: usize,
    /// For each advisory assembly, the operators whose prompts its advice goes into.
    pub notes: Vec<String>,
    /// Refusals and warnings.
    pub report: Report,
}

impl CheckOutcome {
    /// Its numbers, on one line.
    pub fn summary(&self) -> String {
        let skipped = match self.skipped {
            0 => String::new(),
            skipped => format!(", {skipped} passed over"),
        };
        format!(
            "{} checked{skipped}: {}, {}",
            count_of(self.files, "file"),
            count_of(self.report.refusals.len(), "refusal"),
            count_of(self.report.warnings.len(), "warning")
        )
    }
}

fn count_of(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// What a scan for the council's name found.
#[derive(Debug)]
pub struct ScanOutcome {
    /// Scanned files with instructions for agents.
    pub files: usize,
    /// Files of exempt agents.
    pub exempt: usize,
    /// The places that name the council, as refusals.
    pub report: Report,
}

impl ScanOutcome {
    /// Its numbers, on one line.
    pub fn summary(&self) -> String {
        let exempt = match self.exempt {
            0 => String::new(),
            exempt => format!(", {exempt} exempt"),
        };
        let hits = count_of(self.report.refusals.len(), "reference");
        format!("{} scanned{exempt}, {hits}", count_of(self.files, "file"))
    }
}

/// What to format.
#[derive(Debug, Clone, Default)]
pub struct FormatRequest {
    /// Files, directories or globs.
    pub paths: Vec<PathBuf>,
    /// Only list the files that would change.
    pub dry_run: bool,
}

/// What was formatted.
#[derive(Debug, Default)]
pub struct FormatOutcome {
    /// Manifests read.
    pub files: usize,
    /// Manifests that were, or would be, changed.
    pub changed: Vec<String>,
    /// Files that cannot be parsed as manifests.
    pub report: Report,
}

/// Formats the text of one manifest: canonical key order and spacing; comments stay.
///
/// # Errors
/// If it is not a manifest, or cannot be parsed.
///
/// ```
/// let text = quorate::manifests::format_text(b"name: ciso\nschema: persona/v1\n".to_vec())?;
/// assert_eq!(text, "schema: persona/v1\nname: ciso\n");
/// # Ok::<(), quorate::Error>(())
/// ```
pub fn format_text(text: Vec<u8>) -> Result<String, Error> {
    match format_bytes("-", "-", text) {
        FormatResult::Text(text) => Ok(text),
        FormatResult::NotFormattable => Err(Error::new(
            ErrorKind::Refused,
            codes::DOCTYPE_UNKNOWN,
            Body::new("the type of this text is unknown"),
        )),
        FormatResult::Broken(report) => Err(Error::from_report(ErrorKind::Refused, report)),
    }
}

impl Quorate {
    /// Checks manifests and configuration files: files, or directories with everything below them. Refusals are in the
    /// outcome's report, not an error.
    ///
    /// # Errors
    /// If a path does not exist or cannot be read.
    ///
    /// ```
    /// use quorate::Quorate;
    /// use quorate::manifests::CheckRequest;
    ///
    /// let dir = tempfile::tempdir()?;
    /// std::fs::write(dir.path().join("ASSEMBLY.md"), "---\nschema: assembly.workspace/v1\nmode: votng\n---\n")?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let checked = quorate.check(CheckRequest::new(["ASSEMBLY.md"]))?;
    /// assert!(checked.report.refusals.iter().any(|refusal| refusal.body.message.contains("votng")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(&self, request: CheckRequest) -> Result<CheckOutcome, Error> {
        let paths = request.paths.into_iter().map(|path| self.named_path(path)).collect::<Result<_, _>>()?;
        let (environment, request) = (&self.environment, &CheckRequest { paths, ..request });
        let mut outcome = CheckOutcome::default();
        let mut deduplicator = Deduplicator::default();
        for work in collect_files(environment, &request.paths, request.root.as_deref())? {
            check_workspace(environment, request, &work, None, &mut outcome, &mut deduplicator)?;
        }
        if let Some(bytes) = request.text.clone() {
            let root = find_root(environment, request.root.as_deref(), &environment.directory);
            let work = WorkspaceFiles { root, files: BTreeMap::new() };
            check_workspace(environment, request, &work, Some(bytes), &mut outcome, &mut deduplicator)?;
        }
        Ok(outcome)
    }

    /// Formats manifests: canonical key order and spacing; comments stay. The meaning of a file never changes.
    ///
    /// # Errors
    /// If a path does not exist, or a file cannot be written.
    ///
    /// ```
    /// use quorate::Quorate;
    /// use quorate::manifests::FormatRequest;
    ///
    /// let dir = tempfile::tempdir()?;
    /// std::fs::write(dir.path().join("PERSONA.md"), "---\nname: ciso\nschema: persona/v1\n---\n")?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let formatted = quorate.format(FormatRequest { paths: vec![".".into()], dry_run: true })?;
    /// assert_eq!(formatted.changed, ["PERSONA.md"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn format(&self, request: FormatRequest) -> Result<FormatOutcome, Error> {
        let paths =
            request.paths.into_iter().map(|path| self.named_path(path)).collect::<Result<Vec<_>, _>>()?;
        let environment = &self.environment;
        let mut outcome = FormatOutcome::default();
        for work in collect_files(environment, &paths, None)? {
            for (location, named) in &work.files {
                let path = work.root.join(location.workspace_relative());
                format_file(environment, (&work.root, &path), *named, request.dry_run, &mut outcome)?;
            }
        }
        Ok(outcome)
    }

    /// Scans the prompts, operators, personas and playbooks below a directory for words that name the council, except
    /// those in a folder with the name of an exempt agent: producers of artifacts should not know their reviewers.
    ///
    /// # Errors
    /// If the directory or a file cannot be read, an exempt agent has no file, or no file instructs an agent.
    ///
    /// ```
    /// use quorate::Quorate;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let agent = dir.path().join("agents/writer");
    /// std::fs::create_dir_all(&agent)?;
    /// std::fs::write(agent.join("prompt.md"), "Write plainly, or the agent-council holds it.\n")?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let scanned = quorate.scan_modularity(".".into(), &[])?;
    /// assert_eq!(scanned.summary(), "1 file scanned, 1 reference");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scan_modularity(&self, directory: PathBuf, exempt: &[String]) -> Result<ScanOutcome, Error> {
        let shown = self.named_path(directory)?;
        let dir = self.environment.directory.join(&shown);
        let found = disk::walk(&dir).map_err(|error| {
            let body = Body::new(format!("cannot read {}: {error}", shown.display()));
            match error.kind() {
                std::io::ErrorKind::NotFound => Error::not_found(codes::ARTIFACT_MISSING, body),
                _ => Error::configuration(codes::ARTIFACT_UNREADABLE, body),
            }
        })?;
        let mut scanned = ScanOutcome { files: 0, exempt: 0, report: Report::new() };
        let mut unseen: BTreeSet<&str> = exempt.iter().map(String::as_str).collect();
        let above = names_of(&dir);
        for entry in found {
            let relative = entry.path.strip_prefix(&dir).unwrap_or(&entry.path);
            // The directory may itself be `agents` or `playbooks`, or lie in one.
            let placed = above.join(relative);
            if !is_agent_prompt(&placed) {
                continue;
            }
            let folder = placed.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
            if let Some(agent) = exempt.iter().find(|agent| **agent == folder) {
                unseen.remove(agent.as_str());
                scanned.exempt += 1;
                continue;
            }
            scanned.files += 1;
            let shown = if relative.as_os_str().is_empty() { shown.to_owned() } else { shown.join(relative) };
            let unreadable = |reason: String| {
                let body = Body::new(format!("cannot read {}: {reason}", shown.display()));
                Error::configuration(codes::ARTIFACT_UNREADABLE, body)
            };
            let bytes = disk::read_up_to(&entry.path, artifact::MAX_BYTES)
                .map_err(|error| unreadable(error.to_string()))?;
            if bytes.len() as u64 > artifact::MAX_BYTES {
                return Err(unreadable(format!("it has more than {} bytes", artifact::MAX_BYTES)));
            }
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let file = shown.display().to_string();
            // Agents see only the body of a playbook; of other files, they see everything but `metadata`.
            let hidden_span = match frontmatter::split(&text) {
                Ok(parts) if is_playbook(&placed) => 0..parts.body.start,
                Ok(parts) => metadata_span(&text[..parts.body.start]),
                Err(_) => 0..0,
            };
            for (hit, start) in council_mentions(&text).filter(|(_, start)| !hidden_span.contains(start)) {
                let span = start..start + hit.len();
                let place = Place { file: file.as_str().into(), span, path: String::new() };
                let body = Body::new(format!("a producer's prompt names its reviewers: `{hit}`"));
                scanned.report.refuse(
                    codes::MODULARITY,
                    body.at(place)
                        .help("move the words to the component that routes artifacts to the review"),
                );
            }
            scanned.report.add_source(file, text);
        }
        if let Some(agent) = unseen.first() {
            let body = Body::new(format!("the exempt agent `{agent}` has no file below {}", shown.display()));
            let help = "pass the name of the agent's folder, as in `agents/<name>/prompt.md`";
            return Err(Error::not_found(codes::ARTIFACT_MISSING, body.help(help)));
        }
        if scanned.files == 0 {
            let body = Body::new(format!("no file below {} instructs an agent", shown.display()));
            let help = "pass a directory with `agents/*/prompt.md`, OPERATOR.md, PERSONA.md or playbooks";
            return Err(Error::not_found(codes::ARTIFACT_MISSING, body.help(help)));
        }
        Ok(scanned)
    }

    /// Names the files of diagnostics from the root of their repository, as the formats of code hosts demand.
    ///
    /// ```
    /// use quorate::Quorate;
    /// use quorate::manifests::CheckRequest;
    ///
    /// let dir = tempfile::tempdir()?;
    /// std::fs::create_dir_all(dir.path().join("team/.git"))?;
    /// std::fs::write(dir.path().join("team/ASSEMBLY.md"), "---\nschema: assembly.workspace/v1\n---\n")?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let mut report = quorate.check(CheckRequest::new(["team"]))?.report;
    /// quorate.name_for_code_hosts(&mut report);
    /// let place = report.refusals[0].body.place.as_ref().expect("a file is refused");
    /// assert_eq!(&*place.file, "ASSEMBLY.md");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name_for_code_hosts(&self, report: &mut Report) {
        report.rename_files(|file| repository_path(&self.environment.directory, Path::new(file)));
    }

    /// Loads an assembly as `convene` would: resolves and merges its chain, enforces inherited limits, and follows its
    /// refs. AIP-24 calls this `defineAssemblyWorkspace`. The path is an `ASSEMBLY.md`, or the directory that holds it.
    ///
    /// # Errors
    /// Every problem of the assembly, at once.
    ///
    /// ```
    /// use quorate::manifests::ResolveRequest;
    /// use quorate::{ErrorKind, Quorate};
    ///
    /// let dir = tempfile::tempdir()?;
    /// std::fs::write(dir.path().join("quorate.toml"), "strict_chain = true\n")?;
    /// std::fs::write(
    ///     dir.path().join("ASSEMBLY.md"),
    ///     "---\n\
    ///      schema: assembly.workspace/v1\n\
    ///      name: release-board\n\
    ///      title: Release Board\n\
    ///      description: Decides what ships.\n\
    ///      version: 1.0.0\n\
    ///      mode: voting\n\
    ///      members: [{id: ciso, persona: ws://personas/ciso, role: Security}]\n\
    ///      ---\n",
    /// )?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// // The persona of the one member does not exist, so the assembly is refused.
    /// let refused = quorate.resolve(ResolveRequest::new(".")).unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::Refused);
    /// assert_eq!(refused.code(), "assembly_member_persona_unresolvable");
    ///
    /// std::fs::create_dir_all(dir.path().join("personas/ciso"))?;
    /// std::fs::write(
    ///     dir.path().join("personas/ciso/PERSONA.md"),
    ///     "---\nschema: persona/v1\nname: ciso\ntitle: CISO\ndescription: Looks for holes.\nversion: 1.0.0\n---\n",
    /// )?;
    /// let board = quorate.resolve(ResolveRequest::new("."))?.resolved;
    /// assert_eq!((board.name.as_str(), board.members.len()), ("release-board", 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resolve(&self, request: ResolveRequest) -> Result<Resolution, Error> {
        let request = match &self.root {
            Some(confining) => {
                let (path, root) = confining.manifest(&self.environment, &request.path)?;
                ResolveRequest { path, root: Some(root), ..request }
            }
            None => request,
        };
        resolve(&self.environment, &request, &*self.environment.registries)
    }

    /// Checks that an assembly conforms to the public guide's handshake: the manifest fits its schema, its chain
    /// resolves, the one-way switches hold, its consumers, personas and refs exist, its rules are known and name
    /// members, loading it twice gives the same, and a rehearsal of its synthesis on made-up answers terminates.
    /// Returns the warnings.
    ///
    /// # Errors
    /// The refusals.
    ///
    /// ```
    /// use quorate::Quorate;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let refused = quorate.validate("no/such/assembly").unwrap_err();
    /// assert!(refused.to_string().contains("does not exist"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn validate(&self, path: impl AsRef<Path>) -> Result<Report, Error> {
        let read = || self.resolve(ResolveRequest::new(path.as_ref()));
        let (first, again) = (read()?, read()?);
        let text = emit(&first.resolved.chain.merged);
        let rehearsed = rehearse(&first.resolved);
        let is_stable = text == emit(&again.resolved.chain.merged)
            && yaml::parse(&text).0.is_some_and(|read| emit(&read) == text);
        let refused = |code, body| Err(Error::new(ErrorKind::Refused, code, body));
        match rehearsed {
            Err(why) => refused(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, Body::new(why)),
            Ok(_) if !is_stable => {
                let why = "the manifest changed while it was being read; try again";
                refused(codes::ASSEMBLY_WORKSPACE_INVALID, Body::new(why))
            }
            Ok(_) => Ok(first.report),
        }
    }
}

/// A workspace's root, and the files to check below it.
struct WorkspaceFiles {
    root: PathBuf,
    files: BTreeMap<WorkspacePath, Discovery>,
}

fn check_workspace(
    environment: &Environment,
    request: &CheckRequest,
    work: &WorkspaceFiles,
    stdin: Option<Vec<u8>>,
    outcome: &mut CheckOutcome,
    deduplicator: &mut Deduplicator,
) -> Result<(), Error> {
    let manifests = Manifests::open(environment, &work.root, request.refs)?;
    deduplicator.add(manifests.report.clone(), &mut outcome.report);
    let loader = manifests.loader(&*environment.registries);
    let locations: Vec<WorkspacePath> = work.files.keys().cloned().collect();
    check::register_planned(&loader, &locations);
    let mut take = |checked: FileOutcome, location: &WorkspacePath| -> Result<(), Error> {
        match checked {
            FileOutcome::Skipped => outcome.skipped += 1,
            FileOutcome::Missing => return Err(file_not_found(&loader.display_name(location))),
            FileOutcome::Unreadable(report) => {
                outcome.unreadable += 1;
                deduplicator.add(report, &mut outcome.report);
            }
            FileOutcome::Standalone(doctype) => {
                outcome.files += 1;
                let path = work.root.join(location.workspace_relative());
                let report = check_standalone(
                    environment,
                    doctype,
                    (&path, &loader.display_name(location)),
                    &work.root,
                );
                deduplicator.add(report, &mut outcome.report);
            }
            FileOutcome::Assembly(report, resolved) => {
                outcome.files += 1;
                deduplicator.add(report, &mut outcome.report);
                let Some(resolved) = resolved.filter(|_| request.refs == Refs::Followed) else {
                    return Ok(());
                };
                if resolved.mode == Mode::Advisory {
                    let advice = describe_operators(&operator_ids(&resolved));
                    outcome.notes.push(format!("{}: advice {advice}", loader.display_name(location)));
                }
                let path = work.root.join(location.workspace_relative());
                deduplicator.add(signing_warnings(environment, &path, &resolved), &mut outcome.report);
            }
            FileOutcome::Checked(doctype, report) => {
                outcome.files += 1;
                let runs = doctype == Doctype::Runtime && !report.has_refusals();
                deduplicator.add(report, &mut outcome.report);
                if runs && request.refs == Refs::Followed && work.files.contains_key(location) {
                    // Only the registry knows which kinds exist and what each reads.
                    let path = work.root.join(location.workspace_relative());
                    let report = runtime::inspect(environment, &path, &work.root);
                    deduplicator.add(report, &mut outcome.report);
                }
            }
        }
        Ok(())
    };
    for (location, named) in &work.files {
        let checked = check::check(&loader, location, *named);
        // Only assemblies are kept: many views share few parents. Other documents are read again.
        if !matches!(checked, FileOutcome::Assembly(..)) {
            loader.forget(location);
        }
        take(checked, location)?;
    }
    if let Some(bytes) = stdin {
        let location = WorkspacePath::new("-").map_err(|_| file_not_found("-"))?;
        take(check::check_bytes(&loader, &location, bytes), &location)?;
    }
    if request.refs == Refs::Followed {
        // If the playbooks' folder is gone, the ledger may still have playbooks for the operators.
        let has_playbooks = |location: &&WorkspacePath| {
            is_below(location, FOLDER)
                || is_below(location, "operators")
                    && !work.root.join(location.scope().folder()).join(FOLDER).is_dir()
        };
        let mut scopes: Vec<&Scope> =
            work.files.keys().filter(has_playbooks).map(WorkspacePath::scope).collect();
        scopes.dedup();
        for scope in scopes {
            let root = work.root.join(scope.folder());
            let library = Library::open(environment, &PathOverrides::default(), Some(&root))?;
            let is_checked = |location: &WorkspacePath| work.files.contains_key(location);
            deduplicator.add(inspect::findings(&library, &is_checked), &mut outcome.report);
        }
    }
    Ok(())
}

/// The problems that would keep `convene` from signing a run of the assembly at this path, in the workspace that it
/// would use.
fn signing_warnings(environment: &Environment, path: &Path, resolved: &ResolvedAssembly) -> Report {
    if resolved.audit.signing != Signing::Required {
        return Report::new();
    }
    let directory = path.parent().unwrap_or(path);
    // Problems of the configuration are reported at its own file.
    workspace::load(environment, &PathOverrides::default(), directory).map_or_else(
        |_| Report::new(),
        |workspace| signer::signing_warnings(&WorkspaceKeys::of(environment, &workspace), resolved),
    )
}

/// Whether a file is in a folder of its scope.
fn is_below(location: &WorkspacePath, folder: &str) -> bool {
    let folder = match location.scope() {
        Scope::Workspace => format!("{folder}/"),
        tenant => format!("{}/{folder}/", tenant.folder()),
    };
    location.workspace_relative().starts_with(&folder)
}

/// Checks the doctypes that are loaded by their path alone.
fn check_standalone(
    environment: &Environment,
    doctype: Doctype,
    (path, shown): (&Path, &str),
    root: &Path,
) -> Report {
    let named = (doctype == Doctype::Council).then(|| path.to_owned());
    let (mut report, council, configuration) = match doctype {
        Doctype::Config => {
            let found = FoundFile { root: path.parent().unwrap_or(root), file: path };
            let loaded = config::load(path, shown, &found);
            (loaded.report, None, loaded.value)
        }
        _ => {
            let found = FoundFile { root, file: path };
            let loaded = load_council(environment, path, shown, root, &found);
            (loaded.report, loaded.value, None)
        }
    };
    if let Some(place) = configuration.as_ref().and_then(|config| config.playbooks.judge_off.clone()) {
        let body = Body::new("no executor reads playbook proposals: only word lists guard the locked traits");
        let help = "remove `judge`, so that the default executor reads them, or name an executor";
        report.warn(codes::JUDGE_OFF, body.at(place).help(help));
    }
    // Only the registry knows whether an executor can be built.
    let registry = environment.registries.registry();
    let surrounding = council.as_ref().map(|_| {
        let loaded = workspace::load_configuration(environment, &root.join("quorate.toml"));
        loaded.value.unwrap_or_else(|| config::Configuration {
            dir: root.to_owned(),
            ..config::Configuration::default()
        })
    });
    if let Some(config) = configuration.as_ref().or(surrounding.as_ref()) {
        let (errors, warnings) = Executors { registry, config }.build_errors(council.as_ref());
        errors.into_iter().for_each(|error| report.absorb(*error.report));
        warnings.into_iter().for_each(|body| report.warn(codes::FIELD_WITHOUT_EFFECT, body));
    }
    let written = path.parent().unwrap_or(root);
    if let Some(body) = configuration.as_ref().and_then(|config| unread_tiers(environment, config, written)) {
        report.warn(codes::FIELD_WITHOUT_EFFECT, body);
    }
    if !report.has_refusals() {
        let members = configuration.filter(|config| !config.council.members.is_empty());
        let members = members.and_then(|_| unknown_members(environment, written));
        workspace::check_files(environment, named, written)
            .into_iter()
            .chain(members)
            .for_each(|error| report.absorb(*error.report));
    }
    report
}

/// The warning about an executor of `[council] tiers` that cannot say a tier, or that the council here does not ask.
fn unread_tiers(environment: &Environment, config: &config::Configuration, directory: &Path) -> Option<Body> {
    let (name, place) = config.council.tiers.as_ref()?;
    let registry = environment.registries.registry();
    let named = NamedExecutor { name, place: Some(place), by: SelectedBy::Person };
    let named = Executors { registry, config }.by_name(named, serde_json::Map::new()).ok()?;
    let is_rubric = Some(named.about().kind) == registry.default_kind;
    let (message, help) = match named.ensure_answers(Schema::Tier) {
        Ok(()) if is_rubric => {
            (format!("`{name}` cannot say the tier of a text"), "name an executor that asks a model")
        }
        Err(refused) => (refused.first_message(), "name an executor that asks a model"),
        Ok(()) if workspace_of(environment, directory)?.council.tiers.may_ask_model() => return None,
        Ok(()) => (
            "`tiers` has no effect: the council here has no `tier_classifier` that asks a model".to_owned(),
            "set `tier_classifier: {type: model}` in council.yaml, or remove `tiers`",
        ),
    };
    Some(Body::new(message).at(place.clone()).help(help))
}

/// The refusal of a table for a member that is not in the council's file in this directory. Without such a file, the
/// council is in a directory further below, and a review makes the comparison.
fn unknown_members(environment: &Environment, directory: &Path) -> Option<Error> {
    let workspace = workspace_of(environment, directory)?;
    workspace.council_path.as_ref()?;
    review::ensure_known_members(&workspace).err()
}

/// The workspace of a directory, if it can be loaded. No member of it is asked, so no trust is needed.
fn workspace_of(environment: &Environment, directory: &Path) -> Option<Workspace> {
    let environment = &Environment { trust: Trust::default().trusting_all(), ..environment.clone() };
    workspace::load(environment, &PathOverrides::default(), directory).ok()
}

/// Collects the named files by workspace.
fn collect_files(
    environment: &Environment,
    paths: &[PathBuf],
    root: Option<&Path>,
) -> Result<Vec<WorkspaceFiles>, Error> {
    let mut works: BTreeMap<PathBuf, BTreeMap<WorkspacePath, Discovery>> = BTreeMap::new();
    for path in paths {
        let mut named = absolute(&environment.directory, path);
        if !named.exists() {
            named = workspace::by_name(environment, root, path, &NAMED_MANIFESTS).unwrap_or(named);
        }
        let (start, files) = match std::fs::metadata(&named) {
            Ok(metadata) if metadata.is_dir() => {
                let found = disk::walk(&named).map_err(|error| unreadable(path, &error))?;
                let candidates = found.into_iter().map(|entry| entry.path).filter(|path| is_candidate(path));
                (named.clone(), candidates.map(|path| (path, Discovery::Walked)).collect())
            }
            Ok(_) => (search_start(environment, &named), vec![(named.clone(), Discovery::Explicit)]),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let files = glob(environment, path)?;
                (search_start(environment, &named), files)
            }
            Err(error) => return Err(unreadable(path, &error)),
        };
        let root = find_root(environment, root, &start);
        let work = works.entry(root.clone()).or_default();
        for (file, named) in files {
            let location = manifests::workspace_location(&root, &file)?;
            let entry = work.entry(location).or_insert(named);
            if named == Discovery::Explicit {
                *entry = named;
            }
        }
    }
    Ok(works.into_iter().map(|(root, files)| WorkspaceFiles { root, files }).collect())
}

/// Where `quorate init` writes a manifest with a name, with `*` in place of the name.
const NAMED_MANIFESTS: [&str; 5] =
    ["assemblies/*", "personas/*", "playbooks/*.md", "runtimes/*.yaml", "operators/*"];

fn is_candidate(path: &Path) -> bool {
    path.file_name().is_some_and(|name| check::is_candidate(&name.to_string_lossy()))
}

/// The files that a glob matches.
fn glob(environment: &Environment, pattern: &Path) -> Result<Vec<(PathBuf, Discovery)>, Error> {
    let text = pattern.to_string_lossy();
    let is_special = |part: &str| part.contains(['*', '?', '[', '{']);
    if !is_special(&text) {
        return Err(file_not_found(&text));
    }
    let matcher = GlobBuilder::new(&text)
        .literal_separator(true)
        .build()
        .map_err(|error| Error::invalid_request(format!("`{text}` is not a glob: {}", error.kind())))?;
    let matcher = matcher.compile_matcher();
    let fixed: PathBuf =
        pattern.components().take_while(|part| !is_special(&part.as_os_str().to_string_lossy())).collect();
    let start = absolute(&environment.directory, &fixed);
    let found = disk::walk(&start).map_err(|_| file_not_found(&text))?;
    let files: Vec<_> = found
        .into_iter()
        .filter(|entry| {
            let below = entry.path.strip_prefix(&start).unwrap_or(&entry.path);
            matcher.is_match(fixed.join(below)) || matcher.is_match(&entry.path)
        })
        .map(|entry| (entry.path, Discovery::Explicit))
        .collect();
    if files.is_empty() { Err(file_not_found(&text)) } else { Ok(files) }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    let body = Body::new(format!("cannot read {}: {error}", path.display()));
    Error::configuration(codes::FILE_UNREADABLE, body)
}

/// The last names of a directory's path, as many as the path of an agent's prompt has.
fn names_of(dir: &Path) -> PathBuf {
    let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let names: Vec<_> = whole.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    names[names.len().saturating_sub(3)..].iter().collect()
}

/// The range of the metadata in a frontmatter: from its key to the next one.
fn metadata_span(frontmatter: &str) -> Range<usize> {
    let mut at = 0;
    let mut found: Option<Range<usize>> = None;
    for line in frontmatter.split_inclusive('\n') {
        let begins_a_key = !line.starts_with([' ', '\t', '\r', '\n', '#']);
        match &mut found {
            None if line.starts_with("metadata:") => found = Some(at..at + line.len()),
            Some(_) if begins_a_key => break,
            Some(range) => range.end = at + line.len(),
            None => {}
        }
        at += line.len();
    }
    found.unwrap_or(0..0)
}

/// Whether a file instructs an agent: `agents/*/prompt.md`, OPERATOR.md, PERSONA.md, and playbooks.
fn is_agent_prompt(relative: &Path) -> bool {
    let parts: Vec<_> = relative.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    let Some(name) = parts.last() else {
        return false;
    };
    match &**name {
        "OPERATOR.md" | "PERSONA.md" => true,
        "prompt.md" => parts.len() >= 3 && parts[parts.len() - 3] == "agents",
        _ => is_playbook(relative),
    }
}

/// Whether a file is a playbook; no agent sees the other files of its folder.
fn is_playbook(relative: &Path) -> bool {
    let name = relative.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let lies_there = relative.iter().rev().skip(1).any(|part| part == FOLDER);
    lies_there && name.ends_with(".md") && !name.starts_with('_') && !name.ends_with(HISTORY_SUFFIX)
}
