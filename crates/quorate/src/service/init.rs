//! Init: writes starter files for a council, an assembly with its personas, a persona, a playbook or a runtime. Existing
//! files stay untouched.
//!
//! Wiring writes files that make other tools call Quorate. `unwire` removes a written file while its text is unchanged.

use std::fs;
use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use quorate_kernel::clock::rfc3339;
use quorate_manifest::assembly::Mode;
use quorate_manifest::council;
use quorate_manifest::doctype::COUNCIL_FILES;
use quorate_manifest::workspace::is_device_name;

use super::disk::{self, absolute, find_outermost};
use super::environment::Environment;
use super::error::{Error, ErrorKind};
use super::guard;
use super::workspace::find_root;
use crate::service::disk::{entry_exists, shell_quoted};

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
pub enum InitTemplate {
    /// An ASSEMBLY.md and a persona for each member; for advisory mode also the operator that it advises.
    Assembly(Mode),
    /// A PERSONA.md.
    Persona,
    /// A playbook.
    Playbook,
    /// A runtime's manifest.
    Runtime,
}

/// What became of the files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct InitOutcome {
    /// Written or removed files; a requested manifest is the first.
    pub done: Vec<PathBuf>,
    /// Existing files that are used unchanged.
    pub same: Vec<PathBuf>,
    /// Files with another text, which stay unchanged. Each comes with the text that would have been written.
    pub other: Vec<(PathBuf, String)>,
}

/// Writes a council. If one of them exists, none is written. A directory outside of any workspace
/// gets a `quorate.toml`.
///
/// # Errors
/// If a file exists or cannot be written.
pub fn council(dir: &Path) -> Result<InitOutcome, Error> {
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
    Ok(InitOutcome { done: paths(files), ..InitOutcome::default() })
}

fn paths(files: Vec<(PathBuf, String)>) -> Vec<PathBuf> {
    files.into_iter().map(|(path, _)| path).collect()
}

/// Writes a manifest into the directory's workspace, with everything it refers to, so that it checks clean. A workspace
/// without `quorate.toml` gets one.
///
/// # Errors
/// If the name is invalid, the manifest exists, or a file cannot be written.
pub fn manifest(
    environment: &Environment,
    dir: &Path,
    what: InitTemplate,
    name: &str,
) -> Result<InitOutcome, Error> {
    check_name(name)?;
    let root = find_root(environment, None, &absolute(&environment.directory, dir));
    let now = rfc3339(environment.clock.now_ms());
    let fill = |text: &str, name: &str| {
        text.replace("{name}", name).replace("{title}", &title(name)).replace("{now}", &now)
    };
    let persona = |slug: &str| (root.join(format!("personas/{slug}/PERSONA.md")), fill(PERSONA, slug));
    let (main, others) = match what {
        InitTemplate::Assembly(mode) => {
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
        InitTemplate::Persona => (persona(name), Vec::new()),
        InitTemplate::Playbook => {
            ((root.join(format!("playbooks/{name}.md")), fill(PLAYBOOK, name)), Vec::new())
        }
        InitTemplate::Runtime => {
            ((root.join(format!("runtimes/{name}.yaml")), fill(RUNTIME, name)), Vec::new())
        }
    };
    if main.0.exists() {
        return Err(already_exists(&main.0, "choose another --name"));
    }
    let (kept, new): (Vec<_>, Vec<_>) = others.into_iter().partition(|(path, _)| path.exists());
    let host = Some((root.join("quorate.toml"), HOST.to_owned())).filter(|(path, _)| !path.exists());
    let files: Vec<_> = [main].into_iter().chain(new).chain(host).collect();
    write(&root, &files)?;
    Ok(InitOutcome { done: paths(files), same: paths(kept), other: Vec::new() })
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

fn check_name(name: &str) -> Result<(), Error> {
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
        return Err(Error::new(ErrorKind::InvalidRequest, codes::USAGE, body.help("give it another name")));
    }
    if kebab {
        return Ok(());
    }
    let body = Body::new(format!("`{name}` cannot be a name"));
    let help = format!(
        "use 2 to {MAX_NAME_CHARS} lower-case letters, digits and dashes, beginning with a letter: release-board"
    );
    Err(Error::new(ErrorKind::InvalidRequest, codes::USAGE, body.help(help)))
}

/// `release-board` as `Release Board`.
fn title(name: &str) -> String {
    let word = |word: &str| {
        let mut chars = word.chars();
        chars.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + chars.as_str())
    };
    name.split('-').filter(|part| !part.is_empty()).map(word).collect::<Vec<_>>().join(" ")
}

fn already_exists(path: &Path, help: &str) -> Error {
    let body = Body::new(format!("{} already exists; nothing was written", path.display()));
    Error::configuration(codes::FILE_EXISTS, body.help(help))
}

fn write(root: &Path, files: &[(PathBuf, String)]) -> Result<(), Error> {
    guard::ensure_folder_free(root, &root.display().to_string())?;
    ensure_inside(root, files.iter().map(|(path, _)| path.as_path()))?;
    for (path, text) in files {
        disk::write_new(path, text).map_err(|error| {
            let body = Body::new(format!("cannot write {}: {error}", path.display()));
            Error::configuration(codes::FILE_EXISTS, body)
        })?;
    }
    Ok(())
}

/// Writes files into a directory, where none of them may exist. Both paths are of the directory: one to write to, and one
/// as the user named it.
///
/// # Errors
/// If the directory belongs to a ledger or to Git, or a file exists or cannot be written.
pub fn write_new(dir: &Path, shown: &Path, files: &[(String, String)]) -> Result<(), Error> {
    guard::ensure_folder_free(dir, &shown.display().to_string())?;
    for (name, text) in files {
        disk::write_new(&dir.join(name), text).map_err(|error| {
            let body = Body::new(format!("cannot write {}: {error}", shown.join(name).display()));
            Error::configuration(codes::USAGE, body)
        })?;
    }
    Ok(())
}

/// Refuses a directory that is a link, and paths that links lead out of it.
fn ensure_inside<'a>(root: &'a Path, paths: impl Iterator<Item = &'a Path>) -> Result<(), Error> {
    let leads_out = |path: &Path| path == root && path.is_symlink() || !disk::is_inside(root, path);
    let Some(path) = std::iter::once(root).chain(paths).find(|path| leads_out(path)) else { return Ok(()) };
    let target = disk::canonical_or_new(path);
    let body = Body::new(format!(
        "{} is or contains a link that leads out of the directory, to {}",
        path.display(),
        target.display()
    ));
    Err(Error::configuration(codes::PATH_OUTSIDE, body.help("remove the link; nothing was changed")))
}

const SKILL_REVIEW: &str = include_str!("init/wiring/skill-review.md");
const SKILL_AUDIT: &str = include_str!("init/wiring/skill-audit.md");
const SKILL_POLICY: &str = include_str!("init/wiring/openai.yaml");
const MCP: &str = include_str!("init/wiring/mcp.json");
const CLAUDE_HOOKS: &str = include_str!("init/wiring/claude-settings.json");
const CLAUDE_PLUGIN: &str = include_str!("init/wiring/claude-plugin.json");
const CURSOR_HOOKS: &str = include_str!("init/wiring/cursor-hooks.json");
const PRE_COMMIT: &str = include_str!("init/wiring/pre-commit.yaml");
const GITHUB: &str = include_str!("init/wiring/github.yml");
const GITHUB_COMMENT: &str = include_str!("init/wiring/github-comment.yml");
const GITLAB: &str = include_str!("init/wiring/gitlab.yml");

/// The placeholder for this program's version in a template.
const VERSION: &str = "{version}";
/// The longest text that counts as a version.
const MAX_VERSION: usize = 32;

/// A tool that can call Quorate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WiredTool {
    /// Claude Code.
    Claude,
    /// Claude Code, as a plugin.
    ClaudePlugin,
    /// Codex.
    Codex,
    /// Cursor.
    Cursor,
    /// GitHub.
    Github,
    /// GitLab.
    Gitlab,
    /// pre-commit or prek.
    PreCommit,
}

impl WiredTool {
    /// All tools.
    pub const ALL: [WiredTool; 7] = [
        WiredTool::Claude,
        WiredTool::ClaudePlugin,
        WiredTool::Codex,
        WiredTool::Cursor,
        WiredTool::Github,
        WiredTool::Gitlab,
        WiredTool::PreCommit,
    ];

    /// The name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            WiredTool::Claude => "claude",
            WiredTool::ClaudePlugin => "claude-plugin",
            WiredTool::Codex => "codex",
            WiredTool::Cursor => "cursor",
            WiredTool::Github => "github",
            WiredTool::Gitlab => "gitlab",
            WiredTool::PreCommit => "pre-commit",
        }
    }

    /// The effect of the files, for the list of tools.
    pub fn about(self) -> &'static str {
        match self {
            WiredTool::Claude => "Claude Code: a hook that reviews drafts, skills, MCP tools",
            WiredTool::ClaudePlugin => "The same as a plugin, in a directory of its own",
            WiredTool::Codex => "Codex: skills",
            WiredTool::Cursor => "Cursor: a hook that reviews drafts, MCP tools",
            WiredTool::Github => "GitHub: workflows that annotate pull requests and comment on them",
            WiredTool::Gitlab => "GitLab: a job that reports to merge requests",
            WiredTool::PreCommit => "pre-commit or prek: a hook that reviews drafts",
        }
    }

    /// The user's next step.
    pub fn next(self) -> &'static str {
        match self {
            WiredTool::Claude | WiredTool::Cursor => {
                "restart it in this project; drafts below `watch.paths` of council.yaml whose tier is due are reviewed when they are written"
            }
            WiredTool::ClaudePlugin => "`claude --plugin-dir DIR` tries it",
            WiredTool::Codex => "`$council-review FILE` in Codex",
            WiredTool::Github => "set the folder of your drafts in both, and commit them",
            WiredTool::Gitlab => "include it in .gitlab-ci.yml, as its first lines say",
            WiredTool::PreCommit => "set the pattern of your drafts in it, and `pre-commit install`",
        }
    }

    /// The files of the tool, as paths below its directory, with their texts.
    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            WiredTool::Claude => &[
                (".claude/settings.json", CLAUDE_HOOKS),
                (".claude/skills/council-review/SKILL.md", SKILL_REVIEW),
                (".claude/skills/council-audit/SKILL.md", SKILL_AUDIT),
                (".mcp.json", MCP),
            ],
            WiredTool::ClaudePlugin => &[
                (".claude-plugin/plugin.json", CLAUDE_PLUGIN),
                ("hooks/hooks.json", CLAUDE_HOOKS),
                ("skills/council-review/SKILL.md", SKILL_REVIEW),
                ("skills/council-audit/SKILL.md", SKILL_AUDIT),
                (".mcp.json", MCP),
            ],
            WiredTool::Codex => &[
                (".agents/skills/council-review/SKILL.md", SKILL_REVIEW),
                (".agents/skills/council-review/agents/openai.yaml", SKILL_POLICY),
                (".agents/skills/council-audit/SKILL.md", SKILL_AUDIT),
                (".agents/skills/council-audit/agents/openai.yaml", SKILL_POLICY),
            ],
            WiredTool::Cursor => &[(".cursor/hooks.json", CURSOR_HOOKS), (".cursor/mcp.json", MCP)],
            WiredTool::Github => &[
                (".github/workflows/quorate.yml", GITHUB),
                (".github/workflows/quorate-comment.yml", GITHUB_COMMENT),
            ],
            WiredTool::Gitlab => &[(".gitlab/quorate.gitlab-ci.yml", GITLAB)],
            WiredTool::PreCommit => &[(".pre-commit-config.yaml", PRE_COMMIT)],
        }
    }
}

/// Writes the missing files.
///
/// # Errors
/// If a file cannot be read or written, if a link leads out of the directory, or if the tool reads its files only in the
/// root of a repository and the directory is below it.
pub fn wire(dir: &Path, tool: WiredTool) -> Result<InitOutcome, Error> {
    ensure_root(dir, tool)?;
    let mut result = InitOutcome::default();
    let mut files = Vec::new();
    for (name, template) in tool.files() {
        let (path, text) = (dir.join(name), template.replace(VERSION, env!("CARGO_PKG_VERSION")));
        match read_existing(&path)? {
            None => files.push((path, text)),
            Some(there) if there == text => result.same.push(path),
            Some(_) => result.other.push((path, text)),
        }
    }
    write(dir, &files)?;
    result.done = paths(files);
    Ok(result)
}

/// Removes the files that any version of this program wrote and that are unchanged since, and then the empty directories.
///
/// # Errors
/// If a file cannot be read or removed.
pub fn unwire(dir: &Path, tool: WiredTool) -> Result<InitOutcome, Error> {
    let mut result = InitOutcome::default();
    let paths: Vec<PathBuf> = tool.files().iter().map(|(name, _)| dir.join(name)).collect();
    ensure_inside(dir, paths.iter().map(PathBuf::as_path))?;
    for (path, (_, template)) in paths.into_iter().zip(tool.files()) {
        match read_existing(&path)? {
            None => {}
            Some(there) if is_from(template, &there) => {
                disk::remove(&path).map_err(|error| unusable_file(&path, "removed", &error))?;
                // `remove_dir` fails on a directory with other files.
                let below = |parent: &&Path| parent.starts_with(dir) && *parent != dir;
                for parent in path.ancestors().skip(1).take_while(below) {
                    if fs::remove_dir(parent).is_err() {
                        break;
                    }
                }
                result.done.push(path);
            }
            Some(there) if there.contains("quorate") => result.other.push((path, there)),
            // The user's own file, unrelated to Quorate.
            Some(_) => {}
        }
    }
    Ok(result)
}

fn ensure_root(dir: &Path, tool: WiredTool) -> Result<(), Error> {
    let is_read_in_root = matches!(tool, WiredTool::Github | WiredTool::Gitlab | WiredTool::PreCommit);
    let root = dir.ancestors().find(|dir| entry_exists(&dir.join(".git"))).filter(|root| *root != dir);
    let Some(root) = root.filter(|_| is_read_in_root) else { return Ok(()) };
    let body = Body::new(format!(
        "the tool reads these files only in the root of the repository, which is {}",
        root.display()
    ))
    .help(format!(
        "run `quorate init wiring {} {}`",
        tool.word(),
        shell_quoted(&root.to_string_lossy())
    ));
    Err(Error::new(ErrorKind::InvalidRequest, codes::USAGE, body))
}

/// Whether a text is the template filled in by any version.
fn is_from(template: &str, text: &str) -> bool {
    let Some((before, after)) = template.split_once(VERSION) else { return text == template };
    let version = text.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    version.is_some_and(|version| {
        version.len() <= MAX_VERSION
            && version.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'))
    })
}

/// A file's text; `None` if the file does not exist.
fn read_existing(path: &Path) -> Result<Option<String>, Error> {
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    match disk::read_up_to(path, crate::service::artifact::MAX_BYTES) {
        // A lossy conversion is enough: the text is only compared with a template.
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) => Err(unusable_file(path, "read", &error)),
    }
}

fn unusable_file(path: &Path, what: &str, error: &std::io::Error) -> Error {
    let body = Body::new(format!("{} cannot be {what}: {error}", path.display()));
    Error::configuration(codes::FILE_EXISTS, body.help("move it away, and repeat the command"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_matches_the_files_of_any_version_and_no_others() {
        for tool in [WiredTool::ClaudePlugin, WiredTool::Github, WiredTool::Gitlab] {
            let (_, template) = tool.files().iter().find(|(_, text)| text.contains(VERSION)).unwrap();
            assert!(tool.files().iter().all(|(_, text)| text.matches(VERSION).count() <= 1));
            assert!(is_from(template, &template.replace(VERSION, "9.1.0-rc.2")));
            assert!(!is_from(template, &template.replace(VERSION, "1.0.0; curl evil")));
            assert!(!is_from(template, &format!("{} ", template.replace(VERSION, "1.0.0"))));
        }
    }

    #[test]
    fn json_is_json() {
        for text in [MCP, CLAUDE_HOOKS, CLAUDE_PLUGIN, CURSOR_HOOKS] {
            serde_json::from_str::<serde_json::Value>(text).unwrap();
        }
    }
}
