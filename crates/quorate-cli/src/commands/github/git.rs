//! What git says of the checked out commit and its base.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use quorate_diagnostics::{Body, codes};
use tempfile::TempDir;

use quorate::service::error::ServiceError;

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

    /// The files that the checked out commit adds or changes, by path.
    pub(super) async fn changed_files(&self) -> Result<Vec<ChangedFile>, ServiceError> {
        let arguments =
            ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--diff-filter=d", &self.base, &self.head];
        let listed = text(git(&self.root, &arguments).await?);
        let mut fields = listed.split_terminator('\0');
        let mut files = Vec::new();
        // `:100644 100644 OLD NEW M`, and then the path.
        while let (Some(meta), Some(path)) = (fields.next(), fields.next()) {
            let words: Vec<&str> = meta.split(' ').collect();
            let [_, mode, _, blob, _] = words[..] else {
                return Err(unusable(format!("git lists a change in a form that is not known: {meta}")));
            };
            let is_file = mode.starts_with("100");
            files.push(ChangedFile { path: path.to_owned(), blob: blob.to_owned(), is_file });
        }
        Ok(files)
    }

    /// The content of a changed file.
    pub(super) async fn content(&self, file: &ChangedFile) -> Result<Vec<u8>, ServiceError> {
        git(&self.root, &["cat-file", "blob", &file.blob]).await
    }

    /// Checks the base out beside the repository, for as long as the result lives.
    pub(super) async fn check_out_base(&self) -> Result<BaseCheckout, ServiceError> {
        let dir = tempfile::Builder::new()
            .prefix("quorate-base-")
            .tempdir()
            .map_err(|error| unusable(format!("cannot make a temporary directory: {error}")))?;
        let checkout = BaseCheckout { path: dir.path().join("base"), root: self.root.clone(), _dir: dir };
        let path = checkout.path.to_string_lossy().into_owned();
        git(&self.root, &["worktree", "add", "--quiet", "--detach", "--force", &path, &self.base]).await?;
        Ok(checkout)
    }
}

/// The base's files.
pub(super) struct BaseCheckout {
    pub(super) path: PathBuf,
    root: PathBuf,
    _dir: TempDir,
}

impl BaseCheckout {
    /// Removes the files.
    pub(super) async fn remove(self) -> Result<(), ServiceError> {
        let path = self.path.to_string_lossy().into_owned();
        git(&self.root, &["worktree", "remove", "--force", &path]).await.map(drop)
    }
}

/// Runs git and returns what it prints.
#[expect(clippy::disallowed_methods, reason = "git tells what a pull request changes")]
async fn git(directory: &Path, arguments: &[&str]) -> Result<Vec<u8>, ServiceError> {
    let mut command = tokio::process::Command::new("git");
    // No hook of the repository runs.
    command
        .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-C"])
        .arg(directory)
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output =
        command.output().await.map_err(|error| unusable(format!("git cannot be started: {error}")))?;
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
