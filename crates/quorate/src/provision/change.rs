//! The change of one file: its current content, its new content, and its new entry in the setup ledger. Plans it for an
//! install and for an uninstall, from the strategy, the existing file and its drift from the earlier installation.

use std::sync::Arc;

use quorate_diagnostics::{Body, Place, RefusalCode, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::provisioning::{FileMode, PackageFile, Strategy};
use quorate_manifest::tree::Problem;
use serde::Serialize;

use super::EditPolicy;
use super::files::{Access, FileContent, FileError, TargetFiles};
use super::merge::{self, InvalidJson};
use super::setup::{ContentKind, InstallRecord, SetupError, Store, StoredContent, read_file};

/// The change of one file.
#[derive(Debug)]
pub(super) struct FileChange {
    pub dest: String,
    /// How it combines with the existing file.
    pub strategy: Strategy,
    pub found: Option<FileContent>,
    pub write: FileWrite,
    /// The new entry; `None` if the profile has no part in the file.
    pub fact: Option<InstallRecord>,
    /// The change, for users.
    pub action: FileAction,
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

impl FileChange {
    pub(super) fn nothing(
        dest: &str,
        strategy: Strategy,
        found: Option<FileContent>,
        action: FileAction,
    ) -> FileChange {
        FileChange {
            dest: dest.to_owned(),
            strategy,
            found,
            write: FileWrite::Nothing,
            fact: None,
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

    /// The hash of the existing content.
    pub(super) fn current_hash(&self) -> Option<String> {
        self.found.as_ref().map(|found| sha256_hex(&found.bytes))
    }

    /// The hash of the file after the change.
    pub(super) fn resulting_hash(&self) -> Option<String> {
        self.result().map(sha256_hex)
    }

    #[must_use]
    pub(super) fn with_note(mut self, note: impl Into<String>) -> FileChange {
        self.notes.push(note.into());
        self
    }
}

/// The desired state of a file, before it is compared with the existing one.
#[derive(Debug, Default)]
pub(super) struct DesiredFile {
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
    pub(super) fn of(piece: &PackageFile, bytes: Arc<[u8]>, base: Option<&FileContent>) -> DesiredFile {
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
    pub(super) fn unchanged(piece: &PackageFile, fact: &InstallRecord) -> DesiredFile {
        DesiredFile {
            fact: Some(InstallRecord { mode: piece.mode, ..fact.clone() }),
            ..DesiredFile::default()
        }
    }

    /// Compares the desired state with the existing file.
    pub(super) fn into_change(
        self,
        piece: &PackageFile,
        found: Option<FileContent>,
        base_mode: Option<u32>,
    ) -> FileChange {
        let dest = piece.dest.as_str();
        let run = piece.mode == FileMode::Executable && self.fact.is_some();
        let with_run = |mode: u32| if run { mode | ((mode & 0o444) >> 2) } else { mode };
        let unchanged = match (&self.bytes, &found) {
            (None, _) => true,
            (Some(bytes), Some(found)) => **bytes == *found.bytes,
            (Some(_), None) => false,
        };
        let (write, action) = match (unchanged, &found) {
            (true, Some(there)) if with_run(there.mode) != there.mode => (
                FileWrite::Put(Arc::from(&*there.bytes), Access::Exactly(with_run(there.mode))),
                FileAction::Permit,
            ),
            (true, _) => {
                (FileWrite::Nothing, if self.fact.is_some() { FileAction::Keep } else { FileAction::Leave })
            }
            (false, there) => {
                let access = match there.as_ref().map(|there| there.mode).or(base_mode) {
                    Some(mode) => Access::Exactly(with_run(mode)),
                    None if run => Access::Program,
                    None => Access::Data,
                };
                let action = if there.is_some() { FileAction::Change } else { FileAction::Create };
                (FileWrite::Put(self.bytes.unwrap_or_else(|| Arc::from([])), access), action)
            }
        };
        let mut change = FileChange::nothing(dest, piece.strategy, found, action);
        (change.write, change.fact, change.notes, change.contents) =
            (write, self.fact, self.notes, self.contents);
        change
    }
}

/// Why a change cannot be planned.
#[derive(Debug)]
pub(super) enum ChangeError {
    /// The text of the profile or of the existing file is invalid.
    Refused {
        code: RefusalCode,
        body: Box<Body>,
        /// The text that the place of `body` refers to.
        text: Option<String>,
    },
    /// The setup or the file cannot be read.
    Setup(SetupError),
}

impl ChangeError {
    /// An existing file cannot be used.
    pub(super) fn target(body: Body) -> ChangeError {
        ChangeError::Refused { code: codes::PROFILE_TARGET, body: Box::new(body), text: None }
    }

    /// A file of the profile cannot be used.
    pub(super) fn profile(body: Body) -> ChangeError {
        ChangeError::Refused { code: codes::PROFILE_INVALID, body: Box::new(body), text: None }
    }

    /// A text is not JSON.
    pub(super) fn invalid_json(code: RefusalCode, file: &str, text: &str, problem: Problem) -> ChangeError {
        let place = |span| Place { file: file.into(), span, path: String::new() };
        let mut body = Body::new(format!("this is not JSON: {}", problem.message)).at(place(problem.span));
        body.help = problem.help;
        if let Some((span, label)) = problem.related {
            body = body.related(place(span), label);
        }
        ChangeError::Refused { code, body: Box::new(body), text: Some(text.to_owned()) }
    }
}

impl From<SetupError> for ChangeError {
    fn from(error: SetupError) -> ChangeError {
        match error {
            SetupError::Target { path, file_error: FileError::Obstructed(why) } => {
                ChangeError::target(Body::new(format!("{path} {why}")))
            }
            other => ChangeError::Setup(other),
        }
    }
}

/// Plans the change that installs a file of a profile. `fact` is its earlier installation, if any.
pub(super) fn install_file(
    files: &dyn TargetFiles,
    store: &Store<'_>,
    piece: &PackageFile,
    fact: Option<&InstallRecord>,
    policy: EditPolicy,
) -> Result<FileChange, ChangeError> {
    let dest = piece.dest.as_str();
    let found = read_file(files, dest)?;
    let Some(fact) = fact else {
        return Ok(first_install(piece, found.as_ref())?.into_change(piece, found, None));
    };
    let drift = Drift::of(store, fact, found.as_ref())?;
    match (drift, &found) {
        (Drift::Missing, _) => return put_back(store, piece, fact),
        (Drift::Edited, Some(there)) => {
            if fact.strategy == Strategy::MergeJsonDeep {
                // An unreadable file is reported at its place, whatever else is wrong.
                merge_piece(dest, &utf8(dest, &there.bytes)?, piece)?;
            }
            if policy == EditPolicy::Protect && there.bytes != *piece.bytes {
                let mut change = FileChange::nothing(dest, piece.strategy, found, FileAction::Edited);
                change.expected = Some(store.load_content(ContentKind::Installed, &fact.text)?);
                change.fact = Some(fact.clone());
                return Ok(change);
            }
        }
        _ => {}
    }
    let Some(there) = &found else { return put_back(store, piece, fact) };
    let mut next = if fact.strategy == piece.strategy {
        reinstall(store, piece, fact, there, drift)?
    } else {
        // Removes the file's content by the earlier strategy first.
        let removal = plan_removal(store, dest, fact, found.clone(), EditPolicy::Override)?;
        let mode = fact.base.as_ref().map_or(there.mode, |base| base.mode);
        let without = removal.result().map(|bytes| FileContent { bytes: bytes.to_vec(), mode });
        let next = first_install(piece, without.as_ref())?;
        match next.bytes {
            Some(_) => next,
            None => DesiredFile { bytes: without.map(|found| found.bytes.into()), ..next },
        }
    };
    let mut aside_path = None;
    if drift == Drift::Edited && next.bytes.as_ref().is_some_and(|bytes| **bytes != *there.bytes) {
        let path = store.aside_path(dest, &there.bytes);
        next.notes.push(format!("the earlier content is kept as {path}"));
        aside_path = Some(path);
    }
    let mut change = next.into_change(piece, found, None);
    change.aside = aside_path;
    Ok(change)
}

/// Recreates an installed file that the user removed, over its content without the profile.
fn put_back(store: &Store<'_>, piece: &PackageFile, fact: &InstallRecord) -> Result<FileChange, ChangeError> {
    let base = base_content(store, fact)?;
    let mut next = first_install(piece, base.as_ref())?;
    if next.bytes.is_none() {
        next.bytes = base.as_ref().map(|base| Arc::from(&*base.bytes));
    }
    let mut change = next.into_change(piece, None, base.map(|base| base.mode));
    change.action = FileAction::PutBack;
    Ok(change)
}

/// The content that the file would have without the profile.
fn base_content(store: &Store<'_>, fact: &InstallRecord) -> Result<Option<FileContent>, ChangeError> {
    let Some(StoredContent { sha256, mode }) = &fact.base else { return Ok(None) };
    Ok(Some(FileContent { bytes: store.load_content(ContentKind::Before, sha256)?, mode: *mode }))
}

/// The first installation of a file, over content that the profile has no part in.
fn first_install(piece: &PackageFile, found: Option<&FileContent>) -> Result<DesiredFile, ChangeError> {
    let dest = piece.dest.as_str();
    match (piece.strategy, found) {
        (Strategy::Preserve, Some(_)) => Ok(DesiredFile {
            notes: vec!["it already exists and is preserved".to_owned()],
            ..DesiredFile::default()
        }),
        (Strategy::MergeJsonDeep, Some(found)) => {
            let text = merge_piece(dest, &utf8(dest, &found.bytes)?, piece)?;
            Ok(DesiredFile::of(piece, text.into_bytes().into(), Some(found)))
        }
        (Strategy::Append, found) => {
            let text = found.map_or(Ok(String::new()), |found| utf8(dest, &found.bytes))?;
            let block = piece_text(piece)?;
            // A desired file is created even if it is empty.
            let new = found.is_none().then(|| block.clone());
            let Some(added) = new.or_else(|| merge::addition(&text, &block)) else {
                let notes = vec!["it already contains the text".to_owned()];
                return Ok(DesiredFile { notes, ..DesiredFile::default() });
            };
            Ok(with_added(
                DesiredFile::of(piece, format!("{text}{added}").into_bytes().into(), found),
                &added,
            ))
        }
        (Strategy::MergeJsonDeep, None) => {
            // Refuses invalid JSON, which could not be merged the next time.
            merge_piece(dest, "{}", piece)?;
            Ok(DesiredFile::of(piece, Arc::clone(&piece.bytes), None))
        }
        (Strategy::Overwrite | Strategy::Preserve, found) => {
            Ok(DesiredFile::of(piece, Arc::clone(&piece.bytes), found))
        }
    }
}

/// Installs over a file that was installed by the same strategy. The caller has checked that an edited one may be replaced.
fn reinstall(
    store: &Store<'_>,
    piece: &PackageFile,
    fact: &InstallRecord,
    found: &FileContent,
    standing: Drift,
) -> Result<DesiredFile, ChangeError> {
    let same = fact.source == sha256_hex(&piece.bytes);
    match (piece.strategy, standing) {
        (Strategy::Overwrite, _) => {
            let base = base_content(store, fact)?;
            Ok(DesiredFile::of(piece, Arc::clone(&piece.bytes), base.as_ref()))
        }
        (_, Drift::InPlace) if same => Ok(DesiredFile::unchanged(piece, fact)),
        (Strategy::Preserve, Drift::InPlace) => Ok(DesiredFile::unchanged(piece, fact)),
        (Strategy::Preserve, _) => {
            Ok(with_note(DesiredFile::unchanged(piece, fact), "it was edited since and is preserved"))
        }
        (_, Drift::EditedAround) if same => Ok(with_note(
            DesiredFile::unchanged(piece, fact),
            "it was edited since, and the profile's content is intact",
        )),
        (Strategy::MergeJsonDeep, Drift::InPlace) => first_install_over(piece, base_content(store, fact)?),
        (Strategy::MergeJsonDeep, _) => {
            let base = base_content(store, fact)?.map(|base| utf8(&piece.source, &base.bytes)).transpose()?;
            let installed = stored_text(store, ContentKind::Installed, &fact.text)?;
            let dest = piece.dest.as_str();
            let text = utf8(dest, &found.bytes)?;
            let removed = merge::remove_json(&text, base.as_deref(), &installed, EditPolicy::Protect)
                .map_err(|bad| merge_error(dest, &text, piece, bad))?;
            let without = removed.text.map(|text| FileContent { bytes: text.into_bytes(), mode: found.mode });
            first_install_over(piece, without)
        }
        (Strategy::Append, _) => append_again(store, piece, fact, found),
    }
}

/// [`first_install`] over a content other than that on the disk.
fn first_install_over(piece: &PackageFile, base: Option<FileContent>) -> Result<DesiredFile, ChangeError> {
    first_install(piece, base.as_ref())
}

fn append_again(
    store: &Store<'_>,
    piece: &PackageFile,
    fact: &InstallRecord,
    found: &FileContent,
) -> Result<DesiredFile, ChangeError> {
    let dest = piece.dest.as_str();
    let text = utf8(dest, &found.bytes)?;
    let Some(there) = appended_text(store, fact, &text)? else { return first_install(piece, Some(found)) };
    let old = stored_text(store, ContentKind::Installed, &fact.source)?;
    let block = piece_text(piece)?;
    let Some((new, added)) = merge::replace_addition(&text, &there, &old, &block) else {
        return first_install(piece, Some(found));
    };
    let without = merge::remove_addition(&text, &there).unwrap_or_default();
    let base = match &fact.base {
        _ if sha256_hex(&found.bytes) == fact.text => base_content(store, fact)?,
        None if without.is_empty() => None,
        _ => Some(FileContent { bytes: without.into_bytes(), mode: found.mode }),
    };
    Ok(with_added(DesiredFile::of(piece, new.into_bytes().into(), base.as_ref()), &added))
}

fn with_added(mut next: DesiredFile, added: &str) -> DesiredFile {
    if let Some(fact) = &mut next.fact {
        fact.added = Some(sha256_hex(added.as_bytes()));
        next.contents.push((ContentKind::Installed, Arc::from(added.as_bytes())));
    }
    next
}

fn with_note(mut next: DesiredFile, note: &str) -> DesiredFile {
    next.notes.push(note.to_owned());
    next
}

fn merge_piece(dest: &str, text: &str, piece: &PackageFile) -> Result<String, ChangeError> {
    let profile = piece_text(piece)?;
    merge::merge_json(text, &profile).map_err(|bad| merge_error(dest, text, piece, bad))
}

/// One of two texts is not JSON.
fn merge_error(dest: &str, text: &str, piece: &PackageFile, bad: InvalidJson) -> ChangeError {
    match bad {
        InvalidJson::Target(problem) => ChangeError::invalid_json(codes::PROFILE_TARGET, dest, text, problem),
        InvalidJson::Profile(problem) => {
            let text = String::from_utf8_lossy(&piece.bytes);
            ChangeError::invalid_json(codes::PROFILE_INVALID, &piece.source, &text, problem)
        }
    }
}

/// The text of a piece.
fn piece_text(piece: &PackageFile) -> Result<String, ChangeError> {
    String::from_utf8(piece.bytes.to_vec()).map_err(|_| {
        let strategy = piece.strategy.as_str();
        ChangeError::profile(Body::new(format!("{} is not UTF-8, which `{strategy}` requires", piece.source)))
    })
}

fn utf8(path: &str, bytes: &[u8]) -> Result<String, ChangeError> {
    String::from_utf8(bytes.to_vec())
        .map_err(|_| ChangeError::target(Body::new(format!("{path} is not UTF-8, so it cannot be edited"))))
}

/// Plans the change that removes the profile's part of a file.
pub(super) fn plan_removal(
    store: &Store<'_>,
    dest: &str,
    fact: &InstallRecord,
    found: Option<FileContent>,
    policy: EditPolicy,
) -> Result<FileChange, ChangeError> {
    let base = match &fact.base {
        Some(held) => Some(FileContent {
            bytes: store.load_content(ContentKind::Before, &held.sha256)?,
            mode: held.mode,
        }),
        None => None,
    };
    let Some(there) = &found else {
        return Ok(match base {
            Some(base) => restore(dest, fact, None, base),
            None => FileChange::nothing(dest, fact.strategy, None, FileAction::Leave)
                .with_note("it was already removed"),
        });
    };
    let as_before = base.as_ref().is_some_and(|base| base.bytes == there.bytes);
    if as_before && sha256_hex(&there.bytes) != fact.text {
        return Ok(FileChange::nothing(dest, fact.strategy, found, FileAction::Leave)
            .with_note("it already has its earlier content"));
    }
    if sha256_hex(&there.bytes) == fact.text {
        return Ok(restore_or_delete(dest, fact, found, base));
    }
    match plan_partial(store, dest, fact, there, policy)? {
        Some(PartialRemoval { write, notes, lost }) => {
            let mut change = change_to(dest, fact, found.clone(), write, notes);
            if lost && change.write != FileWrite::Nothing {
                set_aside(store, &mut change, &there.bytes);
            }
            Ok(change)
        }
        None if policy == EditPolicy::Override => {
            let mut change = restore_or_delete(dest, fact, found.clone(), base);
            set_aside(store, &mut change, &there.bytes);
            Ok(change)
        }
        None => {
            let mut change = FileChange::nothing(dest, fact.strategy, found, FileAction::Edited);
            change.expected = Some(store.load_content(ContentKind::Installed, &fact.text)?);
            Ok(change)
        }
    }
}

/// Plans a backup of the existing content, part of which would be lost.
fn set_aside(store: &Store<'_>, change: &mut FileChange, bytes: &[u8]) {
    let aside_path = store.aside_path(&change.dest, bytes);
    change.notes.push(format!("the earlier content is kept as {aside_path}"));
    change.aside = Some(aside_path);
}

/// The removal of the profile's content from an edited file.
struct PartialRemoval {
    write: FileWrite,
    /// A sentence for each installed part that stays and each changed part that is removed.
    notes: Vec<String>,
    /// Whether it removes a part that the user has changed.
    lost: bool,
}

impl PartialRemoval {
    fn of(write: FileWrite) -> Self {
        PartialRemoval { write, notes: Vec::new(), lost: false }
    }

    fn keep(why: &str) -> Self {
        PartialRemoval { notes: vec![why.to_owned()], ..PartialRemoval::of(FileWrite::Nothing) }
    }
}

/// Plans the removal of the profile's parts from an edited file; `None` if the whole file is the profile's. `policy` applies
/// only to the profile's own content.
fn plan_partial(
    store: &Store<'_>,
    dest: &str,
    fact: &InstallRecord,
    found: &FileContent,
    policy: EditPolicy,
) -> Result<Option<PartialRemoval>, ChangeError> {
    let put = |text: String| FileWrite::Put(Arc::from(text.into_bytes()), Access::Exactly(found.mode));
    Ok(Some(match (fact.strategy, std::str::from_utf8(&found.bytes)) {
        (Strategy::Overwrite, _) => return Ok(None),
        (Strategy::Append, Ok(text)) => {
            let without =
                appended_text(store, fact, text)?.and_then(|added| merge::remove_addition(text, &added));
            match without {
                Some(without) if without.is_empty() && fact.base.is_none() => {
                    PartialRemoval::of(FileWrite::Remove)
                }
                Some(without) => PartialRemoval::of(put(without)),
                None if policy == EditPolicy::Override => plan_partial_lines(store, fact, text, put)?,
                None => PartialRemoval::keep("the appended text was edited since and stays"),
            }
        }
        (Strategy::MergeJsonDeep, Ok(text)) => {
            let base = match &fact.base {
                Some(held) => Some(stored_text(store, ContentKind::Before, &held.sha256)?),
                None => None,
            };
            let installed = stored_text(store, ContentKind::Installed, &fact.text)?;
            match merge::remove_json(text, base.as_deref(), &installed, policy) {
                Ok(taken) => {
                    let lost = !taken.lost.is_empty();
                    let notes = [taken.lost, taken.left].concat();
                    PartialRemoval { write: taken.text.map_or(FileWrite::Remove, put), notes, lost }
                }
                Err(merge::InvalidJson::Target(_)) => PartialRemoval::keep("it is no longer JSON and stays"),
                Err(merge::InvalidJson::Profile(problem)) => {
                    let what = format!("is a stored content of {dest} and is not JSON: {}", problem.message);
                    return Err(ChangeError::Setup(SetupError::Corrupt { path: fact.text.clone(), what }));
                }
            }
        }
        _ => PartialRemoval::keep("it was edited since and stays"),
    }))
}

/// Removes the remaining appended lines from a text that was edited since.
fn plan_partial_lines(
    store: &Store<'_>,
    fact: &InstallRecord,
    text: &str,
    put: impl Fn(String) -> FileWrite,
) -> Result<PartialRemoval, ChangeError> {
    let installed = stored_text(store, ContentKind::Installed, &fact.text)?;
    let without = match appended_text(store, fact, &installed)? {
        Some(added) => merge::remove_added_lines(text, &installed, &added),
        None => None,
    };
    Ok(match without {
        Some(without) => {
            let becomes_empty = without.is_empty() && fact.base.is_none();
            let note = "the appended lines were edited since: the unchanged ones are removed, the rest stays";
            let write = if becomes_empty { FileWrite::Remove } else { put(without) };
            PartialRemoval { write, notes: vec![note.to_owned()], lost: true }
        }
        None => PartialRemoval::keep("the appended text was edited since and stays"),
    })
}

/// The earlier content.
fn restore_or_delete(
    dest: &str,
    fact: &InstallRecord,
    found: Option<FileContent>,
    base: Option<FileContent>,
) -> FileChange {
    match base {
        Some(base) => restore(dest, fact, found, base),
        None => delete(dest, fact, found),
    }
}

fn restore(dest: &str, fact: &InstallRecord, found: Option<FileContent>, base: FileContent) -> FileChange {
    let same = found.as_ref() == Some(&base);
    let action = if same { FileAction::Leave } else { FileAction::Restore };
    let mut change = FileChange::nothing(dest, fact.strategy, found, action);
    if !same {
        change.write = FileWrite::Put(Arc::from(base.bytes), Access::Exactly(base.mode));
    }
    change
}

fn delete(dest: &str, fact: &InstallRecord, found: Option<FileContent>) -> FileChange {
    let mut change = FileChange::nothing(dest, fact.strategy, found, FileAction::Delete);
    change.write = FileWrite::Remove;
    change
}

/// The change of an edited file to its content without the profile's.
fn change_to(
    dest: &str,
    fact: &InstallRecord,
    found: Option<FileContent>,
    write: FileWrite,
    left: Vec<String>,
) -> FileChange {
    let same = match (&write, &found) {
        (FileWrite::Put(bytes, _), Some(found)) => **bytes == *found.bytes,
        (write, _) => *write == FileWrite::Nothing,
    };
    let action = match (&write, same) {
        (_, true) => FileAction::Leave,
        (FileWrite::Remove, _) => FileAction::Delete,
        _ => FileAction::Change,
    };
    let mut change = FileChange::nothing(dest, fact.strategy, found, action);
    (change.write, change.notes) = (if same { FileWrite::Nothing } else { write }, left);
    change
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
    /// The file does not exist.
    Missing,
}

impl Drift {
    /// Compares a file with its record.
    ///
    /// # Errors
    /// If a stored content cannot be read.
    pub(super) fn of(
        store: &Store<'_>,
        fact: &InstallRecord,
        found: Option<&FileContent>,
    ) -> Result<Drift, SetupError> {
        let Some(found) = found else { return Ok(Drift::Missing) };
        if sha256_hex(&found.bytes) == fact.text {
            return Ok(Drift::InPlace);
        }
        let beside = match (fact.strategy, std::str::from_utf8(&found.bytes)) {
            (Strategy::Preserve, _) => true,
            (Strategy::Overwrite, _) | (_, Err(_)) => false,
            (Strategy::Append, Ok(text)) => appended_text(store, fact, text)?.is_some(),
            (Strategy::MergeJsonDeep, Ok(text)) => {
                let source = stored_text(store, ContentKind::Installed, &fact.source)?;
                merge::merge_json(text, &source).is_ok_and(|merged| merged == text)
            }
        };
        Ok(if beside { Drift::EditedAround } else { Drift::Edited })
    }
}

/// The appended block that the text still contains, with or without its separating line break.
///
/// # Errors
/// If a stored content cannot be read.
pub(super) fn appended_text(
    store: &Store<'_>,
    fact: &InstallRecord,
    text: &str,
) -> Result<Option<String>, SetupError> {
    let source = stored_text(store, ContentKind::Installed, &fact.source)?;
    let whole = match &fact.added {
        Some(added) => stored_text(store, ContentKind::Installed, added)?,
        None => source.clone(),
    };
    let is_present = |one: &String| !one.is_empty() && merge::find_addition(text, one).is_some();
    Ok([whole, source].into_iter().find(is_present))
}

/// A stored content as text.
///
/// # Errors
/// If it cannot be read, or is not UTF-8.
pub(super) fn stored_text(store: &Store<'_>, part: ContentKind, sha256: &str) -> Result<String, SetupError> {
    String::from_utf8(store.load_content(part, sha256)?).map_err(|_| SetupError::Corrupt {
        path: sha256.to_owned(),
        what: "is stored as a text and is not UTF-8".to_owned(),
    })
}
