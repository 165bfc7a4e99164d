//! Simulations from seeds: order, delays, failures, kills and power losses between any two steps.
//! `QUORATE_SEEDS=from..to` runs others; `scripts/soak` runs many.

use quorate_testkit::simulate::simulate;

/// How many seeds the ordinary test run tries.
const SEEDS: std::ops::Range<u64> = 0..1_500;

fn seeds() -> std::ops::Range<u64> {
    let read = |text: String| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    };
    #[expect(clippy::disallowed_methods, reason = "the soak names its seeds")]
    std::env::var("QUORATE_SEEDS").ok().map_or(SEEDS, |text| read(text).expect("QUORATE_SEEDS is from..to"))
}

#[test]
fn councils_survive_every_fault() {
    let (mut deaths, mut verdicts) = (0, std::collections::BTreeMap::<String, u32>::new());
    for seed in seeds() {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let simulated = runtime.block_on(simulate(seed)).unwrap_or_else(|violation| panic!("{violation}"));
        deaths += simulated.deaths;
        let verdict = simulated
            .history
            .outcome()
            .and_then(|outcome| outcome["verdict"].as_str())
            .unwrap_or("none")
            .to_owned();
        *verdicts.entry(verdict).or_default() += 1;
    }
    println!("{} councils, {deaths} deaths, {verdicts:?}", seeds().count());
    if seeds().count() >= 1_000 {
        assert!(deaths > 500, "the simulation kills: {deaths}");
        assert!(
            ["SHIP", "REVISE", "HOLD", "INCOMPLETE"].iter().all(|one| verdicts.contains_key(*one)),
            "{verdicts:?}"
        );
    }
}
