//! A Bloom filter over the hashes of ids and keys: it recognizes most new ones, so that an append need not search the
//! index.

use super::index::{self, Record};

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
