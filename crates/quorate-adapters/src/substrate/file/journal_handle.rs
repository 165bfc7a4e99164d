//! One handle's knowledge of the journal: how far it was scanned, the last turn, the state of the index. All of it can be
//! rebuilt from the journal.
//!
//! It changes only under the journal's lock. Data read without the lock is verified; if it is invalid, the index is
//! rebuilt under the lock.
//!
//! An append goes behind the turns of other writers, and appends each idempotency key once and each id once.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_kernel::conversation::{NewTurn, Turn};
use quorate_kernel::ports::substrate::{Appended, Page, SubstrateError};
use quorate_protocol::Name;

use super::super::{next_millisecond, turn_id};
use super::disk::{Acquisition, JournalError, Lock};
use super::format::{Body, Entry, Header, ParseError, TailRepair};
use super::index::{Filter, Index, Record};
use super::{disk, format, index};
use quorate_kernel::files::FileStamp;

/// A longer stretch is scanned by a thread of its own, in bytes.
const LARGE_GROWTH_BYTES: u64 = 256 * 1024;
/// Searching an index of up to this many turns takes negligible time.
pub(super) const SMALL_INDEX: u64 = 5_000;
/// How many records are written to the index at once.
const INDEX_BATCH: usize = 1_024;

pub(super) struct JournalHandle {
    pub(super) path: PathBuf,
    index_path: PathBuf,
    pub(super) lock: Lock,
    /// Open for reading, or for reading and appending.
    pub(super) journal: Option<JournalFile>,
    /// The journal's stamp when it was scanned last, up to its end then.
    pub(super) scanned_stamp: Option<FileStamp>,
    pub(super) index: Option<Index>,
    /// The number of turns, all in the index, and the checksum of the last one's record.
    pub(super) count: u64,
    pub(super) check: u64,
    /// The checksum of the record before the last.
    previous_check: u64,
    pub(super) last: Option<LastTurn>,
    pub(super) tail_repair: TailRepair,
    /// The id of a turn at the journal's end that is not shown yet.
    pub(super) pending: Option<Name>,
    pub(super) filter: Option<Filter>,
    /// The number of turns that this handle has appended.
    pub(super) appended: usize,
    /// Whether the whole journal was scanned, and no other writer has changed it since.
    pub(super) fully_scanned: bool,
    /// The number of the last turn that a reader received, who will ask for the next ones.
    last_delivered: Option<u64>,
}

pub(super) struct JournalFile {
    pub(super) file: Arc<File>,
    /// Device and inode.
    pub(super) file_id: (u64, u64),
    pub(super) is_appendable: bool,
}

pub(super) struct LastTurn {
    pub(super) id: Name,
    pub(super) offset: u64,
}

impl JournalHandle {
    pub(super) fn new(path: PathBuf) -> Self {
        JournalHandle {
            index_path: disk::with_suffix(&path, ".idx"),
            lock: Lock::for_journal(&path),
            path,
            journal: None,
            scanned_stamp: None,
            index: None,
            count: 0,
            check: 0,
            previous_check: 0,
            last: None,
            tail_repair: TailRepair::default(),
            pending: None,
            filter: None,
            appended: 0,
            fully_scanned: false,
            last_delivered: None,
        }
    }

    pub(super) fn stamp(&self) -> Result<Option<FileStamp>, JournalError> {
        Ok(FileStamp::of_path(&self.path)?)
    }

    /// Whether the journal became shorter or was replaced. Some programs empty a file before they rewrite it.
    pub(super) fn has_lost_data(&self, now: Option<FileStamp>) -> bool {
        self.scanned_stamp
            .is_some_and(|seen| now.is_none_or(|now| now.len < seen.len || now.file_id != seen.file_id))
    }

    /// Whether an update takes negligible time, given the journal's stamp; acquires the lock if the update needs it.
    pub(super) fn is_cheap(&mut self, now: Option<FileStamp>, appending: bool) -> bool {
        if appending && self.filter.is_none() && self.count > SMALL_INDEX {
            return false;
        }
        if now == self.scanned_stamp && !appending {
            return true;
        }
        let same = now.is_none_or(|now| self.scanned_stamp.is_some_and(|seen| seen.file_id == now.file_id));
        let scanned = if same { self.scanned_stamp.map_or(0, |seen| seen.len) } else { 0 };
        let new = now.map_or(0, |now| now.len).abs_diff(scanned);
        // If the lock fails here, it fails again where the error is reported.
        new <= LARGE_GROWTH_BYTES
            && self.lock.try_acquire().map_or(true, |acquisition| acquisition == Acquisition::Acquired)
    }

    /// Scans what other writers have appended.
    pub(super) fn refresh(&mut self) -> Result<(), JournalError> {
        if self.stamp()? == self.scanned_stamp {
            return Ok(());
        }
        // A user who cannot create the lock file cannot append either, and at worst sees a turn that is being written.
        if let Err(error) = self.lock.acquire()
            && !matches!(
                error.kind(),
                std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem
            )
            && self.stamp()?.is_some()
        {
            return Err(error.into());
        }
        let Some(now) = self.stamp()? else {
            let JournalHandle { path, .. } = self;
            let path = std::mem::take(path);
            let lock = std::mem::replace(&mut self.lock, Lock::for_journal(&path));
            *self = JournalHandle { lock, ..JournalHandle::new(path) };
            return Ok(());
        };
        let grown = self.scanned_stamp.is_some_and(|seen| seen.file_id == now.file_id && seen.len <= now.len);
        // Other writers changed the journal, perhaps in its middle.
        self.fully_scanned = false;
        let known = match grown && self.index.is_some() {
            true => self.scan_growth(now),
            false => self.load(now),
        };
        match known {
            Err(JournalError::StaleIndex) => self.rebuild_index(),
            other => other,
        }
    }

    /// Scans the appended part, from the last turn on, which may have grown.
    fn scan_growth(&mut self, now: FileStamp) -> Result<(), JournalError> {
        let known = match &self.last {
            Some(last) => Some((self.count - 1, last.offset, index::id_hash(&last.id), self.previous_check)),
            None => None,
        };
        self.scan_to_end(known, now)
    }

    /// Opens the journal, and its index as far as it matches.
    fn load(&mut self, now: FileStamp) -> Result<(), JournalError> {
        self.open(now)?;
        self.filter = None;
        self.index = None;
        let Some((index, count)) = Index::open(&self.index_path) else {
            return Err(JournalError::StaleIndex);
        };
        let Some(at) = count.checked_sub(1) else { return Err(JournalError::StaleIndex) };
        let previous_check = match at.checked_sub(1) {
            Some(at) => index.get(at)?.ok_or(JournalError::StaleIndex)?.check,
            None => 0,
        };
        let record =
            index.get(at)?.filter(|record| record.follows(previous_check)).ok_or(JournalError::StaleIndex)?;
        self.index = Some(index);
        self.scan_to_end(Some((at, record.offset, record.id, previous_check)), now)
    }

    /// Builds the index from the whole journal, in a temporary file that replaces the old one.
    pub(super) fn rebuild_index(&mut self) -> Result<(), JournalError> {
        let now = self.stamp()?.ok_or(JournalError::ConcurrentChange)?;
        self.open(now)?;
        self.filter = None;
        let folder = self.index_path.parent().unwrap_or(Path::new("."));
        let replacement = tempfile::Builder::new().prefix(".quorate-").suffix(".idx").tempfile_in(folder);
        match replacement {
            Ok(file) => {
                self.index = Some(Index::begin(file.reopen()?)?);
                self.scan_to_end(None, now)?;
                file.persist(&self.index_path).map_err(|error| error.error)?;
            }
            // Reading the journal must also work in a read-only folder.
            Err(_) => {
                self.index = Some(Index::begin(tempfile::tempfile()?)?);
                self.scan_to_end(None, now)?;
            }
        }
        self.fully_scanned = true;
        Ok(())
    }

    fn open(&mut self, now: FileStamp) -> Result<(), JournalError> {
        if self.journal.as_ref().is_none_or(|journal| journal.file_id != now.file_id) {
            self.journal = None;
            let file = disk::open_read(&self.path)?;
            let file_id = FileStamp::of_metadata(&file.metadata()?).file_id;
            if file_id != now.file_id {
                return Err(JournalError::ConcurrentChange);
            }
            self.journal = Some(JournalFile { file: Arc::new(file), file_id, is_appendable: false });
        }
        Ok(())
    }

    /// Scans the journal to its end: from a known turn on (its number, its offset, the hash of its id, the checksum before
    /// it), or from the beginning. After a failure the earlier state is invalid.
    fn scan_to_end(
        &mut self,
        known: Option<(u64, u64, [u8; 16], u64)>,
        now: FileStamp,
    ) -> Result<(), JournalError> {
        let (Some(journal), Some(index)) = (&self.journal, &self.index) else {
            return Err(JournalError::StaleIndex);
        };
        self.scanned_stamp = None;
        let file = journal.file.clone();
        let (mut count, from, _, mut check) = known.unwrap_or_default();
        let mut previous_check = check;
        let mut scan = Scan::new(&file, from, now.len);
        let mut last = None;
        let (mut mend, mut pending) = (None, None);
        let mut expected = known.map(|(_, _, id, _)| id);
        let mut batch: Vec<Record> = Vec::new();
        while let Some(found) = scan.next()? {
            let turn = found.entry.turn;
            if expected.take().is_some_and(|id| id != index::id_hash(&turn.id) || found.offset != from) {
                return Err(JournalError::StaleIndex);
            }
            mend = Some(found.entry.tail_repair);
            if found.entry.pending {
                pending = Some(turn.id);
                break;
            }
            previous_check = check;
            let key = turn.stamp.as_ref().map(|stamp| &*stamp.key);
            let record = Record::new(check, found.offset, &turn.id, key);
            check = record.check;
            if let Some(filter) = &mut self.filter {
                filter.add_record(&record);
            }
            batch.push(record);
            count += 1;
            last = Some(LastTurn { id: turn.id, offset: found.offset });
            if batch.len() == INDEX_BATCH {
                index.put(count - INDEX_BATCH as u64, &batch)?;
                batch.clear();
            }
        }
        if known.is_some() && last.is_none() {
            return Err(JournalError::StaleIndex);
        }
        index.put(count - batch.len() as u64, &batch)?;
        // Without turns, the text may belong to another document.
        let tail_repair = match mend {
            Some(mend) => mend,
            None => TailRepair { line_feed: !ends_with_line_feed(&file, now.len)?, ..TailRepair::default() },
        };
        (self.count, self.check, self.previous_check) = (count, check, previous_check);
        (self.last, self.tail_repair, self.pending, self.scanned_stamp) =
            (last, tail_repair, pending, Some(now));
        Ok(())
    }

    /// Records a turn that this handle has just written.
    pub(super) fn record_appended(
        &mut self,
        offset: u64,
        turn: &Turn,
        now: FileStamp,
    ) -> Result<(), JournalError> {
        let Some(index) = &self.index else { return Err(JournalError::StaleIndex) };
        let key = turn.stamp.as_ref().map(|stamp| &*stamp.key);
        let record = Record::new(self.check, offset, &turn.id, key);
        index.put(self.count, &[record])?;
        if let Some(filter) = &mut self.filter {
            filter.add_record(&record);
        }
        (self.previous_check, self.check) = (self.check, record.check);
        self.count += 1;
        self.last = Some(LastTurn { id: turn.id.clone(), offset });
        (self.tail_repair, self.scanned_stamp) = (TailRepair::default(), Some(now));
        Ok(())
    }

    /// The number of the turn with an id; the last one if several have it, reliably: a damaged record after it might be
    /// that one.
    pub(super) fn find_turn(&self, id: &str) -> Result<Option<(u64, Record)>, JournalError> {
        let Some(index) = &self.index else { return Ok(None) };
        let hash = index::id_hash(id);
        let found = index.find_last(self.count, |record| record.id == hash)?;
        if let Some((at, record)) = &found
            && !index.sweep_from((at + 1, record.check), self.count, self.check, |_| {})?
        {
            return Err(JournalError::StaleIndex);
        }
        Ok(found)
    }

    /// Whether an id that was not found is reliably missing; if in doubt, the journal is scanned again.
    fn is_missing(&mut self, id: &str) -> Result<bool, JournalError> {
        if self.count == 0 && self.scanned_stamp.is_none() {
            return Ok(true);
        }
        let right = match &self.index {
            Some(index) if self.fully_scanned => index.verify(self.count, self.check, |_| {})?,
            _ => false,
        };
        if !right {
            self.lock.acquire()?;
            self.rebuild_index()?;
        }
        Ok(self.find_turn(id)?.is_none())
    }

    /// Runs `work`, and again with a rebuilt index if the index was invalid.
    pub(super) fn with_valid_index<T>(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        match work(self) {
            Err(JournalError::StaleIndex) => {
                self.lock.acquire()?;
                self.rebuild_index()?;
                work(self)
            }
            other => other,
        }
    }

    /// At most `limit` turns newer than `since`, and whether these are all.
    pub(super) fn page(&mut self, since: Option<&str>, limit: usize) -> Result<(Page, bool), JournalError> {
        self.refresh()?;
        if since.is_some() && self.last.as_ref().map(|last| &*last.id) == since {
            return Ok((Page { turns: Vec::new(), known: true }, true));
        }
        self.with_valid_index(|handle| {
            let found = match since {
                None => None,
                Some(id) => match handle.delivered_position(id)? {
                    None => handle.find_turn(id)?.map(|(at, _)| at),
                    given => given,
                },
            };
            let found = match since {
                Some(id) if found.is_none() && !handle.is_missing(id)? => {
                    handle.find_turn(id)?.map(|(at, _)| at)
                }
                _ => found,
            };
            let from = found.map_or(0, |at| at + 1);
            let wanted_count = (handle.count - from).min(limit as u64);
            // The cursor's turn is also read, since its place proves the index right.
            let mut turns = match found {
                Some(at) => handle.read_turns(at, wanted_count + 1, since)?,
                None => handle.read_turns(0, wanted_count, None)?,
            };
            turns.drain(..usize::from(found.is_some()).min(turns.len()));
            let all = from + turns.len() as u64 == handle.count;
            if !turns.is_empty() {
                handle.last_delivered = Some(from + turns.len() as u64 - 1);
            }
            Ok((Page { turns, known: since.is_none() || found.is_some() }, all))
        })
    }

    /// The number of the turn that was delivered last, if it has this id. Without it, reading page by page would search
    /// from the end for every page.
    fn delivered_position(&self, id: &str) -> Result<Option<u64>, JournalError> {
        let (Some(index), Some(at)) = (&self.index, self.last_delivered.filter(|at| *at < self.count)) else {
            return Ok(None);
        };
        let hash = index::id_hash(id);
        Ok(index.get(at)?.filter(|record| record.id == hash).map(|_| at))
    }

    pub(super) fn window(&mut self, id: &str, count: usize) -> Result<Vec<Turn>, JournalError> {
        self.refresh()?;
        self.with_valid_index(|handle| {
            let mut found = handle.find_turn(id)?;
            if found.is_none() && !handle.is_missing(id)? {
                found = handle.find_turn(id)?;
            }
            let Some((at, _)) = found else { return Ok(Vec::new()) };
            let wanted = (at + 1).min(count as u64);
            let turns = handle.read_turns(at + 1 - wanted, wanted, None)?;
            match turns.last() {
                Some(last) if &*last.id != id => Err(JournalError::StaleIndex),
                _ => Ok(turns),
            }
        })
    }

    /// `count` turns from number `from` on; the first must have the given id. They must be where the index says.
    pub(super) fn read_turns(
        &self,
        from: u64,
        count: u64,
        id: Option<&str>,
    ) -> Result<Vec<Turn>, JournalError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let (Some(journal), Some(index), Some(seen)) = (&self.journal, &self.index, self.scanned_stamp)
        else {
            return Err(JournalError::StaleIndex);
        };
        let record = index.get(from)?.ok_or(JournalError::StaleIndex)?;
        if record.offset >= seen.len {
            return Err(JournalError::StaleIndex);
        }
        // A page of a few short turns needs no large buffer.
        let size = if count < 8 { 4 * 1024 } else { 32 * 1024 };
        let mut scan = Scan::buffered(&journal.file, record.offset, seen.len, size);
        let mut turns = Vec::with_capacity(usize::try_from(count).unwrap_or_default().min(1_024));
        while (turns.len() as u64) < count {
            let found = scan.next()?.ok_or(JournalError::StaleIndex)?;
            let turn = found.entry.turn;
            if turns.is_empty() {
                let right = found.offset == record.offset && index::id_hash(&turn.id) == record.id;
                if !right || id.is_some_and(|id| id != &*turn.id) {
                    return Err(JournalError::StaleIndex);
                }
            }
            turns.push(turn);
        }
        Ok(turns)
    }
}

fn ends_with_line_feed(file: &File, len: u64) -> Result<bool, JournalError> {
    let Some(at) = len.checked_sub(1) else { return Ok(true) };
    let mut byte = [0];
    Ok(disk::fill_at(file, &mut byte, at)? == 1 && byte == *b"\n")
}

/// How often another program may replace the journal while one turn is appended.
const MAX_REPLACEMENTS: usize = 8;
/// From this many appends to a long journal on, building a filter pays off.
const FILTER_AFTER_APPENDS: usize = 4;
/// How much of a file without turns is checked, in bytes.
const HEAD_BYTES: usize = 64 * 1024;

impl JournalHandle {
    /// Appends a turn, or finds the one with its key; also returns its file, which is not synced yet.
    pub(super) fn append(&mut self, new: NewTurn) -> Result<(Appended, Arc<std::fs::File>), JournalError> {
        self.lock.acquire()?;
        let file = self.open_for_append()?;
        self.check_is_journal(&file)?;
        self.ensure_filter()?;
        if let Some(stamp) = &new.stamp
            && let Some(turn) = self.find_by_key(&stamp.key)?
        {
            return Ok((Appended { turn, fresh: false }, file));
        }
        let NewTurn { participant, content, mut timestamp, meta, stamp } = new;
        let mut name = turn_id(&participant, &timestamp, &content);
        while self.contains_id(&name)? {
            timestamp = next_millisecond(&timestamp).map_err(JournalError::Refused)?;
            name = turn_id(&participant, &timestamp, &content);
        }
        let turn = Turn { id: name, participant, timestamp: timestamp.into(), content, meta, stamp };
        self.write_turn(&file, &turn)?;
        self.appended += 1;
        Ok((Appended { turn, fresh: true }, file))
    }

    /// The journal, opened for appending and read to its end.
    fn open_for_append(&mut self) -> Result<Arc<std::fs::File>, JournalError> {
        for _ in 0..MAX_REPLACEMENTS {
            if self.journal.as_ref().is_none_or(|journal| !journal.is_appendable) {
                let is_new = self.stamp()?.is_none();
                let file = Arc::new(disk::open_append(&self.path)?);
                let which = FileStamp::of_metadata(&file.metadata()?).file_id;
                if is_new {
                    disk::sync_folder(&self.path)?;
                }
                self.journal = Some(JournalFile { file, file_id: which, is_appendable: true });
            }
            self.refresh()?;
            match (&self.journal, self.scanned_stamp) {
                (Some(journal), Some(seen)) if journal.is_appendable && journal.file_id == seen.file_id => {
                    return Ok(journal.file.clone());
                }
                _ => self.journal = None,
            }
        }
        Err(JournalError::ConcurrentChange)
    }

    /// Refuses a file that has text and no turn: it is another document, for example the manifest itself.
    fn check_is_journal(&self, file: &std::fs::File) -> Result<(), JournalError> {
        if self.count > 0 || self.pending.is_some() {
            return Ok(());
        }
        let mut head = vec![0; HEAD_BYTES];
        let read = disk::fill_at(file, &mut head, 0)?;
        format::first_text_line(&head[..read]).map_or(Ok(()), |line| Err(JournalError::NotAJournal(line)))
    }

    /// Builds the filter, and the index that it needs. Appending a turn or two to a long journal is faster without.
    fn ensure_filter(&mut self) -> Result<(), JournalError> {
        let unfiltered =
            self.filter.is_none() && self.count > SMALL_INDEX && self.appended < FILTER_AFTER_APPENDS;
        if unfiltered || self.filter.as_ref().is_some_and(|filter| !filter.is_full()) {
            return Ok(());
        }
        for _ in 0..2 {
            let mut filter = Filter::for_entries(usize::try_from(self.count).unwrap_or_default() * 2);
            let right = match &self.index {
                Some(index) => index.verify(self.count, self.check, |record| filter.add_record(record))?,
                None => false,
            };
            if right {
                self.filter = Some(filter);
                return Ok(());
            }
            self.rebuild_index()?;
        }
        Err(JournalError::StaleIndex)
    }

    fn may_contain(&self, hash: u64) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.may_contain(hash))
    }

    /// Whether a turn has this id.
    fn contains_id(&mut self, id: &Name) -> Result<bool, JournalError> {
        if self.pending.as_ref() == Some(id) {
            return Ok(true);
        }
        let hash = index::id_hash(id);
        Ok(self.may_contain(index::low_half(&hash))
            && self.find_last(self.count, |record| record.id == hash)?.is_some())
    }

    /// The last of the first `below` records that matches. A negative result is trusted only from a valid index, since the
    /// filter reported a possible match.
    fn find_last(
        &mut self,
        below: u64,
        matches: impl Fn(&Record) -> bool,
    ) -> Result<Option<u64>, JournalError> {
        if let Some(index) = &self.index {
            if let Some((at, _)) = index.find_last(below, &matches)? {
                return Ok(Some(at));
            }
            if index.verify(self.count, self.check, |_| {})? {
                return Ok(None);
            }
        }
        self.rebuild_index()?;
        let index = self.index.as_ref().ok_or(JournalError::StaleIndex)?;
        Ok(index.find_last(self.count, matches)?.map(|(at, _)| at))
    }

    /// The turn that has this key.
    fn find_by_key(&mut self, key: &str) -> Result<Option<Turn>, JournalError> {
        let hash = index::key_hash(key);
        if !self.may_contain(hash) {
            return Ok(None);
        }
        let mut rebuilt = false;
        let mut below = self.count;
        loop {
            let Some(at) = self.find_last(below, |record| record.key == hash)? else { return Ok(None) };
            match self.read_turns(at, 1, None).map(|mut turns| turns.pop()) {
                Ok(Some(turn)) if turn.stamp.as_ref().is_some_and(|stamp| &*stamp.key == key) => {
                    return Ok(Some(turn));
                }
                Ok(_) => below = at,
                Err(JournalError::StaleIndex) if !rebuilt => {
                    self.rebuild_index()?;
                    (rebuilt, below) = (true, self.count);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn write_turn(&mut self, file: &Arc<std::fs::File>, turn: &Turn) -> Result<(), JournalError> {
        let before = self.scanned_stamp.ok_or(JournalError::StaleIndex)?;
        let mut text = self.tail_repair.to_text();
        let offset = before.len + text.len() as u64;
        let refuse = |error: serde_json::Error| {
            JournalError::Refused(SubstrateError::Refused(format!(
                "the turn's metadata cannot be written: {error}"
            )))
        };
        text.push_str(&format::render(turn).map_err(refuse)?);
        (&**file).write_all(text.as_bytes())?;
        let now = self.stamp()?.ok_or(JournalError::ConcurrentChange)?;
        if self.pending.is_none()
            && now.file_id == before.file_id
            && now.len == before.len + text.len() as u64
        {
            return self.record_appended(offset, turn, now);
        }
        // A turn that is missing now was hidden or overwritten by a program that takes no lock: check what became
        // of this one.
        self.refresh()?;
        match self.with_valid_index(|handle| handle.find_turn(&turn.id))? {
            Some(_) => Ok(()),
            None => Err(JournalError::ConcurrentChange),
        }
    }
}

const BUFFER_BYTES: usize = 64 * 1024;

/// The line of a turn's header, counted from 1; of the last one, if several turns have the id.
pub(super) fn line_of(journal: &Path, id: &str) -> Option<usize> {
    let file = BufReader::with_capacity(BUFFER_BYTES, disk::open_read(journal).ok()?);
    let mut found = None;
    for (at, line) in file.split(b'\n').enumerate() {
        let line = line.ok()?;
        let bom = if at == 0 { format::byte_order_mark(&line) } else { 0 };
        let header = format::parse_header(&line[bom..]).ok().flatten();
        found = header.filter(|header| &*header.id == id).map(|_| at + 1).or(found);
    }
    found
}

/// A turn and the offset of its header.
pub(super) struct ScannedTurn {
    pub(super) offset: u64,
    pub(super) entry: Entry,
}

/// The turns of a stretch, which must begin with a header or at the journal's start.
pub(super) struct Scan<'a> {
    lines: BufReader<FileRange<'a>>,
    /// The offset of the next line.
    at: u64,
    line: Vec<u8>,
    body: Vec<u8>,
    next: Option<OpenHeader>,
}

struct OpenHeader {
    offset: u64,
    header: Header,
    /// Whether the header's line has its line feed.
    line_ended: bool,
}

impl<'a> Scan<'a> {
    /// Scans from one offset to another one, which counts as the end of the journal.
    pub(super) fn new(file: &'a File, from: u64, to: u64) -> Self {
        Scan::buffered(file, from, to, BUFFER_BYTES)
    }

    /// The same, with a given buffer size.
    pub(super) fn buffered(file: &'a File, from: u64, to: u64, size: usize) -> Self {
        let stretch = FileRange { file, at: from, to };
        let lines = BufReader::with_capacity(size, stretch);
        Scan { lines, at: from, line: Vec::new(), body: Vec::new(), next: None }
    }

    pub(super) fn next(&mut self) -> Result<Option<ScannedTurn>, JournalError> {
        self.body.clear();
        loop {
            self.line.clear();
            let offset = self.at;
            let read = self.lines.read_until(b'\n', &mut self.line)?;
            if read == 0 {
                return self.next.take().map(|header| self.finish_turn(header, true)).transpose();
            }
            self.at += read as u64;
            let line_ended = self.line.ends_with(b"\n");
            let bom = if offset == 0 { format::byte_order_mark(&self.line) } else { 0 };
            let line = &self.line[bom..read - usize::from(line_ended)];
            let header = format::parse_header(line)
                .map_err(|byte| JournalError::NotUtf8(offset + (bom + byte) as u64))?;
            match header {
                Some(header) => {
                    let before = self.next.replace(OpenHeader { offset, header, line_ended });
                    if let Some(before) = before {
                        return self.finish_turn(before, false).map(Some);
                    }
                }
                // Text before the first header belongs to no turn.
                None if self.next.is_some() => self.body.extend_from_slice(&self.line),
                None => {}
            }
        }
    }

    fn finish_turn(&self, open: OpenHeader, last: bool) -> Result<ScannedTurn, JournalError> {
        let body = Body { text: &self.body, is_last: last, header_line_ended: open.line_ended };
        let header = open.header;
        let entry = format::parse_turn(&header, &body).map_err(|unreadable| {
            let end = if last { self.at } else { self.at - self.line.len() as u64 };
            let begin = end - self.body.len() as u64;
            match unreadable {
                ParseError::Text(byte) => JournalError::NotUtf8(begin + byte as u64),
                ParseError::Note(error) => {
                    JournalError::UnreadableNote { byte: begin, turn: header.id.clone(), error }
                }
            }
        })?;
        Ok(ScannedTurn { offset: open.offset, entry })
    }
}

/// A stretch of a file, independent of the file's cursor.
struct FileRange<'a> {
    file: &'a File,
    at: u64,
    to: u64,
}

impl Read for FileRange<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let remaining = usize::try_from(self.to.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let size = buffer.len().min(remaining);
        let read = disk::read_at(self.file, &mut buffer[..size], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
