//! Simulations from seeds: order, delays, failures, kills and power losses between any two steps.
//! `QUORATE_SEEDS=from..to` runs others; `scripts/soak` runs many.

use std::collections::BTreeMap;
use std::ops::Range;

use quorate_testkit::simulate::assembly::Came;
use quorate_testkit::simulate::{Violation, assembly, simulate};

/// How many councils the ordinary test run tries.
const COUNCILS: Range<u64> = 0..1_500;
/// How many assemblies.
const ASSEMBLIES: Range<u64> = 0..2_000;

/// The seeds that somebody asked for, else those of the ordinary run.
fn seeds(ordinary: Range<u64>) -> Range<u64> {
    let read = |text: String| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    };
    #[expect(clippy::disallowed_methods, reason = "the soak names its seeds")]
    std::env::var("QUORATE_SEEDS")
        .ok()
        .map_or(ordinary, |text| read(text).expect("QUORATE_SEEDS is from..to"))
}

#[test]
fn councils_survive_every_fault() {
    let (mut deaths, mut verdicts) = (0, BTreeMap::<String, u32>::new());
    let seeds = seeds(COUNCILS);
    for seed in seeds.clone() {
        let simulated = runtime().block_on(simulate(seed)).unwrap_or_else(|violation| panic!("{violation}"));
        deaths += simulated.deaths;
        let verdict = simulated
            .history
            .outcome()
            .and_then(|outcome| outcome["verdict"].as_str())
            .unwrap_or("none")
            .to_owned();
        *verdicts.entry(verdict).or_default() += 1;
    }
    println!("{} councils, {deaths} deaths, {verdicts:?}", seeds.clone().count());
    if seeds.clone().count() >= 1_000 {
        assert!(deaths > 500, "the simulation kills: {deaths}");
        assert!(
            ["SHIP", "REVISE", "HOLD", "INCOMPLETE"].iter().all(|one| verdicts.contains_key(*one)),
            "{verdicts:?}"
        );
    }
}

#[test]
fn assemblies_survive_every_fault() {
    let seeds = seeds(ASSEMBLIES);
    let (mut deaths, mut locked, mut infected) = (0, 0, 0);
    let mut outcomes = BTreeMap::<String, u32>::new();
    for came in all_assemblies(seeds.clone()) {
        deaths += came.deaths;
        locked += came.locked;
        infected += usize::from(came.infected);
        *outcomes.entry(format!("{} {}", came.mode, came.to)).or_default() += 1;
    }
    let many = seeds.count();
    println!("{many} assemblies, {deaths} deaths, {locked} locked, {infected} infected, {outcomes:#?}");
    if many >= 1_000 {
        let enough = deaths > many / 3 && locked > many / 20 && infected > many / 20;
        assert!(enough, "the simulation kills, locks and infects: {deaths}, {locked}, {infected}");
        let wanted = [
            "advisory done",
            "advisory incomplete (no_answer)",
            "advisory incomplete (budget_exhausted)",
            "voting pass",
            "voting fail",
            "voting refused (locked)",
            "voting refused (no_voters)",
            "voting incomplete (missing_votes)",
            "voting incomplete (rule_failed)",
            "peer done",
            "peer refused (all_refused)",
            "hierarchy done",
            "hierarchy refused (locked)",
        ];
        let lacking: Vec<&str> = wanted.into_iter().filter(|one| !outcomes.contains_key(*one)).collect();
        assert!(lacking.is_empty(), "no simulation came to {lacking:?}: {outcomes:#?}");
    }
}

/// Simulates all of them, on as many threads as there are processors.
fn all_assemblies(seeds: Range<u64>) -> Vec<Came> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share = |first: usize| {
        let seeds = seeds.clone().skip(first).step_by(threads);
        let simulate = |seed| {
            let _told = ToldInPanic(seed);
            runtime().block_on(assembly::simulate(seed))
        };
        seeds.map(simulate).collect::<Result<Vec<Came>, Violation>>()
    };
    let shares = std::thread::scope(|scope| {
        let working: Vec<_> = (0..threads).map(|first| scope.spawn(move || share(first))).collect();
        let joined = working.into_iter().map(|one| one.join().expect("a violation is returned, not thrown"));
        joined.collect::<Result<Vec<_>, Violation>>()
    });
    shares.unwrap_or_else(|violation| panic!("{violation}")).into_iter().flatten().collect()
}

/// Says which seed it was where something panics.
struct ToldInPanic(u64);

impl Drop for ToldInPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", Violation { seed: self.0, what: "a panic".to_owned() });
        }
    }
}

/// Time stands still unless everybody waits.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime")
}
