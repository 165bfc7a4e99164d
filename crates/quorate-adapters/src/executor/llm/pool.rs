//! How fast one service is asked. Executors that name the same pool share it within this process: the number of calls at
//! once, and one time before which no call is sent after the service said to wait.
//!
//! Several calls with one cached prefix start with one call; the others wait until its response begins.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use quorate_kernel::clock::{Clock as _, System};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::executor::{Admission, Failure, Progress};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::fault::{Fault, FaultKind};

/// How long the place of a call stays empty that the service refused as one too many.
const RESTS_FOR: Duration = Duration::from_secs(60);

/// How long a wait that the service asks for holds for the other calls of a pool. A service that asks for years must not
/// stop a process that runs as long.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Name and concurrency: an executor with another concurrency has a pool of its own.
static POOLS: Mutex<BTreeMap<(String, usize), Arc<Pool>>> = Mutex::new(BTreeMap::new());

#[derive(Debug)]
pub(super) struct Pool {
    name: String,
    most: usize,
    /// Places for invocations, with all their attempts.
    room: Arc<Semaphore>,
    /// Places for requests. There are fewer after the service refused some as too many.
    requests: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Before what time no call is sent.
    not_before: Option<Instant>,
    /// Places that stay empty, and until when.
    resting: Vec<(Instant, OwnedSemaphorePermit)>,
}

impl Pool {
    /// The pool of a name.
    pub(super) fn named(name: &str, most: usize) -> Arc<Pool> {
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(pools.entry((name.to_owned(), most)).or_insert_with(|| Arc::new(Pool::new(name, most))))
    }

    fn new(name: &str, most: usize) -> Pool {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        let [room, requests] = [(), ()].map(|()| Arc::new(Semaphore::new(most)));
        Pool { name: name.to_owned(), most, room, requests, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room for one more invocation, which is given back when the admission is dropped. How long a service asks
    /// to wait does not count here, but against the deadline of a call: a service could ask for years.
    pub(super) async fn admit(&self) -> Admission {
        // The semaphore is never closed.
        Arc::clone(&self.room).acquire_owned().await.map(Admission::with_permit).unwrap_or_default()
    }

    /// Waits until a call may be sent; `progress` is told how long. The call counts until [`UnderWay`] is dropped.
    ///
    /// # Errors
    /// When no call may be sent before the deadline.
    pub(super) async fn start(
        self: &Arc<Self>,
        deadline: Instant,
        progress: &Progress,
    ) -> Result<UnderWay, Failure> {
        let wait = async |until, who: &str| {
            let asked_by = format!("{who} has calls through pool `{}` wait", self.name);
            wait(until, deadline, &asked_by, progress).await
        };
        let mut quota = crate::executor::shared_quota();
        loop {
            let now = Instant::now();
            self.state().resting.retain(|(until, _)| now < *until);
            if let Some(until) = self.not_before() {
                wait(until, "the service").await?;
                continue;
            }
            // The machines that share the pool's quota.
            if let Some(quota) = quota.take() {
                while let Some(pause) = quota.ask(&self.name).await {
                    let until = Instant::now().checked_add(pause).unwrap_or(deadline);
                    wait(until, "the workers' quota").await?;
                }
            }
            let place = Arc::clone(&self.requests).acquire_owned();
            // A place that rests is free at a time that no other call announces.
            let rested = self.state().resting.iter().map(|(until, _)| *until).min();
            let until = rested.map_or(deadline, |until| until.min(deadline));
            let place = match tokio::time::timeout_at(until, place).await {
                Ok(Ok(place)) => place,
                Err(_) if until < deadline => continue,
                _ => return Err(Failure::TimedOut),
            };
            // A call that has ended meanwhile may have been asked to wait, for all.
            if self.not_before().is_none() {
                return Ok(UnderWay { pool: Arc::clone(self), place });
            }
        }
    }

    /// Until when the service has all calls wait.
    fn not_before(&self) -> Option<Instant> {
        self.state().not_before.filter(|until| Instant::now() < *until)
    }
}

/// Waits until a time that `asked_by` explains.
async fn wait(until: Instant, deadline: Instant, asked_by: &str, progress: &Progress) -> Result<(), Failure> {
    let pause = until.duration_since(Instant::now());
    if until >= deadline {
        return Err(Failure::never(format!("not asked: {asked_by} {}", past_deadline(pause))));
    }
    progress.waits(asked_by, pause);
    tokio::time::sleep_until(until).await;
    Ok(())
}

/// A wait that does not end before a call's deadline: `until 2026-11-29 07:20:51 UTC, longer than …`.
pub(super) fn past_deadline(pause: Duration) -> String {
    let ms = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
    let until = Timestamp::from_millisecond(System.now_ms().saturating_add(ms));
    let until = until.map_or_else(
        |_| format!("for {} s", pause.as_secs()),
        |until| format!("until {}", until.strftime("%Y-%m-%d %H:%M:%S UTC")),
    );
    format!("{until}, longer than the time that is left of the call's `timeout`")
}

/// A call that is under way.
#[derive(Debug)]
pub(super) struct UnderWay {
    pool: Arc<Pool>,
    place: OwnedSemaphorePermit,
}

impl UnderWay {
    /// Ends a call that failed. The service may ask for a wait, for all calls, or refuse it as one too many.
    pub(super) fn fail(self, fault: &Fault) {
        let is_limited = fault.kind == FaultKind::RateLimited;
        if !is_limited
            && !matches!(fault.kind, FaultKind::Overloaded | FaultKind::Server | FaultKind::EndedEarly)
        {
            return;
        }
        let now = Instant::now();
        let mut state = self.pool.state();
        // A wait of no time is none.
        match fault.after.filter(|wait| !wait.is_zero()).map(|wait| wait.min(LONGEST_WAIT)) {
            Some(wait) => state.not_before = state.not_before.max(Some(now + wait)),
            None if is_limited && state.resting.len() + 1 < self.pool.most => {
                state.resting.push((now + RESTS_FOR, self.place));
            }
            None => {}
        }
        drop(state);
        if let Some((after, quota)) = fault.after.filter(|_| is_limited).zip(crate::executor::shared_quota())
        {
            quota.limited(&self.pool.name, after.min(LONGEST_WAIT));
        }
    }
}

/// How long a call waits for the first one of its prefix at most.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// How long a prefix counts as cached after a response to it began: the shortest time that a vendor keeps one, less some.
const CACHED_FOR: Duration = Duration::from_secs(240);

/// Held by the first call with a prefix until its response begins; says until when the prefix is cached.
type Gate = Arc<tokio::sync::Mutex<Option<Instant>>>;

/// The gates of the prefixes that calls are sent with, by the prefix's hash.
static GATES: Mutex<BTreeMap<String, Gate>> = Mutex::new(BTreeMap::new());

/// The first call of a prefix. The others wait until its response begins or it is dropped.
#[derive(Debug)]
pub(super) struct Lead(OwnedMutexGuard<Option<Instant>>);

/// Waits until the call may be sent; `Some` where it is the first with this prefix of the service and the model. A call whose
/// first one failed becomes the first itself, and one that has waited long enough goes all the same.
pub(super) async fn enter_wave(service: &str, model: &str, prefix: &str, deadline: Instant) -> Option<Lead> {
    let key = sha256_hex(format!("{service}\0{model}\0{prefix}").as_bytes());
    let gate = {
        let mut gates = GATES.lock().unwrap_or_else(PoisonError::into_inner);
        // An entry that no call holds and whose prefix is not cached says nothing.
        gates.retain(|_, gate| {
            Arc::strong_count(gate) > 1 || gate.try_lock().is_ok_and(|gate| is_cached(*gate))
        });
        Arc::clone(gates.entry(key).or_default())
    };
    let until = deadline.min(Instant::now() + MAX_WAIT);
    let gate = tokio::time::timeout_at(until, gate.lock_owned()).await.ok()?;
    (!is_cached(*gate)).then_some(Lead(gate))
}

fn is_cached(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() < until)
}

impl Lead {
    /// Says that the response began: from here on the prefix is read from the cache.
    pub(super) fn begun(mut self) {
        *self.0 = Some(Instant::now() + CACHED_FOR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn pool(most: usize) -> Arc<Pool> {
        Arc::new(Pool::new("p", most))
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(3_600)
    }

    fn fault(kind: FaultKind, after: Option<Duration>) -> Fault {
        Fault { after, ..Fault::new(kind, "") }
    }

    async fn sent(pool: &Arc<Pool>) -> UnderWay {
        pool.start(later(), &Progress::default()).await.unwrap()
    }

    /// Makes a call that takes no time and fails so.
    async fn fail(pool: &Arc<Pool>, kind: FaultKind, after: Option<Duration>) {
        sent(pool).await.fail(&fault(kind, after));
    }

    async fn refusal(pool: &Arc<Pool>, deadline: Instant) -> String {
        let start = Instant::now();
        let refused = pool.start(deadline, &Progress::default()).await.map(drop).unwrap_err();
        assert_eq!(Instant::now(), start, "at once");
        refused.to_string()
    }

    #[tokio::test(start_paused = true)]
    async fn admissions_are_given_back() {
        let pool = pool(2);
        let held = [pool.admit().await, pool.admit().await];
        assert!(held.iter().all(Admission::has_permit));
        assert!(tokio::time::timeout(SECOND, pool.admit()).await.is_err());
        drop(held);
        assert!(pool.admit().await.has_permit());
        assert!(self::pool(0).admit().await.has_permit(), "there is room for one");
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_calls_at_once_become_fewer_and_take_at_most_two_retries() {
        let pool = pool(8);
        let service = Arc::new(Mutex::new(0_usize));
        let mut members = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (pool, service) = (pool.clone(), service.clone());
            members.spawn(async move {
                let mut most_refusals = 0;
                for _ in 0..40 {
                    for refusals in 0.. {
                        let sent = sent(&pool).await;
                        let is_refused = {
                            let mut at_once = service.lock().unwrap();
                            *at_once += 1;
                            *at_once > 3
                        };
                        let takes = if is_refused { Duration::ZERO } else { Duration::from_millis(100) };
                        tokio::time::sleep(takes).await;
                        *service.lock().unwrap() -= 1;
                        if !is_refused {
                            break;
                        }
                        sent.fail(&fault(FaultKind::RateLimited, None));
                        most_refusals = most_refusals.max(refusals + 1);
                        tokio::time::sleep(Duration::from_millis(200 << refusals)).await;
                    }
                }
                most_refusals
            });
        }
        let most = members.join_all().await.into_iter().max();
        assert!((1..=2).contains(&most.unwrap()), "{most:?}");
        assert_eq!(pool.state().resting.len(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn the_place_of_a_refused_call_is_empty_for_a_minute_and_one_is_always_left() {
        let pool = pool(3);
        for _ in 0..5 {
            fail(&pool, FaultKind::RateLimited, None).await;
        }
        let only = sent(&pool).await;
        assert!(tokio::time::timeout(SECOND, sent(&pool)).await.is_err());
        tokio::time::advance(RESTS_FOR).await;
        drop((only, sent(&pool).await, sent(&pool).await));
        // Other failures are not about the number of calls.
        for kind in [FaultKind::Overloaded, FaultKind::Server, FaultKind::Auth, FaultKind::EndedEarly] {
            fail(&pool, kind, None).await;
        }
        assert!(pool.state().resting.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_applies_to_all_calls_and_is_reported() {
        let told: Arc<Mutex<Vec<(String, Duration)>>> = Arc::default();
        let kept = told.clone();
        let progress = Progress::default()
            .with_waits(move |why, wait| kept.lock().unwrap().push((why.to_owned(), wait)));
        for kind in [FaultKind::RateLimited, FaultKind::Overloaded, FaultKind::Server, FaultKind::EndedEarly]
        {
            let (pool, start) = (pool(4), Instant::now());
            fail(&pool, kind, Some(8 * SECOND)).await;
            drop(pool.start(later(), &progress).await.unwrap());
            assert_eq!(start.elapsed(), 8 * SECOND);
            let (why, wait) = told.lock().unwrap().pop().unwrap();
            assert!(why.contains("pool `p`") && wait == 8 * SECOND, "{why}");
        }
        assert_eq!(told.lock().unwrap().len(), 0);
        // A wait of no time is none.
        let pool = pool(4);
        fail(&pool, FaultKind::RateLimited, Some(Duration::ZERO)).await;
        assert!(pool.not_before().is_none() && pool.state().resting.len() == 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_past_the_deadline_ends_a_call_at_once_and_says_until_when() {
        for years in [Duration::from_secs(700), Duration::from_secs(3_000_000_000), Duration::MAX] {
            let pool = pool(2);
            fail(&pool, FaultKind::RateLimited, Some(years)).await;
            assert!(pool.admit().await.has_permit());
            let refused = refusal(&pool, Instant::now() + 10 * SECOND).await;
            assert!(refused.contains("pool `p`") && refused.contains(" UTC, longer than"), "{refused}");
            // After ten minutes a call tries the service.
            tokio::time::advance(LONGEST_WAIT).await;
            // If a service asks calls that were sent together for different waits, the longest counts.
            let together = [sent(&pool).await, sent(&pool).await];
            for (call, wait) in together.into_iter().zip([3 * SECOND, SECOND]) {
                call.fail(&fault(FaultKind::RateLimited, Some(wait)));
            }
            let start = Instant::now();
            drop(sent(&pool).await);
            assert_eq!(start.elapsed(), 3 * SECOND);
        }
        assert!(past_deadline(Duration::MAX).contains("longer than the time that is left"));
    }
}

#[cfg(test)]
mod first_wave_tests {
    use super::*;

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(600)
    }

    /// When each of three calls with a prefix may be sent, in milliseconds; the first begins after a time, or fails.
    async fn wave(name: &str, first: impl AsyncFn(Lead)) -> Vec<u128> {
        let start = Instant::now();
        let lead = enter_wave("s", "m", name, later()).await.expect("the first leads");
        let mut others = tokio::task::JoinSet::new();
        for _ in 0..3 {
            let name = name.to_owned();
            others.spawn(async move {
                let lead = enter_wave("s", "m", &name, later()).await;
                let at = start.elapsed().as_millis();
                if let Some(lead) = lead {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    lead.begun();
                }
                at
            });
        }
        tokio::task::yield_now().await;
        first(lead).await;
        let mut sent = others.join_all().await;
        sent.sort_unstable();
        sent
    }

    #[tokio::test(start_paused = true)]
    async fn the_others_wait_until_the_first_response_begins() {
        let sent = wave("begins", async |lead| {
            tokio::time::sleep(Duration::from_secs(2)).await;
            lead.begun();
        });
        assert_eq!(sent.await, [2_000, 2_000, 2_000]);
        // A call does not wait for a cached prefix until the entry expires.
        assert!(enter_wave("s", "m", "begins", later()).await.is_none());
        tokio::time::sleep(CACHED_FOR).await;
        assert!(enter_wave("s", "m", "begins", later()).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn where_the_first_fails_another_is_the_first() {
        let sent = wave("fails", async |lead| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(lead);
        });
        assert_eq!(sent.await, [1_000, 1_100, 1_100]);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_than_ten_seconds_or_past_the_deadline() {
        let sent = wave("hangs", async |lead| {
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(lead);
        });
        assert_eq!(sent.await, [10_000, 10_000, 10_000]);
        let _lead = enter_wave("s", "m", "short", later()).await.unwrap();
        let start = Instant::now();
        assert!(enter_wave("s", "m", "short", start + Duration::from_secs(3)).await.is_none());
        assert_eq!(start.elapsed(), Duration::from_secs(3));
        assert!(
            enter_wave("s", "m", "other", later()).await.is_some(),
            "another prefix has its own first call"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_prefix_is_of_one_service_model_and_text() {
        let mut leads = Vec::new();
        for (service, model, prefix) in
            [("a", "m", "p"), ("b", "m", "p"), ("a", "n", "p"), ("a", "m", "q"), ("am", "", "p")]
        {
            leads.extend(enter_wave(service, model, prefix, later()).await);
        }
        assert_eq!(leads.len(), 5);
    }
}
