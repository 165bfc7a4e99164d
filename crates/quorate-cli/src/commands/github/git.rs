//! What git says of the checked out commit and its base.

use std::io::{Seek as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;

use quorate_diagnostics::{Body, codes};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;

use quorate::service::error::ServiceError;
use quorate::service::{artifact, disk};

/// A repository with a commit that is checked out, and the base that it is compared with.
pub(super) struct Repository {
    root: PathBuf,
    /// The commits, by their hashes.
    base: String,
    head: String,
}

/// A file that the commit adds or changes.
pub(super) struct ChangedFile {
    pub(super) path: String,
    /// The hash of its content.
    pub(super) blob: String,
    /// Whether it is a file, and no link or other repository.
    pub(super) is_file: bool,
}

impl Repository {
    /// # Errors
    /// Without git, a repository or the base.
    pub(super) async fn open(directory: &Path, base: &str) -> Result<Repository, ServiceError> {
        let root = text(git(directory, &["rev-parse", "--show-toplevel"]).await?);
        let root = PathBuf::from(root.trim_end());
        let commit = async |name: &str| {
            let name = format!("{name}^{{commit}}");
            git(&root, &["rev-parse", "--verify", "--end-of-options", &name])
                .await
                .map(|hash| text(hash).trim().to_owned())
        };
        Ok(Repository { base: commit(base).await?, head: commit("HEAD").await?, root: root.clone() })
    }

    /// # Errors
    /// If the checked out commit is no merge: then the commit before it is the pull request's own, and no base.
    pub(super) async fn ensure_merge(&self) -> Result<(), ServiceError> {
        match git(&self.root, &["rev-parse", "--verify", "--quiet", "HEAD^2"]).await {
            Ok(_) => Ok(()),
            Err(_) => {
                Err(unusable("the checked out commit is not GitHub's merge of the pull request".to_owned()))
            }
        }
    }

    /// The files that the checked out commit adds or changes since it left the base, by path.
    pub(super) async fn changed_files(&self) -> Result<Vec<ChangedFile>, ServiceError> {
        let since = text(git(&self.root, &["merge-base", &self.base, &self.head]).await?);
        let arguments =
            ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--diff-filter=d", since.trim(), &self.head];
        let listed = text(git(&self.root, &arguments).await?);
        let mut fields = listed.split_terminator('\0');
        let mut files = Vec::new();
        // `:100644 100644 OLD NEW M`, and then the path.
        while let (Some(meta), Some(path)) = (fields.next(), fields.next()) {
            let words: Vec<&str> = meta.split(' ').collect();
            let [_, mode, _, blob, _] = words[..] else { return Err(unknown_form(meta)) };
            let is_file = mode.starts_with("100");
            files.push(ChangedFile { path: path.to_owned(), blob: blob.to_owned(), is_file });
        }
        Ok(files)
    }

    /// The content of a changed file.
    pub(super) async fn content(&self, file: &ChangedFile) -> Result<Vec<u8>, ServiceError> {
        git(&self.root, &["cat-file", "blob", &file.blob]).await
    }

    /// Writes the base's texts and links below a directory: all that configures a council. They are as they were committed, whatever
    /// filters, attributes or a sparse checkout would make of them.
    pub(super) async fn write_base(&self, into: &Path) -> Result<(), ServiceError> {
        let listed = text(git(&self.root, &["ls-tree", "-r", "-z", "-l", &self.base]).await?);
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
            .map_err(|error| unusable(format!("cannot write the files of the base: {error}")))
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
            // What is not text configures nothing.
            if let Ok(content) = String::from_utf8(content) {
                write(&into.join(name), mode, &content)?;
            }
        }
        child.wait().await.map(drop)
    }
}

/// A file of a commit, or a link.
struct TreeFile<'a> {
    name: &'a str,
    /// As git writes it.
    mode: &'a str,
    blob: &'a str,
}

/// The mode of a link.
const LINK: &str = "120000";

fn write(path: &Path, mode: &str, content: &str) -> std::io::Result<()> {
    #[cfg(unix)]
    if mode == LINK {
        return disk::link(path, content);
    }
    disk::write_new(path, content)?;
    #[cfg(unix)]
    if mode == "100755" {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

fn unknown_form(entry: &str) -> ServiceError {
    unusable(format!("git lists a file in a form that is not known: {entry}"))
}

/// Git, about to be started.
#[expect(clippy::disallowed_methods, reason = "git tells what a pull request changes")]
fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    // No hook of the repository runs, and no object stands for another.
    command
        .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-C"])
        .arg(directory)
        .args(arguments)
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Runs git and returns what it prints.
async fn git(directory: &Path, arguments: &[&str]) -> Result<Vec<u8>, ServiceError> {
    let output = command(directory, arguments)
        .output()
        .await
        .map_err(|error| unusable(format!("git cannot be started: {error}")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(unusable(format!("`git {}` failed: {}", arguments.join(" "), said.trim())))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

fn unusable(what: String) -> ServiceError {
    let help = "run it in a checkout of the pull request that has its base: `fetch-depth: 2`, or --base REV";
    ServiceError::configuration(codes::GITHUB_UNUSABLE, Body::new(what).help(help))
}
