//! One handle's view of the journal: the place of each turn, by id and by key, as the last scan found them. All of it is
//! in memory and is rebuilt from the journal.
//!
//! A scan and an append hold the lock `<journal>.lock`, so that no participant sees half a turn and each key and id is
//! appended once. The journal scans lines of a program without the lock like its own. If the file changed in
//! another way than by growing, it is scanned again from its beginning.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Seek as _, SeekFrom, Take, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_kernel::conversation::{NewTurn, Turn};
use quorate_kernel::ports::substrate::{Appended, Page, SubstrateError};
use quorate_protocol::Name;

use super::super::{next_millisecond, turn_id};
use super::format::{self, Entry, RawTurn, Scanner};
use quorate_kernel::files::{self, FileStamp};

/// A longer stretch is scanned by a thread of its own, in bytes.
const LARGE_GROWTH_BYTES: u64 = 256 * 1024;
/// How many bytes a scan and a page read at once.
const SCAN_BUFFER_BYTES: usize = 256 * 1024;
const PAGE_BUFFER_BYTES: usize = 16 * 1024;
/// How much of a file without turns is checked, in bytes.
const HEAD_BYTES: u64 = 64 * 1024;
/// How often another program may replace the journal while one turn is appended.
const MAX_REPLACEMENTS: usize = 8;

#[derive(Debug)]
pub(super) enum JournalError {
    Io(io::Error),
    /// The note of the turn at this offset cannot be read.
    UnreadableNote {
        byte: u64,
        turn: Name,
        error: serde_json::Error,
    },
    /// Another program changed the journal at the same moment.
    ConcurrentChange,
    /// The file has text in this line, and no turn.
    NotAJournal(usize),
    /// The turn cannot be stored.
    Refused(SubstrateError),
}

impl From<io::Error> for JournalError {
    fn from(error: io::Error) -> Self {
        JournalError::Io(error)
    }
}

impl JournalError {
    pub(super) fn into_port_error(self, journal: &Path) -> SubstrateError {
        let journal = journal.display();
        let unavailable = |what| SubstrateError::Unavailable { what, source: None };
        match self {
            JournalError::Io(error) => {
                SubstrateError::unavailable(format!("the journal {journal} does not answer"), error)
            }
            JournalError::UnreadableNote { byte, turn, error } => SubstrateError::unavailable(
                format!(
                    "cannot read the note of turn {turn} in the journal {journal} at byte {byte}; nothing is read past \
                     it: correct the line, or remove it if the turn's state and metadata may go"
                ),
                error,
            ),
            JournalError::ConcurrentChange => unavailable(format!(
                "the journal {journal} was changed by another program at the same moment; try again"
            )),
            JournalError::NotAJournal(line) => unavailable(format!(
                "{journal} is not a journal: it has text (line {line}) and no turn, and nothing is appended to it; name \
                 another file in `path`, or make headings (`# …`) or comments (`<!-- … -->`) of the text"
            )),
            JournalError::Refused(error) => error,
        }
    }
}

/// Where a turn is, and the hash of its id.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset: u64,
    id: u64,
}

pub(super) struct Journal {
    path: PathBuf,
    /// Held from reading other writers' turns until the own one is written.
    lock: Option<File>,
    file: Option<OpenFile>,
    /// The journal's stamp when it was scanned last, up to its end then.
    pub(super) scanned: Option<FileStamp>,
    turns: Vec<Place>,
    /// The number of the last turn with an id, and with a key, by the hashes of these.
    by_id: HashMap<u64, u32>,
    by_key: HashMap<u64, u32>,
    hasher: RandomState,
    /// Where the last header is.
    last_header: u64,
    /// The id of the turn there if it is not shown yet.
    pending: Option<Name>,
    /// What must be appended before the next turn.
    repair: String,
}

struct OpenFile {
    file: Arc<File>,
    file_id: (u64, u64),
    is_appendable: bool,
}

impl Journal {
    pub(super) fn new(path: PathBuf) -> Self {
        Journal {
            path,
            lock: None,
            file: None,
            scanned: None,
            turns: Vec::new(),
            by_id: HashMap::new(),
            by_key: HashMap::new(),
            hasher: RandomState::new(),
            last_header: 0,
            pending: None,
            repair: String::new(),
        }
    }

    pub(super) fn stamp(&self) -> io::Result<Option<FileStamp>> {
        FileStamp::of_path(&self.path)
    }

    /// Whether the journal became shorter or was replaced. Some programs empty a file before they rewrite it.
    pub(super) fn has_lost_data(&self, now: Option<FileStamp>) -> bool {
        self.scanned
            .is_some_and(|seen| now.is_none_or(|now| now.len < seen.len || now.file_id != seen.file_id))
    }

    /// Whether an operation takes negligible time, given the journal's stamp; acquires the lock if it is needed.
    pub(super) fn is_quick(&mut self, now: Option<FileStamp>, appending: bool) -> bool {
        if now == self.scanned && !appending {
            return true;
        }
        let (known, len) = (self.scanned.map_or(0, |seen| seen.len), now.map_or(0, |now| now.len));
        let is_growth = now.is_none_or(|now| self.scanned.is_none_or(|seen| seen.file_id == now.file_id));
        if !is_growth || len < known || len - known > LARGE_GROWTH_BYTES {
            return false;
        }
        // If the lock fails here, it fails again where the error is reported.
        match self.open_lock().map(|lock| (lock.try_lock(), lock)) {
            Ok((Ok(()), lock)) => self.lock = Some(lock),
            Ok((Err(TryLockError::WouldBlock), _)) => return false,
            _ => {}
        }
        true
    }

    /// Opens the lock file. It is a file of its own, since a journal may be replaced while it is locked, and since on some
    /// systems other processes cannot even read a locked file.
    fn open_lock(&self) -> io::Result<File> {
        let mut path = self.path.clone().into_os_string();
        path.push(".lock");
        files::reject_symlink(path.as_ref())?;
        open_append(path.as_ref())
    }

    /// Acquires the lock, waiting if necessary.
    fn acquire(&mut self) -> io::Result<()> {
        if self.lock.is_none() {
            let lock = self.open_lock()?;
            lock.lock()?;
            self.lock = Some(lock);
        }
        Ok(())
    }

    pub(super) fn release(&mut self) {
        self.lock = None;
    }

    /// Scans what has changed since the last scan.
    fn refresh(&mut self) -> Result<(), JournalError> {
        if self.stamp()? == self.scanned {
            return Ok(());
        }
        // A user who cannot create the lock file cannot append either, and at worst sees a turn that is being written.
        if let Err(error) = self.acquire()
            && !matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
            && self.stamp()?.is_some()
        {
            return Err(error.into());
        }
        let Some(now) = self.stamp()? else {
            self.forget();
            self.file = None;
            return Ok(());
        };
        if self.file.as_ref().is_none_or(|open| open.file_id != now.file_id) {
            let file = files::open(&self.path)?;
            self.file = Some(OpenFile::new(file, false)?);
        }
        let has_grown = self.scanned.is_some_and(|seen| seen.file_id == now.file_id && seen.len < now.len);
        if !has_grown || !self.scan(now)? {
            self.forget();
            self.scan(now)?;
        }
        Ok(())
    }

    fn forget(&mut self) {
        let (path, lock, file) = (std::mem::take(&mut self.path), self.lock.take(), self.file.take());
        *self = Journal { lock, file, ..Journal::new(path) };
    }

    /// Scans from the last header on, whose turn may have grown. Returns whether that header is where it was.
    fn scan(&mut self, now: FileStamp) -> Result<bool, JournalError> {
        self.scanned = None;
        let open = self.file.as_ref().filter(|open| open.file_id == now.file_id);
        let file = open.ok_or(JournalError::ConcurrentChange)?.file.clone();
        let known = match &self.pending {
            Some(pending) => Some(self.hasher.hash_one(&**pending)),
            None => self.turns.pop().map(|last| last.id),
        };
        self.pending = None;
        // Without turns, the text may belong to another document.
        self.repair = if ends_with_line_feed(&file, now.len)? { "" } else { "\n" }.to_owned();
        let mut scanner = scanner(&file, self.last_header, now.len, SCAN_BUFFER_BYTES)?;
        let mut expected = known;
        while let Some(raw) = scanner.next()? {
            let id = self.hasher.hash_one(raw.header.id);
            if expected.take().is_some_and(|expected| expected != id || raw.offset != self.last_header) {
                return Ok(false);
            }
            self.last_header = raw.offset;
            let mut key = None;
            if raw.needs_parsing() {
                let entry = parse(&raw)?;
                self.repair = entry.repair;
                if entry.pending {
                    self.pending = Some(entry.turn.id);
                    continue;
                }
                key = entry.turn.stamp.map(|stamp| stamp.key);
            }
            self.add(raw.offset, id, key.as_deref());
        }
        self.scanned = Some(now);
        Ok(expected.is_none())
    }

    fn add(&mut self, offset: u64, id: u64, key: Option<&str>) {
        let number = u32::try_from(self.turns.len()).unwrap_or(u32::MAX);
        self.turns.push(Place { offset, id });
        self.by_id.insert(id, number);
        if let Some(key) = key {
            self.by_key.insert(self.hasher.hash_one(key), number);
        }
    }

    /// The number of the last turn with this id.
    fn find(&self, id: &str) -> Option<usize> {
        let id = self.hasher.hash_one(id);
        let number = *self.by_id.get(&id)? as usize;
        self.turns.get(number).filter(|turn| turn.id == id).map(|_| number)
    }

    /// At most `limit` turns newer than `since`, and whether these are all.
    pub(super) fn page(&mut self, since: Option<&str>, limit: usize) -> Result<(Page, bool), JournalError> {
        self.with_valid_places(|journal| {
            let found = since.and_then(|id| journal.find(id));
            let from = found.map_or(0, |at| at + 1);
            let turns = journal.read_turns(from, limit)?;
            let is_all = from + turns.len() == journal.turns.len();
            Ok((Page { turns, known: since.is_none() || found.is_some() }, is_all))
        })
    }

    /// Up to `count` turns that end with this one.
    pub(super) fn window(&mut self, id: &str, count: usize) -> Result<Vec<Turn>, JournalError> {
        self.with_valid_places(|journal| {
            let Some(at) = journal.find(id) else { return Ok(Vec::new()) };
            let count = count.min(at + 1);
            journal.read_turns(at + 1 - count, count)
        })
    }

    /// Refreshes, and does `work`; once more after a new scan if a turn is not where it was.
    fn with_valid_places<T>(
        &mut self,
        work: impl Fn(&Self) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        self.refresh()?;
        match work(self) {
            Err(JournalError::ConcurrentChange) => {
                self.forget();
                self.refresh()?;
                work(self)
            }
            other => other,
        }
    }

    /// At most `count` turns from number `from` on. They must be where the scan found them.
    fn read_turns(&self, from: usize, count: usize) -> Result<Vec<Turn>, JournalError> {
        let places = &self.turns[from.min(self.turns.len())..];
        let places = &places[..count.min(places.len())];
        let (Some(first), Some(open), Some(seen)) = (places.first(), &self.file, self.scanned) else {
            return Ok(Vec::new());
        };
        let mut scanner = scanner(&open.file, first.offset, seen.len, PAGE_BUFFER_BYTES)?;
        let mut turns = Vec::with_capacity(places.len());
        for place in places {
            let raw = scanner.next()?.ok_or(JournalError::ConcurrentChange)?;
            if raw.offset != place.offset || self.hasher.hash_one(raw.header.id) != place.id {
                return Err(JournalError::ConcurrentChange);
            }
            turns.push(parse(&raw)?.turn);
        }
        Ok(turns)
    }

    /// Appends a turn, or finds the one with its key; also returns its file, which is not synced yet.
    pub(super) fn append(&mut self, new: NewTurn) -> Result<(Appended, Arc<File>), JournalError> {
        self.acquire()?;
        let (file, before) = self.open_for_append()?;
        if let Some(stamp) = &new.stamp
            && let Some(number) = self.by_key.get(&self.hasher.hash_one(&*stamp.key))
            && let Some(turn) = self.read_turns(*number as usize, 1)?.pop()
            && turn.stamp.as_ref().is_some_and(|found| found.key == stamp.key)
        {
            return Ok((Appended { turn, fresh: false }, file));
        }
        let NewTurn { participant, content, mut timestamp, meta, stamp } = new;
        let mut id = turn_id(&participant, &timestamp, &content);
        while self.find(&id).is_some() || self.pending.as_ref() == Some(&id) {
            timestamp = next_millisecond(&timestamp).map_err(JournalError::Refused)?;
            id = turn_id(&participant, &timestamp, &content);
        }
        let turn = Turn { id, participant, timestamp: timestamp.into(), content, meta, stamp };
        self.write(&file, before, &turn)?;
        Ok((Appended { turn, fresh: true }, file))
    }

    /// The journal, opened for appending and scanned to its end.
    fn open_for_append(&mut self) -> Result<(Arc<File>, FileStamp), JournalError> {
        for _ in 0..MAX_REPLACEMENTS {
            if self.file.as_ref().is_none_or(|open| !open.is_appendable) {
                let is_new = self.stamp()?.is_none();
                self.file = Some(OpenFile::new(open_append(&self.path)?, true)?);
                if is_new {
                    files::sync_dir_of(&self.path)?;
                }
            }
            self.refresh()?;
            if let (Some(open), Some(seen)) = (&self.file, self.scanned)
                && open.is_appendable
                && open.file_id == seen.file_id
            {
                let file = open.file.clone();
                self.check_is_journal(&file)?;
                return Ok((file, seen));
            }
            self.file = None;
        }
        Err(JournalError::ConcurrentChange)
    }

    /// Refuses a file that has text and no turn: it is another document, for example the manifest itself.
    fn check_is_journal(&self, file: &File) -> Result<(), JournalError> {
        if !self.turns.is_empty() || self.pending.is_some() {
            return Ok(());
        }
        let mut head = Vec::new();
        (&*file).seek(SeekFrom::Start(0))?;
        file.take(HEAD_BYTES).read_to_end(&mut head)?;
        format::first_text_line(&head).map_or(Ok(()), |line| Err(JournalError::NotAJournal(line)))
    }

    fn write(&mut self, file: &File, before: FileStamp, turn: &Turn) -> Result<(), JournalError> {
        let refuse = |error: serde_json::Error| {
            JournalError::Refused(SubstrateError::Refused(format!(
                "the turn's metadata cannot be written: {error}"
            )))
        };
        let mut text = self.repair.clone();
        let offset = before.len + text.len() as u64;
        text.push_str(&format::render(turn).map_err(refuse)?);
        (&*file).write_all(text.as_bytes())?;
        let now = self.stamp()?.ok_or(JournalError::ConcurrentChange)?;
        let is_alone = now.file_id == before.file_id && now.len == before.len + text.len() as u64;
        if is_alone && self.pending.is_none() {
            let id = self.hasher.hash_one(&*turn.id);
            self.add(offset, id, turn.stamp.as_ref().map(|stamp| &*stamp.key));
            self.repair.clear();
            (self.last_header, self.scanned) = (offset, Some(now));
            return Ok(());
        }
        // Something is shown now that was not, or a program that takes no lock wrote as well: it may have hidden or
        // overwritten this turn.
        self.refresh()?;
        self.find(&turn.id).map(|_| ()).ok_or(JournalError::ConcurrentChange)
    }
}

impl OpenFile {
    fn new(file: File, is_appendable: bool) -> io::Result<Self> {
        let file_id = FileStamp::of_metadata(&file.metadata()?).file_id;
        Ok(OpenFile { file: Arc::new(file), file_id, is_appendable })
    }
}

/// The turns of a stretch, which begins with a header or at the journal's start.
fn scanner(file: &File, from: u64, to: u64, buffer: usize) -> io::Result<Scanner<BufReader<Take<&File>>>> {
    let mut stretch = file;
    stretch.seek(SeekFrom::Start(from))?;
    Ok(Scanner::new(BufReader::with_capacity(buffer, stretch.take(to.saturating_sub(from))), from))
}

fn parse(raw: &RawTurn<'_>) -> Result<Entry, JournalError> {
    raw.parse().map_err(|error| JournalError::UnreadableNote {
        byte: raw.offset,
        turn: raw.header.id.into(),
        error,
    })
}

fn ends_with_line_feed(mut file: &File, len: u64) -> io::Result<bool> {
    let Some(at) = len.checked_sub(1) else { return Ok(true) };
    let mut byte = [0];
    file.seek(SeekFrom::Start(at))?;
    Ok(file.read(&mut byte)? == 1 && byte == *b"\n")
}

/// Opens a file for appending and reading; creates it, and its folder, if missing.
#[expect(clippy::disallowed_methods, reason = "this module is where journals are made")]
fn open_append(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    files::open_append(path)
}

/// The line of a turn's header, counted from 1; of the last one, if several turns have the id.
pub(super) fn line_of(journal: &Path, id: &str) -> io::Result<Option<usize>> {
    let file = files::open(journal)?;
    let mut scanner = scanner(&file, 0, u64::MAX, SCAN_BUFFER_BYTES)?;
    let mut found = None;
    while let Some(raw) = scanner.next()? {
        if raw.header.id == id {
            found = Some(raw.offset);
        }
    }
    let Some(offset) = found else { return Ok(None) };
    (&file).seek(SeekFrom::Start(0))?;
    let before = BufReader::with_capacity(SCAN_BUFFER_BYTES, (&file).take(offset));
    let lines = before.split(b'\n').try_fold(0, |lines, line| line.map(|_| lines + 1))?;
    Ok(Some(lines + 1))
}
