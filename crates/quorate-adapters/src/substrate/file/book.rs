//! What one handle knows of the journal: how far it has looked, which turn is the last, where the index stands. All of
//! it can be lost: it follows from the journal.
//!
//! Whatever changes it happens under the journal's lock. What is read without the lock is verified, and in doubt the
//! index is built anew under it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::substrate::Page;
use quorate_protocol::Name;

use super::disk::{self, Lock, Taken};
use super::filter::Filter;
use super::format::Mend;
use super::index::{self, Index, Record};
use super::scan::Scan;
use super::trouble::Trouble;
use crate::look::Look;

/// From how many bytes on a stretch is looked through by a thread of its own.
const MUCH: u64 = 256 * 1024;
/// Up to how many turns looking through the index takes no time to speak of.
pub(super) const FEW: u64 = 5_000;
/// How many records are written to the index at once.
const BATCH: usize = 1_024;

/// The journal as one handle knows it.
pub(super) struct Book {
    pub(super) path: PathBuf,
    index_path: PathBuf,
    pub(super) lock: Lock,
    /// Open for reading, or for appending, too.
    pub(super) journal: Option<Journal>,
    /// How the journal looked when it was last looked through, up to its end then.
    pub(super) seen: Option<Look>,
    pub(super) index: Option<Index>,
    /// How many turns there are, all in the index, and the check of the last one's record.
    pub(super) count: u64,
    pub(super) check: u64,
    /// The check of the record before that.
    before: u64,
    pub(super) last: Option<Last>,
    pub(super) mend: Mend,
    /// The id of a turn that the journal ends with and that is not shown yet.
    pub(super) pending: Option<Name>,
    pub(super) filter: Option<Filter>,
    /// How many turns this handle has appended.
    pub(super) appended: usize,
    /// Whether the whole journal was looked through, and nobody but us has touched it since.
    pub(super) exact: bool,
    /// The number of the last turn that was given to a reader, who will ask for what follows it.
    given: Option<u64>,
}

pub(super) struct Journal {
    pub(super) file: Arc<File>,
    /// Which file it is.
    pub(super) which: (u64, u64),
    pub(super) appends: bool,
}

pub(super) struct Last {
    pub(super) id: Name,
    pub(super) offset: u64,
}

impl Book {
    pub(super) fn of(path: PathBuf) -> Self {
        Book {
            index_path: disk::beside(&path, ".idx"),
            lock: Lock::of(&path),
            path,
            journal: None,
            seen: None,
            index: None,
            count: 0,
            check: 0,
            before: 0,
            last: None,
            mend: Mend::default(),
            pending: None,
            filter: None,
            appended: 0,
            exact: false,
            given: None,
        }
    }

    /// How the journal looks now.
    pub(super) fn look(&self) -> Result<Option<Look>, Trouble> {
        Ok(Look::at(&self.path)?)
    }

    /// Whether something was there that is not there any more. Some programs empty a file before they write it anew.
    pub(super) fn has_lost(&self, now: Option<Look>) -> bool {
        self.seen.is_some_and(|seen| now.is_none_or(|now| now.len < seen.len || now.file != seen.file))
    }

    /// Whether bringing everything up to date takes no time to speak of, where the journal looks like this now; takes
    /// the lock if that needs it.
    pub(super) fn is_quick(&mut self, now: Option<Look>, appending: bool) -> bool {
        if appending && self.filter.is_none() && self.count > FEW {
            return false;
        }
        if now == self.seen && !appending {
            return true;
        }
        let same = now.is_none_or(|now| self.seen.is_some_and(|seen| seen.file == now.file));
        let known = if same { self.seen.map_or(0, |seen| seen.len) } else { 0 };
        let new = now.map_or(0, |now| now.len).abs_diff(known);
        // What goes wrong here goes wrong again where it is told.
        new <= MUCH && self.lock.try_take().map_or(true, |taken| taken == Taken::Yes)
    }

    /// Brings what is known up to date.
    pub(super) fn refresh(&mut self) -> Result<(), Trouble> {
        if self.look()? == self.seen {
            return Ok(());
        }
        // Who cannot make a lock cannot append either, and sees at worst that others are just appending.
        if let Err(error) = self.lock.take()
            && !matches!(
                error.kind(),
                std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem
            )
            && self.look()?.is_some()
        {
            return Err(error.into());
        }
        let Some(now) = self.look()? else {
            let Book { path, .. } = self;
            let path = std::mem::take(path);
            let lock = std::mem::replace(&mut self.lock, Lock::of(&path));
            *self = Book { lock, ..Book::of(path) };
            return Ok(());
        };
        let grown = self.seen.is_some_and(|seen| seen.file == now.file && seen.len <= now.len);
        // Others have been at it. What is in the middle of the journal may be different, too.
        self.exact = false;
        let known = match grown && self.index.is_some() {
            true => self.grow(now),
            false => self.load(now),
        };
        match known {
            Err(Trouble::Doubt) => self.rebuild(),
            other => other,
        }
    }

    /// Looks through what was added, from the last turn on, which may have been added to.
    fn grow(&mut self, now: Look) -> Result<(), Trouble> {
        let known = match &self.last {
            Some(last) => Some((self.count - 1, last.offset, index::hash(&last.id), self.before)),
            None => None,
        };
        self.extend(known, now)
    }

    /// Opens the journal, and its index as far as that is the journal's.
    fn load(&mut self, now: Look) -> Result<(), Trouble> {
        self.open(now)?;
        self.filter = None;
        self.index = None;
        let Some((index, count)) = Index::open(&self.index_path) else { return Err(Trouble::Doubt) };
        let Some(at) = count.checked_sub(1) else { return Err(Trouble::Doubt) };
        let before = match at.checked_sub(1) {
            Some(at) => index.get(at)?.ok_or(Trouble::Doubt)?.check,
            None => 0,
        };
        let record = index.get(at)?.filter(|record| record.follows(before)).ok_or(Trouble::Doubt)?;
        self.index = Some(index);
        self.extend(Some((at, record.offset, record.id, before)), now)
    }

    /// Builds the index from the whole journal, in a file that takes the old one's place when it is done.
    pub(super) fn rebuild(&mut self) -> Result<(), Trouble> {
        let now = self.look()?.ok_or(Trouble::Moving)?;
        self.open(now)?;
        self.filter = None;
        let folder = self.index_path.parent().unwrap_or(Path::new("."));
        let beside = tempfile::Builder::new().prefix(".quorate-").suffix(".idx").tempfile_in(folder);
        match beside {
            Ok(file) => {
                self.index = Some(Index::begin(file.reopen()?)?);
                self.extend(None, now)?;
                file.persist(&self.index_path).map_err(|error| error.error)?;
            }
            // A folder that one may only read is enough to read the journal.
            Err(_) => {
                self.index = Some(Index::begin(tempfile::tempfile()?)?);
                self.extend(None, now)?;
            }
        }
        self.exact = true;
        Ok(())
    }

    fn open(&mut self, now: Look) -> Result<(), Trouble> {
        if self.journal.as_ref().is_none_or(|journal| journal.which != now.file) {
            self.journal = None;
            let file = disk::open(&self.path)?;
            let which = Look::of(&file.metadata()?).file;
            if which != now.file {
                return Err(Trouble::Moving);
            }
            self.journal = Some(Journal { file: Arc::new(file), which, appends: false });
        }
        Ok(())
    }

    /// Looks through the journal up to its end: from a known turn on (its number, its offset, the hash of its id, the
    /// check before it), or from the beginning. Nothing of what was known holds if it fails.
    fn extend(&mut self, known: Option<(u64, u64, [u8; 16], u64)>, now: Look) -> Result<(), Trouble> {
        let (Some(journal), Some(index)) = (&self.journal, &self.index) else { return Err(Trouble::Doubt) };
        self.seen = None;
        let file = journal.file.clone();
        let (mut count, from, _, mut check) = known.unwrap_or_default();
        let mut before = check;
        let mut scan = Scan::of(&file, from, now.len);
        let mut last = None;
        let (mut mend, mut pending) = (None, None);
        let mut expected = known.map(|(_, _, id, _)| id);
        let mut batch: Vec<Record> = Vec::new();
        while let Some(found) = scan.next()? {
            let turn = found.entry.turn;
            if expected.take().is_some_and(|id| id != index::hash(&turn.id) || found.offset != from) {
                return Err(Trouble::Doubt);
            }
            mend = Some(found.entry.mend);
            if found.entry.pending {
                pending = Some(turn.id);
                break;
            }
            before = check;
            let key = turn.stamp.as_ref().map(|stamp| &*stamp.key);
            let record = Record::new(check, found.offset, &turn.id, key);
            check = record.check;
            if let Some(filter) = &mut self.filter {
                filter.add_record(&record);
            }
            batch.push(record);
            count += 1;
            last = Some(Last { id: turn.id, offset: found.offset });
            if batch.len() == BATCH {
                index.put(count - BATCH as u64, &batch)?;
                batch.clear();
            }
        }
        if known.is_some() && last.is_none() {
            return Err(Trouble::Doubt);
        }
        index.put(count - batch.len() as u64, &batch)?;
        // Where there is no turn, text may stand that is nobody's.
        let mend = match mend {
            Some(mend) => mend,
            None => Mend { line_feed: !ends_with_line_feed(&file, now.len)?, ..Mend::default() },
        };
        (self.count, self.check, self.before) = (count, check, before);
        (self.last, self.mend, self.pending, self.seen) = (last, mend, pending, Some(now));
        Ok(())
    }

    /// Notes a turn of ours that was just written.
    pub(super) fn note(&mut self, offset: u64, turn: &Turn, now: Look) -> Result<(), Trouble> {
        let Some(index) = &self.index else { return Err(Trouble::Doubt) };
        let key = turn.stamp.as_ref().map(|stamp| &*stamp.key);
        let record = Record::new(self.check, offset, &turn.id, key);
        index.put(self.count, &[record])?;
        if let Some(filter) = &mut self.filter {
            filter.add_record(&record);
        }
        (self.before, self.check) = (self.check, record.check);
        self.count += 1;
        self.last = Some(Last { id: turn.id.clone(), offset });
        (self.mend, self.seen) = (Mend::default(), Some(now));
        Ok(())
    }

    /// The number of the turn with an id; the last one where several have it, for sure: were a record behind it
    /// damaged, that might be the one.
    pub(super) fn find(&self, id: &str) -> Result<Option<(u64, Record)>, Trouble> {
        let Some(index) = &self.index else { return Ok(None) };
        let hash = index::hash(id);
        let found = index.last(self.count, |record| record.id == hash)?;
        if let Some((at, record)) = &found
            && !index.sweep_from((at + 1, record.check), self.count, self.check, |_| {})?
        {
            return Err(Trouble::Doubt);
        }
        Ok(found)
    }

    /// Whether an id that was not found is not there, for sure; in doubt all is looked through again.
    fn is_missing(&mut self, id: &str) -> Result<bool, Trouble> {
        if self.count == 0 && self.seen.is_none() {
            return Ok(true);
        }
        let right = match &self.index {
            Some(index) if self.exact => index.sweep(self.count, self.check, |_| {})?,
            _ => false,
        };
        if !right {
            self.lock.take()?;
            self.rebuild()?;
        }
        Ok(self.find(id)?.is_none())
    }

    /// Runs what follows the index, and once more with a new one if that was wrong.
    pub(super) fn surely<T>(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        match work(self) {
            Err(Trouble::Doubt) => {
                self.lock.take()?;
                self.rebuild()?;
                work(self)
            }
            other => other,
        }
    }

    /// At most `limit` turns newer than `since`, and whether these are all.
    pub(super) fn page(&mut self, since: Option<&str>, limit: usize) -> Result<(Page, bool), Trouble> {
        self.refresh()?;
        if since.is_some() && self.last.as_ref().map(|last| &*last.id) == since {
            return Ok((Page { turns: Vec::new(), known: true }, true));
        }
        self.surely(|book| {
            let found = match since {
                None => None,
                Some(id) => match book.given(id)? {
                    None => book.find(id)?.map(|(at, _)| at),
                    given => given,
                },
            };
            let found = match since {
                Some(id) if found.is_none() && !book.is_missing(id)? => book.find(id)?.map(|(at, _)| at),
                _ => found,
            };
            let from = found.map_or(0, |at| at + 1);
            let wanted = (book.count - from).min(limit as u64);
            // The turn that was asked from is read, too: that it is where the index says is how we know.
            let mut turns = match found {
                Some(at) => book.turns(at, wanted + 1, since)?,
                None => book.turns(0, wanted, None)?,
            };
            turns.drain(..usize::from(found.is_some()).min(turns.len()));
            let all = from + turns.len() as u64 == book.count;
            if !turns.is_empty() {
                book.given = Some(from + turns.len() as u64 - 1);
            }
            Ok((Page { turns, known: since.is_none() || found.is_some() }, all))
        })
    }

    /// The number of the turn that was given last, if it has this id. Whoever reads page by page would else have every
    /// page looked for from the end.
    fn given(&self, id: &str) -> Result<Option<u64>, Trouble> {
        let (Some(index), Some(at)) = (&self.index, self.given.filter(|at| *at < self.count)) else {
            return Ok(None);
        };
        let hash = index::hash(id);
        Ok(index.get(at)?.filter(|record| record.id == hash).map(|_| at))
    }

    /// Up to `count` turns that end with `at`.
    pub(super) fn window(&mut self, id: &str, count: usize) -> Result<Vec<Turn>, Trouble> {
        self.refresh()?;
        self.surely(|book| {
            let mut found = book.find(id)?;
            if found.is_none() && !book.is_missing(id)? {
                found = book.find(id)?;
            }
            let Some((at, _)) = found else { return Ok(Vec::new()) };
            let wanted = (at + 1).min(count as u64);
            let turns = book.turns(at + 1 - wanted, wanted, None)?;
            match turns.last() {
                Some(last) if &*last.id != id => Err(Trouble::Doubt),
                _ => Ok(turns),
            }
        })
    }

    /// So many turns from a number on, the first of which has this id. They stand where the index says.
    pub(super) fn turns(&self, from: u64, count: u64, id: Option<&str>) -> Result<Vec<Turn>, Trouble> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let (Some(journal), Some(index), Some(seen)) = (&self.journal, &self.index, self.seen) else {
            return Err(Trouble::Doubt);
        };
        let record = index.get(from)?.ok_or(Trouble::Doubt)?;
        if record.offset >= seen.len {
            return Err(Trouble::Doubt);
        }
        // A page of a few short turns needs no large buffer.
        let size = if count < 8 { 4 * 1024 } else { 32 * 1024 };
        let mut scan = Scan::buffered(&journal.file, record.offset, seen.len, size);
        let mut turns = Vec::with_capacity(usize::try_from(count).unwrap_or_default().min(1_024));
        while (turns.len() as u64) < count {
            let found = scan.next()?.ok_or(Trouble::Doubt)?;
            let turn = found.entry.turn;
            if turns.is_empty() {
                let right = found.offset == record.offset && index::hash(&turn.id) == record.id;
                if !right || id.is_some_and(|id| id != &*turn.id) {
                    return Err(Trouble::Doubt);
                }
            }
            turns.push(turn);
        }
        Ok(turns)
    }
}

fn ends_with_line_feed(file: &File, len: u64) -> Result<bool, Trouble> {
    let Some(at) = len.checked_sub(1) else { return Ok(true) };
    let mut byte = [0];
    Ok(disk::fill_at(file, &mut byte, at)? == 1 && byte == *b"\n")
}
