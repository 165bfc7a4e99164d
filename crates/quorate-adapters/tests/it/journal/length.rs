//! A process scans the journal once; then nothing that it does depends on the journal's length.

use std::time::Duration;

use quorate_testkit::conformance::substrate::answer;
use tokio::time::Instant;

use super::{Journal, append};

const CYCLES: usize = 101;

/// The median time to append an answer and to read it, in a journal with so many turns.
async fn cycle(turns: usize) -> Duration {
    let said = "x".repeat(400);
    let header = |at: usize| format!("=== TURN id=u_{at} participant=user ts=2026-01-01T00:00:00.000Z ===");
    let text: String = (0..turns).map(|at| format!("{}\n{said}\n", header(at))).collect();
    let journal = Journal::with_content(text);
    let substrate = journal.open();
    let mut last = format!("u_{}", turns - 1).into();
    assert!(substrate.read(Some(&last), 1).await.unwrap().known);
    let mut times = Vec::new();
    for at in 0..CYCLES {
        let start = Instant::now();
        let own = append(&substrate, answer("bea", &format!("{at}"), &last)).await;
        let page = substrate.read(Some(&last), 10).await.unwrap();
        times.push(start.elapsed());
        assert_eq!(page.turns, std::slice::from_ref(&own));
        last = own.id;
    }
    times.sort();
    times[CYCLES / 2]
}

#[tokio::test]
async fn a_cycle_takes_the_same_time_at_any_length() {
    let (short, long) = (cycle(10).await, cycle(100_000).await);
    assert!(long < short * 4, "{long:?} in a long journal, {short:?} in a short one");
}
