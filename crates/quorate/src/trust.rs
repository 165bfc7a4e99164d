//! Trust in the files of a workspace: what they would run or send, and the decision of a person, which is recorded in the
//! state directory by the content of each file.

use std::path::{Path, PathBuf};

use super::builder::Quorate;
use super::error::Error;
use super::service::trust::decide;
use super::view::{Doc, Text};

pub use super::service::trust::decide::{FileTrust, SafeDirectory, TrustAction, TrustNeed, TrustReport};

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
        decide::decide(&self.environment, &files, action)
    }

    /// Uses configuration in and below a directory although another user owns it.
    ///
    /// # Errors
    /// If the directory does not exist, or the record of trust cannot be written.
    pub fn add_safe_directory(&self, directory: &Path) -> Result<SafeDirectory, Error> {
        decide::add_safe_directory(&self.environment, directory)
    }

    /// Reverts [`Quorate::add_safe_directory`]. The directory need not exist any more.
    ///
    /// # Errors
    /// If the directory is not recorded, or the record of trust cannot be written.
    pub fn remove_safe_directory(&self, directory: &Path) -> Result<SafeDirectory, Error> {
        decide::remove_safe_directory(&self.environment, directory)
    }
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
