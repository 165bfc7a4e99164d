//! An automaton that finds many byte strings in one pass (Aho and Corasick), with a row of transitions for each state and a
//! column for each byte that occurs in a string. It has two columns that no library offers: one keeps the state, for
//! separators between letters, and one takes two steps at once, for an `m` that looks like `rn`. So it reads text as given,
//! without a folded copy.

use std::collections::VecDeque;

/// Bytes that occur in no string.
const UNKNOWN: u8 = 0;
/// Bytes without a transition of their own.
pub(super) const IGNORED: u8 = 1;
/// `r` and `n` in one step.
pub(super) const RN: u8 = 2;

const FIRST_FREE: u8 = 3;

/// The longest ending that a machine is made for, in bytes.
pub(super) const MAX_SUFFIX_BYTES: usize = 24;

/// The most transitions of a machine: 16 MiB of them.
const MAX_TRANSITIONS: usize = 1 << 22;

#[derive(Debug, Clone)]
pub(super) struct Automaton {
    /// The transitions; states are offsets of rows.
    rows: Box<[u32]>,
    /// Each byte's column.
    columns: [u8; 256],
    /// States from this one on are the end of a string.
    first_end: u32,
    /// For each of them the strings that end there.
    ends: Box<[Box<[u32]>]>,
    width: u32,
}

impl Automaton {
    /// Builds the automaton of non-empty strings; `None` if it needs more than `most` transitions.
    pub(super) fn new(strings: &[&[u8]], most: usize) -> Option<Automaton> {
        let mut columns = [UNKNOWN; 256];
        let mut width = FIRST_FREE;
        for byte in strings.iter().copied().flatten() {
            if columns[usize::from(*byte)] == UNKNOWN {
                columns[usize::from(*byte)] = width;
                width = width.checked_add(1)?;
            }
        }
        let trie = Trie::new(strings, &columns, usize::from(width), most)?;
        Some(trie.finish(columns))
    }

    /// A machine for the endings of strings, as long as a machine of bearable size allows. The caller checks a found ending
    /// against the whole string.
    pub(super) fn of_suffixes(strings: &[&[u8]]) -> Automaton {
        let machine = |most: usize| {
            let endings: Vec<&[u8]> =
                strings.iter().map(|string| &string[string.len().saturating_sub(most)..]).collect();
            Automaton::new(&endings, MAX_TRANSITIONS)
        };
        let lengths = [MAX_SUFFIX_BYTES, 12, 6, 4, 3, 2, 1];
        lengths.into_iter().find_map(machine).expect("a machine for single bytes has few states")
    }

    /// The column of a byte.
    #[inline]
    pub(super) fn column(&self, byte: u8) -> u8 {
        self.columns[usize::from(byte)]
    }

    /// The state before anything was read.
    #[inline]
    pub(super) fn start(&self) -> u32 {
        0
    }

    /// The state after a column.
    #[inline(always)]
    pub(super) fn step(&self, state: u32, column: u8) -> u32 {
        self.rows[state as usize + usize::from(column)]
    }

    /// Whether a string ends in this state.
    #[inline(always)]
    pub(super) fn is_match(&self, state: u32) -> bool {
        state >= self.first_end
    }

    /// The strings that end in this state, by their index.
    pub(super) fn matches(&self, state: u32) -> &[u32] {
        &self.ends[((state - self.first_end) / self.width) as usize]
    }
}

/// Builds the trie of the strings, before failure transitions are known.
struct Trie {
    width: usize,
    /// Zero where nothing follows: nothing leads back to the root.
    rows: Vec<u32>,
    ends: Vec<Vec<u32>>,
}

impl Trie {
    fn new(strings: &[&[u8]], columns: &[u8; 256], width: usize, most: usize) -> Option<Trie> {
        let mut trie = Trie { width, rows: vec![0; width], ends: vec![Vec::new()] };
        for (index, string) in (0..).zip(strings) {
            let mut state = 0;
            for byte in *string {
                let edge = state * width + usize::from(columns[usize::from(*byte)]);
                if trie.rows[edge] == 0 {
                    if trie.rows.len() + width > most {
                        return None;
                    }
                    trie.rows[edge] = u32::try_from(trie.ends.len()).ok()?;
                    trie.rows.resize(trie.rows.len() + width, 0);
                    trie.ends.push(Vec::new());
                }
                state = trie.rows[edge] as usize;
            }
            trie.ends[state].push(index);
        }
        Some(trie)
    }

    fn finish(mut self, columns: [u8; 256]) -> Automaton {
        self.link_failures();
        self.add_rn_steps(columns[usize::from(b'r')], columns[usize::from(b'n')]);
        self.renumber(columns)
    }

    /// Breadth first: a state goes where the longest ending of what it read goes.
    fn link_failures(&mut self) {
        let width = self.width;
        let mut falls_back = vec![0; self.ends.len()];
        let mut queue: VecDeque<usize> = VecDeque::new();
        for column in 0..width {
            let child = self.rows[column] as usize;
            if child != 0 {
                queue.push_back(child);
            }
        }
        while let Some(state) = queue.pop_front() {
            let back: usize = falls_back[state];
            let inherited = self.ends[back].clone();
            self.ends[state].extend(inherited);
            for column in 0..width {
                let child = self.rows[state * width + column] as usize;
                let beyond = self.rows[back * width + column];
                if child == 0 {
                    self.rows[state * width + column] = beyond;
                } else {
                    falls_back[child] = beyond as usize;
                    queue.push_back(child);
                }
            }
        }
        for state in 0..self.ends.len() {
            self.rows[state * width + usize::from(IGNORED)] = u32::try_from(state).unwrap_or(0);
        }
    }

    fn add_rn_steps(&mut self, r: u8, n: u8) {
        let width = self.width;
        for state in 0..self.ends.len() {
            let between = self.rows[state * width + usize::from(r)] as usize;
            self.rows[state * width + usize::from(RN)] = self.rows[between * width + usize::from(n)];
        }
    }

    /// Numbers the states again, so that those where a string ends come last, and a state is the offset of its row.
    fn renumber(self, columns: [u8; 256]) -> Automaton {
        let states = self.ends.len();
        let mut order: Vec<usize> = (0..states).collect();
        order.sort_by_key(|state| !self.ends[*state].is_empty());
        let offset = |position: usize| u32::try_from(position * self.width).unwrap_or(u32::MAX);
        let mut renumbered = vec![0; states];
        for (position, state) in order.iter().enumerate() {
            renumbered[*state] = offset(position);
        }
        let mut rows = Vec::with_capacity(self.rows.len());
        for state in &order {
            let row = &self.rows[state * self.width..(state + 1) * self.width];
            rows.extend(row.iter().map(|to| renumbered[*to as usize]));
        }
        let ends: Vec<Box<[u32]>> =
            self.ends.into_iter().filter(|ends| !ends.is_empty()).map(Vec::into_boxed_slice).collect();
        let first_match = offset(states - ends.len());
        Automaton { rows: rows.into(), columns, first_end: first_match, ends: ends.into(), width: offset(1) }
    }
}
