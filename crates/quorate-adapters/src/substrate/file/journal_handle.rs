//! One handle's knowledge of the journal: how far it was scanned, the last turn, the state of the index. All of it can be
//! rebuilt from the journal.
//!
//! It changes only under the journal's lock. Data read without the lock is verified; if it is invalid, the index is
//! rebuilt under the lock.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::substrate::Page;
use quorate_protocol::Name;

use super::bloom_filter::Filter;
use super::disk::{self, Acquisition, Lock};
use super::error::JournalError;
use super::format::TailRepair;
use super::index::{self, Index, Record};
use super::scan::Scan;
use crate::file_stamp::FileStamp;

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
            let file = disk::open(&self.path)?;
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
            // The cursor's turn is read, too, since its place proves the index right.
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
