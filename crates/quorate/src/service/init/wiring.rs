//! Wiring: files that make other tools call Quorate. Existing files are never changed, and `unwire` removes a written file
//! while its text is unchanged.

use std::fs;
use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};

use super::{ensure_inside, write};
use crate::service::disk;
use crate::service::error::{ExitClass, ServiceError};
use crate::service::paths::{entry_exists, shell_quoted};

const SKILL_REVIEW: &str = include_str!("wiring/skill-review.md");
const SKILL_AUDIT: &str = include_str!("wiring/skill-audit.md");
const SKILL_POLICY: &str = include_str!("wiring/openai.yaml");
const MCP: &str = include_str!("wiring/mcp.json");
const CLAUDE_HOOKS: &str = include_str!("wiring/claude-settings.json");
const CLAUDE_PLUGIN: &str = include_str!("wiring/claude-plugin.json");
const CURSOR_HOOKS: &str = include_str!("wiring/cursor-hooks.json");
const PRE_COMMIT: &str = include_str!("wiring/pre-commit.yaml");
const GITHUB: &str = include_str!("wiring/github.yml");
const GITHUB_COMMENT: &str = include_str!("wiring/github-comment.yml");
const GITLAB: &str = include_str!("wiring/gitlab.yml");

/// The placeholder for this program's version in a template.
const VERSION: &str = "{version}";
/// The longest text that counts as a version.
const MAX_VERSION: usize = 32;

/// A tool that can call Quorate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    Claude,
    ClaudePlugin,
    Codex,
    Cursor,
    Github,
    Gitlab,
    PreCommit,
}

/// The files of a wiring, by what was done with each.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WiringResult {
    /// Written or removed files.
    pub done: Vec<PathBuf>,
    /// Files that already had the same text.
    pub same: Vec<PathBuf>,
    /// Files with another text, which stay unchanged. Each comes with the text that would have been written.
    pub other: Vec<(PathBuf, String)>,
}

impl Tool {
    pub const ALL: [Tool; 7] = [
        Tool::Claude,
        Tool::ClaudePlugin,
        Tool::Codex,
        Tool::Cursor,
        Tool::Github,
        Tool::Gitlab,
        Tool::PreCommit,
    ];

    /// The name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Tool::Claude => "claude",
            Tool::ClaudePlugin => "claude-plugin",
            Tool::Codex => "codex",
            Tool::Cursor => "cursor",
            Tool::Github => "github",
            Tool::Gitlab => "gitlab",
            Tool::PreCommit => "pre-commit",
        }
    }

    /// The effect of the files, for the list of tools.
    pub fn about(self) -> &'static str {
        match self {
            Tool::Claude => "Claude Code: a hook that reviews drafts, skills, MCP tools",
            Tool::ClaudePlugin => "The same as a plugin, in a directory of its own",
            Tool::Codex => "Codex: skills",
            Tool::Cursor => "Cursor: a hook that reviews drafts, MCP tools",
            Tool::Github => "GitHub: workflows that annotate pull requests and comment on them",
            Tool::Gitlab => "GitLab: a job that reports to merge requests",
            Tool::PreCommit => "pre-commit or prek: a hook that reviews drafts",
        }
    }

    /// The user's next step.
    pub fn next(self) -> &'static str {
        match self {
            Tool::Claude | Tool::Cursor => {
                "restart it in this project; drafts below `watch.paths` of council.yaml whose tier is due are reviewed when they are written"
            }
            Tool::ClaudePlugin => "`claude --plugin-dir DIR` tries it",
            Tool::Codex => "`$council-review FILE` in Codex",
            Tool::Github => "set the folder of your drafts in both, and commit them",
            Tool::Gitlab => "include it in .gitlab-ci.yml, as its first lines say",
            Tool::PreCommit => "set the pattern of your drafts in it, and `pre-commit install`",
        }
    }

    /// The files of the tool, as paths below its directory, with their texts.
    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Tool::Claude => &[
                (".claude/settings.json", CLAUDE_HOOKS),
                (".claude/skills/council-review/SKILL.md", SKILL_REVIEW),
                (".claude/skills/council-audit/SKILL.md", SKILL_AUDIT),
                (".mcp.json", MCP),
            ],
            Tool::ClaudePlugin => &[
                (".claude-plugin/plugin.json", CLAUDE_PLUGIN),
                ("hooks/hooks.json", CLAUDE_HOOKS),
                ("skills/council-review/SKILL.md", SKILL_REVIEW),
                ("skills/council-audit/SKILL.md", SKILL_AUDIT),
                (".mcp.json", MCP),
            ],
            Tool::Codex => &[
                (".agents/skills/council-review/SKILL.md", SKILL_REVIEW),
                (".agents/skills/council-review/agents/openai.yaml", SKILL_POLICY),
                (".agents/skills/council-audit/SKILL.md", SKILL_AUDIT),
                (".agents/skills/council-audit/agents/openai.yaml", SKILL_POLICY),
            ],
            Tool::Cursor => &[(".cursor/hooks.json", CURSOR_HOOKS), (".cursor/mcp.json", MCP)],
            Tool::Github => &[
                (".github/workflows/quorate.yml", GITHUB),
                (".github/workflows/quorate-comment.yml", GITHUB_COMMENT),
            ],
            Tool::Gitlab => &[(".gitlab/quorate.gitlab-ci.yml", GITLAB)],
            Tool::PreCommit => &[(".pre-commit-config.yaml", PRE_COMMIT)],
        }
    }
}

/// Writes the missing files.
///
/// # Errors
/// If a file cannot be read or written, if a link leads out of the directory, or if the tool reads its files only in the
/// root of a repository and the directory is below it.
pub fn wire(dir: &Path, tool: Tool) -> Result<WiringResult, ServiceError> {
    ensure_root(dir, tool)?;
    let mut result = WiringResult::default();
    let mut files = Vec::new();
    for (name, template) in tool.files() {
        let (path, text) = (dir.join(name), template.replace(VERSION, env!("CARGO_PKG_VERSION")));
        match read(&path)? {
            None => files.push((path, text)),
            Some(there) if there == text => result.same.push(path),
            Some(_) => result.other.push((path, text)),
        }
    }
    write(dir, &files)?;
    result.done = files.into_iter().map(|(path, _)| path).collect();
    Ok(result)
}

/// Removes the files that any version of this program wrote and that are unchanged since, and then the empty directories.
///
/// # Errors
/// If a file cannot be read or removed.
pub fn unwire(dir: &Path, tool: Tool) -> Result<WiringResult, ServiceError> {
    let mut result = WiringResult::default();
    let paths: Vec<PathBuf> = tool.files().iter().map(|(name, _)| dir.join(name)).collect();
    ensure_inside(dir, paths.iter().map(PathBuf::as_path))?;
    for (path, (_, template)) in paths.into_iter().zip(tool.files()) {
        match read(&path)? {
            None => {}
            Some(there) if is_from(template, &there) => {
                disk::remove(&path).map_err(|error| unusable(&path, "removed", &error))?;
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

fn ensure_root(dir: &Path, tool: Tool) -> Result<(), ServiceError> {
    let is_read_in_root = matches!(tool, Tool::Github | Tool::Gitlab | Tool::PreCommit);
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
    Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body))
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
fn read(path: &Path) -> Result<Option<String>, ServiceError> {
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    match disk::read_up_to(path, crate::service::artifact::MAX_BYTES) {
        // A lossy conversion is enough: the text is only compared with a template.
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) => Err(unusable(path, "read", &error)),
    }
}

fn unusable(path: &Path, what: &str, error: &std::io::Error) -> ServiceError {
    let body = Body::new(format!("{} cannot be {what}: {error}", path.display()));
    ServiceError::configuration(codes::FILE_EXISTS, body.help("move it away, and repeat the command"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_matches_the_files_of_any_version_and_no_others() {
        for tool in [Tool::ClaudePlugin, Tool::Github, Tool::Gitlab] {
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
