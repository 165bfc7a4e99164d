//! Trust in the files of a workspace: what they would run or send, and the decision of a person, which is recorded in the
//! state directory by the content of each file.

use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use serde::Serialize;

use super::builder::Quorate;
use super::error::Error;
use super::service::disk::{self, absolute, display_path};
use super::service::environment::Environment;
use super::service::manifests::file_not_found;
use super::service::trust::requests::TrustRequest;
use super::service::trust::{TrustStore, canonical, decide};
use super::view::{Doc, Text};

/// What happens to the trust in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustAction {
    /// The files were listed.
    Inspected,
    /// The files are trusted.
    Trusted,
    /// No file below the root is trusted.
    Revoked,
}

/// The files of a workspace that need trust, with their states after an action.
#[derive(Debug, Clone, Serialize)]
pub struct TrustReport {
    /// The root of the workspace.
    pub root: PathBuf,
    /// The hash over all files, which `QUORATE_TRUST` can name.
    pub hash: String,
    /// What the files would run or send.
    pub needs: Vec<TrustNeed>,
    /// The files.
    pub files: Vec<FileTrust>,
    /// What was done.
    #[serde(skip)]
    pub action: TrustAction,
}

/// What a file of a workspace would run or send.
#[derive(Debug, Clone, Serialize)]
pub struct TrustNeed {
    /// The file.
    pub file: PathBuf,
    /// Its path as shown to the user.
    #[serde(skip)]
    pub shown: String,
    /// Its commands, servers and other side effects, in words.
    pub acts: Vec<String>,
}

/// Whether a file is trusted.
#[derive(Debug, Clone, Serialize)]
pub struct FileTrust {
    /// The file, by its canonical path.
    pub file: PathBuf,
    /// Its path as shown to the user.
    #[serde(skip)]
    pub shown: String,
    /// SHA-256 of its bytes, in hex.
    pub sha256: String,
    /// Whether it is trusted with these bytes.
    pub trusted: bool,
}

/// A directory whose configuration counts, or no longer counts, although another user owns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum SafeDirectory {
    /// It counts from now on.
    #[serde(rename = "safe_directory")]
    Added(PathBuf),
    /// It no longer counts.
    #[serde(rename = "revoked_safe_directory")]
    Removed(PathBuf),
}

impl Quorate {
    /// Lists what these files would run or send, trusts them, or revokes the trust in them; without files, those of the
    /// workspace that need trust. Nothing is started. Revoking covers all files below the workspace's root.
    ///
    /// # Errors
    /// If a file does not exist, or the record of trust cannot be read or written.
    ///
    /// ```
    /// use quorate::Quorate;
    /// use quorate::trust::TrustAction;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let config = "[executors.judge]\ncommand = \"./judge.sh\"\n";
    /// std::fs::write(dir.path().join("quorate.toml"), config)?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let inspected = quorate.decide_trust(&[], TrustAction::Inspected)?;
    /// assert!(inspected.needs[0].acts[0].contains("judge.sh"));
    /// assert!(!inspected.files[0].trusted);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decide_trust(&self, files: &[PathBuf], action: TrustAction) -> Result<TrustReport, Error> {
        let files = files.iter().map(|file| self.named_path(file.clone())).collect::<Result<Vec<_>, _>>()?;
        let environment = &self.environment;
        let inventory = match files.is_empty() {
            true => decide::inventory_of_workspace(environment, &environment.directory)?,
            false => decide::inventory_of(environment, &files)?,
        };
        match action {
            TrustAction::Trusted if !inventory.files.is_empty() => {
                required_store(environment)?.add(&inventory.files, environment.clock.now_ms())?;
            }
            TrustAction::Inspected | TrustAction::Trusted => {}
            TrustAction::Revoked => {
                let root = canonical(&inventory.root);
                required_store(environment)?.change(|trusted| {
                    trusted
                        .files
                        .retain(|file, _| !file.starts_with(&root) && !inventory.files.contains_key(file));
                })?;
            }
        }
        let store = TrustStore::of(environment)?;
        let trusted = store.as_ref().map(TrustStore::read).transpose()?.unwrap_or_default();
        let hash = inventory.hash();
        let need = |TrustRequest { file, acts }| TrustNeed {
            shown: display_path(environment, &file),
            file,
            acts: acts.into_iter().map(|act| act.what).collect(),
        };
        let file = |(file, sha256): (PathBuf, String)| FileTrust {
            shown: display_path(environment, &file),
            trusted: trusted.trusts(&file, &sha256),
            file,
            sha256,
        };
        Ok(TrustReport {
            root: inventory.root,
            hash,
            needs: inventory.requests.into_iter().map(need).collect(),
            files: inventory.files.into_iter().map(file).collect(),
            action,
        })
    }

    /// Uses configuration in and below a directory although another user owns it.
    ///
    /// # Errors
    /// If the directory does not exist, or the record of trust cannot be written.
    ///
    /// ```
    /// use quorate::Quorate;
    /// use quorate::trust::SafeDirectory;
    ///
    /// let (dir, state) = (tempfile::tempdir()?, tempfile::tempdir()?);
    /// let quorate = Quorate::builder().workspace(dir.path()).state_dir(state.path()).build()?;
    /// assert!(matches!(quorate.add_safe_directory(dir.path())?, SafeDirectory::Added(_)));
    /// assert!(matches!(quorate.remove_safe_directory(dir.path())?, SafeDirectory::Removed(_)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add_safe_directory(&self, directory: &Path) -> Result<SafeDirectory, Error> {
        let path = absolute(&self.environment.directory, directory);
        let Some(path) = disk::canonical(&path).filter(|path| path.is_dir()) else {
            return Err(file_not_found(&directory.display().to_string()));
        };
        required_store(&self.environment)?.change(|trusted| {
            trusted.safe_directories.insert(path.clone());
        })?;
        Ok(SafeDirectory::Added(path))
    }

    /// Reverts [`Quorate::add_safe_directory`]. The directory need not exist any more.
    ///
    /// # Errors
    /// If the directory is not recorded, or the record of trust cannot be written.
    ///
    /// ```
    /// use quorate::{ErrorKind, Quorate};
    ///
    /// let (dir, state) = (tempfile::tempdir()?, tempfile::tempdir()?);
    /// let quorate = Quorate::builder().workspace(dir.path()).state_dir(state.path()).build()?;
    /// let unknown = quorate.remove_safe_directory(dir.path()).unwrap_err();
    /// assert_eq!(unknown.kind(), ErrorKind::NotFound);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_safe_directory(&self, directory: &Path) -> Result<SafeDirectory, Error> {
        let path = disk::canonical_or_new(&absolute(&self.environment.directory, directory));
        let mut was_there = false;
        required_store(&self.environment)?
            .change(|trusted| was_there = trusted.safe_directories.remove(&path))?;
        if was_there {
            return Ok(SafeDirectory::Removed(path));
        }
        let body = Body::new(format!("{} is not recorded as a safe directory", path.display()));
        let help = "pass the directory that was given to `--safe-directory`, not one below it";
        Err(Error::not_found(codes::FILE_UNREADABLE, body.help(help)))
    }
}

fn required_store(environment: &Environment) -> Result<TrustStore, Error> {
    TrustStore::of(environment)?.ok_or_else(|| {
        let body = Body::new("cannot record trust: neither XDG_STATE_HOME nor HOME names a directory");
        let help = "set HOME, or use `--trust` or QUORATE_TRUST for each command";
        Error::configuration(codes::TRUST_UNREADABLE, body.help(help))
    })
}

impl TrustReport {
    /// What the files would run or send, and whether each is trusted.
    pub fn doc(&self) -> Doc {
        let root = self.root.display();
        let mut doc = Doc::new();
        if self.files.is_empty() {
            doc.line(format!("nothing to trust: no file of {root} names a command, hook, server or address"));
            return doc;
        }
        for need in &self.needs {
            need.acts.iter().for_each(|act| doc.line(format!("{}: {act}", need.shown)));
        }
        for file in &self.files {
            let state = if file.trusted { "trusted" } else { "not trusted" };
            doc.line(Text::from(state).and("  ").and(&file.shown));
        }
        doc.line(match self.action {
            TrustAction::Inspected => format!("hash {}", self.hash),
            TrustAction::Trusted => {
                "these files stay trusted until they change; `quorate trust --revoke` revokes trust"
                    .to_owned()
            }
            TrustAction::Revoked => format!("no file of {root} is trusted now"),
        });
        doc
    }
}

impl SafeDirectory {
    /// The directory, and whether its configuration counts.
    pub fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        doc.line(match self {
            SafeDirectory::Added(directory) => format!(
                "configuration in {} counts from now on, although another user owns it",
                directory.display()
            ),
            SafeDirectory::Removed(directory) => {
                format!("configuration in {} no longer counts if another user owns it", directory.display())
            }
        });
        doc
    }
}
