//! Files to start from: a council, an assembly with its personas, a persona, a playbook or a runtime; and the files with which
//! other tools call Quorate. Existing files are not changed.

use std::fs;
use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use quorate_kernel::clock::rfc3339;
use quorate_manifest::assembly::Mode;
use quorate_manifest::council;
use quorate_manifest::doctype::COUNCIL_FILES;
use quorate_manifest::workspace::is_device_name;

use super::builder::Quorate;
use super::error::{Error, ErrorKind};
use super::service::artifact::MAX_BYTES;
use super::service::disk::{self, absolute, display_path, entry_exists, find_outermost, shell_quoted};
use super::service::guard;
use super::service::workspace::find_root;

const CONFIGURATION: &str = include_str!("init/quorate.toml");

/// The name and the text of the example that `quorate review --example` reviews and `quorate init council` writes.
pub const EXAMPLE_DRAFT: (&str, &str) = ("example_blog_post.md", include_str!("init/draft.md"));

/// The turn that the participants of `quorate init runtime` answer without a model.
pub const EXAMPLE_TURN: &str = "@Reviewer, our new search is 60% faster than the old one, everyone who tried it loves it, and we release it on Monday.";

/// The operator that receives advice.
pub const ADVISED_OPERATOR: &str = "assistant";

const MAX_NAME_CHARS: usize = 64;

/// The kinds of manifests besides a council.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitTemplate {
    /// An ASSEMBLY.md, a persona for each member and an example of its subject; for advisory mode also the operator that
    /// it advises.
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

impl Quorate {
    /// Writes a commented council with its prompts and an example draft. If one of the files exists, none is written. A
    /// directory outside of any workspace gets a `quorate.toml`.
    ///
    /// # Errors
    /// If a file exists or cannot be written.
    ///
    /// ```
    /// use quorate::Quorate;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let written = quorate.init_council(".".as_ref())?;
    /// assert!(written.done.iter().any(|path| path.ends_with("council.yaml")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn init_council(&self, dir: &Path) -> Result<InitOutcome, Error> {
        let dir = &self.absolute(dir)?;
        let mut files = vec![
            (dir.join("council.yaml"), include_str!("init/council.yaml").to_owned()),
            (dir.join("drafts/example_blog_post.md"), EXAMPLE_DRAFT.1.to_owned()),
        ];
        let prompts = council::built_in_prompts();
        files.extend(prompts.map(|(name, text)| (dir.join(format!("prompts/{name}.md")), text.to_owned())));
        let councils = COUNCIL_FILES.map(|name| dir.join(name));
        let existing = files.iter().map(|(path, _)| path).chain(&councils).find(|path| path.exists());
        if let Some(path) = existing {
            return Err(already_exists(path, "name an empty directory: `quorate init council DIR`"));
        }
        if find_outermost(dir, "quorate.toml").is_none() {
            files.push((dir.join("quorate.toml"), CONFIGURATION.to_owned()));
        }
        write(dir, &files)?;
        Ok(InitOutcome { done: paths(files), ..InitOutcome::default() })
    }

    /// Writes a commented manifest into the directory's workspace, with everything that it refers to. A workspace without
    /// `quorate.toml` gets one.
    ///
    /// # Errors
    /// If the name is invalid, the manifest exists, or a file cannot be written.
    ///
    /// ```
    /// use quorate::Quorate;
    /// use quorate::init::InitTemplate;
    /// use quorate::manifests::CheckRequest;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// quorate.init_manifest(".".as_ref(), InitTemplate::Persona, "ciso")?;
    /// let checked = quorate.check(CheckRequest::new(["personas/ciso/PERSONA.md"]))?;
    /// assert!(!checked.report.has_refusals());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn init_manifest(
        &self,
        dir: &Path,
        template: InitTemplate,
        name: &str,
    ) -> Result<InitOutcome, Error> {
        let (environment, dir) = (&self.environment, self.absolute(dir)?);
        check_name(name)?;
        let root = find_root(environment, None, &dir);
        let now = rfc3339(environment.clock.now_ms());
        let file = |path: String, text: &str, name: &str| {
            let text = text.replace("{name}", name).replace("{title}", &title(name)).replace("{now}", &now);
            (root.join(path), text)
        };
        let persona =
            |slug: &str| file(format!("personas/{slug}/PERSONA.md"), include_str!("init/persona.md"), slug);
        let (main, others) = match template {
            InitTemplate::Assembly(mode) => {
                let (text, members) = assembly(mode);
                let advised = (mode == Mode::Advisory).then(|| {
                    let path = format!("operators/{ADVISED_OPERATOR}/OPERATOR.md");
                    file(path, include_str!("init/operator.md"), ADVISED_OPERATOR)
                });
                let subject = match mode {
                    Mode::Advisory => include_str!("init/conversation.md"),
                    Mode::Voting | Mode::Peer | Mode::Hierarchy => include_str!("init/proposal.md"),
                };
                let subject = file(format!("assemblies/{name}/example.md"), subject, name);
                let others =
                    members.iter().map(|slug| persona(slug)).chain(advised).chain([subject]).collect();
                (file(format!("assemblies/{name}/ASSEMBLY.md"), text, name), others)
            }
            InitTemplate::Persona => (persona(name), Vec::new()),
            InitTemplate::Playbook => {
                (file(format!("playbooks/{name}.md"), include_str!("init/playbook.md"), name), Vec::new())
            }
            InitTemplate::Runtime => {
                (file(format!("runtimes/{name}.yaml"), include_str!("init/runtime.yaml"), name), Vec::new())
            }
        };
        if main.0.exists() {
            return Err(already_exists(&main.0, "choose another --name"));
        }
        let (kept, new): (Vec<_>, Vec<_>) = others.into_iter().partition(|(path, _)| path.exists());
        let host =
            Some((root.join("quorate.toml"), CONFIGURATION.to_owned())).filter(|(path, _)| !path.exists());
        let files: Vec<_> = [main].into_iter().chain(new).chain(host).collect();
        write(&root, &files)?;
        Ok(InitOutcome { done: paths(files), same: paths(kept), other: Vec::new() })
    }

    /// Writes the missing files with which a tool calls Quorate.
    ///
    /// # Errors
    /// If a file cannot be read or written, if a link leads out of the directory, or if the tool reads its files only in
    /// the root of a repository and the directory is below it.
    ///
    /// ```
    /// use quorate::Quorate;
    /// use quorate::init::WiredTool;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let wired = quorate.wire(".".as_ref(), WiredTool::Codex)?;
    /// assert_eq!(wired.done.len(), 4);
    /// let unwired = quorate.unwire(".".as_ref(), WiredTool::Codex)?;
    /// assert_eq!(unwired.done, wired.done);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wire(&self, dir: &Path, tool: WiredTool) -> Result<InitOutcome, Error> {
        let dir = &self.absolute(dir)?;
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

    /// Removes the files that any version of this program wrote for a tool and that are unchanged since.
    ///
    /// # Errors
    /// If a file cannot be read or removed.
    ///
    /// ```
    /// use quorate::Quorate;
    /// use quorate::init::WiredTool;
    ///
    /// let dir = tempfile::tempdir()?;
    /// std::fs::write(dir.path().join(".mcp.json"), r#"{"mcpServers": {}}"#)?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// // The file is the user's own.
    /// let unwired = quorate.unwire(".".as_ref(), WiredTool::Claude)?;
    /// assert!(unwired.done.is_empty() && unwired.other.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unwire(&self, dir: &Path, tool: WiredTool) -> Result<InitOutcome, Error> {
        let dir = &self.absolute(dir)?;
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

    /// Writes files by their names into a directory, where none of them may exist.
    ///
    /// # Errors
    /// If the directory belongs to a ledger or to Git, or a file exists or cannot be written.
    ///
    /// ```
    /// use quorate::Quorate;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let files = [("note.md".to_owned(), "The meeting moved to Tuesday at ten.\n".to_owned())];
    /// quorate.write_new(".".as_ref(), &files)?;
    /// assert!(quorate.write_new(".".as_ref(), &files).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_new(&self, dir: &Path, files: &[(String, String)]) -> Result<(), Error> {
        let (shown, dir) = (dir, self.absolute(dir)?);
        guard::ensure_folder_free(&dir, &shown.display().to_string())?;
        for (name, text) in files {
            disk::write_new(&dir.join(name), text).map_err(|error| {
                let body = Body::new(format!("cannot write {}: {error}", shown.join(name).display()));
                Error::configuration(codes::USAGE, body)
            })?;
        }
        Ok(())
    }

    /// A path as a person in the workspace's directory would write it.
    ///
    /// ```
    /// use quorate::Quorate;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// assert_eq!(quorate.display_path(&dir.path().join("drafts/post.md")), "drafts/post.md");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn display_path(&self, path: &Path) -> String {
        display_path(&self.environment, path)
    }

    /// The same path as one word of a shell's command.
    ///
    /// ```
    /// use quorate::Quorate;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// assert_eq!(quorate.quoted_path(&dir.path().join("my drafts/post.md")), "'my drafts/post.md'");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn quoted_path(&self, path: &Path) -> String {
        shell_quoted(&display_path(&self.environment, path))
    }

    /// The command that follows [`Quorate::wire`]: it lists the drafts that the directory's council reviews, or writes a council
    /// where there is none.
    ///
    /// # Errors
    /// If the directory is outside of the paths that this instance may use.
    ///
    /// ```
    /// use quorate::Quorate;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// assert_eq!(quorate.next_after_wiring("site".as_ref())?, "quorate init council site");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn next_after_wiring(&self, dir: &Path) -> Result<String, Error> {
        let path = self.absolute(dir)?;
        let council = COUNCIL_FILES.map(|name| path.join(name)).into_iter().find(|file| file.exists());
        Ok(match council {
            Some(file) => {
                format!("quorate sweep --since all --dry-run --config {}", self.quoted_path(&file))
            }
            None => format!("quorate init council {}", self.quoted_path(dir)),
        })
    }

    fn absolute(&self, path: &Path) -> Result<PathBuf, Error> {
        Ok(absolute(&self.environment.directory, &self.named_path(path.to_owned())?))
    }
}

fn paths(files: Vec<(PathBuf, String)>) -> Vec<PathBuf> {
    files.into_iter().map(|(path, _)| path).collect()
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
    if kebab && !is_device_name(name) {
        return Ok(());
    }
    let body = Body::new(format!("`{name}` cannot be a name"));
    let help = format!(
        "use 2 to {MAX_NAME_CHARS} lower-case letters, digits and dashes, beginning with a letter and not the name of a device \
         on Windows: release-board"
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

quorate_manifest::words!(WiredTool {
    Claude = "claude",
    ClaudePlugin = "claude-plugin",
    Codex = "codex",
    Cursor = "cursor",
    Github = "github",
    Gitlab = "gitlab",
    PreCommit = "pre-commit",
});

impl WiredTool {
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
            WiredTool::ClaudePlugin => "try it with `claude --plugin-dir DIR`",
            WiredTool::Codex => "type `$council-review FILE` in Codex",
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
        tool.as_str(),
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
    match disk::read_up_to(path, MAX_BYTES) {
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
