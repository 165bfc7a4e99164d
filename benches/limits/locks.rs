//! The lock check of 100 traits on plain prose, and on text that needs all the folding there is; in this process, on
//! one thread.

use std::time::{Duration, Instant};

use quorate_manifest::assembly::MatchMode;
use quorate_protocol::locks::{LockedTrait, Locks};

use crate::table::Measure;
use crate::{Bench, Failure};

const TRAITS: usize = 100;
const BYTES: usize = 8_000_000;
const ROUNDS: usize = 9;
/// Checks of a short text in one measurement.
const SHORT: u32 = 1_000;

/// What mentors and reviewers write, in many scripts, with markup, entities and code.
const MIXED: &str = include_str!("../../crates/quorate-text/tests/it/evasion/benign.txt");

const STEMS: [&str; 20] = [
    "warmth",
    "honest",
    "voice register",
    "refuse harm",
    "kindness",
    "core persona",
    "candour",
    "never flatter",
    "plain speech",
    "curiosity",
    "patience",
    "loyalty to users",
    "safety first",
    "privacy",
    "dignity",
    "no pretence",
    "humility",
    "good humour",
    "respect",
    "discretion",
];
const ENDINGS: [&str; 5] = ["", " in tone", " of the agent", " at work", "-like"];

const WORDS: &str = "the of and to in is that it for was on are as with his they at be this from have or by one had \
    not but what all were when we there can an your which their said if do will each about how up out them then she \
    many some so these would other into has more her two like him see time could no make than first been its who now \
    people my made over did down only way find use may water long little very after words called just where most know \
    council draft reviewer evidence section claim number release incident region latency budget customer paragraph";

pub(super) fn measure(bench: &mut Bench) -> Result<(), Failure> {
    let traits = |mode| -> Vec<LockedTrait> {
        let texts = STEMS.iter().flat_map(|stem| ENDINGS.iter().map(move |ending| format!("{stem}{ending}")));
        texts.take(TRAITS).map(|text| LockedTrait { text, declared: mode }).collect()
    };
    let locks = Locks::compile(&traits(MatchMode::Substring), MatchMode::Substring)?;
    let patterns = Locks::compile(&traits(MatchMode::Regex), MatchMode::Regex)?;
    let (plain, mixed) = (prose(), MIXED.repeat(BYTES.div_ceil(MIXED.len())));

    let what = format!("lock check of {TRAITS} traits, plain ASCII, MB/s at least");
    bench.table.limited(what, rate(&locks, &plain)?, Measure::Rate(300.0));
    bench.table.limited("  the same, through the full folding", rate(&locks, &mixed)?, Measure::Rate(30.0));
    bench.table.unlimited("  the same, as patterns, plain ASCII", rate(&patterns, &plain)?);
    bench.table.unlimited("  the same, as patterns, through the full folding", rate(&patterns, &mixed)?);

    let start = Instant::now();
    for _ in 0..SHORT {
        std::hint::black_box(locks.check(std::hint::black_box("Say the risk first, the **remedy** second.")));
    }
    bench.table.unlimited("  the same, 1 000 suggestions of 42 bytes", Measure::Time(start.elapsed()));
    let start = Instant::now();
    Locks::compile(&traits(MatchMode::Substring), MatchMode::Substring)?;
    bench.table.unlimited("  making 100 traits ready", Measure::Time(start.elapsed()));
    Ok(())
}

/// The median rate at which a text is checked. A text with hits would measure something else.
fn rate(locks: &Locks, text: &str) -> Result<Measure, Failure> {
    let mut took: Vec<Duration> = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let hits = locks.check(text);
        took.push(start.elapsed());
        if let Some(hit) = hits.first() {
            return Err(format!("the text has `{}` in it", hit.trait_text).into());
        }
    }
    took.sort_unstable();
    Ok(Measure::Rate(text.len() as f64 / 1e6 / took[ROUNDS / 2].as_secs_f64()))
}

/// Prose in lines and paragraphs, with a little Markdown, the same every time.
fn prose() -> String {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let mut text = String::with_capacity(BYTES + 64);
    let mut state = 20_261_u64;
    for count in 1_u64.. {
        if text.len() >= BYTES {
            break;
        }
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = words[(state >> 33) as usize % words.len()];
        match count % 97 {
            0 => text.push_str(&format!("**{word}** {count}")),
            13 => text.push_str(&format!("`{word}_{word}`")),
            _ => text.push_str(word),
        }
        text.push_str(match count % 240 {
            0 => ".\n\n",
            n if n % 16 == 0 => "\n",
            n if n % 11 == 0 => ", ",
            n if n % 27 == 0 => ". ",
            _ => " ",
        });
    }
    text
}
