//! The index, `<journal>.idx`: the offset of each turn, so that a cursor is found without reading the journal.
//!
//! A header (magic and version), then one record of fixed size for each turn, in the journal's order: the offset of its
//! header, hashes of its id and of its key, and a checksum over all of that and the record before it. The holder of the
//! journal's lock writes it, without sync. Several processes write the same records to the same places. Readers do not
//! trust it: a reader that follows a record checks that the turn is there.

use std::fs::File;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::{disk, index};
use quorate_kernel::files;

const MAGIC: [u8; 16] = *b"quorate.idx\0\x02\0\0\0";
const RECORD_BYTES: u64 = 40;
/// How many records a backward search reads first, and at most at once.
const FIRST_BATCH: u64 = 64;
const MAX_BATCH: u64 = 1_600;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) offset: u64,
    pub(super) id: [u8; 16],
    /// Zero if the turn has no key.
    pub(super) key: u64,
    /// Checksum of this record and all before it.
    pub(super) check: u64,
}

pub(super) fn id_hash(id: &str) -> [u8; 16] {
    let mut hash = [0; 16];
    hash.copy_from_slice(&Sha256::digest(id.as_bytes())[..16]);
    hash
}

/// The hash of a key; never zero.
pub(super) fn key_hash(key: &str) -> u64 {
    low_half(&id_hash(key)).max(1)
}

/// The first eight bytes of a hash.
pub(super) fn low_half(hash: &[u8; 16]) -> u64 {
    let mut low = [0; 8];
    low.copy_from_slice(&hash[..8]);
    u64::from_le_bytes(low)
}

impl Record {
    /// The record of a turn after a record with the checksum `before`.
    pub(super) fn new(before: u64, offset: u64, id: &str, key: Option<&str>) -> Self {
        Record { offset, id: id_hash(id), key: key.map_or(0, key_hash), check: 0 }.with_check(before)
    }

    fn with_check(mut self, before: u64) -> Self {
        let high = self.id[8..].iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        self.check =
            [self.offset, low_half(&self.id), high, self.key].into_iter().fold(before, |check, word| {
                let mixed = (check ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                mixed ^ (mixed >> 29)
            });
        self
    }

    /// Whether its checksum is valid behind a record with the checksum `before`.
    pub(super) fn follows(&self, before: u64) -> bool {
        self.with_check(before).check == self.check
    }

    fn to_bytes(self) -> [u8; RECORD_BYTES as usize] {
        let mut bytes = [0; RECORD_BYTES as usize];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..24].copy_from_slice(&self.id);
        bytes[24..32].copy_from_slice(&self.key.to_le_bytes());
        bytes[32..].copy_from_slice(&self.check.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let mut id = [0; 16];
        id.copy_from_slice(&bytes[8..24]);
        Record { offset: word(0), id, key: word(24), check: word(32) }
    }
}

pub(super) struct Index {
    file: File,
}

impl Index {
    /// The index at a path, and its number of records; `None` if it is missing or unreadable.
    pub(super) fn open(path: &Path) -> Option<(Self, u64)> {
        let file = files::open_with(std::fs::OpenOptions::new().read(true).write(true), path).ok()?;
        let mut magic = [0; MAGIC.len()];
        let read = disk::fill_at(&file, &mut magic, 0).ok()?;
        let count = (file.metadata().ok()?.len().saturating_sub(MAGIC.len() as u64)) / RECORD_BYTES;
        (read == magic.len() && magic == MAGIC).then_some((Index { file }, count))
    }

    /// Starts an empty index in a file.
    pub(super) fn begin(file: File) -> io::Result<Self> {
        disk::write_at(&file, &MAGIC, 0)?;
        Ok(Index { file })
    }

    /// Writes records from number `at` on.
    pub(super) fn put(&self, at: u64, records: &[Record]) -> io::Result<()> {
        if let [record] = records {
            return disk::write_at(&self.file, &record.to_bytes(), byte_offset(at));
        }
        let bytes: Vec<u8> = records.iter().flat_map(|record| record.to_bytes()).collect();
        disk::write_at(&self.file, &bytes, byte_offset(at))
    }

    /// One record; `None` beyond the end.
    pub(super) fn get(&self, at: u64) -> io::Result<Option<Record>> {
        let mut bytes = [0; RECORD_BYTES as usize];
        let read = disk::fill_at(&self.file, &mut bytes, byte_offset(at))?;
        Ok((read == bytes.len()).then(|| Record::from_bytes(&bytes)))
    }

    /// The last of the first `count` records that matches, and its number; `None` without a match, or if the index is
    /// shorter.
    pub(super) fn find_last(
        &self,
        count: u64,
        matches: impl Fn(&Record) -> bool,
    ) -> io::Result<Option<(u64, Record)>> {
        let (mut end, mut step) = (count, FIRST_BATCH);
        let mut buffer = vec![0; (RECORD_BYTES * FIRST_BATCH) as usize];
        while end > 0 {
            let start = end.saturating_sub(step);
            buffer.resize(((end - start) * RECORD_BYTES) as usize, 0);
            let read = disk::fill_at(&self.file, &mut buffer, byte_offset(start))?;
            let records = buffer[..read].chunks_exact(RECORD_BYTES as usize).map(Record::from_bytes);
            if let Some((at, record)) = (start..).zip(records).filter(|(_, record)| matches(record)).last() {
                return Ok(Some((at, record)));
            }
            (end, step) = (start, MAX_BATCH);
        }
        Ok(None)
    }

    /// Passes the first `count` records to `seen` in order; returns whether all exist, and the last checksum is `check`.
    pub(super) fn verify(&self, count: u64, check: u64, seen: impl FnMut(&Record)) -> io::Result<bool> {
        self.sweep_from((0, 0), count, check, seen)
    }

    /// As [`Self::verify`], from a number on that is behind a record with the checksum `before`.
    pub(super) fn sweep_from(
        &self,
        (mut at, mut before): (u64, u64),
        count: u64,
        check: u64,
        mut seen: impl FnMut(&Record),
    ) -> io::Result<bool> {
        let mut buffer = vec![0; (RECORD_BYTES * MAX_BATCH) as usize];
        while at < count {
            buffer.resize(((count - at).min(MAX_BATCH) * RECORD_BYTES) as usize, 0);
            if disk::fill_at(&self.file, &mut buffer, byte_offset(at))? < buffer.len() {
                return Ok(false);
            }
            for bytes in buffer.chunks_exact(RECORD_BYTES as usize) {
                let record = Record::from_bytes(bytes);
                if !record.follows(before) {
                    return Ok(false);
                }
                before = record.check;
                at += 1;
                seen(&record);
            }
        }
        Ok(before == check)
    }
}

fn byte_offset(at: u64) -> u64 {
    MAGIC.len() as u64 + at * RECORD_BYTES
}

/// Bits for each entry, and how many of them an entry sets: about one in ten thousand searches is unnecessary.
const BITS_PER_ENTRY: usize = 20;
const PROBES: u32 = 8;
const MIN_CAPACITY: usize = 4_096;

pub(super) struct Filter {
    bits: Vec<u64>,
    entries: usize,
    capacity: usize,
}

impl Filter {
    /// An empty filter with room for twice as many entries.
    pub(super) fn for_entries(entries: usize) -> Self {
        let capacity = (entries * 2).max(MIN_CAPACITY);
        Filter { bits: vec![0; (capacity * BITS_PER_ENTRY).div_ceil(64)], entries: 0, capacity }
    }

    /// Whether it reports too many false positives by now.
    pub(super) fn is_full(&self) -> bool {
        self.entries > self.capacity
    }

    /// Adds the id and the key of a record.
    pub(super) fn add_record(&mut self, record: &Record) {
        self.add(index::low_half(&record.id));
        if record.key != 0 {
            self.add(record.key);
        }
    }

    fn add(&mut self, hash: u64) {
        self.entries += 1;
        for bit in self.probes(hash) {
            self.bits[bit / 64] |= 1 << (bit % 64);
        }
    }

    /// Whether a hash may have been added.
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        self.probes(hash).all(|bit| self.bits[bit / 64] & (1 << (bit % 64)) != 0)
    }

    fn probes(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let size = self.bits.len() as u64 * 64;
        // The hashes are cryptographic: their halves are independent.
        let (low, high) = (hash as u32 as u64, hash >> 32 | 1);
        (0..u64::from(PROBES)).map(move |at| {
            let mixed = (low + at * high + at * at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            ((u128::from(mixed) * u128::from(size)) >> 64) as usize
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_there_and_little_else() {
        let hash = |n: u64| index::low_half(&index::id_hash(&n.to_string()));
        let mut filter = Filter::for_entries(10_000);
        (0..20_000).for_each(|n| filter.add(hash(n)));
        assert!(!filter.is_full() && (0..20_000).all(|n| filter.may_contain(hash(n))));
        let wrong = (20_000..120_000).filter(|n| filter.may_contain(hash(*n))).count();
        assert!(wrong < 100, "{wrong} of 100000");
    }
}
