//! A workspace of manifests on disk: its root, its scopes, and its settings, opened for one loader.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use quorate_diagnostics::{Body, Report, codes};
use quorate_manifest::loader::{Loader, Options, Refs};
use quorate_manifest::workspace::{Scope, WorkspacePath};
use regex::Regex;

use super::confined::Confined;
use super::disk::{absolute, display_path, entry_exists, find_outermost};
use super::environment::Environment;
use super::error::Error;
use super::workspace::{find_root, load_configuration};

/// A workspace of manifests.
pub struct Manifests {
    /// The root directory of the workspace.
    pub root: PathBuf,
    /// Refusals and warnings of its `quorate.toml`.
    pub report: Report,
    confined: Confined,
    options: Options,
}

impl Manifests {
    /// Opens a workspace.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(environment: &Environment, root: &Path, refs: Refs) -> Result<Self, Error> {
        let confined = Confined::open(root).map_err(|error| {
            let body =
                Body::new(format!("cannot open the workspace {}: {error}", display_path(environment, root)));
            Error::not_found(codes::FILE_UNREADABLE, body)
        })?;
        let prefix = match display_path(environment, root) {
            here if here.is_empty() || here.ends_with('/') => here,
            there => format!("{there}/"),
        };
        let (options, report) = loader_options(environment, root, prefix, refs);
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
    pub fn location(&self, file: &Path) -> Result<WorkspacePath, Error> {
        workspace_location(&self.root, file)
    }
}

/// A file's path below a root.
///
/// # Errors
/// If the file is not below the root.
pub(crate) fn workspace_location(root: &Path, file: &Path) -> Result<WorkspacePath, Error> {
    let below = |root: &Path, file: &Path| WorkspacePath::new(file.strip_prefix(root).ok()?.to_str()?).ok();
    // The root may contain `..` or a link; the file itself may be a link, which must not be resolved.
    let really = || {
        let folder = file.parent()?.canonicalize().ok()?;
        below(&root.canonicalize().ok()?, &folder.join(file.file_name()?))
    };
    below(root, file).or_else(really).ok_or_else(|| {
        let message = format!("{} is not in the workspace {}", file.display(), root.display());
        Error::usage(Body::new(message).help("pass a directory above it with `--root`"))
    })
}

/// The refusal for a missing file.
pub(crate) fn file_not_found(path: &str) -> Error {
    Error::not_found(
        codes::FILE_UNREADABLE,
        Body::new(format!("cannot read `{path}`: the file does not exist")).help("check the path"),
    )
}

/// The options of a loader by the workspace's `quorate.toml`, and its diagnostics. A refused configuration counts as strict.
fn loader_options(environment: &Environment, root: &Path, prefix: String, refs: Refs) -> (Options, Report) {
    let options = Options { prefix, refs, ..Options::default() };
    let path = root.join("quorate.toml");
    if !entry_exists(&path) {
        return (options, Report::new());
    }
    let loaded = load_configuration(environment, &path);
    let mut report = loaded.report;
    let strict_chain = loaded.value.as_ref().is_none_or(|configuration| configuration.strict_chain);
    let compares =
        |it: &quorate_manifest::config::Configuration| it.embedder.is_some() || it.meaning.is_some();
    let has_embedder = match find_outermost(root, "quorate.toml").filter(|outermost| *outermost != path) {
        // Runs take their embedder from the outermost file, as they do their executors.
        Some(outermost) => load_configuration(environment, &outermost).value.is_some_and(|it| compares(&it)),
        None => loaded.value.as_ref().is_some_and(compares),
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
    (Options { strict_chain, governance, has_embedder, ..options }, report)
}

/// The named workspace and scope, or those that contain the working directory (M10): a tenant's folder is not a
/// workspace.
pub(crate) fn root_and_scope(environment: &Environment, said: Option<&Path>) -> (PathBuf, Scope) {
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

/// The words that name the council, with their offsets. They are those of the public tool. The word `council` alone is
/// not a reference, since there are other councils.
pub(crate) fn council_mentions(text: &str) -> impl Iterator<Item = (&str, usize)> {
    static NAMES: LazyLock<Regex> = LazyLock::new(|| {
        let names = r"(?i)\b(agent[-_]council|council[-_]review)\b";
        Regex::new(names).expect("the pattern is valid")
    });
    NAMES.find_iter(text).map(|hit| (hit.as_str(), hit.start()))
}
