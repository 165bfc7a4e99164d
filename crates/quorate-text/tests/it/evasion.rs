//! Ways to hide a forbidden phrase from a matcher, generated from a seed, of which nearly all are found; and what is no such
//! phrase, and is left alone.

mod benign;
mod classes;
mod corpus;
mod places;
mod properties;
mod rng;

use classes::{CLASSES, Units};
use quorate_text::locks::{Matcher, Wanted};
use rng::Rng;

const TRAITS: [&str; 6] = ["warmth", "honest", "voice register", "refuse harm", "kindness", "core persona"];

/// The seed of everything that is generated; a failure prints the one that it came of.
const SEED: u64 = 20_261;

/// How many variants of each class, and of each two.
const OF_ONE: u64 = 150;
const OF_TWO: u64 = 25;

/// The share of the variants of each class that is found at least, and of those of each two classes.
const RECALL_OF_ONE: f64 = 0.99;
const RECALL_OF_TWO: f64 = 0.98;

fn matcher(texts: &[&str]) -> Matcher {
    let wanted: Vec<Wanted<'_>> = texts.iter().map(|text| Wanted::Text(text)).collect();
    Matcher::new(&wanted).unwrap()
}

/// One way of hiding a trait in a sentence: the sentence, and the bytes from its first letter to its last.
struct Variant {
    text: String,
    core: std::ops::Range<usize>,
}

fn variant(locked: &str, applied: &[usize], seed: u64) -> Variant {
    let mut chance = Rng::new(seed);
    let mut units = Units::of(locked);
    for class in applied {
        (CLASSES[*class].1)(&mut units, &mut chance);
    }
    let before = *chance.of(&["Drop the ", "", "they said: ", "Überall (", "— "]);
    let (text, core) = units.render();
    let after = *chance.of(&[" for now.", "", ") at once", "; then go on", "\n"]);
    let core = before.len() + core.start..before.len() + core.end;
    Variant { text: format!("{before}{text}{after}"), core }
}

/// The seeds of a trait and some classes.
fn seeds(locked: &str, applied: &[usize], count: u64) -> std::ops::Range<u64> {
    let name = applied.iter().map(|class| CLASSES[*class].0);
    let bytes = locked.bytes().chain(name.flat_map(str::bytes));
    let first = bytes.fold(SEED, |sum, byte| sum.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte)) >> 1;
    first..first + count
}

/// Why a variant is not found, or not found whole; `None` if it is found.
fn fault(matcher: &Matcher, variant: &Variant) -> Option<String> {
    let hits = matcher.check(&variant.text);
    let Some(hit) = hits.first() else { return Some("escaped".to_owned()) };
    let (span, text) = (&hit.span, &variant.text);
    assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end), "{text:?}: {span:?}");
    let is_whole = span.start <= variant.core.start && span.end >= variant.core.end;
    (!is_whole).then(|| format!("{}: {span:?} does not cover {:?}", hit.layer.as_str(), variant.core))
}

/// Checks that enough of the variants by some classes are found, in all traits together.
fn faults_of(applied: &[usize], count: u64, recall: f64, complaints: &mut Vec<String>) -> (usize, usize) {
    let (mut all, mut faults) = (0, Vec::new());
    for locked in TRAITS {
        let matcher = matcher(&[locked]);
        for seed in seeds(locked, applied, count) {
            all += 1;
            let variant = variant(locked, applied, seed);
            if let Some(fault) = fault(&matcher, &variant) {
                faults.push(format!("{locked} (seed {seed}): {fault}: {}", variant.text.escape_debug()));
            }
        }
    }
    let names: Vec<&str> = applied.iter().map(|class| CLASSES[*class].0).collect();
    println!("{}: {} of {all} not found", names.join(" + "), faults.len());
    faults.iter().take(5).for_each(|fault| println!("  {fault}"));
    if (all - faults.len()) as f64 / (all as f64) < recall {
        complaints.push(format!("{}: {} of {all} not found", names.join(" + "), faults.len()));
    }
    (all, faults.len())
}

// L2: each way of hiding a trait is seen through, and the place covers what was hidden.
#[test]
fn each_class_is_found() {
    let mut complaints = Vec::new();
    for class in 0..CLASSES.len() {
        faults_of(&[class], OF_ONE, RECALL_OF_ONE, &mut complaints);
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
}

// L2: most are seen through two at a time as well.
#[test]
fn two_classes_at_a_time_are_found() {
    let (mut complaints, mut all, mut missed) = (Vec::new(), 0, 0);
    for class in 0..CLASSES.len() {
        for other in (0..CLASSES.len()).filter(|other| *other != class) {
            let (of, faults) = faults_of(&[class, other], OF_TWO, 0.0, &mut complaints);
            (all, missed) = (all + of, missed + faults);
        }
    }
    println!("all pairs: {missed} of {all} not found");
    assert!((all - missed) as f64 / all as f64 >= RECALL_OF_TWO, "{missed} of {all} not found");
}

// L2: all traits at once are found as each is found alone.
#[test]
fn many_traits_are_found_as_each_alone() {
    let together = matcher(&TRAITS);
    for (at, locked) in TRAITS.into_iter().enumerate() {
        let alone = matcher(&[locked]);
        for class in 0..CLASSES.len() {
            for seed in seeds(locked, &[class], 9) {
                let text = variant(locked, &[class], seed).text;
                let mut found = together.check(&text).into_iter().filter(|hit| hit.trait_index == at);
                let want = alone.check(&text).pop().map(|hit| (hit.layer, hit.span));
                assert_eq!(found.next().map(|hit| (hit.layer, hit.span)), want, "{locked} in {text:?}");
            }
        }
    }
}
