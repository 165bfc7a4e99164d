//! Appends turns under the lock, behind those of other writers, each idempotency key once and each id once.

use std::io::Write as _;
use std::sync::Arc;

use quorate_kernel::conversation::{NewTurn, Turn};
use quorate_kernel::ports::substrate::{Appended, Error};
use quorate_protocol::Name;

use super::super::{next_millisecond, turn_id};
use super::bloom_filter::Filter;
use super::disk;
use super::error::JournalError;
use super::format;
use super::index::{self, Record};
use super::journal_handle::{JournalFile, JournalHandle, SMALL_INDEX};
use super::preamble;
use crate::file_stamp::FileStamp;

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
        preamble::first_text_line(&head[..read]).map_or(Ok(()), |line| Err(JournalError::NotAJournal(line)))
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
            JournalError::Refused(Error::Refused(format!("the turn's metadata cannot be written: {error}")))
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
