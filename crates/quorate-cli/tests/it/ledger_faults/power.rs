//! Power that is lost between any two calls: the disk has what was synced, and of the rest whatever it likes, with a torn
//! page. `QUORATE_LEDGER_POWER=3000` tries so many; each has a seed of its own, from `QUORATE_LEDGER_SEED` on.

use std::path::Path;

use crate::support::shim::Event;
use crate::support::shim::{Fault, Shim};
use crate::support::shim::{Image, power_loss};
use quorate_testkit::scripted::Rng;

use crate::ledger_faults::council::{Observed, REVIEW, REVISE, hardy, holds, shim};
use crate::ledger_faults::disk::lay;
use crate::ledger_faults::points::{Repeat, each, number, one_by_one, seed};
use crate::support::TestDir;

/// What CI tries, and how many of these are of one recording.
const LOSSES: usize = 20;
const OF_ONE: u64 = 10;

/// A process that was recorded, or several.
struct Recorded {
    place: TestDir,
    events: Vec<Event>,
}

fn fault(text: &str) -> Fault {
    text.parse().expect("a fault")
}

/// A review, or one that was killed and is taken up by a second process.
fn undisturbed(shim: &Shim, kind: u64) -> Recorded {
    let place = hardy();
    if kind.is_multiple_of(3) {
        let killed = place.disturbed(shim, &REVIEW, Some(&fault("sync:ledger.db-wal:2:kill-after")));
        assert_eq!(killed.code, 128 + 9);
        // Looking the run up would write, so its name is taken from its process's lock.
        let held = std::fs::read_dir(place.path(".quorate/live")).expect("a directory").next();
        let run = held.expect("a run").expect("a file").file_name();
        let run = run.to_str().expect("an id");
        place.disturbed(shim, &["resume", run, "--format", "json"], None).assert_code(REVISE);
    } else {
        place.disturbed(shim, &REVIEW, None).assert_code(REVISE);
    }
    let events = place.events();
    Recorded { place, events }
}

/// A review during which a sync of the ledger fails, so that what it should have written is lost for good.
fn failing(shim: &Shim, kind: u64) -> Recorded {
    let place = hardy();
    place.disturbed(shim, &REVIEW, Some(&fault(&format!("sync:ledger.db-wal:{}:EIO", 1 + kind % 5))));
    let events = place.events();
    Recorded { place, events }
}

/// Keeps an image where its test fails: which calls come in which order is not in the seed.
struct Kept<'a>(u64, &'a Image, Option<&'a Event>);

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("power-{}", self.0));
            for (name, bytes) in self.1 {
                let path = dir.join(name);
                let _ = path.parent().map(std::fs::create_dir_all);
                let _ = std::fs::write(path, bytes);
            }
            let last = self.2.map_or(String::new(), |one| format!(" after {:?} of {}", one.call, one.path));
            eprintln!("the power was lost{last}; what was left on the disk is kept in {}", dir.display());
        }
    }
}

impl Recorded {
    /// Loses the power somewhere, and looks.
    fn lost(&self, seed: u64, test: &'static str) {
        let mut chance = Rng::from_seed_and_name(seed, "power");
        let cut = usize::try_from(chance.below(self.events.len() as u64 + 1)).expect("it is small");
        let events = &self.events[..cut];
        let image = power_loss(events, &mut chance);
        let repeat = format!("QUORATE_LEDGER_SEED={seed} QUORATE_LEDGER_POWER=1");
        let _repeat = Repeat(repeat, test);
        let _kept = Kept(seed, &image, events.last());
        lay(&self.place, &image);
        let observed = Observed::by(events);
        self.place.write("calls", observed.asked.iter().map(|one| format!("{one}\n")).collect::<String>());
        holds(&self.place, &observed);
    }
}

/// So many losses of power, some of each recording.
fn losses(count: usize, record: impl Fn(u64) -> Recorded + Sync, test: &'static str) {
    let (first, last) = (seed(), seed() + count as u64);
    let kinds: Vec<u64> = (first / OF_ONE..last.div_ceil(OF_ONE)).collect();
    each(&kinds, |kind| {
        let recorded = record(*kind);
        let seeds: Vec<u64> = ((kind * OF_ONE).max(first)..((kind + 1) * OF_ONE).min(last)).collect();
        one_by_one(&seeds, |seed| recorded.lost(*seed, test));
    });
    println!("losses of power: {count}");
}

#[test]
fn a_loss_of_power_anywhere_keeps_what_was_acknowledged() {
    // X7, D1, D2, D6
    let Some(shim) = shim() else { return };
    losses(number("QUORATE_LEDGER_POWER", LOSSES), |kind| undisturbed(shim, kind), "power_anywhere");
}

#[test]
fn a_loss_of_power_after_a_sync_that_failed_does_too() {
    // X7, D1, D2
    let Some(shim) = shim() else { return };
    losses(number("QUORATE_LEDGER_POWER", LOSSES), |kind| failing(shim, kind), "power_after");
}
