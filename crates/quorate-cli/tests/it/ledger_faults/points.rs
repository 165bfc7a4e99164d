//! Which faults are tried: some of every sort, by a seed; and how one of them is repeated.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::support::shim::Event;
use crate::support::shim::{Call, Fault, FaultAction};
use quorate_testkit::scripted::Rng;

/// A sort of call: its kind, and a pattern of where.
pub(crate) type Sort = (Call, String);

/// How many calls of each sort a trace has. What is in a directory of its own counts as one place, since its name may
/// be another one each time.
pub(crate) fn sorts(events: &[Event]) -> BTreeMap<Sort, u64> {
    let mut counts = BTreeMap::new();
    for event in events.iter().filter(|one| !matches!(one.call, Call::Out | Call::Err | Call::Ask)) {
        let pattern = match event.path.rsplit_once('/') {
            Some((above, _)) => format!("{above}/*"),
            None => event.path.clone(),
        };
        *counts.entry((event.call, pattern)).or_default() += 1;
    }
    counts
}

/// A fault at one call of a sort.
pub(crate) fn fault((call, path): &Sort, at: u64, ever_after: bool, deed: FaultAction) -> Fault {
    Fault { call: Some(*call), path: path.clone(), at, and_later: ever_after, action: deed }
}

/// How much is tried: so many points by the environment or, where that says nothing, by the test.
pub(crate) fn number(name: &str, usual: usize) -> usize {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a number")),
        Err(_) => usual,
    }
}

/// The seed of the choice.
pub(crate) fn seed() -> u64 {
    number("QUORATE_LEDGER_SEED", 0) as u64
}

/// The fault that `QUORATE_LEDGER_FAULT` names, alone; else so many of `all`, by chance but some of every group, and all of
/// them over again where there are fewer.
pub(crate) fn chosen(groups: Vec<Vec<Fault>>, count: usize) -> Vec<Fault> {
    if let Ok(text) = std::env::var("QUORATE_LEDGER_FAULT") {
        return vec![text.parse().unwrap_or_else(|error| panic!("{error}"))];
    }
    let mut chance = Rng::from_seed_and_name(seed(), "points");
    let mut groups: Vec<Vec<Fault>> = groups.into_iter().filter(|group| !group.is_empty()).collect();
    groups.iter_mut().for_each(|group| shuffle(group, &mut chance));
    let longest = groups.iter().map(Vec::len).max().unwrap_or(0);
    // The first of each group, the second of each, and so on; half of what is tried. The rest is drawn from all.
    let in_turn: Vec<Fault> =
        (0..longest).flat_map(|at| groups.iter().filter_map(move |group| group.get(at).cloned())).collect();
    let mut drawn = in_turn.clone();
    let (first, rest) = drawn.split_at_mut((count / 2).min(in_turn.len()));
    shuffle(rest, &mut chance);
    let once = first.iter().chain(rest.iter());
    once.cycle().take(if in_turn.is_empty() { 0 } else { count }).cloned().collect()
}

fn shuffle<T>(some: &mut [T], chance: &mut Rng) {
    for at in (1..some.len()).rev() {
        some.swap(at, usize::try_from(chance.below(at as u64 + 1)).unwrap_or(0));
    }
}

/// Tries all points, two at a time.
///
/// # Panics
/// At the end, if one failed.
pub(crate) fn each<T: Sync>(points: &[T], attempt: impl Fn(&T) + Sync) {
    let halves = points.chunks(points.len().div_ceil(2).max(1));
    let failed: usize = std::thread::scope(|scope| {
        let halves: Vec<_> = halves.map(|half| scope.spawn(|| failures(half, &attempt))).collect();
        halves.into_iter().map(|half| half.join().expect("failures are caught")).sum()
    });
    assert_eq!(failed, 0, "so many points failed of {}", points.len());
}

/// Tries all points, one after the other.
///
/// # Panics
/// At the end, if one failed.
pub(crate) fn one_by_one<T>(points: &[T], attempt: impl Fn(&T)) {
    let failed = failures(points, &attempt);
    assert_eq!(failed, 0, "so many points failed of {}", points.len());
}

fn failures<T>(points: &[T], attempt: &impl Fn(&T)) -> usize {
    points.iter().filter(|point| catch_unwind(AssertUnwindSafe(|| attempt(point))).is_err()).count()
}

/// Says how a point is repeated where its test fails.
pub(crate) struct Repeat<T: Display>(pub(crate) T, pub(crate) &'static str);

impl<T: Display> Drop for Repeat<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to run it again: {} cargo test -p quorate-cli --test it -- {}", self.0, self.1);
        }
    }
}
