//! A workspace of manifests on disk, opened for one loader, and its formatting in canonical key order and spacing, with
//! every comment kept.

use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_manifest::check::Discovery;
use quorate_manifest::doctype::{self, Doctype};
use quorate_manifest::document::{self, Syntax};
use quorate_manifest::format::{Order, format, frontmatter, orders};
use quorate_manifest::frontmatter as parts;
use quorate_manifest::loader::{Loader, Options, Refs};
use quorate_manifest::tree::{Problem, decode, yaml};
use quorate_manifest::workspace::{Scope, WorkspacePath};

use super::check::{CheckRequest, collect_files};
use super::confined::Confined;
use super::disk::{self, absolute, display_path, entry_exists, find_outermost};
use super::environment::Environment;
use super::error::{ExitClass, ServiceError};
use super::workspace::{self, load_configuration};

/// A workspace of manifests.
pub struct Manifests {
    pub root: PathBuf,
    /// Refusals and warnings of its `quorate.toml`.
    pub report: Report,
    confined: Confined,
    options: Options,
}

/// The workspace's root (M10): `root` if given, else the outermost directory with a `quorate.toml`, else `start`.
pub fn find_root(environment: &Environment, said: Option<&Path>, start: &Path) -> PathBuf {
    let found =
        || find_outermost(start, "quorate.toml").and_then(|file| file.parent().map(Path::to_path_buf));
    match said {
        Some(root) => absolute(&environment.directory, root),
        None => found().unwrap_or_else(|| start.to_owned()),
    }
}

/// The directory where the search for a file's workspace starts: the file's directory if it or a parent has a
/// `quorate.toml`, else the working directory if the file is below it.
pub fn search_start(environment: &Environment, file: &Path) -> PathBuf {
    let directory = file.parent().map_or_else(|| environment.directory.clone(), Path::to_path_buf);
    let below = file.starts_with(&environment.directory);
    if below && find_outermost(&directory, "quorate.toml").is_none() {
        environment.directory.clone()
    } else {
        directory
    }
}

impl Manifests {
    /// Opens a workspace.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(environment: &Environment, root: &Path, refs: Refs) -> Result<Self, ServiceError> {
        let confined = Confined::open(root).map_err(|error| {
            let body =
                Body::new(format!("cannot open the workspace {}: {error}", display_path(environment, root)));
            ServiceError::not_found(codes::FILE_UNREADABLE, body)
        })?;
        let prefix = match display_path(environment, root) {
            here if here.is_empty() || here.ends_with('/') => here,
            there => format!("{there}/"),
        };
        let WorkspaceSettings { strict_chain, governance, has_embedder, report } =
            workspace_settings(environment, root);
        let options = Options { prefix, strict_chain, refs, governance, has_embedder };
        Ok(Manifests { root: root.to_owned(), report, confined, options })
    }

    /// A loader over it.
    pub fn loader<'m>(&'m self, capabilities: &'m dyn quorate_manifest::Capabilities) -> Loader<'m> {
        Loader::new(&self.confined, capabilities, self.options.clone())
    }

    /// A file's path in the workspace.
    ///
    /// # Errors
    /// If the file is not below the root.
    pub fn location(&self, file: &Path) -> Result<WorkspacePath, ServiceError> {
        workspace_location(&self.root, file)
    }
}

/// A file's path below a root.
///
/// # Errors
/// If the file is not below the root.
pub fn workspace_location(root: &Path, file: &Path) -> Result<WorkspacePath, ServiceError> {
    let below = |root: &Path, file: &Path| WorkspacePath::new(file.strip_prefix(root).ok()?.to_str()?).ok();
    // The root may contain `..` or a link; the file itself may be a link, which must not be resolved.
    let really = || {
        let folder = file.parent()?.canonicalize().ok()?;
        below(&root.canonicalize().ok()?, &folder.join(file.file_name()?))
    };
    below(root, file).or_else(really).ok_or_else(|| {
        let message = format!("{} is not in the workspace {}", file.display(), root.display());
        ServiceError::new(
            ExitClass::Usage,
            codes::USAGE,
            Body::new(message).help("pass a directory above it with `--root`"),
        )
    })
}

/// The refusal for a missing file.
pub fn file_not_found(path: &str) -> ServiceError {
    ServiceError::not_found(
        codes::FILE_UNREADABLE,
        Body::new(format!("cannot read `{path}`: the file does not exist")).help("check the path"),
    )
}

/// The settings for manifests in the workspace's `quorate.toml`.
struct WorkspaceSettings {
    strict_chain: bool,
    governance: Option<WorkspacePath>,
    has_embedder: bool,
    report: Report,
}

/// A refused configuration counts as strict.
fn workspace_settings(environment: &Environment, root: &Path) -> WorkspaceSettings {
    let path = root.join("quorate.toml");
    if !entry_exists(&path) {
        return WorkspaceSettings {
            strict_chain: false,
            governance: None,
            has_embedder: false,
            report: Report::new(),
        };
    }
    let loaded = load_configuration(environment, &path);
    let mut report = loaded.report;
    let strict_chain = loaded.value.as_ref().is_none_or(|configuration| configuration.strict_chain);
    let has_embedder = match find_outermost(root, "quorate.toml").filter(|outermost| *outermost != path) {
        // Runs take their embedder from the outermost file, as they do their executors.
        Some(outermost) => {
            load_configuration(environment, &outermost).value.is_some_and(|it| it.embedder.is_some())
        }
        None => loaded.value.as_ref().is_some_and(|configuration| configuration.embedder.is_some()),
    };
    let written = loaded.value.and_then(|configuration| configuration.governance);
    let governance = written.and_then(|(path, place)| {
        let location = WorkspacePath::new(&path).ok();
        if location.is_none() {
            let body = Body::new(format!("the governance file `{path}` is outside of the workspace"));
            let help = "write the path relative to this file, below its directory";
            report.refuse(codes::HOST_INVALID, body.at(place).help(help));
        }
        location
    });
    WorkspaceSettings { strict_chain, governance, has_embedder, report }
}

/// The named workspace and scope, or those that contain the working directory (M10): a tenant's folder is not a
/// workspace.
pub(super) fn root_and_scope(environment: &Environment, said: Option<&Path>) -> (PathBuf, Scope) {
    let start =
        said.map_or_else(|| environment.directory.clone(), |said| absolute(&environment.directory, said));
    let root = find_root(environment, None, &start);
    let below = start.strip_prefix(&root).ok().and_then(Path::to_str).unwrap_or_default();
    // A file in the folder has the tenant's scope; the folder itself does not.
    let scope = WorkspacePath::new(&format!("{below}/PERSONA.md"))
        .map_or(Scope::Workspace, |location| location.scope().clone());
    match (&scope, said) {
        (Scope::Workspace, Some(_)) => (start, scope),
        _ => (root, scope),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatMode {
    Write,
    /// `--check`: only lists the files that would change.
    Check,
}

#[derive(Debug, Default)]
pub struct FormatOutcome {
    /// Manifests read.
    pub files: usize,
    /// Manifests that were, or would be, changed.
    pub changed: Vec<String>,
    /// Files that cannot be parsed as manifests.
    pub report: Report,
}

/// Formats files.
///
/// # Errors
/// If a path does not exist, or a file cannot be written.
pub fn fmt(
    environment: &Environment,
    request: &CheckRequest,
    mode: FormatMode,
) -> Result<FormatOutcome, ServiceError> {
    let mut outcome = FormatOutcome::default();
    for work in collect_files(environment, request)? {
        for (location, named) in &work.files {
            let path = work.root.join(location.workspace_relative());
            format_file(environment, (&work.root, &path), *named, mode, &mut outcome)?;
        }
    }
    Ok(outcome)
}

fn format_file(
    environment: &Environment,
    (root, path): (&Path, &Path),
    named: Discovery,
    mode: FormatMode,
    outcome: &mut FormatOutcome,
) -> Result<(), ServiceError> {
    let file = display_path(environment, path);
    let limit = quorate_manifest::tree::MAX_BYTES as u64;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let bytes = match disk::read_up_to(path, limit) {
        Ok(bytes) => bytes,
        Err(_) if named == Discovery::Walked && doctype::from_name(&name).is_none() => return Ok(()),
        // An unreadable file does not stop the others.
        Err(error) => {
            let body = Body::new(format!("cannot read {file}: {error}"));
            outcome.report.refuse(
                codes::FILE_UNREADABLE,
                body.help("check that it is a file, and that you may read it"),
            );
            return Ok(());
        }
    };
    match format_bytes(&name, &file, bytes.clone()) {
        FormatResult::Text(text) => {
            outcome.files += 1;
            if text.as_bytes() == bytes {
                return Ok(());
            }
            if mode == FormatMode::Write {
                if !workspace::is_inside(root, path) {
                    let body = Body::new(format!(
                        "cannot write {file}: it is a link that leads out of the workspace"
                    ));
                    outcome
                        .report
                        .refuse(codes::PATH_OUTSIDE, body.help("format the file itself, at its own path"));
                    return Ok(());
                }
                disk::replace(path, text.as_bytes()).map_err(|error| {
                    ServiceError::configuration(
                        codes::FILE_UNREADABLE,
                        Body::new(format!("cannot write {file}: {error}")),
                    )
                })?;
            }
            outcome.changed.push(file);
        }
        FormatResult::NotFormattable if named == Discovery::Walked => {}
        FormatResult::NotFormattable => {
            let body = Body::new(format!("cannot format {file}: its doctype has no formatter"));
            outcome.report.refuse(
                codes::DOCTYPE_UNKNOWN,
                body.help("pass manifests; `fmt` does not change files such as quorate.toml"),
            );
        }
        FormatResult::Broken(report) => outcome.report.absorb(report),
    }
    Ok(())
}

/// Formats one text.
///
/// # Errors
/// If it is not a manifest, or cannot be parsed.
pub fn fmt_text(bytes: Vec<u8>) -> Result<String, ServiceError> {
    match format_bytes("-", "-", bytes) {
        FormatResult::Text(text) => Ok(text),
        FormatResult::NotFormattable => Err(ServiceError::new(
            ExitClass::Refused,
            codes::DOCTYPE_UNKNOWN,
            Body::new("the type of this text is unknown"),
        )),
        FormatResult::Broken(report) => Err(ServiceError::from_report(ExitClass::Refused, report)),
    }
}

enum FormatResult {
    Text(String),
    /// Not a manifest, or of a doctype that is not formatted.
    NotFormattable,
    /// A manifest that cannot be parsed.
    Broken(Report),
}

fn format_bytes(name: &str, shown: &str, bytes: Vec<u8>) -> FormatResult {
    // Only files that look like manifests can be refused; others are skipped.
    let unreadable = |bytes: Vec<u8>| match document::unreadable(name, shown, bytes) {
        Some((doctype, report)) if key_order(doctype).is_some() => FormatResult::Broken(report),
        _ => FormatResult::NotFormattable,
    };
    let Ok(text) = decode(bytes.clone()) else { return unreadable(bytes) };
    let mut syntax = Syntax::from_name(name);
    if name == "-" && parts::split(&text).is_err() {
        syntax = Syntax::Yaml;
    }
    let (yaml_text, from) = match syntax {
        Syntax::Yaml => (text.as_str(), 0),
        Syntax::Frontmatter => match parts::split(&text) {
            Ok(parts) => (&text[parts.yaml.clone()], parts.yaml.start),
            Err(_) => return unreadable(bytes),
        },
    };
    let (root, problems) = yaml::parse(yaml_text);
    let Some(doctype) = root.as_ref().and_then(|root| doctype::detect(name, root)) else {
        return unreadable(bytes);
    };
    if !problems.is_empty() {
        let moved = |mut problem: Problem| {
            problem.span = problem.span.start + from..problem.span.end + from;
            problem
        };
        return FormatResult::broken(shown, &text, problems.into_iter().map(moved));
    }
    let Some(order) = key_order(doctype) else { return FormatResult::NotFormattable };
    let done = match syntax {
        Syntax::Yaml => format(&text, order),
        Syntax::Frontmatter => frontmatter(&text, order),
    };
    match done {
        Ok(text) => FormatResult::Text(text),
        Err(problems) => FormatResult::broken(shown, &text, problems),
    }
}

impl FormatResult {
    fn broken(shown: &str, text: &str, problems: impl IntoIterator<Item = Problem>) -> Self {
        let mut report = Report::new();
        report.add_source(shown, text);
        for problem in problems {
            let place = Place { file: shown.into(), span: problem.span, path: String::new() };
            let mut body = Body::new(problem.message).at(place);
            body.help = problem.help;
            report.refuse(codes::SYNTAX, body);
        }
        FormatResult::Broken(report)
    }
}

fn key_order(doctype: Doctype) -> Option<&'static Order> {
    match doctype {
        Doctype::Assembly => Some(&orders::ASSEMBLY),
        Doctype::Persona => Some(&orders::PERSONA),
        Doctype::Playbook => Some(&orders::PLAYBOOK),
        Doctype::Runtime => Some(&orders::RUNTIME),
        Doctype::Operator => Some(&orders::OPERATOR),
        Doctype::Council => Some(&orders::COUNCIL),
        Doctype::Role | Doctype::Config => None,
    }
}
