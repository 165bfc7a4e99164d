//! Gates (B6): the conditions for weaving a playbook, as functions of evidence that callers supply.
//!
//! # The sequential test
//!
//! Outcomes are evaluated repeatedly while they come in, so the test must be valid at every evaluation. Only comparable
//! outcomes are compared: an outcome with the playbook is paired with one without it from the same instrument. Outcomes are
//! taken in the order in which they ended, and each is paired with the oldest unpaired one of the other side; so a later
//! outcome appends a pair, and changes none that was counted. A tied pair is ignored; under the null hypothesis that the
//! playbook improves nothing, any other pair is a win with a probability of at most one half. The evidence is the fortune
//! of a gambler who bets on wins at those odds, in equal parts on the strengths of `WIN_PROBABILITIES`: it starts at 1,
//! and under the null hypothesis it ever reaches 1/e with a probability of at most e (Ville's inequality), however often it
//! is evaluated. The gate opens at `1 / error_rate`, and not before each side has its minimum of outcomes.
//!
//! # Attempts
//!
//! Evidence concerns a text, not an attempt (B12): the test runs over the pairs of all attempts on a text, under whatever
//! slug. Otherwise each attempt would be a new test, and a useless text that is tried often enough would pass. So that a
//! small change of the text begins no new test either, the pairs of all *similar* texts have to pass as well as those of
//! texts with the same words: similar texts add evidence against a text, and never stand in for its own.
//!
//! A text nearly the same as one that already counts on its side is not counted ([`SeenTexts`]), whatever instrument judged
//! it: pairs must be of different texts, not of one text submitted often.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use quorate_manifest::tree::open::sha256_hex;
use quorate_protocol::locks::fold;
use quorate_text::words::{folded, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The probabilities of a win that are bet on.
const WIN_PROBABILITIES: [f64; 8] = [0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 0.95];

/// From this priority on only governance promotes.
pub const GOVERNANCE_PRIORITY: u8 = 75;

/// How evidence is weighed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// How many outcomes each side has to have.
    pub min_sample: u32,
    /// How often the gate may open for what is no better: a share above 0 and below 1.
    pub error_rate: f64,
}

/// The evidence so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct TestResult {
    /// How many outcomes there are with the playbook.
    pub with: u32,
    /// How many outcomes there are without it.
    pub without: u32,
    /// Pairs in which the one with it was better.
    pub wins: u32,
    /// Pairs in which the one without it was better.
    pub losses: u32,
    /// The highest evidence that there ever was.
    pub evidence: f64,
    /// The threshold to reach.
    pub threshold: f64,
    /// How many outcomes each side has to have.
    pub min_sample: u32,
    /// Whether the gate opens.
    pub passes: bool,
}

impl fmt::Display for TestResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TestResult { with, without, wins, losses, evidence, threshold: needed, min_sample, .. } = self;
        write!(
            f,
            "{with} with it, {without} without (at least {min_sample} each): {wins} better, {losses} worse; "
        )?;
        write!(f, "evidence {evidence:.1} of {needed:.1}")
    }
}

/// What a playbook's text says, so that later attempts on it are recognised. It is recorded, so it never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextIdentity {
    /// SHA-256 of its words: case, marks, markup, white space and contractions make no difference.
    words: String,
    sketch: Sketch,
}

impl TextIdentity {
    /// The identity of a text.
    pub fn new(text: &str) -> Self {
        let words: Vec<String> = words(&folded(text)).into_iter().map(|word| word.text).collect();
        TextIdentity { words: sha256_hex(words.join(" ").as_bytes()), sketch: Sketch::new(text) }
    }

    /// Whether another text has the same words in the same order.
    pub fn has_same_words(&self, other: &TextIdentity) -> bool {
        self.words == other.words
    }

    /// Whether another text has the same words, or nearly so ([`Sketch::is_similar`]).
    pub fn is_similar(&self, other: &TextIdentity) -> bool {
        self.has_same_words(other) || self.sketch.is_similar(&other.sketch)
    }
}

/// An outcome that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The outcomes that it can be compared with: the same author of the text and the same judges.
    pub comparison_key: String,
    /// Whether it was made with the playbook.
    pub side: Side,
    /// The score from its instrument; more is better.
    pub score: f64,
}

/// With the playbook, or without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// It was in the prompt.
    With,
    Without,
}

/// What counts already, so that nothing counts twice.
#[derive(Debug, Clone, Default)]
pub struct SeenTexts {
    hashes: BTreeSet<(Side, String)>,
    sketches: Vec<(Side, Sketch)>,
}

impl SeenTexts {
    /// Whether a text, by its hash and its sketch where there is one, counts on a side: none that counts there already is
    /// the same or nearly so. Texts are taken in the order in which their runs ended, so that a later one takes nothing
    /// away from an earlier look.
    pub fn insert(&mut self, side: Side, sha256: &str, sketch: Option<Sketch>) -> bool {
        let near =
            |sketch: &Sketch| self.sketches.iter().any(|(of, known)| *of == side && known.is_similar(sketch));
        if sketch.as_ref().is_some_and(near) || !self.hashes.insert((side, sha256.to_owned())) {
            return false;
        }
        self.sketches.extend(sketch.map(|sketch| (side, sketch)));
        true
    }
}

/// Compares outcomes, given in the order in which they ended. A score that is not a number gives a tie.
pub fn compare(outcomes: &[Outcome], terms: Thresholds) -> TestResult {
    let count = |side| outcomes.iter().filter(|outcome| outcome.side == side).count();
    run_test(pairs(outcomes).into_iter(), (count(Side::With), count(Side::Without)), terms)
}

/// The pairs of outcomes, with and without, in the order in which they were completed. The pairs of the first outcomes are
/// the first of the pairs of all.
fn pairs(outcomes: &[Outcome]) -> Vec<(f64, f64)> {
    let mut waiting: BTreeMap<(&str, Side), VecDeque<f64>> = BTreeMap::new();
    let mut pairs = Vec::new();
    for outcome in outcomes {
        let other = if outcome.side == Side::With { Side::Without } else { Side::With };
        match waiting.get_mut(&(&*outcome.comparison_key, other)).and_then(VecDeque::pop_front) {
            Some(oldest) if outcome.side == Side::With => pairs.push((outcome.score, oldest)),
            Some(oldest) => pairs.push((oldest, outcome.score)),
            None => {
                waiting.entry((&outcome.comparison_key, outcome.side)).or_default().push_back(outcome.score)
            }
        }
    }
    pairs
}

/// Compares scores that come in pairs: with the playbook, and without.
fn compare_pairs(pairs: &[(f64, f64)], terms: Thresholds) -> TestResult {
    run_test(pairs.iter().copied(), (pairs.len(), pairs.len()), terms)
}

/// Compares the pairs of all attempts on a text, given in the order in which they were made, each with the text that it is
/// of: those of the same words have to pass, and those of all similar texts.
pub fn compare_attempts<'t>(
    text: &TextIdentity,
    pairs: impl IntoIterator<Item = (&'t TextIdentity, (f64, f64))>,
    terms: Thresholds,
) -> TestResult {
    let (mut own, mut similar) = (Vec::new(), Vec::new());
    for (of, pair) in pairs {
        if text.has_same_words(of) {
            own.push(pair);
        }
        if text.is_similar(of) {
            similar.push(pair);
        }
    }
    let own = compare_pairs(&own, terms);
    if own.passes { compare_pairs(&similar, terms) } else { own }
}

fn run_test(pairs: impl Iterator<Item = (f64, f64)>, sizes: (usize, usize), terms: Thresholds) -> TestResult {
    let (mut wins, mut losses) = (0, 0);
    let mut gambler = Gambler::default();
    for won in pairs.filter_map(winner) {
        *(if won { &mut wins } else { &mut losses }) += 1;
        gambler.bet(won);
    }
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let (with, without) = (count(sizes.0), count(sizes.1));
    let Thresholds { min_sample, error_rate } = terms;
    let (evidence, threshold) = (gambler.best, 1.0 / error_rate);
    let passes = with.min(without) >= min_sample && evidence >= threshold;
    TestResult { with, without, wins, losses, evidence, threshold, min_sample, passes }
}

/// Whether the side with the playbook won; `None` for a tie.
fn winner((with, without): (f64, f64)) -> Option<bool> {
    match with.partial_cmp(&without) {
        Some(Ordering::Greater) => Some(true),
        Some(Ordering::Less) => Some(false),
        Some(Ordering::Equal) | None => None,
    }
}

/// The evidence after each pair that is not a tie, in the order of [`compare`]: the highest so far decides.
pub fn course(outcomes: &[Outcome]) -> Vec<f64> {
    let mut gambler = Gambler::default();
    pairs(outcomes).into_iter().filter_map(winner).map(|won| gambler.bet(won)).collect()
}

/// Bets on wins, in equal parts on each strength.
struct Gambler {
    capital: [f64; WIN_PROBABILITIES.len()],
    /// The highest fortune that there ever was.
    best: f64,
}

impl Default for Gambler {
    fn default() -> Self {
        Gambler { capital: [1.0; WIN_PROBABILITIES.len()], best: 1.0 }
    }
}

impl Gambler {
    /// The fortune after a bet.
    fn bet(&mut self, won: bool) -> f64 {
        for (capital, strength) in self.capital.iter_mut().zip(WIN_PROBABILITIES) {
            *capital *= 2.0 * if won { strength } else { 1.0 - strength };
        }
        let fortune = self.capital.iter().sum::<f64>() / WIN_PROBABILITIES.len() as f64;
        self.best = self.best.max(fortune);
        fortune
    }
}

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

    const TERMS: Thresholds = Thresholds { min_sample: 8, error_rate: 0.05 };

    #[test]
    fn what_is_always_better_passes_after_some() {
        // B6
        let lots = |with: f64, without: f64, n: usize| -> Vec<Outcome> {
            (0..n)
                .flat_map(|_| [outcome("a", Side::With, with), outcome("a", Side::Without, without)])
                .collect()
        };
        let passes = |n: usize| compare(&lots(1.0, 0.0, n), TERMS).passes;
        let first = (1..30).find(|n| passes(*n)).unwrap();
        assert_eq!(first, 8, "eight wins in a row, which also is the minimum");
        assert!(passes(29));
        assert!(!compare(&lots(0.0, 1.0, 8), TERMS).passes);
        assert!(!compare(&lots(1.0, 1.0, 8), TERMS).passes);
        // Nothing is made of one side that has none.
        let alone: Vec<Outcome> = (0..9).map(|_| outcome("a", Side::With, 1.0)).collect();
        let finding = compare(&alone, TERMS);
        assert_eq!((finding.with, finding.without, finding.passes), (9, 0, false));
        assert_eq!(compare(&lots(f64::NAN, 0.0, 1), TERMS).wins, 0);
    }

    #[test]
    fn wins_and_losses_are_counted_and_ties_are_neither() {
        let finding = compare_pairs(&[(1.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (1.0, 0.5)], TERMS);
        assert_eq!((finding.wins, finding.losses), (3, 1));
        assert_eq!((finding.with, finding.without), (5, 5));
    }

    fn outcome(like: &str, side: Side, worth: f64) -> Outcome {
        Outcome { comparison_key: like.to_owned(), side, score: worth }
    }

    #[test]
    fn the_course_ends_where_the_test_is() {
        let outcomes: Vec<Outcome> = [(2.0, 1.0), (0.0, 1.0), (1.0, 1.0), (2.0, 0.0)]
            .into_iter()
            .flat_map(|(with, without)| {
                [outcome("a", Side::With, with), outcome("a", Side::Without, without)]
            })
            .collect();
        let course = course(&outcomes);
        assert_eq!(course.len(), 3, "a tie does not count as a bet");
        let highest = course.iter().copied().fold(1.0, f64::max);
        assert_eq!(compare(&outcomes, TERMS).evidence, highest);
        assert!(course[1] < course[0] && course[2] > course[1]);
    }

    #[test]
    fn only_like_is_compared_with_like() {
        // B6: SHIP is 2 to a council, and advice of severity 0 is 10 to an assembly.
        let mixed: Vec<Outcome> = (0..20)
            .flat_map(|_| [outcome("board", Side::With, 10.0), outcome("council", Side::Without, 2.0)])
            .collect();
        let finding = compare(&mixed, TERMS);
        assert_eq!((finding.wins, finding.losses, finding.with, finding.without), (0, 0, 20, 20));
        assert!(!finding.passes);
    }

    #[test]
    fn a_later_outcome_changes_no_pair() {
        // B6: pairs that were counted never change.
        let mut state = 23_u64;
        let mut draw = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) % below
        };
        for _ in 0..200 {
            let outcomes: Vec<Outcome> = (0..40)
                .map(|_| {
                    let side = if draw(3) == 0 { Side::With } else { Side::Without };
                    outcome(["a", "b", "c"][draw(3) as usize], side, draw(9) as f64)
                })
                .collect();
            let all = pairs(&outcomes);
            assert!(!all.is_empty());
            for end in 0..outcomes.len() {
                assert!(all.starts_with(&pairs(&outcomes[..end])));
            }
        }
        let crossed = [
            outcome("a", Side::With, 1.0),
            outcome("b", Side::Without, 2.0),
            outcome("a", Side::With, 3.0),
            outcome("b", Side::With, 4.0),
            outcome("a", Side::Without, 5.0),
            outcome("a", Side::Without, 6.0),
        ];
        assert_eq!(pairs(&crossed), [(4.0, 2.0), (1.0, 5.0), (3.0, 6.0)]);
    }

    #[test]
    fn what_was_made_counts_once_on_its_side() {
        // B6: the same text with one more digit, or in another council, does not count as a second outcome.
        let mut once = SeenTexts::default();
        let mut counts = |side, text: &str| once.insert(side, text, Some(Sketch::new(text)));
        let letter = "The pressure washer is due on Tuesday, and another member waits for it.";
        assert!(counts(Side::With, letter));
        for n in 0..9 {
            assert!(!counts(Side::With, &format!("{letter} {n}")));
        }
        assert!(counts(Side::Without, letter) && !counts(Side::Without, letter));
        assert!(counts(Side::With, "The tile saw is yours until Friday, and nobody waits for it."));
        // Without a sketch the hash alone tells.
        assert!(once.insert(Side::With, "a", None) && !once.insert(Side::With, "a", None));
        assert!(once.insert(Side::With, "b", None));
    }

    #[test]
    fn what_is_no_better_rarely_passes_however_often_one_looks() {
        // B6: the stated error rate, at 400 looks each.
        let mut state = 7_u64;
        let mut coin = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            f64::from((state >> 40) as u32 & 1)
        };
        let trials = 2_000;
        let passed = (0..trials).filter(|_| {
            let pairs: Vec<(f64, f64)> = (0..400).map(|_| (coin(), coin())).collect();
            compare_pairs(&pairs, TERMS).passes
        });
        let share = passed.count() as f64 / f64::from(trials);
        println!("{share} of {trials} gates opened for what is no better");
        assert!(share <= 0.05, "{share}");
        assert!(share > 0.0, "a gate that never opens measures nothing");
    }

    /// Asks a gate about texts until it opens, with 40 trials for each attempt, of which a coin decides each.
    fn opens_within(attempts: u32, text_of: impl Fn(u32) -> String, coin: &mut impl FnMut() -> f64) -> bool {
        let mut trials: Vec<(TextIdentity, (f64, f64))> = Vec::new();
        (0..attempts).any(|attempt| {
            let text = TextIdentity::new(&text_of(attempt));
            trials.extend((0..40).map(|_| (text.clone(), (coin(), coin()))));
            compare_attempts(&text, trials.iter().map(|(of, pair)| (of, *pair)), TERMS).passes
        })
    }

    #[test]
    fn a_useless_text_rarely_passes_however_often_a_gate_is_asked() {
        // B12
        let mut state = 31_u64;
        let mut coin = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            f64::from((state >> 40) as u32)
        };
        let same = |attempt: u32| match attempt % 4 {
            0 => "Name the donor first in each answer of yours.".to_owned(),
            1 => "NAME the donor first,  in each answer of yours".to_owned(),
            2 => "**Name** the donor first in each\nanswer of yours!".to_owned(),
            _ => format!("Name the donor first in each answer of yours. {attempt}"),
        };
        let runs = 100_u32;
        let opened = (0..runs).filter(|_| opens_within(8, same, &mut coin)).count();
        let share = opened as f64 / f64::from(runs);
        println!("{share} of {runs} useless texts passed within 8 attempts");
        assert!(share <= 0.05, "{share}");
        assert!(opened > 0, "a gate that never opens measures nothing");
    }

    #[test]
    fn similar_texts_add_evidence_against_a_text_and_never_for_it() {
        // B12
        let text = TextIdentity::new("Name the donor first in each answer of yours.");
        for same in [
            "name the DONOR first, in each answer of yours",
            "Name the donor\n\nfirst in *each* answer of yours!",
        ] {
            assert!(text.has_same_words(&TextIdentity::new(same)), "{same}");
        }
        assert!(TextIdentity::new("Don’t shout.").has_same_words(&TextIdentity::new("Do not shout")));
        let similar = TextIdentity::new("Please name the donor first in each answer of yours.");
        let other = TextIdentity::new("Say on which shelf a document lies.");
        assert!(text.is_similar(&similar) && !text.has_same_words(&similar) && !text.is_similar(&other));
        let pairs = |of, pair, count| std::iter::repeat_n((of, pair), count);
        let (won, lost) = ((1.0, 0.0), (0.0, 1.0));
        // Attempts add up.
        assert!(!compare_attempts(&text, pairs(&text, won, 7), TERMS).passes);
        assert!(compare_attempts(&text, pairs(&text, won, 7).chain(pairs(&text, won, 1)), TERMS).passes);
        // A proven text lends no evidence to a changed one, and a failed one weighs on it.
        let lent = compare_attempts(&text, pairs(&similar, won, 40).chain(pairs(&text, won, 1)), TERMS);
        assert_eq!((lent.passes, lent.wins), (false, 1));
        let burdened = compare_attempts(&text, pairs(&similar, lost, 40).chain(pairs(&text, won, 8)), TERMS);
        assert_eq!((burdened.passes, burdened.losses), (false, 40));
        let free = compare_attempts(&text, pairs(&other, lost, 40).chain(pairs(&text, won, 8)), TERMS);
        assert!(free.passes);
    }

    #[test]
    fn an_improvement_is_found() {
        let mut state = 11_u64;
        let mut better = |share: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            f64::from(u8::from((state >> 33) % 100 < share))
        };
        let pairs: Vec<(f64, f64)> = (0..120).map(|_| (better(80), better(40))).collect();
        assert!(compare_pairs(&pairs, TERMS).passes);
    }
}

#[cfg(test)]
mod similarity_tests {
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
