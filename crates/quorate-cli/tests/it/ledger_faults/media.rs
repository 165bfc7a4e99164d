//! Media that went bad: pages and lines that are cut, flipped, swapped, doubled or emptied; a disk that cannot be written; a
//! clock that goes back; a ledger of a newer version. Each command reports damage with a code, or
//! `ledger verify` does; none gives a wrong answer silently. `QUORATE_LEDGER_MEDIA=3000` sets the number of damages.

use crate::support::shim::Image;
use crate::support::shim::{Fault, Shim};
use quorate_kernel::entropy::sha256_hex;
use quorate_testkit::scripted::Rng;
use serde_json::Value;

use crate::ledger_faults::council::{REVIEW, REVISE, hardy, shim};
use crate::ledger_faults::disk::{lay, taken};
use crate::ledger_faults::points::{Repeat, each, number, one_by_one, seed};
use crate::ledger_faults::records::{execute_sql, records, text};
use crate::support::{CommandOutput, TestDir, finish};

/// What CI tries, and how many of these in one place.
const DAMAGES: usize = 10;
const OF_ONE: u64 = 5;

const PAGE: usize = 4096;
const VERIFY: [&str; 2] = ["ledger", "verify"];

/// A place with two reviews, and what it says when all is well.
struct Sound {
    place: TestDir,
    image: Image,
    runs: Vec<String>,
    records: Vec<Vec<String>>,
    answers: Vec<CommandOutput>,
}

impl Sound {
    /// Closed, or as it lies when its process was killed, with the log of the database beside it.
    fn new(shim: &Shim, closed: bool) -> Sound {
        let place = hardy();
        place.run(&REVIEW).assert_code(REVISE);
        place.write("draft.md", "The meeting moved to Wednesday at nine.\n");
        let killed: Fault = "unlink:live/*:0:kill-before".parse().expect("a fault");
        match closed {
            true => drop(place.run(&REVIEW).assert_code(REVISE)),
            false => assert_eq!(place.disturbed(shim, &REVIEW, Some(&killed)).code, 128 + 9),
        }
        let mut image = taken(&place.quorate(), "");
        image.retain(|name, _| !name.starts_with("live/"));
        lay(&place, &image);
        let runs = place.runs();
        let runs: Vec<String> = runs.iter().map(|run| text(&run["run"])).collect();
        assert_eq!(runs.len(), 2);
        let records = runs.iter().map(|run| heads(&place, run)).collect();
        let sound = Sound { place, image, runs, records, answers: Vec::new() };
        sound.place.run(&VERIFY).assert_code(0);
        let answers = sound.questions().iter().map(|one| sound.ask(one).assert_code(0)).collect();
        Sound { answers, ..sound }
    }

    fn questions(&self) -> Vec<Vec<&str>> {
        let of = |run| [vec!["show", run, "--format", "json"], vec!["replay", run, "--format", "json"]];
        let runs = self.runs.iter().flat_map(|run| of(run));
        runs.chain([vec!["runs", "--format", "json"], vec!["audit", "--format", "json"]]).collect()
    }

    fn ask(&self, question: &[&str]) -> CommandOutput {
        let ran = self.place.run(question);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!said.contains("panicked"), "{question:?}: {said}");
        assert!([0, 1, 4, 5].contains(&ran.code), "{question:?}: exit {}: {said}", ran.code);
        ran
    }

    /// Installs a damaged image and compares the answers with those before the damage.
    fn damaged(&self, image: &Image) {
        lay(&self.place, image);
        let verified = self.ask(&VERIFY);
        // Verification reports the damage, or every record is intact. If a run is lost with the end of SQLite's log, it
        // names the line in `council_log.jsonl`.
        let named = self.runs.iter().any(|run| verified.stdout.contains(run));
        let mut reported = verified.code != 0 || coded(&verified) || named;
        if !reported {
            for (run, before) in self.runs.iter().zip(&self.records) {
                let now = heads(&self.place, run);
                assert!(
                    now == *before,
                    "verified clean, and {run} is not what it was: {now:?}, once {before:?}"
                );
            }
            lay(&self.place, image);
        }
        for (question, before) in self.questions().iter().zip(&self.answers) {
            let now = self.ask(question);
            reported |= coded(&now);
            let same = (now.code, said(&now)) == (before.code, said(before));
            assert!(same || reported, "{question:?} is answered as if nothing were the matter: {now:?}");
        }
        let next = self.ask(&REVIEW);
        assert!(next.code == REVISE || next.code == 5 && coded(&next), "{next:?}");
    }
}

/// Number and kind of a run's records and what they say. That a run is over is rewritten where it was lost, with the
/// time when that was done.
fn heads(place: &TestDir, run: &str) -> Vec<String> {
    let records = records(&place.ledger(), run);
    let said = records.into_iter().filter(|one| one.kind != "run.ended");
    said.map(|one| format!("{} {} {}", one.n, one.kind, sha256_hex(format!("{:?}", one.data).as_bytes())))
        .collect()
}

/// What was answered, but for whether a checkpoint covers a run: the next command makes one that was lost with the end of
/// the database's own log.
fn said(ran: &CommandOutput) -> String {
    ran.stdout.lines().filter(|line| !line.trim_start().starts_with("\"sealed\"")).collect()
}

/// Whether something is said to be the matter.
fn coded(ran: &CommandOutput) -> bool {
    let code = |text: &str| text.contains("quorate:");
    code(&ran.stderr) || ran.code != 0 && code(&ran.stdout)
}

/// Does one thing to one file of an image; says what.
fn damage(image: &mut Image, chance: &mut Rng) -> String {
    let names: Vec<String> = image
        .keys()
        .filter(|name| name.starts_with("ledger.db") || name.ends_with("jsonl"))
        .cloned()
        .collect();
    let name = &names[below(chance, names.len())];
    let bytes = image.get_mut(name).expect("it is there");
    let done = match name.ends_with("jsonl") {
        true => damage_lines(bytes, chance),
        false => damage_pages(bytes, chance),
    };
    format!("{name}: {done}")
}

fn below(chance: &mut Rng, end: usize) -> usize {
    usize::try_from(chance.below(end.max(1) as u64)).expect("it is small")
}

fn damage_pages(bytes: &mut Vec<u8>, chance: &mut Rng) -> String {
    let pages = bytes.len() / PAGE;
    let (one, other) = (below(chance, pages), below(chance, pages));
    match chance.below(6) {
        0 => cut(bytes, chance),
        1 => {
            let (one, other) = (one * PAGE, other * PAGE);
            (0..PAGE).for_each(|at| bytes.swap(one + at, other + at));
            format!("pages at {one} and {other} swapped")
        }
        2 => {
            bytes.copy_within(one * PAGE..(one + 1) * PAGE, other * PAGE);
            format!("page {other} is page {one}")
        }
        3 => {
            bytes[one * PAGE..(one + 1) * PAGE].fill(0);
            format!("page {one} empty")
        }
        _ => flip(bytes, chance),
    }
}

fn damage_lines(bytes: &mut Vec<u8>, chance: &mut Rng) -> String {
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    match chance.below(5) {
        0 => cut(bytes, chance),
        1 => {
            lines.swap(0, 1);
            *bytes = lines.concat();
            "lines swapped".to_owned()
        }
        2 => {
            lines.push(lines[0].clone());
            *bytes = lines.concat();
            "a line doubled".to_owned()
        }
        _ => flip(bytes, chance),
    }
}

fn cut(bytes: &mut Vec<u8>, chance: &mut Rng) -> String {
    bytes.truncate(below(chance, bytes.len()));
    format!("cut to {}", bytes.len())
}

fn flip(bytes: &mut [u8], chance: &mut Rng) -> String {
    let (at, bit) = (below(chance, bytes.len()), chance.below(8));
    bytes[at] ^= 1 << bit;
    format!("bit {bit} of byte {at} flipped")
}

#[test]
fn what_went_bad_is_never_told_as_if_nothing_were_the_matter() {
    // D2, D6
    let Some(shim) = shim() else { return };
    let count = number("QUORATE_LEDGER_MEDIA", DAMAGES);
    let (first, last) = (seed(), seed() + count as u64);
    let kinds: Vec<u64> = (first / OF_ONE..last.div_ceil(OF_ONE)).collect();
    each(&kinds, |kind| {
        let sound = Sound::new(shim, kind.is_multiple_of(2));
        let seeds: Vec<u64> = ((kind * OF_ONE).max(first)..((kind + 1) * OF_ONE).min(last)).collect();
        one_by_one(&seeds, |seed| {
            let mut image = sound.image.clone();
            let done = damage(&mut image, &mut Rng::from_seed_and_name(*seed, "media"));
            let repeat = format!("{done}; QUORATE_LEDGER_SEED={seed} QUORATE_LEDGER_MEDIA=1");
            let _repeat = Repeat(repeat, "went_bad");
            sound.damaged(&image);
        });
    });
    println!("damages: {count}");
}

#[test]
fn a_disk_that_cannot_be_written_is_said_and_left_as_it_is() {
    let Some(shim) = shim() else { return };
    let read_only: Fault = "any:*:0+:EROFS".parse().expect("a fault");
    let place = hardy();
    let ran = place.disturbed(shim, &REVIEW, Some(&read_only)).assert_code(5);
    assert!(ran.stdout.contains("quorate:") && place.asked().is_empty(), "{ran:?}");
    place.run(&REVIEW).assert_code(REVISE);
    let run = place.only_run();
    let (before, asked) = (taken(&place.quorate(), ""), place.asked());
    for command in [&REVIEW[..], &["resume", &run], &["show", &run], &["runs"], &VERIFY] {
        let ran = place.disturbed(shim, command, Some(&read_only));
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.code == 5 && said.contains("quorate:") || ran.code == 0, "{command:?}: {ran:?}");
        assert!(ran.code == 5 || *command != REVIEW, "{ran:?}");
        assert_eq!(
            (taken(&place.quorate(), ""), place.asked()),
            (before.clone(), asked.clone()),
            "{command:?}"
        );
    }
}

#[test]
fn a_clock_that_goes_back_changes_no_order_and_no_verdict() {
    // D1, D2
    let Some(shim) = shim() else { return };
    let month_ms = 30 * 24 * 3600 * 1000;
    let points: Vec<(i64, u64)> =
        [(month_ms, 0), (-month_ms, 0)].into_iter().chain((1..12).map(|at| (-month_ms, at * 3))).collect();
    each(&points, |(offset_ms, at)| {
        let place = hardy();
        let mut command = place.traced(shim, &REVIEW, None);
        Shim::clock(&mut command, *offset_ms, *at);
        let report = finish(command.spawn().expect("the binary runs")).assert_code(REVISE).json();
        place.verifies();
        place.run(&["replay", report["run"].as_str().expect("a run")]).assert_code(0);
        // And one by the true clock, which is later or earlier than that.
        place.run(&REVIEW).assert_code(REVISE);
        place.verifies();
        assert_eq!((place.runs().len(), place.log().len()), (2, 2));
    });
}

#[test]
fn a_ledger_of_a_newer_version_is_read_and_not_written() {
    let place = hardy();
    place.run(&REVIEW).assert_code(REVISE);
    let run = place.only_run();
    let shown = place.run(&["show", &run, "--format", "json"]).assert_code(0).stdout;
    execute_sql(&place.ledger(), "PRAGMA user_version = 99");
    let (before, asked) = (taken(&place.quorate(), ""), place.asked());
    let refused = place.run(&REVIEW).assert_code(5);
    assert!(refused.stdout.contains("quorate:") && refused.stdout.contains("99"), "{refused:?}");
    assert_eq!(place.asked(), asked, "no member is asked if its answer could not be recorded");
    assert_eq!(place.run(&["show", &run, "--format", "json"]).assert_code(0).stdout, shown);
    let runs: Value = place.run(&["runs", "--format", "json"]).assert_code(0).json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(1));
    assert_eq!(taken(&place.quorate(), ""), before, "it was written");
}
