//! Changes of playbooks: several files, the index, the log and the ledger, all or nothing (B5, B8).
//!
//! `_pending.json` holds the planned change first. If the process dies, the next command finds it and `quorate playbook
//! repair` continues. Each step is idempotent: a file in its old or new state is written, and a file in a third state was
//! edited and stays; a record has the id of its event, and a log line is written once.
//!
//! The events of a change are records in one stream for each scope, and lines of `_log.md` for people.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use quorate_kernel::attempts::object;
use quorate_kernel::entropy::{self, sha256_hex};
use quorate_kernel::ports::ledger::{
    self, Append, Durability, Entry, Kind, Ledger as _, PlaybookEvent, Record,
};
use quorate_kernel::record::{self, PlaybookEventData};
use quorate_ledger::Store;
use quorate_ledger::export::jsonl;
use quorate_manifest::playbook::FOLDER;
use quorate_manifest::timestamp;
use quorate_manifest::workspace::Scope;
use quorate_playbook::log::{self, Line};
use quorate_protocol::{Json, Name};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::service::disk::{self, display_path};
use crate::service::environment::Environment;
use crate::service::error::Error;

/// The planned change.
pub(crate) const PENDING_FILE: &str = "_pending.json";
/// The most retries of an append that conflicts with another process.
pub(crate) const MAX_ATTEMPTS: usize = 50;

/// A file that is replaced as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangedFile {
    pub(crate) path: PathBuf,
    /// SHA-256 of the old text; `None` for a new file.
    was: Option<String>,
    /// The new content.
    pub(crate) text: String,
}

impl ChangedFile {
    /// The new text, which replaces the old; empty for no file.
    pub(crate) fn new(path: PathBuf, was: &str, text: String) -> Self {
        ChangedFile { path, was: (!was.is_empty()).then(|| sha256_hex(was.as_bytes())), text }
    }
}

/// A change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlaybookChange {
    /// Its id, which the events' records carry.
    pub(crate) id: String,
    /// Its time, in milliseconds since the Unix epoch.
    pub(crate) at_ms: i64,
    /// Files, in the order of writing.
    pub(crate) files: Vec<ChangedFile>,
    /// Events to record and to log.
    pub(crate) events: Vec<ChangeEvent>,
}

impl PlaybookChange {
    /// A change at a time.
    pub(crate) fn new_at(at_ms: i64) -> Self {
        PlaybookChange {
            id: entropy::hex(&entropy::bytes::<8>()),
            at_ms,
            files: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Paths are relative to a folder, so that the folder may be moved before the change is finished.
    pub(super) fn relative_to(&self, folder: &Path) -> Self {
        let mut change = self.clone();
        for file in &mut change.files {
            if let Ok(path) = file.path.strip_prefix(folder) {
                file.path = path.to_owned();
            }
        }
        change
    }

    /// The append of the change's events to a stream.
    fn append(&self, stream: &Name, from: u64, bodies: Vec<ledger::Body>) -> Append {
        let entry = |event: &ChangeEvent| {
            let kind = PlaybookEvent::parse(&event.event)?;
            let mut data = object(json!({"change": self.id, "slug": event.slug, "words": event.words}));
            data.extend(event.data.as_object().cloned().unwrap_or_default());
            Some(Entry { kind: Kind::Playbook(kind), at_ms: self.at_ms, data })
        };
        let mut entries: Vec<Entry> = self.events.iter().filter_map(entry).collect();
        attach_unnamed_texts(&mut entries, &bodies);
        Append { run: stream.clone(), from, entries, bodies, durability: Durability::Synced }
    }

    /// Reads the pending change of a folder.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn read(text: &str, folder: &Path) -> Result<Self, serde_json::Error> {
        let mut change: PlaybookChange = serde_json::from_str(text)?;
        change.files.iter_mut().for_each(|file| file.path = folder.join(&file.path));
        Ok(change)
    }
}

/// Adds the hashes of texts that no record names to the first record: every stored text needs a record that names it (D12).
fn attach_unnamed_texts(entries: &mut [Entry], bodies: &[ledger::Body]) {
    let named: BTreeSet<&str> = entries.iter().flat_map(|entry| jsonl::named_hashes(&entry.data)).collect();
    let unnamed = bodies.iter().map(|body| &body.sha256).filter(|sha256| !named.contains(sha256.as_str()));
    let unnamed: Vec<String> = unnamed.cloned().collect();
    if let (Some(first), false) = (entries.first_mut(), unnamed.is_empty()) {
        first.data.insert("texts".to_owned(), json!(unnamed));
    }
}

/// Appends the events of a new change. `next` is the number of the next record, before and after the call.
pub(crate) async fn append_new_events(
    store: &Store,
    stream: &Name,
    change: &PlaybookChange,
    bodies: Vec<ledger::Body>,
    next: &mut u64,
) -> Result<(), Error> {
    for tries in 0.. {
        match store.append(change.append(stream, *next, bodies.clone())).await {
            Ok(_) => break,
            Err(ledger::LedgerError::Conflict { .. }) if tries < MAX_ATTEMPTS => {
                *next = store.tail(stream, 1).await?.last().map_or(0, |last| last.n + 1);
            }
            Err(error) => return Err(error.into()),
        }
    }
    *next += change.events.len() as u64;
    Ok(())
}

/// The event of a pattern's first match of an operator (B10); `None` if the log has it.
pub(crate) fn first_match_event(
    root: &Path,
    scope: &Scope,
    slug: &str,
    operator: &str,
) -> Option<ChangeEvent> {
    let words = format!("a pattern of it matches `{operator}`");
    let folder = root.join(scope.folder()).join(FOLDER);
    let event = || ChangeEvent::new(PlaybookEvent::Registered, slug, &*words, json!({"operator": operator}));
    (!log_mentions(&folder, slug, &words)).then(event)
}

/// The message about an interrupted change of a folder; `None` if there is none.
pub(crate) fn pending_change(environment: &Environment, folder: &Path) -> Option<Body> {
    let path = folder.join(PENDING_FILE);
    matches!(disk::read_text(&path), Ok(Some(_)) | Err(_)).then(|| {
        Body::new(format!("{} has an unfinished change", display_path(environment, &path)))
            .help("run `quorate playbook repair` to finish it")
    })
}

/// The state of a file, relative to a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileState {
    /// Its old text.
    Before,
    /// Its new text.
    After,
    Other,
}

/// Compares a file with a change.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn file_state(file: &ChangedFile) -> Result<FileState, Error> {
    let current = disk::read_text(&file.path).map_err(|error| {
        Error::configuration(
            codes::FILE_UNREADABLE,
            Body::new(format!("cannot read {}: {error}", file.path.display())),
        )
    })?;
    Ok(match (current, &file.was) {
        (Some(text), _) if text == file.text => FileState::After,
        (Some(text), Some(was)) if sha256_hex(text.as_bytes()) == *was => FileState::Before,
        (None, None) => FileState::Before,
        // An emptied file has nothing to lose.
        (Some(text), None) if text.is_empty() => FileState::Before,
        _ => FileState::Other,
    })
}

/// The workspace's stream; a tenant's has the tenant's name appended.
const STREAM: &str = "playbooks";

/// An event of a playbook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChangeEvent {
    /// The record's kind.
    pub(crate) event: String,
    pub(crate) slug: String,
    pub(crate) words: String,
    /// The record's further fields.
    pub(crate) data: Json,
}

impl ChangeEvent {
    pub(crate) fn new(event: PlaybookEvent, slug: &str, words: impl Into<String>, data: Json) -> Self {
        ChangeEvent { event: event.as_str().to_owned(), slug: slug.to_owned(), words: words.into(), data }
    }
}

/// The playbook event of a record; `None` if the record was erased or is malformed.
pub(crate) fn playbook_event(record: &Record) -> Option<PlaybookEventData> {
    record::read(record.data.as_ref()?).ok()
}

/// The stream of a scope.
pub(crate) fn playbook_stream(scope: &Scope) -> Name {
    match scope.folder() {
        top if top.is_empty() => STREAM.into(),
        tenant => format!("{STREAM}/{tenant}").into(),
    }
}

/// The log of a playbooks' folder; empty without one.
fn read_log(folder: &Path) -> io::Result<String> {
    disk::read_text(&folder.join(log::FILE_NAME)).map(Option::unwrap_or_default)
}

/// Adds a line for each unlogged event. `scope` is the folder that writes must stay in.
///
/// # Errors
/// If it cannot be read or written.
pub(crate) fn append_lines(
    scope: &Path,
    folder: &Path,
    at_ms: i64,
    events: &[ChangeEvent],
) -> io::Result<()> {
    let current = read_log(folder)?;
    let at = timestamp::format(at_ms);
    let lines = events
        .iter()
        .map(|one| Line { at: &at, event: &one.event, slug: &one.slug, words: &one.words }.to_string());
    let new: Vec<String> = lines.filter(|line| !log::contains(&current, line)).collect();
    if new.is_empty() {
        return Ok(());
    }
    // Appends instead of rewriting: another process may be adding a line.
    let whole = log::append(&current, &new);
    disk::append_below(
        scope,
        &folder.join(log::FILE_NAME),
        whole.get(current.len()..).unwrap_or_default().as_bytes(),
    )
}

/// Restores missing lines from the ledger; returns the text and their number.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn restore_lines(folder: &Path, records: &[Record]) -> io::Result<Option<(String, usize)>> {
    let current = read_log(folder)?;
    let lines: Vec<String> = records.iter().filter_map(record_line).collect();
    Ok(log::restore(&current, &lines))
}

/// The line of a record; `None` for a trial of a scorer, which is only in the ledger.
fn record_line(record: &Record) -> Option<String> {
    let data = playbook_event(record).filter(|_| record.kind != PlaybookEvent::Tried.as_str())?;
    let at = timestamp::format(record.at_ms);
    Some(Line { at: &at, event: &record.kind, slug: &data.slug?, words: &data.words? }.to_string())
}

/// The number of changes of playbooks that the log lacks. Events of weaves do not count, since a weave may run in a
/// read-only workspace.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn count_missing_lines(folder: &Path, records: &[Record]) -> io::Result<usize> {
    let current = read_log(folder)?;
    let known: BTreeSet<&str> = current.lines().map(str::trim_end).collect();
    let is_change = |record: &&Record| {
        ![PlaybookEvent::Composed, PlaybookEvent::Skipped].iter().any(|kind| record.kind == kind.as_str())
            && playbook_event(record).is_none_or(|event| event.operator.is_none())
    };
    let lines = records.iter().filter(is_change).filter_map(record_line);
    Ok(lines.filter(|line| !known.contains(line.trim_end())).count())
}

/// Whether the log mentions a playbook.
fn log_mentions(folder: &Path, slug: &str, words: &str) -> bool {
    let mentions = |line: &str| line.contains(&format!("`{slug}`")) && line.contains(words);
    read_log(folder).is_ok_and(|log| log.lines().any(mentions))
}
