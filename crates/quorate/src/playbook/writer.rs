//! The library with its write lock: only one process may change playbooks at a time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::{self, Ledger as _, PlaybookEvent, Record};
use quorate_ledger::keys::KeyDirectory;
use quorate_ledger::store::lease::RunLock;
use quorate_manifest::frontmatter;
use quorate_manifest::playbook::PlaybookFile;
use quorate_playbook::gate::TextIdentity;
use quorate_playbook::log;
use serde_json::json;

use super::change::{
    self, ChangeEvent, FileState, PENDING_FILE, PlaybookChange, append_new_events, file_state,
    pending_change, playbook_event, playbook_stream,
};
use super::library::Library;
use super::versions::VersionedFile;
use crate::service::disk::{self, display_path};
use crate::service::environment::Environment;
use crate::service::error::{Error, ErrorKind, error_chain};
use crate::service::session::LedgerSession;
use crate::service::workspace::{self, PathOverrides};
use crate::service::{manifests, open_session};
use crate::session::{OpenSession, Outcome};

/// How long a change waits for the lock. A proposal is quick, and many may arrive at once.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Opens the ledger of the workspace that contains `folder`, or of the working directory's.
///
/// # Errors
/// If the configuration is refused, or the ledger cannot be opened.
#[crate::boxed]
pub(crate) async fn open_session(
    environment: &Environment,
    places: &PathOverrides,
    folder: Option<&Path>,
) -> Result<LedgerSession, Error> {
    let (root, _) = manifests::root_and_scope(environment, folder);
    let workspace = workspace::load(environment, places, &root)?;
    open_session::open(environment.clone(), workspace).await
}

/// Takes the write lock, and opens the library.
///
/// # Errors
/// If the ledger is read-only, another process holds the lock, or a file cannot be opened.
#[crate::boxed]
pub(super) async fn open_library(
    session: &LedgerSession,
    places: &PathOverrides,
    folder: Option<&Path>,
) -> Result<(Library, RunLock), Error> {
    session.ensure_writable()?;
    let (_, scope) = manifests::root_and_scope(&session.environment, folder);
    let name = playbook_stream(&scope).replace('/', "-");
    let lock = RunLock::acquire_within(session.store.dir(), &name, LOCK_TIMEOUT).await.map_err(|error| {
        let body = Body::new(format!("cannot lock the playbooks: {error}"));
        Error::new(ErrorKind::Ledger, codes::LEDGER_UNAVAILABLE, body)
    })?;
    let lock = lock.ok_or_else(|| {
        let seconds = LOCK_TIMEOUT.as_secs();
        let message = format!("another process has been changing these playbooks for {seconds} seconds");
        Error::new(ErrorKind::Moved, codes::RUN_MOVED, Body::new(message).help("try again later"))
    })?;
    Ok((Library::open(&session.environment, places, folder)?, lock))
}

/// The library of the process that holds the lock.
pub(super) struct LibraryWriter {
    pub(super) session: OpenSession,
    pub(super) library: Library,
    pub(super) places: PathOverrides,
    lock: RunLock,
}

impl LibraryWriter {
    pub(super) fn new(session: OpenSession, library: Library, places: PathOverrides, lock: RunLock) -> Self {
        LibraryWriter { session, library, places, lock }
    }

    /// Releases the lock, and closes the ledger.
    pub(super) async fn finish<T: Send>(self, result: Result<T, Error>) -> Result<Outcome<T>, Error> {
        drop(self.lock);
        self.session.finish(result).await
    }

    /// Refuses a library with an interrupted change.
    ///
    /// # Errors
    /// `playbook_unfinished`.
    pub(crate) fn ensure_finished(&self) -> Result<(), Error> {
        let pending = pending_change(&self.session.environment, &self.library.folder());
        let refused = |body| Err(Error::configuration(codes::PLAYBOOK_UNFINISHED, body));
        pending.map_or(Ok(()), refused)
    }

    /// The time of the workspace's clock.
    pub(crate) fn now_ms(&self) -> i64 {
        self.session.environment.clock.now_ms()
    }

    /// The author of changes.
    pub(crate) fn user(&self) -> &str {
        &self.session.environment.user
    }

    /// A playbook with its versions, which must match the file and the ledger.
    ///
    /// # Errors
    /// If there is none, its files cannot be read, or they differ.
    pub(crate) fn intact(&self, slug: &str) -> Result<(PlaybookFile, VersionedFile), Error> {
        let book = self.library.find(slug)?;
        Ok((book.clone(), self.intact_record(book)?))
    }

    /// The versions of a playbook, which must match the file and the ledger.
    ///
    /// # Errors
    /// If its files cannot be read, or they differ.
    pub(crate) fn intact_record(&self, book: &PlaybookFile) -> Result<VersionedFile, Error> {
        let record = self.library.record(book)?;
        record.ensure_intact(&self.session.environment)?;
        Ok(record)
    }

    /// Writes a change and the index.
    ///
    /// # Errors
    /// If a file was edited meanwhile, or cannot be written. `repair` finishes an interrupted change.
    #[crate::boxed]
    pub(crate) async fn commit(&mut self, change: &PlaybookChange) -> Result<(), Error> {
        let folder = self.library.folder();
        for file in &change.files {
            if file_state(file)? == FileState::Other {
                let file = display_path(&self.session.environment, &file.path);
                let body = Body::new(format!("another process changed {file} meanwhile"));
                return Err(Error::configuration(
                    codes::HISTORY_MUTATION,
                    body.help("inspect it, and try again"),
                ));
            }
        }
        // Reports unwritable files before any write.
        let own_files = [log::INDEX_FILE_NAME, log::FILE_NAME, PENDING_FILE].map(|name| folder.join(name));
        for path in &own_files {
            self.session.workspace.guard.ensure_free(&self.session.environment, path)?;
        }
        for path in
            change.files.iter().map(|file| file.path.clone()).chain([folder.join(log::INDEX_FILE_NAME)])
        {
            self.session.workspace.guard.ensure_free(&self.session.environment, &path)?;
            disk::can_write_below(&self.scope_dir(), &path).map_err(|error| {
                let path = display_path(&self.session.environment, &path);
                let body = Body::new(format!("cannot write {path}: {error}"));
                let help = "make it writable, and try again; nothing was changed";
                Error::configuration(codes::FILE_UNWRITABLE, body.help(help))
            })?;
        }
        let pending =
            serde_json::to_string_pretty(&change.relative_to(&self.scope_dir())).unwrap_or_default();
        let plan = sha256_hex(pending.as_bytes());
        self.keys().note_begun(&plan).map_err(|error| {
            let help = "make it writable, and try again; nothing was changed";
            Error::configuration(codes::FILE_UNWRITABLE, Body::new(error_chain(&error)).help(help))
        })?;
        self.write(&folder.join(PENDING_FILE), &pending)?;
        self.apply(change, &plan).await
    }

    /// Continues a change from any step. `plan` is the SHA-256 of its `_pending.json`.
    ///
    /// # Errors
    /// If a file cannot be written.
    #[crate::boxed]
    pub(crate) async fn apply(&mut self, change: &PlaybookChange, plan: &str) -> Result<(), Error> {
        for file in &change.files {
            if file_state(file)? == FileState::Before {
                self.write(&file.path, &file.text)?;
            }
        }
        // The library is compared with the ledger, so the ledger must have the change first.
        self.record(change).await?;
        // A refused proposal only leaves a line in the log (B5).
        if !change.files.is_empty() {
            let root = self.library.root.join(self.library.scope.folder());
            self.library = Library::open(&self.session.environment, &self.places, Some(&root))?;
            self.write_index()?;
        }
        let folder = self.library.folder();
        change::append_lines(&self.scope_dir(), &folder, change.at_ms, &change.events)
            .map_err(|error| self.unwritable(&folder.join(log::FILE_NAME), &error))?;
        disk::remove(&self.library.folder().join(PENDING_FILE))
            .map_err(|error| self.unwritable(PENDING_FILE.as_ref(), &error))?;
        // A note that remains belongs to a recorded change, and finishing that again changes nothing.
        let _ = self.keys().forget_begun(plan);
        Ok(())
    }

    /// Whether a process with this ledger started the change with this plan. A plan may also come with a checkout, or from
    /// another program that can write the workspace.
    pub(crate) fn has_begun(&self, plan: &str) -> bool {
        self.keys().has_begun(plan)
    }

    fn keys(&self) -> KeyDirectory {
        KeyDirectory::new(self.session.workspace.ledger.dir())
    }

    /// Writes the index if it is outdated; returns whether it was up to date.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write_index(&self) -> Result<bool, Error> {
        let path = self.library.folder().join(log::INDEX_FILE_NAME);
        let text = render_index(&self.library);
        if matches!(disk::read_text(&path), Ok(Some(there)) if there == text) {
            return Ok(true);
        }
        self.write(&path, &text).map(|()| false)
    }

    /// Restores missing lines of the log; returns their number.
    ///
    /// # Errors
    /// When the ledger does not answer, or the log cannot be read or written.
    #[crate::boxed]
    pub(crate) async fn restore_log_lines(&self) -> Result<usize, Error> {
        let folder = self.library.folder();
        let records = self.session.store.records(&playbook_stream(&self.library.scope)).await?;
        let path = folder.join(log::FILE_NAME);
        match change::restore_lines(&folder, &records).map_err(|error| self.unwritable(&path, &error))? {
            None => Ok(0),
            Some((text, missing)) => self.write(&path, &text).map(|()| missing),
        }
    }

    /// Records a change's events, unless they are recorded already.
    async fn record(&self, change: &PlaybookChange) -> Result<(), Error> {
        // A file with a secret that was entered by hand keeps it; the ledger stores only its hash.
        let redactor = &self.session.workspace.redaction.redactor;
        let unredacted = change.files.iter().filter(|file| redactor.redact(&file.text).1 == 0);
        let bodies = unredacted.map(|file| ledger::Body {
            sha256: sha256_hex(file.text.as_bytes()),
            text: file.text.as_str().into(),
        });
        let bodies: Vec<ledger::Body> = bodies.collect();
        let (store, stream) = (&self.session.store, playbook_stream(&self.library.scope));
        let records = store.records(&stream).await?;
        let is_it = |record: &Record| {
            playbook_event(record).and_then(|event| event.change).as_ref() == Some(&change.id)
        };
        if change.events.is_empty() || records.iter().any(is_it) {
            return Ok(());
        }
        let change = PlaybookChange { events: with_texts(change), files: Vec::new(), ..change.clone() };
        let mut next = records.last().map_or(0, |last| last.n + 1);
        append_new_events(store, &stream, &change, bodies, &mut next).await
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), Error> {
        disk::write_below(&self.scope_dir(), path, text.as_bytes())
            .map_err(|error| self.unwritable(path, &error))
    }

    /// The folder of the scope.
    pub(super) fn scope_dir(&self) -> PathBuf {
        self.library.root.join(self.library.scope.folder())
    }

    fn unwritable(&self, path: &Path, error: &std::io::Error) -> Error {
        let body =
            Body::new(format!("cannot write {}: {error}", display_path(&self.session.environment, path)));
        let help = "make it writable, and run `quorate playbook repair` to finish the change";
        Error::configuration(codes::FILE_UNWRITABLE, body.help(help))
    }
}

/// The events of a change. Adds the identity of the text to events of playbooks in shadow, so that a gate recognises it.
fn with_texts(change: &PlaybookChange) -> Vec<ChangeEvent> {
    let text = |sha256: &str| {
        let file = change.files.iter().find(|file| sha256_hex(file.text.as_bytes()) == sha256)?;
        let parts = frontmatter::split(&file.text).ok()?;
        Some(TextIdentity::new(&file.text[parts.body]))
    };
    let mut events = change.events.clone();
    for event in events.iter_mut().filter(|event| event.event == PlaybookEvent::Shadowed.as_str()) {
        if let Some(text) = event.data["sha256"].as_str().and_then(text) {
            event.data["text"] = json!(text);
        }
    }
    events
}

/// The index for the current playbooks.
pub(crate) fn render_index(library: &Library) -> String {
    let books = library.catalogue.books.iter();
    log::index(books.map(|book| (&book.playbook, library.gating(book).is_never_gated())))
}
