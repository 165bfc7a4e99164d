//! Files to start from, and the files with which other tools call Quorate.

use std::path::{Path, PathBuf};

pub use super::service::init::{ADVISED_OPERATOR, InitOutcome, InitTemplate, WiredTool};

use super::builder::Quorate;
use super::error::Error;
use super::service::disk::{absolute, display_path};
use super::service::init;

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
        init::council(&self.absolute(dir)?)
    }

    /// Writes a commented manifest into the directory's workspace, with everything that it refers to. A workspace without
    /// `quorate.toml` gets one.
    ///
    /// # Errors
    /// If the name is invalid, the manifest exists, or a file cannot be written.
    pub fn init_manifest(
        &self,
        dir: &Path,
        template: InitTemplate,
        name: &str,
    ) -> Result<InitOutcome, Error> {
        init::manifest(&self.environment, &self.absolute(dir)?, template, name)
    }

    /// Writes the missing files with which a tool calls Quorate.
    ///
    /// # Errors
    /// If a file cannot be read or written, if a link leads out of the directory, or if the tool reads its files only in
    /// the root of a repository and the directory is below it.
    pub fn wire(&self, dir: &Path, tool: WiredTool) -> Result<InitOutcome, Error> {
        init::wire(&self.absolute(dir)?, tool)
    }

    /// Removes the files that any version of this program wrote for a tool and that are unchanged since.
    ///
    /// # Errors
    /// If a file cannot be read or removed.
    pub fn unwire(&self, dir: &Path, tool: WiredTool) -> Result<InitOutcome, Error> {
        init::unwire(&self.absolute(dir)?, tool)
    }

    /// Writes files by their names into a directory, where none of them may exist.
    ///
    /// # Errors
    /// If the directory belongs to a ledger or to Git, or a file exists or cannot be written.
    pub fn write_new(&self, dir: &Path, files: &[(String, String)]) -> Result<(), Error> {
        init::write_new(&self.absolute(dir)?, dir, files)
    }

    /// A path as a person in the workspace's directory would write it.
    pub fn display_path(&self, path: &Path) -> String {
        display_path(&self.environment, path)
    }

    fn absolute(&self, path: &Path) -> Result<PathBuf, Error> {
        Ok(absolute(&self.environment.directory, &self.named_path(path.to_owned())?))
    }
}
