//! Pseudo-random numbers: the same seed gives the same simulation on every machine.

/// A small generator (SplitMix64), good enough to choose among faults.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// From a seed and a text, so that each member has a sequence of its own.
    pub fn from_seed_and_name(seed: u64, text: &str) -> Self {
        let mixed = text.bytes().fold(seed ^ 0x9e37_79b9_7f4a_7c15, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Rng(mixed)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next_u64() % end
    }

    /// True in `so_many` percent of cases.
    pub fn percent(&mut self, so_many: u64) -> bool {
        self.below(100) < so_many
    }
}
