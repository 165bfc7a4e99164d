//! Whether two texts are nearly the same: a gate counts a text once, even if it is submitted again with a blank, a digit or
//! a paragraph added.
//!
//! A text is reduced to its folded letters, without blanks and marks and with one digit for every number, and cut into
//! overlapping shingles of `SHINGLE` characters. Its sketch keeps the `KEPT` lowest hashes of these. Two texts are similar
//! if most shingles of the shorter one are in the other. A sketch is recorded with its run, so that a gate gets the same
//! result after the text was erased.

use std::collections::BTreeSet;

use quorate_protocol::locks::fold;
use serde::{Deserialize, Serialize};

/// How many characters a shingle has.
const SHINGLE_CHARS: usize = 6;
/// How many hashes a sketch keeps at most.
const MAX_HASHES: usize = 128;
/// Which share of the shingles of the shorter text has to be in the other one, in percent.
const MIN_SHARED_PERCENT: usize = 80;
/// With fewer shingles to compare, texts are alike where all of them are the same.
const MIN_SHINGLES: usize = 8;

/// What is kept of a text to tell whether another one is nearly the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sketch(Vec<u32>);

impl Sketch {
    /// The sketch of a text.
    pub fn new(text: &str) -> Self {
        let mut read: Vec<char> = Vec::new();
        let mut in_number = false;
        for c in fold(text).chars().filter(|c| c.is_alphanumeric()) {
            if !(c.is_numeric() && in_number) {
                read.push(if c.is_numeric() { '0' } else { c });
            }
            in_number = c.is_numeric();
        }
        let shingles = match read.len() {
            0 => Vec::new(),
            short if short < SHINGLE_CHARS => vec![hash(&read)],
            _ => read.windows(SHINGLE_CHARS).map(hash).collect(),
        };
        let lowest: BTreeSet<u32> = shingles.into_iter().collect();
        Sketch(lowest.into_iter().take(MAX_HASHES).collect())
    }

    /// Whether two texts are nearly the same, as far as their sketches tell.
    pub fn is_similar(&self, other: &Sketch) -> bool {
        // Above the highest hash that a full sketch keeps, nothing is known of its text.
        let known = |sketch: &Sketch| match sketch.0.len() {
            full if full >= MAX_HASHES => sketch.0.last().copied().unwrap_or(u32::MAX),
            _ => u32::MAX,
        };
        let end = known(self).min(known(other));
        let below =
            |sketch: &Sketch| sketch.0.iter().copied().filter(|hash| *hash <= end).collect::<BTreeSet<u32>>();
        let (mine, theirs) = (below(self), below(other));
        let fewer = mine.len().min(theirs.len());
        match fewer < MIN_SHINGLES {
            true => mine == theirs,
            false => mine.intersection(&theirs).count() * 100 >= fewer * MIN_SHARED_PERCENT,
        }
    }
}

/// A hash that is the same on every machine and in every version: it is recorded.
fn hash(shingle: &[char]) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for c in shingle {
        hash = (hash ^ u64::from(u32::from(*c))).wrapping_mul(0x0000_0100_0000_01b3);
    }
    // The low bits of the product alone depend on few of the input's.
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(one: &str, other: &str) -> bool {
        let is = Sketch::new(one).is_similar(&Sketch::new(other));
        assert_eq!(is, Sketch::new(other).is_similar(&Sketch::new(one)), "{one} / {other}");
        is
    }

    const LETTER: &str = "The pressure washer that you have borrowed is due on Tuesday. Another member waits for it. \
        Please bring it back to the library by then, with its hoses, or tell us what keeps you.";

    #[test]
    fn what_differs_in_nothing_that_is_said_is_the_same() {
        // B6
        for same in [
            LETTER.replace(' ', "  \n"),
            LETTER.replace("Tuesday", "*Tuesday*"),
            LETTER.to_uppercase(),
            LETTER.replace(' ', ""),
            format!("{LETTER} 7"),
            format!("Draft 12. {LETTER}"),
            format!("{LETTER}\u{200b}\u{ad}"),
            LETTER.replace("borrowed", "b\u{435}rrowed"),
            format!("{LETTER} {LETTER}"),
            LETTER.replace("Please bring", "Do bring"),
        ] {
            assert!(alike(LETTER, &same), "{same}");
        }
        assert!(alike("Room 1 at 10:30.", "Room 224 at 9:05!"));
        let padded =
            format!("{LETTER} {}", "Opening hours, fees and much else that nobody has asked for. ".repeat(9));
        assert!(alike(LETTER, &padded), "a text with something added");
        let long: String =
            (0..4_000).map(|n| format!("Line {} of the ledger says {}. ", word(n), word(n * 7))).collect();
        assert!(alike(&long, &format!("{long} And one thing more.")));
    }

    #[test]
    fn a_text_needs_eight_shingles_to_be_found_in_another() {
        let short = |shingles: usize| &"thepressurewasher"[..SHINGLE_CHARS - 1 + shingles];
        assert!(alike(short(8), &format!("{} is due.", short(8))));
        assert!(!alike(short(7), &format!("{} is due.", short(7))));
    }

    #[test]
    fn what_says_something_else_is_another() {
        for other in [
            "The tile saw is yours until Friday. Nobody waits for it, so you may keep it a week longer if you write to us.",
            "Your membership ends this month. Renew it at the session; it costs what it did last year.",
            "",
            "Tuesday.",
        ] {
            assert!(!alike(LETTER, other), "{other}");
        }
        assert!(alike("", " \n"));
        // Whichever hash is the higher one: nothing of a short text is unknown.
        for n in 1..40 {
            assert!(
                !alike(&word(n).repeat(2)[..6], &word(n).repeat(2)[..7]),
                "one character more: {}",
                word(n)
            );
        }
        assert!(!alike("Yes.", "No."));
        let long = |from: u32| (from..from + 4_000).map(|n| format!("{} ", word(n))).collect::<String>();
        assert!(!alike(&long(0), &long(9_000)));
    }

    #[test]
    fn a_sketch_is_recorded_so_it_never_changes() {
        let sketch = Sketch::new("Bring it back.");
        assert_eq!(
            serde_json::to_string(&sketch).unwrap(),
            serde_json::to_string(&Sketch::new("bring it BACK")).unwrap()
        );
        assert_eq!(
            sketch.0,
            [336_316_817, 660_681_473, 753_380_494, 1_938_635_510, 3_401_581_025, 3_714_234_500],
            "one for each shingle of `bringitback`"
        );
        let again: Sketch = serde_json::from_str(&serde_json::to_string(&sketch).unwrap()).unwrap();
        assert_eq!(again, sketch);
    }

    fn word(n: u32) -> String {
        let mixed = n.wrapping_mul(2_654_435_761);
        let letter = |at: u32| char::from(b'a' + u8::try_from((mixed >> (at * 6)) % 26).unwrap());
        (0..5).map(letter).collect()
    }
}
