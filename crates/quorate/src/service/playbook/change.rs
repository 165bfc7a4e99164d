//! Changes of playbooks: several files, the index, the log and the ledger, all of them or none (B5, B8).
//!
//! What is about to be written stands in `_pending.json` first. Whoever dies on the way leaves it behind, and the next
//! command finds it: `quorate playbook repair` goes on where it stopped. Each step can be done again: a file that is
//! what it was or already is what it is to be is written, one that is neither was changed by somebody else and stays; a
//! record has the id of its event, and a line of the log is written once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::consultation::object;
use quorate_kernel::entropy::{self, sha256_hex};
use quorate_kernel::ports::ledger::{self, Append, Durability, Entry, Kind, Ledger as _, PlaybookEvent};
use quorate_ledger::Store;
use quorate_ledger::export::wire;
use quorate_ledger::store::run_lock::RunLock;
use quorate_manifest::playbook::catalog::FOLDER;
use quorate_manifest::workspace::Scope;
use quorate_playbook::index;
use quorate_protocol::{Json, Name};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::library::Library;
use super::logging::{self, LOG_FILE};
use crate::service::disk::{self, Text};
use crate::service::environment::Environment;
use crate::service::error::ServiceError;
use crate::service::host::Host;
use crate::service::open_session;
use crate::service::session::LedgerSession;
use crate::service::workspace::{PathOverrides, display_path};

/// What is about to be written.
pub const PENDING_FILE: &str = "_pending.json";
/// The index of all playbooks.
pub const INDEX_FILE: &str = "_index.md";
/// The stream of records about playbooks, of the workspace; a tenant's has its name behind it.
const STREAM: &str = "playbooks";
/// How long a change waits for another one: a proposal takes a moment, and many may come at once.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// How often an append is tried again when somebody else was faster.
const MAX_ATTEMPTS: usize = 50;

/// A file that is written whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    pub path: PathBuf,
    /// SHA-256 of what was there; `None` for nothing.
    was: Option<String>,
    /// What it is to be.
    pub text: String,
}

impl File {
    /// A file in place of what was there; an empty text is a file that is not there.
    pub fn new(path: PathBuf, was: &str, text: String) -> Self {
        File { path, was: (!was.is_empty()).then(|| sha256_hex(was.as_bytes())), text }
    }
}

/// Something that happened to a playbook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangeEvent {
    /// What: the record's kind.
    pub event: String,
    pub slug: String,
    pub words: String,
    /// What is recorded besides.
    pub data: Json,
}

impl ChangeEvent {
    /// An event of a playbook.
    pub fn new(event: PlaybookEvent, slug: &str, words: impl Into<String>, data: Json) -> Self {
        ChangeEvent { event: event.as_str().to_owned(), slug: slug.to_owned(), words: words.into(), data }
    }
}

/// What is written together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Its id: the events' records have it.
    pub id: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Files, in the order in which they are written.
    pub files: Vec<File>,
    /// What is recorded and logged.
    pub events: Vec<ChangeEvent>,
}

impl Change {
    /// A change at a time.
    pub fn new_at(at_ms: i64) -> Self {
        Change { id: entropy::hex(&entropy::bytes::<8>()), at_ms, files: Vec::new(), events: Vec::new() }
    }

    /// With paths from a folder on, so that the folder may be moved before it is finished.
    fn relative_to(&self, folder: &Path) -> Self {
        let mut change = self.clone();
        for file in &mut change.files {
            if let Ok(path) = file.path.strip_prefix(folder) {
                file.path = path.to_owned();
            }
        }
        change
    }

    /// Its events, as they are appended to a stream.
    fn append(&self, stream: &Name, from: u64, bodies: Vec<ledger::Body>) -> Append {
        let entry = |one: &ChangeEvent| {
            let kind = PlaybookEvent::ALL.into_iter().find(|kind| kind.as_str() == one.event)?;
            let mut data = object(json!({"change": self.id, "slug": one.slug, "words": one.words}));
            data.extend(one.data.as_object().cloned().unwrap_or_default());
            Some(Entry { kind: Kind::Playbook(kind), at_ms: self.at_ms, data })
        };
        let mut entries: Vec<Entry> = self.events.iter().filter_map(entry).collect();
        attach_unnamed_texts(&mut entries, &bodies);
        Append { run: stream.clone(), from, entries, bodies, durability: Durability::Synced }
    }

    /// As it was written in a folder.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(text: &str, folder: &Path) -> Result<Self, serde_json::Error> {
        let mut change: Change = serde_json::from_str(text)?;
        change.files.iter_mut().for_each(|file| file.path = folder.join(&file.path));
        Ok(change)
    }
}

/// Playbooks that this process alone may change.
pub struct LibraryWriter {
    pub session: LedgerSession,
    pub library: Library,
    places: PathOverrides,
    _hold: RunLock,
}

impl LibraryWriter {
    /// Opens library and ledger for a change. Nobody else changes anything while this lives.
    ///
    /// # Errors
    /// When something cannot be opened, another process is changing playbooks, or a change was left half done.
    pub async fn open(
        environment: &Environment,
        places: &PathOverrides,
        root: Option<&Path>,
        host: &Host,
    ) -> Result<Self, ServiceError> {
        let keeping = LibraryWriter::open_with_pending(environment, places, root, host).await?;
        match pending_change(environment, &keeping.library.folder()) {
            Some(body) => Err(ServiceError::configuration(codes::PLAYBOOK_UNFINISHED, body)),
            None => Ok(keeping),
        }
    }

    /// As [`LibraryWriter::open`], for who finishes what was left.
    ///
    /// # Errors
    /// As [`LibraryWriter::open`], but for that.
    pub async fn open_with_pending(
        environment: &Environment,
        places: &PathOverrides,
        root: Option<&Path>,
        host: &Host,
    ) -> Result<Self, ServiceError> {
        let mut library = Library::open(environment, places, root, host)?;
        let workspace = crate::service::workspace::load(environment, places, &library.root)?;
        let session = open_session::open(environment.clone(), workspace).await?;
        session.ensure_writable()?;
        let name = stream(&library.scope).replace('/', "-");
        let hold = RunLock::acquire_within(session.store.dir(), &name, LOCK_TIMEOUT).await;
        let hold = hold.map_err(|error| {
            let body = Body::new(format!("cannot take hold of the playbooks: {error}"));
            ServiceError::configuration(codes::LEDGER_UNAVAILABLE, body)
        })?;
        let Some(hold) = hold else {
            let body = Body::new(format!(
                "another process has been changing these playbooks for {} seconds",
                LOCK_TIMEOUT.as_secs()
            ));
            return Err(ServiceError::configuration(
                codes::RUN_MOVED,
                body.help("try again when it is done"),
            ));
        };
        // What somebody else did until we had hold of it counts.
        library = Library::open(environment, places, root, host)?;
        Ok(LibraryWriter { session, library, places: places.clone(), _hold: hold })
    }

    /// Writes a change, all of it, and the index.
    ///
    /// # Errors
    /// When a file was changed meanwhile, or cannot be written. What was begun is finished by `repair`.
    pub async fn commit(&mut self, change: &Change, host: &Host) -> Result<(), ServiceError> {
        let folder = self.library.folder();
        for file in &change.files {
            if file_state(file)? == FileState::Other {
                let file = display_path(&self.session.environment, &file.path);
                let body = Body::new(format!("{file} was changed by somebody else meanwhile"));
                return Err(ServiceError::configuration(
                    codes::HISTORY_MUTATION,
                    body.help("look at it, and try again"),
                ));
            }
        }
        // What cannot be written is said before anything is begun.
        let own = [INDEX_FILE, LOG_FILE, PENDING_FILE].map(|name| folder.join(name));
        for path in &own {
            self.session.workspace.guard.ensure_free(&self.session.environment, path)?;
        }
        for path in change.files.iter().map(|file| file.path.clone()).chain([folder.join(INDEX_FILE)]) {
            self.session.workspace.guard.ensure_free(&self.session.environment, &path)?;
            disk::can_write_below(&self.scope_dir(), &path).map_err(|error| {
                let path = display_path(&self.session.environment, &path);
                let body = Body::new(format!("cannot write {path}: {error}"));
                let help = "make it writable, and try again; nothing was begun";
                ServiceError::configuration(codes::FILE_UNWRITABLE, body.help(help))
            })?;
        }
        let pending =
            serde_json::to_string_pretty(&change.relative_to(&self.scope_dir())).unwrap_or_default();
        self.write(&folder.join(PENDING_FILE), &pending)?;
        self.apply(change, host).await
    }

    /// Does what a change says, from wherever it stopped, and says which files somebody else has changed meanwhile.
    ///
    /// # Errors
    /// When something cannot be written.
    pub async fn apply(&mut self, change: &Change, host: &Host) -> Result<(), ServiceError> {
        for file in &change.files {
            if file_state(file)? == FileState::Before {
                self.write(&file.path, &file.text)?;
            }
        }
        // The library is compared with the ledger, which has to have the change first.
        self.record(change).await?;
        // What is refused leaves a line in the log, and nothing else (B5).
        if !change.files.is_empty() {
            self.refresh(host)?;
            self.write_index()?;
        }
        let folder = self.library.folder();
        logging::append_lines(&self.scope_dir(), &folder, change.at_ms, &change.events)
            .map_err(|error| self.unwritable(&folder.join(LOG_FILE), &error))?;
        disk::remove(&self.library.folder().join(PENDING_FILE))
            .map_err(|error| self.unwritable(PENDING_FILE.as_ref(), &error))
    }

    /// Reads the library again.
    ///
    /// # Errors
    /// As [`Library::open`].
    pub fn refresh(&mut self, host: &Host) -> Result<(), ServiceError> {
        let root = self.library.root.join(self.library.scope.folder());
        self.library = Library::open(&self.session.environment, &self.places, Some(&root), host)?;
        Ok(())
    }

    /// Writes the index, where it is not true already; says whether it was.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_index(&self) -> Result<bool, ServiceError> {
        let path = self.library.folder().join(INDEX_FILE);
        let text = render_index(&self.library);
        if matches!(disk::read_text(&path), Ok(Text::Present(there)) if there == text) {
            return Ok(true);
        }
        self.write(&path, &text).map(|()| false)
    }

    /// Puts lines that are gone back into the log; says how many.
    ///
    /// # Errors
    /// When the ledger does not answer, or the log cannot be read or written.
    pub async fn restore_log_lines(&self) -> Result<usize, ServiceError> {
        let folder = self.library.folder();
        let records = self.session.store.records(&stream(&self.library.scope)).await?;
        let path = folder.join(LOG_FILE);
        match logging::restore_lines(&folder, &records).map_err(|error| self.unwritable(&path, &error))? {
            None => Ok(0),
            Some((text, missing)) => self.write(&path, &text).map(|()| missing),
        }
    }

    /// The places that were said.
    pub(super) fn places(&self) -> &PathOverrides {
        &self.places
    }

    async fn record(&self, change: &Change) -> Result<(), ServiceError> {
        // A file that somebody has put a secret into keeps it, and the ledger has its hash alone.
        let redactor = &self.session.workspace.redaction.redactor;
        let kept = change.files.iter().filter(|file| redactor.redact(&file.text).1 == 0);
        let bodies = kept.map(|file| ledger::Body {
            sha256: sha256_hex(file.text.as_bytes()),
            text: file.text.as_str().into(),
        });
        let bodies: Vec<ledger::Body> = bodies.collect();
        append(&self.session.store, &stream(&self.library.scope), change, bodies).await
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), ServiceError> {
        disk::write_below(&self.scope_dir(), path, text.as_bytes())
            .map_err(|error| self.unwritable(path, &error))
    }

    /// The folder of the scope.
    pub(super) fn scope_dir(&self) -> PathBuf {
        self.library.root.join(self.library.scope.folder())
    }

    fn unwritable(&self, path: &Path, error: &std::io::Error) -> ServiceError {
        let body =
            Body::new(format!("cannot write {}: {error}", display_path(&self.session.environment, path)));
        let help = "make it writable, then `quorate playbook repair` finishes what was begun";
        ServiceError::configuration(codes::FILE_UNWRITABLE, body.help(help))
    }
}

/// Appends a change's events, unless they stand there already.
async fn append(
    store: &Store,
    stream: &Name,
    change: &Change,
    bodies: Vec<ledger::Body>,
) -> Result<(), ServiceError> {
    let mut tries = 0;
    loop {
        let records = store.records(stream).await?;
        let id = |one: &ledger::Record| one.data.as_ref()?.get("change")?.as_str().map(str::to_owned);
        if change.events.is_empty() || records.iter().any(|one| id(one).as_deref() == Some(&*change.id)) {
            return Ok(());
        }
        let next = records.last().map_or(0, |last| last.n + 1);
        match store.append(change.append(stream, next, bodies.clone())).await {
            Ok(_) => return Ok(()),
            Err(ledger::Error::Conflict { .. }) if tries < MAX_ATTEMPTS => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Names in the first record the texts that none of the records names: nothing is kept that no record names (D12).
fn attach_unnamed_texts(entries: &mut [Entry], bodies: &[ledger::Body]) {
    let named: BTreeSet<&str> = entries.iter().flat_map(|entry| wire::named_hashes(&entry.data)).collect();
    let unnamed = bodies.iter().map(|body| &body.sha256).filter(|sha256| !named.contains(sha256.as_str()));
    let unnamed: Vec<String> = unnamed.cloned().collect();
    if let (Some(first), false) = (entries.first_mut(), unnamed.is_empty()) {
        first.data.insert("texts".to_owned(), json!(unnamed));
    }
}

/// Records events without changing any file, for a weave. Nothing else has their change's id, so that nothing of the
/// stream is read but its end, and `next` is where that was.
///
/// # Errors
/// When the ledger does not answer.
pub async fn record_events(
    store: &Store,
    (root, scope): (&Path, &Scope),
    at_ms: i64,
    events: Vec<ChangeEvent>,
    bodies: Vec<ledger::Body>,
    mut next: u64,
) -> Result<(), ServiceError> {
    let change = Change { events, ..Change::new_at(at_ms) };
    let stream = stream(scope);
    for tries in 0.. {
        match store.append(change.append(&stream, next, bodies.clone())).await {
            Ok(_) => break,
            Err(ledger::Error::Conflict { .. }) if tries < MAX_ATTEMPTS => {
                next = store.tail(&stream, 1).await?.last().map_or(0, |last| last.n + 1);
            }
            Err(error) => return Err(error.into()),
        }
    }
    // The ledger is the record; a workspace that cannot be written to is no reason not to weave.
    let dir = root.join(scope.folder());
    let _ = logging::append_lines(&dir, &dir.join(FOLDER), at_ms, &change.events);
    Ok(())
}

/// The event of a pattern that matches an operator for the first time (B10); `None` where the log says it already.
pub fn first_match_event(root: &Path, scope: &Scope, slug: &str, operator: &str) -> Option<ChangeEvent> {
    let words = format!("a pattern of it matches `{operator}`");
    let folder = root.join(scope.folder()).join(FOLDER);
    let event = || ChangeEvent::new(PlaybookEvent::Registered, slug, &*words, json!({"operator": operator}));
    (!logging::mentions(&folder, slug, &words)).then(event)
}

/// The stream of a scope.
pub fn stream(scope: &Scope) -> Name {
    match scope.folder() {
        top if top.is_empty() => STREAM.into(),
        tenant => format!("{STREAM}/{tenant}").into(),
    }
}

/// The index as it should be.
pub fn render_index(library: &Library) -> String {
    index::index(library.catalogue.books.iter().map(|book| &book.playbook))
}

/// What was left half done, in words; `None` where nothing was.
pub fn pending_change(environment: &Environment, folder: &Path) -> Option<Body> {
    let path = folder.join(PENDING_FILE);
    matches!(disk::read_text(&path), Ok(Text::Present(_)) | Err(_)).then(|| {
        Body::new(format!(
            "{} says that a change was begun and not finished",
            display_path(environment, &path)
        ))
        .help("`quorate playbook repair` finishes it")
    })
}

/// A file, compared with what a change says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// It is what it was.
    Before,
    /// It is what it is to be.
    After,
    Other,
}

/// Compares a file with what a change says of it.
///
/// # Errors
/// When it cannot be read.
pub fn file_state(file: &File) -> Result<FileState, ServiceError> {
    let there = disk::read_text(&file.path).map_err(|error| {
        ServiceError::configuration(
            codes::FILE_UNREADABLE,
            Body::new(format!("cannot read {}: {error}", file.path.display())),
        )
    })?;
    Ok(match (there, &file.was) {
        (Text::Present(text), _) if text == file.text => FileState::After,
        (Text::Present(text), Some(was)) if sha256_hex(text.as_bytes()) == *was => FileState::Before,
        (Text::Missing, None) => FileState::Before,
        // A file that was emptied holds nothing that could be lost.
        (Text::Present(text), None) if text.is_empty() => FileState::Before,
        _ => FileState::Other,
    })
}
