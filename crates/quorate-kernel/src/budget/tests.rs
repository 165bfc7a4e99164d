//! Reservations at the same time, settlement, and what a budget refuses.

use futures::FutureExt as _;

use super::*;

fn tokens(cap: u64) -> Arc<Budget> {
    Arc::new(Budget::new(Caps { tokens: Some(cap), ..Caps::default() }, 0, Amount::default()))
}

fn limit(tokens: u64) -> Option<CallLimit> {
    Some(CallLimit { tokens, usd_nanos: None })
}

fn used(read: u64, wrote: u64) -> Usage {
    Usage { tokens_in: Some(read), tokens_out: Some(wrote), ..Usage::default() }
}

#[test]
fn no_more_than_the_cap_is_ever_taken() {
    // X8
    let of = |calls, spent| Budget::new(Caps { calls, ..Caps::default() }, spent, Amount::default());
    let calls = of(Some(3), 1);
    let taken = [(); 3].map(|()| calls.reserve_call().is_ok());
    assert_eq!(taken, [true, true, false]);
    let (none, three) = (Amount::default(), of(Some(3), 1));
    assert!(three.has_left(2, none) && !three.has_left(3, none) && of(None, 7).has_left(1_000, none));
    assert!((0..100).all(|_| of(None, 7).reserve_call().is_ok()));
}

#[tokio::test]
async fn a_call_waits_for_those_under_way_and_is_refused_where_none_could_make_room() {
    let budget = tokens(100);
    let first = budget.reserve(limit(60)).await.unwrap();
    let mut second = Box::pin(budget.reserve(limit(60)));
    assert!((&mut second).now_or_never().is_none(), "it fits once the first takes less than was reserved");
    first.settle(&used(10, 20));
    let second = second.await.unwrap();
    assert_eq!(second.amount().tokens, 60);
    // 30 are spent, 60 reserved: 71 never fit.
    let refused = budget.reserve(limit(71)).await.unwrap_err();
    assert_eq!(refused, Exhausted::Tokens { cap: 100, left: 70, needed: 71 });
    drop(second);
    // What was dropped counts as spent.
    let refused = budget.reserve(limit(11)).await.unwrap_err();
    assert_eq!(refused, Exhausted::Tokens { cap: 100, left: 10, needed: 11 });
    budget.reserve(limit(10)).await.unwrap().settle(&Usage::default());
    assert!(budget.reserve(limit(1)).await.is_err(), "unknown usage keeps the reservation");
}

#[tokio::test]
async fn a_call_that_waits_is_refused_once_the_others_took_what_was_left() {
    let budget = tokens(100);
    let first = budget.reserve(limit(60)).await.unwrap();
    let mut second = Box::pin(budget.reserve(limit(60)));
    assert!((&mut second).now_or_never().is_none());
    first.settle(&used(40, 20));
    assert_eq!(second.await.unwrap_err(), Exhausted::Tokens { cap: 100, left: 40, needed: 60 });
}

#[tokio::test]
async fn money_needs_a_known_price_and_other_caps_do_not() {
    let caps = Caps { usd_nanos: Some(1_500_000_000), ..Caps::default() };
    let budget = Arc::new(Budget::new(caps, 0, Amount { tokens: 9, usd_nanos: 1_000_000_000 }));
    assert_eq!(budget.reserve(limit(1)).await.unwrap_err(), Exhausted::Unknown);
    assert_eq!(budget.reserve(None).await.unwrap_err(), Exhausted::Unknown);
    let dear = Some(CallLimit { tokens: 1, usd_nanos: Some(500_000_001) });
    let refused = budget.reserve(dear).await.unwrap_err().to_string();
    assert_eq!(refused, "a call costs up to US$ 0.500000001, and 0.5 of 1.5 are left (`budget.money`)");
    let free = Arc::new(Budget::new(Caps::default(), 0, Amount::default()));
    assert!(free.reserve(None).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_reservations_never_exceed_the_cap() {
    // Eight at a time, each of 30 with a cap of 100, and each settled with more or less than was reserved.
    let budget = tokens(100_000);
    let calls = (0..8_u64).map(|member| {
        let budget = Arc::clone(&budget);
        tokio::spawn(async move {
            let mut took = 0;
            for call in 0..400_u64 {
                let Ok(reserved) = budget.reserve(limit(90)).await else { break };
                tokio::task::yield_now().await;
                let used_tokens = (member * 7 + call) % 91;
                took += used_tokens;
                reserved.settle(&used(used_tokens, 0));
            }
            took
        })
    });
    let took: u64 = futures::future::try_join_all(calls).await.unwrap().into_iter().sum();
    assert_eq!(budget.lock().reserved, Amount::default());
    assert_eq!(budget.lock().spent.tokens, took);
    assert!((99_900..=100_000).contains(&took), "{took}");
}
