//! The change of one file: its current content, its new content, and its new record. Plans it for an install and for an
//! uninstall, from the strategy, the existing file and its drift from the earlier installation.

use std::sync::Arc;

use jsonc_parser::cst::CstRootNode;
use quorate_diagnostics::{Body, Place, RefusalCode, Report, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::provisioning::{FileMode, PackageFile, Strategy};
use serde::Serialize;

use super::setup::{ASIDE_DIR, ContentKind, Record, Setup, Setups, StoredContent};
use super::target::{Access, FileContent};
use super::text::{self, InvalidJson};
use crate::error::{Error, ErrorKind};
use crate::service::disk::shell_quoted;

/// The change of one file.
#[derive(Debug)]
pub(super) struct FileChange {
    pub dest: String,
    /// How it combines with the existing file.
    pub strategy: Strategy,
    pub found: Option<FileContent>,
    pub write: FileWrite,
    /// The new record; `None` if the profile has no part in the file.
    pub record: Option<Record>,
    /// The change, for users.
    pub action: FileAction,
    /// Notes, each a sentence without a full stop.
    pub notes: Vec<String>,
    /// Contents that the record names and that must be stored.
    pub contents: Vec<(ContentKind, Arc<[u8]>)>,
    /// The path for a copy of the existing content, if the change would lose an edit.
    pub aside: Option<String>,
    /// For an edited file that stays, the content that was expected.
    pub expected: Option<Arc<[u8]>>,
}

/// The operation on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileWrite {
    Nothing,
    /// Replaces the content.
    Put(Arc<[u8]>, Access),
    Remove,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileAction {
    /// Creates a file.
    Create,
    /// Changes an existing file.
    Change,
    /// Creates an installed file again that the user removed.
    #[serde(rename = "put back")]
    PutBack,
    /// Only makes the file executable.
    #[serde(rename = "make executable")]
    Permit,
    /// The file has the desired content.
    Keep,
    /// The file belongs to the user and stays.
    Leave,
    /// Restores the earlier content.
    Restore,
    /// Deletes the file.
    Delete,
    /// The file was edited since, and stays unchanged.
    Edited,
}

/// How a file differs from its installed content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Drift {
    /// The file is unchanged.
    #[serde(rename = "in place")]
    InPlace,
    /// The file was edited, but the profile's content is intact, or its strategy allows edits.
    #[serde(rename = "extended")]
    EditedAround,
    /// The profile's content was edited or removed.
    Edited,
    /// The file does not exist, or an interrupted command has not written it.
    Missing,
}

impl FileChange {
    fn new(dest: &str, strategy: Strategy, found: Option<FileContent>, action: FileAction) -> FileChange {
        FileChange {
            dest: dest.to_owned(),
            strategy,
            found,
            write: FileWrite::Nothing,
            record: None,
            action,
            notes: Vec::new(),
            contents: Vec::new(),
            aside: None,
            expected: None,
        }
    }

    /// The content after the change; `None` for no file.
    pub(super) fn result(&self) -> Option<&[u8]> {
        match &self.write {
            FileWrite::Nothing => self.found.as_ref().map(|found| &*found.bytes),
            FileWrite::Put(bytes, _) => Some(bytes),
            FileWrite::Remove => None,
        }
    }

    #[must_use]
    pub(super) fn with_note(mut self, note: impl Into<String>) -> FileChange {
        self.notes.push(note.into());
        self
    }

    /// Keeps a copy of the existing content if the change would lose it.
    fn set_aside(&mut self) {
        let (Some(found), true) = (&self.found, self.write != FileWrite::Nothing) else { return };
        let name = self.dest.rsplit('/').next().unwrap_or(&self.dest);
        let hash = sha256_hex(&[self.dest.as_bytes(), b"\0", &found.bytes].concat());
        // Shortened, since a name of the maximum length leaves no room for the hash.
        let short: String = name.chars().take(40).collect();
        let path = format!("{ASIDE_DIR}/{}-{short}", &hash[..12]);
        self.notes.push(format!("the earlier content is kept as {path}"));
        self.aside = Some(path);
    }
}

/// Plans the changes of a profile's files.
pub(super) struct Planner<'s> {
    pub setups: &'s Setups<'s>,
    /// The profile's own setup.
    pub setup: &'s Setup,
    /// Whether edited content is replaced or removed.
    pub force: bool,
}

/// A file without the profile's part.
struct Stripped {
    content: Option<FileContent>,
    /// A sentence for each installed part that was edited or removed since, and is left unchanged.
    notes: Vec<String>,
    /// Whether the installed part was intact.
    intact: bool,
}

impl Planner<'_> {
    /// Plans the change that installs a file.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] if the file of the profile or the existing file does not permit it.
    pub(super) fn install(&self, piece: &PackageFile) -> Result<FileChange, Error> {
        let dest = piece.dest.as_str();
        self.refuse_claimed(piece)?;
        let found = self.setups.target.read(dest)?;
        let Some(record) = self.setup.record(dest) else {
            // The profile becomes the last one of this file. If another is later in a file that both changed, neither could
            // be uninstalled first.
            if self.setups.others(&self.setup.slug, dest).next().is_some() {
                for (other, entry) in &self.setup.files {
                    self.refuse_later(other, &entry.installed)?;
                }
            }
            return self.put(piece, found.clone(), found);
        };
        let drift = self.drift(dest, record, found.as_ref())?;
        let is_same = record.source == sha256_hex(&piece.bytes) || piece.strategy == Strategy::Preserve;
        if is_same
            && record.strategy == piece.strategy
            && matches!(drift, Drift::InPlace | Drift::EditedAround)
        {
            let note = match (drift, piece.strategy) {
                (Drift::InPlace, _) => None,
                (_, Strategy::Preserve) => Some("it was edited since and is preserved"),
                _ => Some("it was edited since, and the profile's content is intact"),
            };
            let mut change = finish(piece, None, found, Some(record.clone()));
            change.notes.extend(note.map(str::to_owned));
            return Ok(change);
        }
        self.refuse_later(dest, record)?;
        let base = match (&found, drift) {
            (None, _) | (_, Drift::Missing) => self.setups.backup(self.setup, record)?,
            (Some(there), Drift::Edited) if !self.force && there.bytes != piece.bytes => {
                return self.edited(dest, record, found);
            }
            (Some(there), _) => self.strip(self.setup, record, there)?.content,
        };
        let is_missing = found.is_none();
        let mut change = self.put(piece, base, found)?;
        if is_missing {
            change.action = FileAction::PutBack;
        }
        if drift == Drift::Edited {
            change.set_aside();
        }
        Ok(change)
    }

    /// Plans the change that removes the profile's part of a file.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] if a later profile has changed the file, or the path cannot be read as a file.
    pub(super) fn remove(&self, dest: &str, record: &Record) -> Result<FileChange, Error> {
        self.refuse_later(dest, record)?;
        let found = self.setups.target.read(dest)?;
        let backup = self.setups.backup(self.setup, record)?;
        let leave = |found, note: &str| {
            Ok(FileChange::new(dest, record.strategy, found, FileAction::Leave).with_note(note))
        };
        let stripped = match &found {
            None if backup.is_none() => return leave(found, "it was already removed"),
            None => Stripped { content: backup.clone(), notes: Vec::new(), intact: true },
            Some(there) => {
                let hash = sha256_hex(&there.bytes);
                let is_back = backup.as_ref().is_some_and(|backup| backup.bytes == there.bytes);
                if is_back && hash != record.text {
                    return leave(found, "it already has its earlier content");
                }
                match self.setup.is_pending(record, &hash) {
                    true => Stripped { content: backup.clone(), notes: Vec::new(), intact: true },
                    false => self.strip(self.setup, record, there)?,
                }
            }
        };
        let replaces_edit = record.strategy == Strategy::Overwrite && !stripped.intact;
        if replaces_edit && !self.force {
            return self.edited(dest, record, found);
        }
        let (write, action) = match stripped.content {
            content if content == found => (FileWrite::Nothing, FileAction::Leave),
            None => (FileWrite::Remove, FileAction::Delete),
            Some(content) => {
                let is_backup = backup.is_some_and(|backup| backup.bytes == content.bytes);
                let action = if is_backup { FileAction::Restore } else { FileAction::Change };
                (FileWrite::Put(content.bytes, Access::Exactly(content.mode)), action)
            }
        };
        let mut change = FileChange::new(dest, record.strategy, found, action);
        (change.write, change.notes) = (write, stripped.notes);
        if replaces_edit {
            change.set_aside();
        }
        Ok(change)
    }

    /// Compares a file with its record. What later profiles have set does not count as an edit.
    ///
    /// # Errors
    /// If a stored content cannot be read.
    pub(super) fn drift(
        &self,
        dest: &str,
        record: &Record,
        found: Option<&FileContent>,
    ) -> Result<Drift, Error> {
        let Some(found) = found else { return Ok(Drift::Missing) };
        let hash = sha256_hex(&found.bytes);
        if hash == record.text {
            return Ok(Drift::InPlace);
        }
        if self.setup.is_pending(record, &hash) {
            return Ok(Drift::Missing);
        }
        let mut content = Some(found.clone());
        for (setup, later) in self.setups.later(&self.setup.slug, dest, record) {
            content = match content {
                Some(there) => self.strip(setup, later, &there)?.content,
                None => None,
            };
        }
        let Some(content) = content else { return Ok(Drift::Edited) };
        let intact =
            sha256_hex(&content.bytes) == record.text || self.strip(self.setup, record, &content)?.intact;
        Ok(if intact { Drift::EditedAround } else { Drift::Edited })
    }

    /// The file without a profile's part. Edited parts stay, except in a file that the profile overwrote.
    fn strip(&self, setup: &Setup, record: &Record, found: &FileContent) -> Result<Stripped, Error> {
        let backup = self.setups.backup(setup, record)?;
        if sha256_hex(&found.bytes) == record.text {
            return Ok(Stripped { content: backup, notes: Vec::new(), intact: true });
        }
        let with = |text: String| Some(FileContent { bytes: text.into_bytes().into(), mode: found.mode });
        let stays = |why: String, intact| Stripped { content: Some(found.clone()), notes: vec![why], intact };
        let installed = self.setups.installed(setup, record)?;
        let texts = || {
            let backup = backup.as_ref().map(|backup| std::str::from_utf8(&backup.bytes)).transpose();
            Some((
                std::str::from_utf8(&found.bytes).ok()?,
                backup.ok()?,
                std::str::from_utf8(&installed).ok()?,
            ))
        };
        Ok(match (record.strategy, texts()) {
            (Strategy::Overwrite, _) => Stripped { content: backup, notes: Vec::new(), intact: false },
            (Strategy::Preserve, _) => stays("it was edited since and stays".to_owned(), true),
            (Strategy::Append, Some((now, before, installed))) => {
                let added = installed.strip_prefix(before.unwrap_or_default());
                match added.and_then(|added| text::remove_addition(now, added)) {
                    Some(rest) if rest.is_empty() && before.is_none() => {
                        Stripped { content: None, notes: Vec::new(), intact: true }
                    }
                    Some(rest) => Stripped { content: with(rest), notes: Vec::new(), intact: true },
                    None => stays("the appended text was edited since and stays".to_owned(), false),
                }
            }
            (Strategy::MergeJsonDeep, Some((now, before, installed))) => {
                let parsed = text::parse(now)
                    .and_then(|now| Ok((now, before.map(text::parse).transpose()?, text::parse(installed)?)));
                match parsed {
                    Ok((now, before, installed)) => {
                        let removal = text::unmerge(&now, before.as_ref(), &installed);
                        let intact = removal.left.is_empty();
                        let content = removal.text.map_or(backup, with);
                        Stripped { content, notes: removal.left, intact }
                    }
                    Err(invalid) => stays(format!("it {}, and stays", invalid.message), false),
                }
            }
            (_, None) => stays("it is no longer UTF-8 and stays".to_owned(), false),
        })
    }

    /// Plans to put a file over the content without the profile.
    fn put(
        &self,
        piece: &PackageFile,
        base: Option<FileContent>,
        found: Option<FileContent>,
    ) -> Result<FileChange, Error> {
        let dest = piece.dest.as_str();
        let mut note = None;
        let bytes: Option<Arc<[u8]>> = match (piece.strategy, &base) {
            (Strategy::Preserve, Some(_)) => {
                note = Some("it already exists and is preserved");
                None
            }
            (Strategy::Append, base) => {
                let block = utf8(codes::PROFILE_INVALID, &piece.source, &piece.bytes)?;
                let text =
                    base.as_ref().map_or(Ok(""), |base| utf8(codes::PROFILE_TARGET, dest, &base.bytes))?;
                match text::addition(text, block) {
                    Some(added) => Some(format!("{text}{added}").into_bytes().into()),
                    None if base.is_none() => Some(Arc::clone(&piece.bytes)),
                    None => {
                        note = Some("it already contains the text");
                        None
                    }
                }
            }
            (Strategy::MergeJsonDeep, base) => {
                let profile = json(codes::PROFILE_INVALID, &piece.source, &piece.bytes)?;
                let target =
                    base.as_ref().map(|base| json(codes::PROFILE_TARGET, dest, &base.bytes)).transpose()?;
                Some(match target {
                    Some(target) => {
                        let merged = text::merge(&target, &profile);
                        merged
                            .map_err(|invalid| not_json(codes::PROFILE_TARGET, dest, "", invalid))?
                            .into_bytes()
                            .into()
                    }
                    None => Arc::clone(&piece.bytes),
                })
            }
            (Strategy::Overwrite | Strategy::Preserve, _) => Some(Arc::clone(&piece.bytes)),
        };
        let layer =
            self.setups.others(&self.setup.slug, dest).map(|(_, other)| other.layer).max().unwrap_or(0);
        let record = bytes.as_ref().map(|bytes| Record {
            strategy: piece.strategy,
            source: sha256_hex(&piece.bytes),
            base: base
                .as_ref()
                .map(|base| StoredContent { sha256: sha256_hex(&base.bytes), mode: base.mode }),
            text: sha256_hex(bytes),
            layer: layer + 1,
            found: found.as_ref().map(|found| sha256_hex(&found.bytes)),
        });
        let mut contents = Vec::new();
        if let Some(bytes) = &bytes {
            contents.push((ContentKind::Installed, Arc::clone(bytes)));
            contents.extend(base.as_ref().map(|base| (ContentKind::Before, Arc::clone(&base.bytes))));
        }
        let mode = base.as_ref().map(|base| base.mode);
        let desired = bytes.or_else(|| base.map(|base| base.bytes)).map(|bytes| (bytes, mode));
        let mut change = finish(piece, desired, found, record);
        change.contents = contents;
        change.notes.extend(note.map(str::to_owned));
        Ok(change)
    }

    /// A file that was edited since, and stays.
    fn edited(&self, dest: &str, record: &Record, found: Option<FileContent>) -> Result<FileChange, Error> {
        let mut change = FileChange::new(dest, record.strategy, found, FileAction::Edited);
        change.expected = Some(self.setups.installed(self.setup, record)?);
        change.record = Some(record.clone());
        Ok(change)
    }

    /// Refuses to change a file that a later profile has changed.
    fn refuse_later(&self, dest: &str, record: &Record) -> Result<(), Error> {
        match self.setups.later(&self.setup.slug, dest, record).first() {
            Some((later, _)) => Err(refuse_for(
                &later.slug,
                format!("`{}` has changed {dest} after this profile", later.slug),
            )),
            None => Ok(()),
        }
    }

    /// Refuses a file that another profile has installed as a whole, or that would replace one of another profile.
    fn refuse_claimed(&self, piece: &PackageFile) -> Result<(), Error> {
        let dest = piece.dest.as_str();
        let whole = |strategy| strategy == Strategy::Overwrite;
        let claims = |(_, other): &(&Setup, &Record)| {
            whole(piece.strategy) || (whole(other.strategy) && piece.strategy != Strategy::Preserve)
        };
        match self.setups.others(&self.setup.slug, dest).find(claims) {
            Some((other, _)) => {
                Err(refuse_for(&other.slug, format!("`{}` has already installed {dest}", other.slug)))
            }
            None => Ok(()),
        }
    }
}

fn refuse_for(slug: &str, message: String) -> Error {
    let help = format!("run `quorate provision uninstall {}` first", shell_quoted(slug));
    Error::new(ErrorKind::Refused, codes::PROFILE_TARGET, Body::new(message).help(help))
}

/// Compares the desired content, and the permissions of a file that does not exist, with the existing file. Without a
/// desired content, the existing one stays.
fn finish(
    piece: &PackageFile,
    desired: Option<(Arc<[u8]>, Option<u32>)>,
    found: Option<FileContent>,
    record: Option<Record>,
) -> FileChange {
    let run = piece.mode == FileMode::Executable && record.is_some();
    let with_run = |mode: u32| if run { mode | ((mode & 0o444) >> 2) } else { mode };
    let mode = found.as_ref().map(|found| found.mode);
    let keeps = if record.is_some() { FileAction::Keep } else { FileAction::Leave };
    let is_same = match (&desired, &found) {
        (Some((bytes, _)), Some(found)) => *bytes == found.bytes,
        (desired, _) => desired.is_none(),
    };
    let (write, action) = match (desired, &found) {
        (_, Some(there)) if is_same && with_run(there.mode) != there.mode => {
            let access = Access::Exactly(with_run(there.mode));
            (FileWrite::Put(Arc::clone(&there.bytes), access), FileAction::Permit)
        }
        (Some((bytes, base_mode)), there) if !is_same => {
            let access = match mode.or(base_mode) {
                Some(mode) => Access::Exactly(with_run(mode)),
                None if run => Access::Program,
                None => Access::Data,
            };
            let action = if there.is_some() { FileAction::Change } else { FileAction::Create };
            (FileWrite::Put(bytes, access), action)
        }
        _ => (FileWrite::Nothing, keeps),
    };
    let mut change = FileChange::new(piece.dest.as_str(), piece.strategy, found, action);
    (change.write, change.record) = (write, record);
    change
}

/// A file's text. `code` is that of the refusal.
fn utf8<'b>(code: RefusalCode, file: &str, bytes: &'b [u8]) -> Result<&'b str, Error> {
    std::str::from_utf8(bytes).map_err(|_| {
        let body = Body::new(format!("{file} is not UTF-8, so it cannot be edited"));
        Error::new(ErrorKind::Refused, code, body)
    })
}

/// A file's JSON. `code` is that of the refusal.
fn json(code: RefusalCode, file: &str, bytes: &[u8]) -> Result<CstRootNode, Error> {
    let text = utf8(code, file, bytes)?;
    text::parse(text).map_err(|invalid| not_json(code, file, text, invalid))
}

fn not_json(code: RefusalCode, file: &str, text: &str, invalid: InvalidJson) -> Error {
    let mut report = Report::new();
    let body = Body::new(format!("{file} {}", invalid.message));
    let place = invalid.span.map(|span| Place { file: file.into(), span, path: String::new() });
    if place.is_some() {
        report.add_source(file, text);
    }
    report.refuse(code, Body { place, ..body });
    Error::from_report(ErrorKind::Refused, report)
}
