//! Reads the checked out commit and its base from git.

use std::collections::BTreeMap;
use std::io::{Seek as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;

use super::unusable;
use crate::service::error::Error;
use crate::service::redaction::Variables;
use crate::service::{artifact, disk};

/// A repository with its checked out commit, and the base for the comparison.
pub(super) struct GitRepository {
    root: PathBuf,
    /// The commits, by their hashes.
    base: String,
    head: String,
}

/// A path that the commit changes.
pub(super) struct ChangedFile {
    pub(super) path: String,
    /// The hash of its content.
    blob: String,
    pub(super) becomes: Becomes,
}

/// The kind of a path's entry after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Becomes {
    File,
    /// A link, or another repository.
    LinkOrRepository,
    /// The path was removed.
    Nothing,
}

impl GitRepository {
    /// The repository of a directory. Without a `base`, the checked out commit must be GitHub's merge of a pull request, whose
    /// first parent is the base.
    ///
    /// # Errors
    /// If git, the repository or the base is missing.
    pub(super) async fn open(
        directory: &Path,
        base: Option<&str>,
        job: &Variables,
    ) -> Result<GitRepository, Error> {
        let root =
            git(directory, &["rev-parse", "--show-toplevel"], "run it in a checkout of the pull request")
                .await?;
        let root = PathBuf::from(text(root).trim_end_matches('\n'));
        let head = commit(&root, "HEAD", "check out the pull request").await?;
        let base = match base {
            Some(base) => {
                commit(&root, base, "--base takes a commit, a branch or a tag that git has here").await?
            }
            None => base_of_merge(&root, &head, job).await?,
        };
        Ok(GitRepository { root, base, head })
    }

    /// The paths of the checked out commit's files.
    pub(super) async fn paths(&self) -> Result<Vec<String>, Error> {
        let listed =
            text(git(&self.root, &["ls-tree", "-r", "-z", "--name-only", &self.head], CHECK_CLONE).await?);
        Ok(listed.split_terminator('\0').map(str::to_owned).collect())
    }

    /// The changes of the checked out commit since its merge base, by path. With several merge bases, a path that differs from
    /// any of them is changed.
    pub(super) async fn changed_files(&self) -> Result<Vec<ChangedFile>, Error> {
        let arguments = ["merge-base", "--all", &self.base, &self.head];
        let help = "fetch more of the history, with a larger `fetch-depth`";
        let found = git(&self.root, &arguments, help).await.map_err(|_| {
            unusable("the checked out commit and its base have no common commit here".to_owned(), help)
        })?;
        let mut changed = BTreeMap::new();
        for since in text(found).lines() {
            for file in self.changed_since(&hash(since.to_owned())?).await? {
                changed.insert(file.path.clone(), file);
            }
        }
        Ok(changed.into_values().collect())
    }

    async fn changed_since(&self, since: &str) -> Result<Vec<ChangedFile>, Error> {
        let arguments = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", since, &self.head];
        let listed = text(git(&self.root, &arguments, CHECK_CLONE).await?);
        let mut fields = listed.split_terminator('\0');
        let mut files = Vec::new();
        // `:100644 100644 OLD NEW M`, and then the path.
        while let Some(meta) = fields.next() {
            let words: Vec<&str> = meta.split(' ').collect();
            let ([_, mode, _, blob, _], Some(path)) = (&words[..], fields.next()) else {
                return Err(unknown_form(meta));
            };
            let becomes = match *mode {
                "100644" | "100755" => Becomes::File,
                LINK | REPOSITORY => Becomes::LinkOrRepository,
                "000000" => Becomes::Nothing,
                _ => return Err(unknown_form(meta)),
            };
            files.push(ChangedFile { path: path.to_owned(), blob: hash((*blob).to_owned())?, becomes });
        }
        Ok(files)
    }

    /// The content of a changed file.
    pub(super) async fn content(&self, file: &ChangedFile) -> Result<Vec<u8>, Error> {
        git(&self.root, &["cat-file", "blob", &file.blob], CHECK_CLONE).await
    }

    /// Writes the texts and links of the base below a directory: everything that configures a council. Their content is that of
    /// the commit; filters, attributes and a sparse checkout have no effect.
    pub(super) async fn write_base(&self, into: &Path) -> Result<(), Error> {
        let listed = text(git(&self.root, &["ls-tree", "-r", "-z", "-l", &self.base], CHECK_CLONE).await?);
        let mut entries = Vec::new();
        for entry in listed.split_terminator('\0') {
            // `100644 blob HASH SIZE`, a tab, and the path.
            let Some((meta, name)) = entry.split_once('\t') else { return Err(unknown_form(entry)) };
            let words: Vec<&str> = meta.split_whitespace().collect();
            let [mode, kind, blob, size] = words[..] else { return Err(unknown_form(entry)) };
            let is_inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
            let is_small = size.parse().is_ok_and(|size: u64| size <= artifact::MAX_BYTES);
            if kind == "blob" && is_inside && is_small {
                entries.push(TreeFile { name, mode, blob });
            }
        }
        // Links come last, so that no file is written through one.
        entries.sort_by_key(|entry| entry.mode == LINK);
        self.write_files(&entries, into)
            .await
            .map_err(|error| unusable(format!("cannot write the files of the base: {error}"), CHECK_CLONE))
    }

    /// Writes files below a directory. Git reads them, in their order.
    async fn write_files(&self, files: &[TreeFile<'_>], into: &Path) -> std::io::Result<()> {
        let mut asked = tempfile::tempfile()?;
        let hashes: Vec<&str> = files.iter().map(|file| file.blob).collect();
        writeln!(asked, "{}", hashes.join("\n"))?;
        asked.rewind()?;
        let mut child =
            command(&self.root, &["cat-file", "--batch"]).stdin(asked).stdout(Stdio::piped()).spawn()?;
        let Some(stdout) = child.stdout.take() else { return Ok(()) };
        let mut reader = BufReader::new(stdout);
        for TreeFile { name, mode, .. } in files {
            // `HASH blob SIZE`, the content, and a line break.
            let mut head = String::new();
            reader.read_line(&mut head).await?;
            let size = head.trim_end().rsplit(' ').next().and_then(|size| size.parse().ok());
            let size: usize =
                size.ok_or_else(|| std::io::Error::other(format!("{name}: git says {head}")))?;
            let mut content = vec![0; size + 1];
            reader.read_exact(&mut content).await?;
            content.pop();
            // Only text configures a council.
            if let Ok(content) = String::from_utf8(content) {
                write(&into.join(name), mode, &content)?;
            }
        }
        match child.wait().await?.success() {
            true => Ok(()),
            false => Err(std::io::Error::other("git has failed")),
        }
    }
}

/// A file of a commit, or a link.
struct TreeFile<'a> {
    name: &'a str,
    /// Git's mode.
    mode: &'a str,
    blob: &'a str,
}

/// The modes of a link, and of another repository.
const LINK: &str = "120000";
const REPOSITORY: &str = "160000";

const CHECK_CLONE: &str = "run `git fsck` to see what the clone lacks";

fn write(path: &Path, mode: &str, content: &str) -> std::io::Result<()> {
    if mode == LINK {
        return disk::link(path, content);
    }
    disk::write_new(path, content)?;
    if mode == "100755" {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// The base of the merge that GitHub makes of a pull request.
async fn base_of_merge(root: &Path, head: &str, job: &Variables) -> Result<String, Error> {
    let event = job.get("GITHUB_EVENT_NAME").filter(|event| !event.is_empty());
    if let Some(event) = event.filter(|event| *event != "pull_request") {
        return Err(unusable(
            format!("the base of the checked out commit is unknown in an event `{event}`"),
            "name it with --base",
        ));
    }
    let help = "check out the pull request with its base, `fetch-depth: 2`, or name it with --base";
    let base = commit(root, "HEAD^1", help)
        .await
        .map_err(|_| unusable("the clone lacks the base of the checked out commit".to_owned(), help))?;
    let is_merge = git(root, &["rev-parse", "--verify", "--quiet", "HEAD^2"], "").await.is_ok();
    let is_of_event = event.is_none() || job.get("GITHUB_SHA").is_none_or(|commit| commit == head);
    match is_merge && is_of_event {
        true => Ok(base),
        // The first parent could be a commit of the pull request.
        false => Err(unusable(
            "the checked out commit is not GitHub's merge of the pull request".to_owned(),
            "use `actions/checkout` without a `ref`, or name the base with --base",
        )),
    }
}

/// The hash of a commit.
async fn commit(root: &Path, name: &str, help: &str) -> Result<String, Error> {
    let name = format!("{name}^{{commit}}");
    hash(text(git(root, &["rev-parse", "--verify", "--end-of-options", &name], help).await?))
}

/// A hash that git has printed: SHA-1 or SHA-256, hexadecimal.
fn hash(printed: String) -> Result<String, Error> {
    let hash = printed.trim_end();
    match matches!(hash.len(), 40 | 64) && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(hash.to_owned()),
        false => Err(unusable(format!("expected one object from git, got `{hash}`"), "name one commit")),
    }
}

fn unknown_form(entry: &str) -> Error {
    unusable(format!("cannot parse git's list of files: {entry}"), "use git 2.31 or newer")
}

/// A git command that ends when it is dropped, and ignores signals of the terminal.
#[expect(clippy::disallowed_methods, reason = "git lists the changes of a pull request")]
fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    // Hooks of the repository, replacement objects and grafts have no effect.
    command
        .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"])
        .args(["-c", "advice.graftFileDeprecated=false", "-C"])
        .arg(directory)
        .args(arguments)
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_GRAFT_FILE", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command.process_group(0);
    command
}

/// Runs git and returns its output. `help` tells the user what to do about a failure.
async fn git(directory: &Path, arguments: &[&str], help: &str) -> Result<Vec<u8>, Error> {
    let output = command(directory, arguments)
        .output()
        .await
        .map_err(|error| unusable(format!("cannot start git: {error}"), "install git"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(unusable(format!("`git {}` failed: {}", arguments.join(" "), said.trim()), help))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
