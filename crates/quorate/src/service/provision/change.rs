//! The change of one file: its current content, its new content, and its new entry in the setup ledger.

use std::sync::Arc;

use quorate_diagnostics::{Body, Place, RefusalCode, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::provisioning::{FileMode, PackageFile, Strategy};
use quorate_manifest::tree::Problem;

use super::files::{Access, FileContent, FileError};
use super::setup::{ContentKind, Error, InstallRecord, StoredContent};

/// The change of one file.
#[derive(Debug)]
pub struct Change {
    pub dest: String,
    /// How it combines with the existing file.
    pub strategy: Strategy,
    pub found: Option<FileContent>,
    pub write: Write,
    /// The new entry; `None` if the profile has no part in the file.
    pub fact: Option<InstallRecord>,
    /// The change, for users.
    pub action: Action,
    /// Notes, each a sentence without a full stop.
    pub notes: Vec<String>,
    /// Contents that the fact names and that must be stored.
    pub contents: Vec<(ContentKind, Arc<[u8]>)>,
    /// The path of a backup of the existing content, if the change would lose it.
    pub aside: Option<String>,
    /// The content that was expected.
    pub expected: Option<Vec<u8>>,
}

/// The operation on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    Nothing,
    /// Replaces the content.
    Put(Arc<[u8]>, Access),
    Remove,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Create,
    /// Changes an existing file.
    Change,
    /// Creates an installed file again that the user removed.
    PutBack,
    /// Only makes the file executable.
    Permit,
    /// The file has the desired content.
    Keep,
    /// The file belongs to the user and stays.
    Leave,
    /// Restores the earlier content.
    Restore,
    Delete,
    /// The file was edited since, and stays unchanged.
    Edited,
}

impl Action {
    /// The word in output.
    pub fn word(self) -> &'static str {
        match self {
            Action::Create => "create",
            Action::Change => "change",
            Action::PutBack => "put back",
            Action::Permit => "make executable",
            Action::Keep => "keep",
            Action::Leave => "leave",
            Action::Restore => "restore",
            Action::Delete => "delete",
            Action::Edited => "edited",
        }
    }
}

impl Change {
    pub fn nothing(dest: &str, strategy: Strategy, found: Option<FileContent>, action: Action) -> Change {
        Change {
            dest: dest.to_owned(),
            strategy,
            found,
            write: Write::Nothing,
            fact: None,
            action,
            notes: Vec::new(),
            contents: Vec::new(),
            aside: None,
            expected: None,
        }
    }

    /// The content after the change; `None` for no file.
    pub fn result(&self) -> Option<&[u8]> {
        match &self.write {
            Write::Nothing => self.found.as_ref().map(|found| &*found.bytes),
            Write::Put(bytes, _) => Some(bytes),
            Write::Remove => None,
        }
    }

    /// The hash of the existing content.
    pub fn current_hash(&self) -> Option<String> {
        self.found.as_ref().map(|found| sha256_hex(&found.bytes))
    }

    /// The hash of the file after the change.
    pub fn resulting_hash(&self) -> Option<String> {
        self.result().map(sha256_hex)
    }

    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Change {
        self.notes.push(note.into());
        self
    }
}

/// The desired state of a file, before it is compared with the existing one.
#[derive(Debug, Default)]
pub struct DesiredFile {
    /// The content; `None` if the existing content stays.
    pub bytes: Option<Arc<[u8]>>,
    pub fact: Option<InstallRecord>,
    /// Contents that the fact names.
    pub contents: Vec<(ContentKind, Arc<[u8]>)>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl DesiredFile {
    /// The content that a package file results in, over a base.
    pub fn of(piece: &PackageFile, bytes: Arc<[u8]>, base: Option<&FileContent>) -> DesiredFile {
        let stored = base.map(|base| StoredContent { sha256: sha256_hex(&base.bytes), mode: base.mode });
        let mut contents = vec![
            (ContentKind::Installed, Arc::clone(&piece.bytes)),
            (ContentKind::Installed, Arc::clone(&bytes)),
        ];
        contents.extend(base.map(|base| (ContentKind::Before, Arc::from(&*base.bytes))));
        let fact = InstallRecord {
            strategy: piece.strategy,
            mode: piece.mode,
            source: sha256_hex(&piece.bytes),
            base: stored,
            text: sha256_hex(&bytes),
            added: None,
        };
        DesiredFile { bytes: Some(bytes), fact: Some(fact), contents, notes: Vec::new() }
    }

    /// Keeps the installed content.
    pub fn unchanged(piece: &PackageFile, fact: &InstallRecord) -> DesiredFile {
        DesiredFile {
            fact: Some(InstallRecord { mode: piece.mode, ..fact.clone() }),
            ..DesiredFile::default()
        }
    }

    /// Compares the desired state with the existing file.
    pub fn into_change(
        self,
        piece: &PackageFile,
        found: Option<FileContent>,
        base_mode: Option<u32>,
    ) -> Change {
        let dest = piece.dest.as_str();
        let run = piece.mode == FileMode::Executable && self.fact.is_some();
        let with_run = |mode: u32| if run { mode | ((mode & 0o444) >> 2) } else { mode };
        let unchanged = match (&self.bytes, &found) {
            (None, _) => true,
            (Some(bytes), Some(found)) => **bytes == *found.bytes,
            (Some(_), None) => false,
        };
        let (write, action) = match (unchanged, &found) {
            (true, Some(there)) if with_run(there.mode) != there.mode => {
                (Write::Put(Arc::from(&*there.bytes), Access::Exactly(with_run(there.mode))), Action::Permit)
            }
            (true, _) => (Write::Nothing, if self.fact.is_some() { Action::Keep } else { Action::Leave }),
            (false, there) => {
                let access = match there.as_ref().map(|there| there.mode).or(base_mode) {
                    Some(mode) => Access::Exactly(with_run(mode)),
                    None if run => Access::Program,
                    None => Access::Data,
                };
                let action = if there.is_some() { Action::Change } else { Action::Create };
                (Write::Put(self.bytes.unwrap_or_else(|| Arc::from([])), access), action)
            }
        };
        let mut change = Change::nothing(dest, piece.strategy, found, action);
        (change.write, change.fact, change.notes, change.contents) =
            (write, self.fact, self.notes, self.contents);
        change
    }
}

/// Why a change cannot be planned.
#[derive(Debug)]
pub enum ChangeError {
    /// The text of the profile or of the existing file is invalid.
    Refused {
        code: RefusalCode,
        body: Box<Body>,
        /// The text that the place of `body` refers to.
        text: Option<String>,
    },
    /// The setup or the file cannot be read.
    Setup(Error),
}

impl ChangeError {
    /// An existing file cannot be used.
    pub fn target(body: Body) -> ChangeError {
        ChangeError::Refused { code: codes::PROFILE_TARGET, body: Box::new(body), text: None }
    }

    /// A file of the profile cannot be used.
    pub fn profile(body: Body) -> ChangeError {
        ChangeError::Refused { code: codes::PROFILE_INVALID, body: Box::new(body), text: None }
    }

    /// A text is not JSON.
    pub fn invalid_json(code: RefusalCode, file: &str, text: &str, problem: Problem) -> ChangeError {
        let place = |span| Place { file: file.into(), span, path: String::new() };
        let mut body = Body::new(format!("this is not JSON: {}", problem.message)).at(place(problem.span));
        body.help = problem.help;
        if let Some((span, label)) = problem.related {
            body = body.related(place(span), label);
        }
        ChangeError::Refused { code, body: Box::new(body), text: Some(text.to_owned()) }
    }
}

impl From<Error> for ChangeError {
    fn from(error: Error) -> ChangeError {
        match error {
            Error::Target { path, file_error: FileError::Obstructed(why) } => {
                ChangeError::target(Body::new(format!("{path} {why}")))
            }
            other => ChangeError::Setup(other),
        }
    }
}
