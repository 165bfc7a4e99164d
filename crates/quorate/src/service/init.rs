//! Init: writes starter files for a council, an assembly with its personas, a persona, a playbook or a runtime. Existing
//! files stay untouched.

pub mod wiring;

use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use quorate_kernel::clock::rfc3339;
use quorate_manifest::assembly::Mode;
use quorate_manifest::council;
use quorate_manifest::doctype::COUNCIL_FILES;
use quorate_manifest::workspace::is_device_name;

use super::disk;
use super::environment::Environment;
use super::error::{ExitClass, ServiceError};
use super::guard;
use super::manifests::find_root;
use super::paths::{absolute, find_outermost};
use super::workspace;

const COUNCIL: &str = include_str!("init/council.yaml");
const DRAFT: &str = include_str!("init/draft.md");
const PERSONA: &str = include_str!("init/persona.md");
const OPERATOR: &str = include_str!("init/operator.md");
const PLAYBOOK: &str = include_str!("init/playbook.md");
const RUNTIME: &str = include_str!("init/runtime.yaml");
const HOST: &str = include_str!("init/quorate.toml");

/// The operator that receives advice.
pub const ADVISED_OPERATOR: &str = "assistant";

const MAX_NAME_CHARS: usize = 64;

/// The kinds of manifests besides a council.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Template {
    /// An ASSEMBLY.md and a persona for each member; for advisory mode also the operator that it advises.
    Assembly(Mode),
    Persona,
    Playbook,
    Runtime,
}

/// The files written, and existing files that are used.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct InitResult {
    /// New files; the requested manifest is the first.
    pub files: Vec<PathBuf>,
    /// Existing files.
    pub existing: Vec<PathBuf>,
}

/// Writes a council and returns its files. If one of them exists, none is written. A directory outside of any workspace
/// gets a `quorate.toml`.
///
/// # Errors
/// If a file exists or cannot be written.
pub fn council(dir: &Path) -> Result<Vec<PathBuf>, ServiceError> {
    let mut files = vec![
        (dir.join("council.yaml"), COUNCIL.to_owned()),
        (dir.join("drafts/example_blog_post.md"), DRAFT.to_owned()),
    ];
    files.extend(
        council::built_in_prompts()
            .map(|(name, text)| (dir.join(format!("prompts/{name}.md")), text.to_owned())),
    );
    let councils = COUNCIL_FILES.map(|name| dir.join(name));
    let existing = files.iter().map(|(path, _)| path).chain(&councils).find(|path| path.exists());
    if let Some(path) = existing {
        return Err(already_exists(path, "name an empty directory: `quorate init council DIR`"));
    }
    if find_outermost(dir, "quorate.toml").is_none() {
        files.push((dir.join("quorate.toml"), HOST.to_owned()));
    }
    write(dir, &files)?;
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

/// Writes a manifest into the directory's workspace, with everything it refers to, so that it checks clean. A workspace
/// without `quorate.toml` gets one.
///
/// # Errors
/// If the name is invalid, the manifest exists, or a file cannot be written.
pub fn manifest(
    environment: &Environment,
    dir: &Path,
    what: Template,
    name: &str,
) -> Result<InitResult, ServiceError> {
    check_name(name)?;
    let root = find_root(environment, None, &absolute(&environment.directory, dir));
    let now = rfc3339(environment.clock.now_ms());
    let fill = |text: &str, name: &str| {
        text.replace("{name}", name).replace("{title}", &title(name)).replace("{now}", &now)
    };
    let persona = |slug: &str| (root.join(format!("personas/{slug}/PERSONA.md")), fill(PERSONA, slug));
    let (main, others) = match what {
        Template::Assembly(mode) => {
            let (text, members) = assembly(mode);
            let path = root.join(format!("assemblies/{name}/ASSEMBLY.md"));
            let advised = (mode == Mode::Advisory).then(|| {
                (
                    root.join(format!("operators/{ADVISED_OPERATOR}/OPERATOR.md")),
                    fill(OPERATOR, ADVISED_OPERATOR),
                )
            });
            ((path, fill(text, name)), members.iter().map(|slug| persona(slug)).chain(advised).collect())
        }
        Template::Persona => (persona(name), Vec::new()),
        Template::Playbook => ((root.join(format!("playbooks/{name}.md")), fill(PLAYBOOK, name)), Vec::new()),
        Template::Runtime => ((root.join(format!("runtimes/{name}.yaml")), fill(RUNTIME, name)), Vec::new()),
    };
    if main.0.exists() {
        return Err(already_exists(&main.0, "choose another --name"));
    }
    let (kept, new): (Vec<_>, Vec<_>) = others.into_iter().partition(|(path, _)| path.exists());
    let host = Some((root.join("quorate.toml"), HOST.to_owned())).filter(|(path, _)| !path.exists());
    let files: Vec<_> = [main].into_iter().chain(new).chain(host).collect();
    write(&root, &files)?;
    let paths = |files: Vec<(PathBuf, String)>| files.into_iter().map(|(path, _)| path).collect();
    Ok(InitResult { files: paths(files), existing: paths(kept) })
}

/// The template of a mode, and the personas that it names.
fn assembly(mode: Mode) -> (&'static str, &'static [&'static str]) {
    match mode {
        Mode::Advisory => (include_str!("init/assembly-advisory.md"), &["sentinel", "critic"]),
        Mode::Voting => (include_str!("init/assembly-voting.md"), &["chair", "security", "finance"]),
        Mode::Peer => (include_str!("init/assembly-peer.md"), &["brand", "copy", "legal"]),
        Mode::Hierarchy => (include_str!("init/assembly-hierarchy.md"), &["head", "platform", "product"]),
    }
}

fn check_name(name: &str) -> Result<(), ServiceError> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let kebab = name.len() >= 2
        && name.len() <= MAX_NAME_CHARS
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(inner);
    if is_device_name(name) {
        let body = Body::new(format!(
            "`{name}` is the name of a device on Windows and cannot be the name of a file"
        ));
        return Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body.help("give it another name")));
    }
    if kebab {
        return Ok(());
    }
    let body = Body::new(format!("`{name}` cannot be a name"));
    let help = format!(
        "use 2 to {MAX_NAME_CHARS} lower-case letters, digits and dashes, beginning with a letter: release-board"
    );
    Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body.help(help)))
}

/// `release-board` as `Release Board`.
fn title(name: &str) -> String {
    let word = |word: &str| {
        let mut chars = word.chars();
        chars.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + chars.as_str())
    };
    name.split('-').filter(|part| !part.is_empty()).map(word).collect::<Vec<_>>().join(" ")
}

fn already_exists(path: &Path, help: &str) -> ServiceError {
    let body = Body::new(format!("{} already exists; nothing was written", path.display()));
    ServiceError::configuration(codes::FILE_EXISTS, body.help(help))
}

fn write(root: &Path, files: &[(PathBuf, String)]) -> Result<(), ServiceError> {
    guard::ensure_folder_free(root, &root.display().to_string())?;
    ensure_inside(root, files.iter().map(|(path, _)| path.as_path()))?;
    for (path, text) in files {
        disk::write_new(path, text).map_err(|error| {
            let body = Body::new(format!("cannot write {}: {error}", path.display()));
            ServiceError::configuration(codes::FILE_EXISTS, body)
        })?;
    }
    Ok(())
}

/// Refuses a directory that is a link, and paths that links lead out of it.
fn ensure_inside<'a>(root: &'a Path, paths: impl Iterator<Item = &'a Path>) -> Result<(), ServiceError> {
    let leads_out = |path: &Path| path == root && path.is_symlink() || !workspace::is_inside(root, path);
    let Some(path) = std::iter::once(root).chain(paths).find(|path| leads_out(path)) else { return Ok(()) };
    let target = disk::canonical_or_new(path);
    let body = Body::new(format!(
        "{} is or contains a link that leads out of the directory, to {}",
        path.display(),
        target.display()
    ));
    Err(ServiceError::configuration(codes::PATH_OUTSIDE, body.help("remove the link; nothing was changed")))
}
