//! Ways to hide a forbidden phrase from a matcher: generated from a seed, and caught without
//! exception; and what is no such phrase, and is left alone.

mod benign;
mod borders;
mod classes;
mod corpus;
mod properties;
mod rng;
mod table;

use std::collections::BTreeSet;

use classes::{CLASSES, Units};
use quorate_manifest::assembly::MatchMode;
use quorate_protocol::locks::{LockedTrait, Locks};
use rng::Rng;

const TRAITS: [&str; 6] = ["warmth", "honest", "voice register", "refuse harm", "kindness", "core persona"];

/// The seed of everything that is generated; a failure prints the one that it came of.
const SEED: u64 = 20_261;

/// How many variants of each class, and of each two.
const OF_ONE: u64 = 150;
const OF_TWO: u64 = 25;

fn locks(texts: &[&str]) -> Locks {
    let traits: Vec<LockedTrait> = texts.iter().map(|text| LockedTrait::plain(*text)).collect();
    Locks::compile(&traits, MatchMode::Substring).unwrap()
}

/// One way of hiding a trait in a sentence: the sentence, and the bytes from its first letter to its last.
struct Variant {
    how: String,
    seed: u64,
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
    let how = applied.iter().map(|class| CLASSES[*class].0).collect::<Vec<_>>().join(" + ");
    let core = before.len() + core.start..before.len() + core.end;
    Variant { how, seed, text: format!("{before}{text}{after}"), core }
}

fn variants(locked: &str) -> Vec<Variant> {
    let mut seed = SEED.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ locked.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
    let mut next = || {
        seed = seed.wrapping_add(1);
        seed
    };
    let mut all = Vec::new();
    for class in 0..CLASSES.len() {
        all.extend((0..OF_ONE).map(|_| variant(locked, &[class], next())));
        for other in (0..CLASSES.len()).filter(|other| *other != class) {
            all.extend((0..OF_TWO).map(|_| variant(locked, &[class, other], next())));
        }
    }
    all
}

// L2: every way of hiding a trait is seen through, alone and two at a time, and the place covers what was hidden.
#[test]
fn no_variant_escapes() {
    for locked in TRAITS {
        let locks = locks(&[locked]);
        let all = variants(locked);
        let distinct: BTreeSet<&str> = all.iter().map(|one| one.text.as_str()).collect();
        assert!(distinct.len() >= 2_000, "{locked}: only {} variants", distinct.len());
        let mut escaped = Vec::new();
        for variant in &all {
            let hits = locks.check(&variant.text);
            let fault = match hits.first() {
                None => "escaped".to_owned(),
                Some(hit) => {
                    let (span, text) = (&hit.span, &variant.text);
                    assert!(
                        text.is_char_boundary(span.start) && text.is_char_boundary(span.end),
                        "{text:?}: {span:?}"
                    );
                    if span.start <= variant.core.start && span.end >= variant.core.end {
                        continue;
                    }
                    format!("{}: {span:?} does not cover {:?}", hit.layer.as_str(), variant.core)
                }
            };
            escaped.push(format!(
                "{locked} by {} (seed {}): {fault}: {}",
                variant.how,
                variant.seed,
                variant.text.escape_debug()
            ));
        }
        assert!(
            escaped.is_empty(),
            "{} of {} variants:\n{}",
            escaped.len(),
            all.len(),
            escaped.iter().take(25).map(|variant| format!("{variant}\n")).collect::<String>()
        );
    }
}

// L2: all traits at once are found as each is found alone.
#[test]
fn many_traits_are_found_as_each_alone() {
    let together = locks(&TRAITS);
    for (at, locked) in TRAITS.into_iter().enumerate() {
        let alone = locks(&[locked]);
        for variant in variants(locked).iter().step_by(17) {
            let mut found = together.check(&variant.text).into_iter().filter(|hit| hit.trait_index == at);
            let want = alone.check(&variant.text).pop().map(|hit| (hit.layer, hit.span));
            assert_eq!(found.next().map(|hit| (hit.layer, hit.span)), want, "{locked} in {:?}", variant.text);
        }
    }
}
