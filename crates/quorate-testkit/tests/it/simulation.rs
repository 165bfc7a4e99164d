//! Simulations from seeds: order, delays, failures, kills and power losses between any two steps.
//! `QUORATE_SEEDS=from..to` runs others; `scripts/soak` runs many.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::simulate::{Violation, assembly, simulate, swarm};

/// How many councils the ordinary test run tries.
const COUNCILS: Range<u64> = 0..500;
/// How many assemblies.
const ASSEMBLIES: Range<u64> = 0..1_000;
/// How many swarms.
const SWARMS: Range<u64> = 0..250;
/// How many conversations are disturbed at each of their steps.
const SWEPT: Range<u64> = 0..4;

/// The seeds of the environment variable, else the default seeds.
fn seeds(ordinary: Range<u64>) -> Range<u64> {
    named_seeds().unwrap_or(ordinary)
}

/// The seeds of the environment variable.
fn named_seeds() -> Option<Range<u64>> {
    let read = |text: String| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    };
    #[expect(clippy::disallowed_methods, reason = "the soak names its seeds")]
    std::env::var("QUORATE_SEEDS").ok().map(|text| read(text).expect("QUORATE_SEEDS is from..to"))
}

#[test]
fn councils_survive_every_fault() {
    let (mut deaths, mut verdicts) = (0, BTreeMap::<String, u32>::new());
    let seeds = seeds(COUNCILS);
    for seed in seeds.clone() {
        let simulated = runtime().block_on(simulate(seed)).unwrap_or_else(|violation| panic!("{violation}"));
        deaths += simulated.crashes;
        let verdict = simulated
            .history
            .outcome_data()
            .and_then(|outcome| outcome["verdict"].as_str())
            .unwrap_or("none")
            .to_owned();
        *verdicts.entry(verdict).or_default() += 1;
    }
    println!("{} councils, {deaths} deaths, {verdicts:?}", seeds.clone().count());
    let many = seeds.count();
    if many >= 500 {
        assert!(deaths > many / 2, "the simulation kills: {deaths}");
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
    for came in all(seeds.clone(), assembly::simulate) {
        deaths += came.deaths;
        locked += came.locked;
        infected += usize::from(came.infected);
        *outcomes.entry(format!("{} {}", came.mode, came.verdict)).or_default() += 1;
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

#[test]
fn swarms_survive_every_fault() {
    // K2, K3, K5, K6
    let seeds = seeds(SWARMS);
    let came = all(seeds.clone(), swarm::simulate);
    let sum = |of: fn(&swarm::Summary) -> usize| came.iter().map(of).sum::<usize>();
    let (answers, failed, guarded) = (sum(|one| one.answers), sum(|one| one.failed), sum(|one| one.guarded));
    let (deaths, interrupts) = (sum(|one| one.deaths), sum(|one| one.interrupts));
    let (bare, crowded) =
        (sum(|one| usize::from(one.bare)), sum(|one| usize::from(one.processes > one.manifests)));
    let many = came.len();
    println!(
        "{many} swarms, {} turns, {answers} answers, {failed} failed, {guarded} passed over, {deaths} deaths, \
         {interrupts} interrupts, {bare} without stamps, {crowded} with two processes of a manifest at once",
        sum(|one| one.turns),
    );
    if many >= 250 {
        let enough = answers > 8 * many && failed > many && guarded > many / 2;
        assert!(enough, "participants answer, fail and loop: {answers}, {failed}, {guarded}");
        assert!(deaths > many / 2 && interrupts > many / 4, "{deaths} deaths, {interrupts} interrupts");
        assert!(bare > many / 10 && crowded > many / 10, "{bare} without stamps, {crowded} crowded");
    }
}

#[test]
fn swarms_survive_a_fault_at_every_boundary_of_a_cycle() {
    // K2, K3, K5
    let seeds = seeds(SWEPT);
    let came = match named_seeds() {
        None => all(seeds.clone(), swarm::simulate_half_of_boundaries),
        Some(_) => all(seeds.clone(), swarm::simulate_boundaries),
    };
    let simulations = came.iter().map(|one| one.simulations).sum::<usize>();
    let disturbed: BTreeSet<_> = came.into_iter().flat_map(|one| one.disturbed).collect();
    println!("{simulations} simulations, {} boundaries", disturbed.len());
    if seeds.count() >= 4 {
        let boundaries = [
            "the tail is read",
            "a look back",
            "a read",
            "a read that was done",
            "a wait",
            "a wait that was over",
            "a decision",
            "an advisor's call",
            "a decision that was made",
            "a state is read",
            "a call",
            "an answer",
            "an append",
            "an append that was done",
            "a state is written",
            "a state was written",
            "records are written",
            "records were written",
        ];
        let disturbances: BTreeSet<_> = disturbed.iter().map(|(disturbance, _)| *disturbance).collect();
        assert_eq!(disturbances.len(), 8, "{disturbances:?}");
        let all = disturbances.into_iter().flat_map(|one| boundaries.map(|boundary| (one, boundary)));
        let lacking: Vec<_> = all.filter(|one| !disturbed.contains(one)).collect();
        assert!(lacking.is_empty(), "no simulation has {lacking:?}");
    }
}

/// Simulates all seeds, on one thread for each processor.
fn all<Simulates, Came>(seeds: Range<u64>, simulate: fn(u64) -> Simulates) -> Vec<Came>
where
    Simulates: Future<Output = Result<Came, Violation>>,
    Came: Send,
{
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share = |first: usize| {
        let seeds = seeds.clone().skip(first).step_by(threads);
        let simulated = |seed| {
            let _told = PrintSeedOnPanic(seed);
            runtime().block_on(simulate(seed))
        };
        seeds.map(simulated).collect::<Result<Vec<Came>, Violation>>()
    };
    let shares = std::thread::scope(|scope| {
        let working: Vec<_> = (0..threads).map(|first| scope.spawn(move || share(first))).collect();
        let joined = working.into_iter().map(|one| one.join().expect("a violation is returned, not thrown"));
        joined.collect::<Result<Vec<_>, Violation>>()
    });
    shares.unwrap_or_else(|violation| panic!("{violation}")).into_iter().flatten().collect()
}

/// Says which seed it was where something panics.
struct PrintSeedOnPanic(u64);

impl Drop for PrintSeedOnPanic {
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
