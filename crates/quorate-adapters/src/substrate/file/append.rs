//! Appending: under the lock, behind whatever others have appended, each key once and each id once.

use std::io::Write as _;
use std::sync::Arc;

use quorate_kernel::conversation::{NewTurn, Turn};
use quorate_kernel::ports::substrate::{Appended, Error};
use quorate_protocol::Name;

use super::super::{id, later};
use super::book::{Book, FEW, Journal};
use super::disk;
use super::filter::Filter;
use super::format;
use super::index::{self, Record};
use super::preamble;
use super::trouble::Trouble;
use crate::look::Look;

/// How often another program may replace the journal while one turn is appended.
const PATIENCE: usize = 8;
/// From how many appends to a long journal on a filter is worth its making.
const APPENDS: usize = 4;
/// How much of a file without turns is looked at.
const HEAD: usize = 64 * 1024;

impl Book {
    /// Appends a turn, or finds the one that has its key; and the file that it is in, which is not synced yet.
    pub(super) fn append(&mut self, new: NewTurn) -> Result<(Appended, Arc<std::fs::File>), Trouble> {
        self.lock.take()?;
        let file = self.writable()?;
        self.is_journal(&file)?;
        self.filtered()?;
        if let Some(stamp) = &new.stamp
            && let Some(turn) = self.with_key(&stamp.key)?
        {
            return Ok((Appended { turn, fresh: false }, file));
        }
        let NewTurn { participant, content, mut timestamp, meta, stamp } = new;
        let mut name = id(&participant, &timestamp, &content);
        while self.has(&name)? {
            timestamp = later(&timestamp).map_err(Trouble::Refused)?;
            name = id(&participant, &timestamp, &content);
        }
        let turn = Turn { id: name, participant, timestamp: timestamp.into(), content, meta, stamp };
        self.write(&file, &turn)?;
        self.appended += 1;
        Ok((Appended { turn, fresh: true }, file))
    }

    /// The journal, open for appending, with everything known that is in it.
    fn writable(&mut self) -> Result<Arc<std::fs::File>, Trouble> {
        for _ in 0..PATIENCE {
            if self.journal.as_ref().is_none_or(|journal| !journal.appends) {
                let is_new = self.look()?.is_none();
                let file = Arc::new(disk::open_append(&self.path)?);
                let which = Look::of(&file.metadata()?).file;
                if is_new {
                    disk::sync_folder(&self.path)?;
                }
                self.journal = Some(Journal { file, which, appends: true });
            }
            self.refresh()?;
            match (&self.journal, self.seen) {
                (Some(journal), Some(seen)) if journal.appends && journal.which == seen.file => {
                    return Ok(journal.file.clone());
                }
                _ => self.journal = None,
            }
        }
        Err(Trouble::Moving)
    }

    /// Refuses a file that has text and no turn: it is somebody's, the manifest itself for example.
    fn is_journal(&self, file: &std::fs::File) -> Result<(), Trouble> {
        if self.count > 0 || self.pending.is_some() {
            return Ok(());
        }
        let mut head = vec![0; HEAD];
        let read = disk::fill_at(file, &mut head, 0)?;
        preamble::words(&head[..read]).map_or(Ok(()), |line| Err(Trouble::NoJournal(line)))
    }

    /// Makes sure of the filter, and with it of the index. Who appends a turn or two to a long journal is faster
    /// without.
    fn filtered(&mut self) -> Result<(), Trouble> {
        let unfiltered = self.filter.is_none() && self.count > FEW && self.appended < APPENDS;
        if unfiltered || self.filter.as_ref().is_some_and(|filter| !filter.is_full()) {
            return Ok(());
        }
        for _ in 0..2 {
            let mut filter = Filter::for_entries(usize::try_from(self.count).unwrap_or_default() * 2);
            let right = match &self.index {
                Some(index) => index.sweep(self.count, self.check, |record| filter.add_record(record))?,
                None => false,
            };
            if right {
                self.filter = Some(filter);
                return Ok(());
            }
            self.rebuild()?;
        }
        Err(Trouble::Doubt)
    }

    fn may_have(&self, hash: u64) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.may_have(hash))
    }

    /// Whether a turn has this id.
    fn has(&mut self, id: &Name) -> Result<bool, Trouble> {
        if self.pending.as_ref() == Some(id) {
            return Ok(true);
        }
        let hash = index::hash(id);
        Ok(self.may_have(index::low(&hash))
            && self.looked_up(self.count, |record| record.id == hash)?.is_some())
    }

    /// The last of so many records that is wanted. That there is none is believed of a sound index alone: the filter
    /// said that there may be one.
    fn looked_up(&mut self, below: u64, wanted: impl Fn(&Record) -> bool) -> Result<Option<u64>, Trouble> {
        if let Some(index) = &self.index {
            if let Some((at, _)) = index.last(below, &wanted)? {
                return Ok(Some(at));
            }
            if index.sweep(self.count, self.check, |_| {})? {
                return Ok(None);
            }
        }
        self.rebuild()?;
        let index = self.index.as_ref().ok_or(Trouble::Doubt)?;
        Ok(index.last(self.count, wanted)?.map(|(at, _)| at))
    }

    /// The turn that has this key.
    fn with_key(&mut self, key: &str) -> Result<Option<Turn>, Trouble> {
        let hash = index::key_hash(key);
        if !self.may_have(hash) {
            return Ok(None);
        }
        let mut rebuilt = false;
        let mut below = self.count;
        loop {
            let Some(at) = self.looked_up(below, |record| record.key == hash)? else { return Ok(None) };
            match self.turns(at, 1, None).map(|mut turns| turns.pop()) {
                Ok(Some(turn)) if turn.stamp.as_ref().is_some_and(|stamp| &*stamp.key == key) => {
                    return Ok(Some(turn));
                }
                Ok(_) => below = at,
                Err(Trouble::Doubt) if !rebuilt => {
                    self.rebuild()?;
                    (rebuilt, below) = (true, self.count);
                }
                Err(trouble) => return Err(trouble),
            }
        }
    }

    fn write(&mut self, file: &Arc<std::fs::File>, turn: &Turn) -> Result<(), Trouble> {
        let before = self.seen.ok_or(Trouble::Doubt)?;
        let mut text = self.mend.text();
        let offset = before.len + text.len() as u64;
        let refused = |error: serde_json::Error| {
            Trouble::Refused(Error::Refused(format!("the turn's metadata cannot be written: {error}")))
        };
        text.push_str(&format::write(turn).map_err(refused)?);
        (&**file).write_all(text.as_bytes())?;
        let now = self.look()?.ok_or(Trouble::Moving)?;
        if self.pending.is_none() && now.file == before.file && now.len == before.len + text.len() as u64 {
            return self.note(offset, turn, now);
        }
        // A turn that was not shown before is shown now, or somebody who takes no lock has appended at the same moment
        // or replaced the journal: we look what became of ours.
        self.refresh()?;
        match self.surely(|book| book.find(&turn.id))? {
            Some(_) => Ok(()),
            None => Err(Trouble::Moving),
        }
    }
}
